// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <algorithm>
#include <cstring>

#include "lower/compute.h"
#include "lower/implementation.h"
#include "lower/weight_forms.h"
#include "relay/ops/attrs.h"
#include "topi/block_dense.h"
#include "topi/gemm.h"
#include "topi/pack.h"
#include "topi/words.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// The epilogue of an output whose leading dimensions were merged: recovers their separate indices.
topi::Epilogue expand_rows(const topi::Epilogue& inner, const std::vector<int64_t>& shape, size_t kept) {
  return [=](tir::PrimExpr value, const topi::Index& index, const tir::PrimExpr& mask) {
    // index: (kept - 1 collapsed dims..., trailing ones unchanged); only the first one was merged.
    size_t merged = shape.size() - (kept - 1);
    std::vector<int64_t> head(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(merged));
    topi::Index full = unflatten_index(index[0], head);
    full.insert(full.end(), index.begin() + 1, index.end());
    return inner(std::move(value), full, mask);
  };
}

// Whether the constant operand is N x K; nothing when the operator has no packed form.
std::optional<bool> is_nk(const Problem& p) {
  if (p.anchor.op == "nn.dense") return true;
  if (p.anchor.op != "nn.matmul") return std::nullopt;
  const auto& attrs = p.attrs<MatmulAttrs>();
  if (attrs.transpose_a) return std::nullopt;
  return attrs.transpose_b;
}

// With few rows the product waits for weights from memory: weights that are exact in half precision are stored so.
// Variants of one library share the decision.
DataType weights_kept_in(const Problem& p, const topi::GemmProblem& problem) {
  constexpr int64_t kFewRows = 4, kMuch = 1 << 18;
  if (problem.dtype != kFloat32 || problem.m > kFewRows || problem.k * problem.n * 4 < kMuch || p.graph.forms)
    return problem.dtype;
  return topi::small_dtype_of(p.input(1).data);
}

struct PackedConfig {
  int mr = 1, nr = 1, k_unroll = 1;  // as in GemmConfig
  bool dots = false;                 // B is stored as rows along K, for dot products
  DataType weights = kFloat32;       // storage dtype of B
  bool operator==(const PackedConfig&) const = default;
  static constexpr auto fields() {
    using C = PackedConfig;
    return std::tuple{topi::field("mr", &C::mr), topi::field("nr", &C::nr), topi::field("k_unroll", &C::k_unroll),
                      topi::field("dots", &C::dots), topi::field("weights", &C::weights)};
  }
  topi::GemmConfig tile() const { return {mr, nr, k_unroll, dots}; }
};

// C[M, N] = A[M, K] x B with a constant B and any number of leading dimensions of A.
struct PackedProduct {
  using Config = PackedConfig;
  struct Site {
    topi::GemmProblem problem;  // its panel width is that agreed on by all readers of the weights
    bool b_is_nk = false;
    DataType kept;
    bool dots = false;  // profitable, and agreed on by all readers of the weights
  };
  static std::optional<Site> site(const Problem& p) {
    auto problem = packed_product(p);
    if (!problem) return std::nullopt;
    const WeightForms* forms = p.graph.forms;
    const bool dots =
        topi::packed_as_dots(*problem, p.target, is_looked_up(p)) && (!forms || forms->as_dots(p.input(1).data));
    if (forms && !dots) problem->panel = forms->panel_vectors(p.input(1).data);
    return Site{*problem, *is_nk(p), weights_kept_in(p, *problem), dots};
  }
  // The product as seen by a kernel of this configuration.
  static topi::GemmProblem problem_of(const Site& s, const Config& c) {
    topi::GemmProblem problem = s.problem;
    if (c.dots) problem.b = topi::MatrixB::kTransposed;
    return problem;
  }
  static std::vector<Config> configs(const Problem& p, const Site& s, size_t most) {
    std::vector<Config> out;
    if (s.dots) out.push_back({1, 1, 1, true, s.kept});
    if (!s.dots || !p.graph.forms)
      for (const topi::GemmConfig& c : topi::configs(s.problem, p.target, most))
        if (out.size() < most) out.push_back({c.mr, c.nr, c.k_unroll, false, s.kept});
    return out;
  }
  static bool fits(const Problem& p, const Site& s, const Config& c) {
    const bool agreed = !p.graph.forms || c.dots == s.dots;
    return agreed && (c.weights == s.kept || c.weights == s.problem.dtype) &&
           topi::fits(problem_of(s, c), c.tile(), p.target);
  }
  static topi::Cost cost(const Problem& p, const Site& s, const Config& c) {
    topi::Cost cost = topi::estimate(problem_of(s, c), c.tile(), p.target);
    // Weights come from memory in either form.
    const auto weights = static_cast<double>(s.problem.n * s.problem.k * static_cast<int64_t>(c.weights.bytes()));
    if (c.dots) cost.microseconds = std::max(cost.microseconds, weights / (p.target.machine.dram_gbps * 1e3));
    return cost;
  }
  static std::shared_ptr<Choice> make(const Problem& p, const Site& s, const Config& config) {
    const topi::GemmProblem problem = problem_of(s, config);
    const topi::GemmConfig tile = config.tile();
    auto choice = std::make_shared<Choice>();
    // Rows for dot products form one panel of B's transpose, one row wide.
    const int64_t lanes = topi::lanes_of(problem, p.target), row = topi::round_up(problem.k, lanes);
    const int64_t width = tile.dots ? row : topi::panel_vectors(problem, tile) * lanes;
    if (problem.words())
      choice->repacks.emplace_back(p.input_index(1), [width, turned = s.b_is_nk](const Tensor& t) {
        return topi::pack_dense_words(t, turned, width);
      });
    else
      choice->repacks.emplace_back(p.input_index(1),
                                   [kept = config.weights, width, turned = s.b_is_nk != tile.dots](const Tensor& t) {
                                     return topi::pack_dense(topi::converted(t, kept), turned, width);
                                   });
    const std::vector<int64_t> packed_shape =
        tile.dots ? std::vector{problem.n, row} : topi::packed_b_shape(problem, tile, p.target);
    choice->emit = [=, anchor = p.anchor, out = p.out_shape()](const GroupScope& scope,
                                                               const topi::KernelContext& context) {
      auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      auto x = collapse_leading(input(0), 2), y = collapse_leading(scope.output(), 2);
      TW_ICHECK(x && y, "dense operands have halos");
      topi::View w = topi::make_view(input(1).buffer, packed_shape);
      return topi::gemm(problem, tile, *x, w, *y, expand_rows(scope.epilogue(anchor), out, 2), context);
    };
    return choice;
  }
};

// Which operands are read transposed.
struct Transposed {
  bool a, b;
};
Transposed transposed(const Problem& p) {
  auto of = [](const auto& attrs) { return Transposed{attrs.transpose_a, attrs.transpose_b}; };
  if (p.anchor.op == "nn.dense") return {false, true};
  return p.anchor.op == "nn.matmul" ? of(p.attrs<MatmulAttrs>()) : of(p.attrs<BatchMatmulAttrs>());
}

// Both operands are activations; batch dimensions are equal, or 1 on one side.
struct ActivationProduct {
  using Config = topi::GemmConfig;
  static std::optional<topi::GemmProblem> site(const Problem& p) {
    const Transposed as = transposed(p);
    if (!p.anchor.direct() || !has_tiles(p) || as.a) return std::nullopt;
    auto a = p.arg_shape(0), b = p.arg_shape(1), out = p.out_shape();
    if (a.size() < 2 || b.size() < 2) return std::nullopt;
    auto batch = [](const std::vector<int64_t>& s) {
      int64_t n = 1;
      for (size_t i = 0; i + 2 < s.size(); ++i) n *= s[i];
      return n;
    };
    const int64_t nb = batch(out);
    if ((batch(a) != nb && batch(a) != 1) || (batch(b) != nb && batch(b) != 1)) return std::nullopt;
    topi::GemmProblem problem;
    problem.batch = nb;
    problem.m = a[a.size() - 2];
    problem.k = a.back();
    problem.n = out.back();
    problem.row_stride = problem.k;
    problem.dtype = p.arg_dtype(0);
    problem.b = as.b ? topi::MatrixB::kTransposed : topi::MatrixB::kRowMajor;
    return problem;
  }
  static std::vector<Config> configs(const Problem& p, const topi::GemmProblem& g, size_t most) {
    return topi::configs(g, p.target, most);
  }
  static bool fits(const Problem& p, const topi::GemmProblem& g, const Config& c) { return topi::fits(g, c, p.target); }
  static topi::Cost cost(const Problem& p, const topi::GemmProblem& g, const Config& c) {
    return topi::estimate(g, c, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const topi::GemmProblem& problem, const Config& config) {
    auto choice = std::make_shared<Choice>();
    choice->emit = [=, anchor = p.anchor, out = p.out_shape()](const GroupScope& scope,
                                                               const topi::KernelContext& context) {
      auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      auto x = collapse_leading(input(0), 3), y = collapse_leading(scope.output(), 3);
      auto z = collapse_leading(input(1), 3);
      TW_ICHECK(x && y && z, "matmul operands have halos");
      topi::Epilogue epilogue = scope.epilogue(anchor);
      if (out.size() == 2)
        epilogue = [inner = scope.epilogue(anchor)](tir::PrimExpr value, const topi::Index& index,
                                                    const tir::PrimExpr& mask) {
          return inner(std::move(value), {index[1], index[2]}, mask);
        };
      else
        epilogue = expand_rows(scope.epilogue(anchor), out, 3);
      return topi::gemm(problem, config, *x, *z, *y, epilogue, context);
    };
    return choice;
  }
};

// Few rows by a constant block-quantised matrix, read in its stored form.
std::shared_ptr<Choice> block_dense(const Problem& p) {
  if (!p.anchor.direct() || !p.constant(1) || !p.constant(2) || !p.constant(3)) return nullptr;
  const auto& attrs = p.attrs<BlockDenseAttrs>();
  const auto data = p.arg_shape(0);
  topi::BlockDenseProblem problem{1, p.arg_shape(1)[0], data.back(), attrs.block, attrs.bits};
  for (size_t i = 0; i + 1 < data.size(); ++i) problem.m *= data[i];
  if (problem.m < 1 || problem.n < 1 || problem.k < 1) return nullptr;
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, p.target);
  choice->scratch_bytes = topi::block_dense_scratch_bytes(problem);
  choice->repacks.emplace_back(p.input_index(1), topi::pack_block_words);
  choice->repacks.emplace_back(p.input_index(2), topi::pack_block_scales);
  choice->repacks.emplace_back(p.input_index(3), topi::pack_block_scales);
  choice->emit = [=, anchor = p.anchor, out = p.out_shape()](const GroupScope& scope,
                                                             const topi::KernelContext& context) {
    auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
    auto x = collapse_leading(input(0), 2), y = collapse_leading(scope.output(), 2);
    TW_ICHECK(x && y, "block_dense operands have halos");
    return topi::block_dense(problem, *x, input(1).buffer, input(2).buffer, input(3).buffer, *y,
                             expand_rows(scope.epilogue(anchor), out, 2), context);
  };
  return choice;
}

constexpr Implementation kMatmulImplementations[] = {
    tuned<ActivationProduct>("nn.batch_matmul", "batch_matmul.gemm", 10),
    fixed<block_dense>("nn.block_dense", "block_dense", 10),
    tuned<PackedProduct>("nn.dense", "dense.packed", 10),
    tuned<ActivationProduct>("nn.dense", "dense.gemm", 5),
    tuned<PackedProduct>("nn.matmul", "matmul.packed", 10),
    tuned<ActivationProduct>("nn.matmul", "matmul.gemm", 5),
};

}  // namespace

bool is_looked_up(const Problem& p) {
  const Tensor& weights = p.input(1).data;
  auto takes_rows = [&](int group) {
    const std::vector<relay::Expr> all = relay::post_order(p.graph.groups[static_cast<size_t>(group)].function->body);
    return std::any_of(all.begin(), all.end(), [](const relay::Expr& e) { return is_call_to(e, "take"); });
  };
  return std::any_of(p.graph.tensors.begin(), p.graph.tensors.end(), [&](const GraphTensor& t) {
    return t.kind == GraphTensor::Kind::kParam && t.data.bytes() == weights.bytes() &&
           std::any_of(t.consumers.begin(), t.consumers.end(), takes_rows) &&
           std::memcmp(t.data.raw(), weights.raw(), weights.bytes()) == 0;
  });
}

std::optional<topi::GemmProblem> packed_product(const Problem& p) {
  const auto b_is_nk = is_nk(p);
  if (!b_is_nk || !p.anchor.direct() || !(has_tiles(p) || has_words(p)) || !p.constant(1)) return std::nullopt;
  auto a = p.arg_shape(0), b = p.arg_shape(1), out = p.out_shape();
  if (b.size() != 2 || a.empty() || out.size() != a.size()) return std::nullopt;
  topi::GemmProblem problem;
  problem.k = a.back();
  problem.n = *b_is_nk ? b[0] : b[1];
  problem.m = 1;
  for (size_t i = 0; i + 1 < a.size(); ++i) problem.m *= a[i];
  problem.row_stride = problem.k;
  problem.dtype = p.arg_dtype(0);
  problem.b = topi::MatrixB::kPacked;
  if (has_words(p))
    problem.in_words = problem.k, problem.k = topi::ceil_div(problem.k, topi::word_elements(problem.dtype));
  return problem;
}

std::span<const Implementation> matmul_implementations() { return kMatmulImplementations; }

}  // namespace tilewright::lower
