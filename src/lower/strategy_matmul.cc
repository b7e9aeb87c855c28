// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include "lower/compute.h"
#include "lower/panel_widths.h"
#include "lower/strategy.h"
#include "relay/ops/attrs.h"
#include "topi/gemm.h"
#include "topi/pack.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// The epilogue over an output whose leading dimensions were run together: rows come back as their own indices.
topi::Epilogue expand_rows(const topi::Epilogue& inner, const std::vector<int64_t>& shape, size_t kept) {
  return [=](tir::PrimExpr value, const topi::Index& index, const tir::PrimExpr& mask) {
    // index: (kept - 1 collapsed dims..., trailing ones as they are); only the first one was merged.
    size_t merged = shape.size() - (kept - 1);
    std::vector<int64_t> head(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(merged));
    topi::Index full = unflatten_index(index[0], head);
    full.insert(full.end(), index.begin() + 1, index.end());
    return inner(std::move(value), full, mask);
  };
}

// Whether the constant operand is an N x K matrix; nothing when the operator has no packed form.
std::optional<bool> is_nk(const Problem& p) {
  if (p.anchor.op == "nn.dense") return true;
  if (p.anchor.op != "nn.matmul") return std::nullopt;
  const auto& attrs = p.attrs<MatmulAttrs>();
  if (attrs.transpose_a) return std::nullopt;
  return attrs.transpose_b;
}

// Few rows wait for the weights to come from memory: those that are all halves come as halves. Several shapes of one
// library share theirs.
DataType weights_kept_in(const Problem& p, const topi::GemmProblem& problem) {
  constexpr int64_t kFewRows = 4, kMuch = 1 << 18;
  if (problem.dtype != kFloat32 || problem.m > kFewRows || problem.k * problem.n * 4 < kMuch || p.graph.panels)
    return problem.dtype;
  return topi::small_dtype_of(p.input(1).data);
}

// C[M, N] = A[M, K] x B with a constant B, whatever the number of leading dimensions of A.
std::shared_ptr<Choice> packed(const Problem& p) {
  const auto found = packed_product(p);
  if (!found) return nullptr;
  topi::GemmProblem problem = *found;
  const bool b_is_nk = *is_nk(p);
  const auto out = p.out_shape();
  const bool dots = topi::packed_as_dots(problem, p.target) &&
                    (!p.graph.panels || p.graph.panels->as_dots(p.input(1).data, p.target));
  if (dots) problem.b = topi::MatrixB::kTransposed, problem.dots = true;
  const int panel = p.graph.panels && !dots ? p.graph.panels->vectors(p.input(1).data, p.target) : 0;
  const auto config = topi::default_config(problem, p.target, panel);
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, config, p.target);
  choice->configuration = dots ? topi::dots_text(problem, p.target) : topi::to_text(config);
  if (!dots) choice->configurations = [problem, machine = p.target] { return topi::ranked_configs(problem, machine); };
  // Rows for dot products are one panel of B's transpose, as wide as they are long.
  const int64_t lanes = topi::lanes_of(problem, p.target), row = topi::round_up(problem.k, lanes);
  const int64_t width = dots ? row : config.nr * lanes;
  int a_input = p.input_index(0), b_input = p.input_index(1);
  const DataType kept = weights_kept_in(p, problem);
  if (kept != problem.dtype) choice->configuration += " of " + kept.str();
  choice->repacks.emplace_back(
      b_input, [=](const Tensor& t) { return topi::pack_dense(topi::converted(t, kept), b_is_nk != dots, width); });
  Anchor anchor = p.anchor;
  const std::vector<int64_t> packed_shape =
      dots ? std::vector{problem.n, row} : topi::packed_b_shape(problem, config, p.target);
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    auto x = collapse_leading(scope.input(static_cast<size_t>(a_input)), 2), y = collapse_leading(scope.output(), 2);
    TW_ICHECK(x && y, "dense operands have halos");
    topi::View w = topi::make_view(scope.input(static_cast<size_t>(b_input)).buffer, packed_shape);
    return topi::gemm(problem, config, *x, w, *y, expand_rows(scope.epilogue(anchor), out, 2), context);
  };
  return choice;
}

// Both operands are activations; leading dimensions equal, or one side's all 1.
std::shared_ptr<Choice> activation_product(const Problem& p, bool transpose_a, bool transpose_b) {
  if (!p.anchor.direct() || !has_tiles(p) || transpose_a) return nullptr;
  auto a = p.arg_shape(0), b = p.arg_shape(1), out = p.out_shape();
  if (a.size() < 2 || b.size() < 2) return nullptr;
  auto batch = [](const std::vector<int64_t>& s) {
    int64_t n = 1;
    for (size_t i = 0; i + 2 < s.size(); ++i) n *= s[i];
    return n;
  };
  int64_t nb = batch(out);
  if ((batch(a) != nb && batch(a) != 1) || (batch(b) != nb && batch(b) != 1)) return nullptr;
  topi::GemmProblem problem;
  problem.batch = nb;
  problem.m = a[a.size() - 2];
  problem.k = a.back();
  problem.n = out.back();
  problem.row_stride = problem.k;
  problem.dtype = p.arg_dtype(0);
  problem.b = transpose_b ? topi::MatrixB::kTransposed : topi::MatrixB::kRowMajor;
  auto config = topi::default_config(problem, p.target);
  auto choice = std::make_shared<Choice>();
  choice->cost = topi::estimate(problem, config, p.target);
  choice->configuration = topi::to_text(config);
  choice->configurations = [problem, machine = p.target] { return topi::ranked_configs(problem, machine); };
  int a_input = p.input_index(0), b_input = p.input_index(1);
  Anchor anchor = p.anchor;
  choice->emit = [=](const GroupScope& scope, const topi::KernelContext& context) {
    auto x = collapse_leading(scope.input(static_cast<size_t>(a_input)), 3), y = collapse_leading(scope.output(), 3);
    auto z = collapse_leading(scope.input(static_cast<size_t>(b_input)), 3);
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
std::shared_ptr<Choice> tiled_batch_matmul(const Problem& p) {
  const auto& attrs = p.attrs<BatchMatmulAttrs>();
  return activation_product(p, attrs.transpose_a, attrs.transpose_b);
}
std::shared_ptr<Choice> matmul(const Problem& p) {
  const auto& attrs = p.attrs<MatmulAttrs>();
  return activation_product(p, attrs.transpose_a, attrs.transpose_b);
}
std::shared_ptr<Choice> dense_of_activations(const Problem& p) { return activation_product(p, false, true); }

constexpr Implementation kMatmulImplementations[] = {
    {"nn.batch_matmul", "batch_matmul.gemm", 10, tiled_batch_matmul},
    {"nn.dense", "dense.packed", 10, packed},
    {"nn.dense", "dense.gemm", 5, dense_of_activations},
    {"nn.matmul", "matmul.packed", 10, packed},
    {"nn.matmul", "matmul.gemm", 5, matmul},
};

}  // namespace

std::optional<topi::GemmProblem> packed_product(const Problem& p) {
  const auto b_is_nk = is_nk(p);
  if (!b_is_nk || !p.anchor.direct() || !has_tiles(p) || !p.constant(1)) return std::nullopt;
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
  return problem;
}

std::span<const Implementation> matmul_implementations() { return kMatmulImplementations; }

}  // namespace tilewright::lower
