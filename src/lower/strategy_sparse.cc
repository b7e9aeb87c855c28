// SPDX-License-Identifier: Apache-2.0
// Sparse matrices.
#include "lower/implementation.h"
#include "relay/ops/attrs.h"
#include "topi/sparse.h"

namespace tilewright::lower {
namespace {
using namespace relay;

// Transposes each block: (blocks, rows, columns) to (blocks, columns, rows).
Tensor turned_blocks(const Tensor& t) {
  const int64_t blocks = t.shape()[0], rows = t.shape()[1], columns = t.shape()[2];
  Tensor out(t.dtype(), {blocks, columns, rows});
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        out.set_double((b * columns + c) * rows + r, t.at_double((b * rows + r) * columns + c));
  return out;
}

struct SparseDense {
  using Config = topi::SparseConfig;
  struct Site {
    topi::SparseProblem problem;
    bool blocks = false;         // blocks of several elements
    bool converted = false;      // narrower floats, converted when read
    bool constant_data = false;  // the blocks' values are constant
  };
  static std::optional<Site> site(const Problem& p) {
    if (!p.anchor.direct() || p.attrs<SparseDenseAttrs>().sparse_lhs) return std::nullopt;
    const auto data = p.arg_shape(0), values = p.arg_shape(1), starts = p.arg_shape(3);
    Site s{{data[0], data[1], starts[0] - 1, values[0]}, values.size() == 3, false, p.constant(1)};
    if (s.blocks) s.problem.block_rows = values[1], s.problem.block_columns = values[2];
    s.problem.dtype = topi::accumulator_dtype(p.arg_dtype(0));
    s.converted = p.arg_dtype(0) != s.problem.dtype;
    return s;
  }
  // Blocks one column wide already have the kernel's layout; wider constant ones are transposed.
  static bool turns(const Site& s, const Config& c) {
    return s.blocks && s.problem.block_columns > 1 && c.form == topi::SparseForm::kAlongBlocks;
  }
  static std::vector<Config> configs(const Problem& p, const Site& s, size_t most) {
    const Config best = topi::sparse_config(s.problem, p.target);
    Config one_by_one;
    one_by_one.chains = 4;
    std::vector<Config> out;
    if (!s.converted && (!turns(s, best) || s.constant_data)) out.push_back(best);
    if (out.size() < most && (out.empty() || best != one_by_one)) out.push_back(one_by_one);
    return out;
  }
  static bool fits(const Problem& p, const Site& s, const Config& c) {
    const auto all = configs(p, s, 2);
    return std::find(all.begin(), all.end(), c) != all.end();
  }
  static topi::Cost cost(const Problem& p, const Site& s, const Config& c) {
    return topi::estimate(s.problem, c, p.target);
  }
  static std::shared_ptr<Choice> make(const Problem& p, const Site& s, const Config& config) {
    auto choice = std::make_shared<Choice>();
    choice->scratch_bytes = topi::sparse_scratch_bytes(s.problem, config);
    const bool repacked = turns(s, config);
    if (repacked) choice->repacks.emplace_back(p.input_index(1), turned_blocks);
    choice->emit = [problem = s.problem, blocks = s.blocks, config, repacked, anchor = p.anchor](
                       const GroupScope& scope, const topi::KernelContext& context) {
      auto input = [&](size_t i) -> const topi::View& { return scope.input(static_cast<size_t>(anchor.inputs[i])); };
      topi::View w = input(1);
      if (repacked)
        w = topi::make_view(w.buffer, {problem.blocks, problem.block_columns, problem.block_rows});
      else if (blocks)
        w = {w.buffer, {w.shape[0], w.shape[2], w.shape[1]}, {w.strides[0], w.strides[2], w.strides[1]}, w.offset, {},
             {}};
      else
        w = {w.buffer, {w.shape[0], 1, 1}, {w.strides[0], 1, 1}, w.offset, {}, {}};
      return topi::sparse_product(problem, config, input(0), w, scope.anchor_operand(anchor, 2),
                                  scope.anchor_operand(anchor, 3), scope.output(), scope.epilogue(anchor), context);
    };
    return choice;
  }
};

std::shared_ptr<Choice> sparse_add(const Problem& p) {
  if (!whole_group(p)) return nullptr;
  auto choice = std::make_shared<Choice>();
  choice->cost.bytes = 2.0 * static_cast<double>(topi::product(p.out_shape())) * p.arg_dtype(0).bits / 8.0;
  choice->cost.microseconds = choice->cost.bytes / (p.target.machine.l2_gbps * 1e3);
  choice->emit = [anchor = p.anchor, count = p.arg_shape(1)[0]](const GroupScope& scope,
                                                                const topi::KernelContext& context) {
    auto operand = [&](size_t i) { return scope.anchor_operand(anchor, i); };
    return topi::sparse_add(scope.output(), count, operand(0), operand(1), operand(2), operand(3), context);
  };
  return choice;
}

std::shared_ptr<Choice> sparse_transpose(const Problem& p) {
  if (!whole_group(p)) return nullptr;
  auto choice = std::make_shared<Choice>();
  choice->parallel = false;
  choice->cost.bytes = 2.0 * static_cast<double>(p.arg_shape(0)[0] + p.arg_shape(2)[0]) * 8;
  choice->cost.microseconds = choice->cost.bytes / (p.target.machine.l2_gbps * 1e3) * 8;
  choice->emit = [anchor = p.anchor, count = p.arg_shape(0)[0], rows = p.arg_shape(2)[0] - 1](
                     const GroupScope& scope, const topi::KernelContext&) {
    auto operand = [&](size_t i) { return scope.anchor_operand(anchor, i); };
    return topi::sparse_transpose(rows, count, operand(0), operand(1), operand(2), scope.output(0), scope.output(1),
                                  scope.output(2));
  };
  return choice;
}

constexpr Implementation kSparseImplementations[] = {
    fixed<sparse_add>("nn.sparse_add", "sparse_add", 10),
    tuned<SparseDense>("nn.sparse_dense", "sparse_dense", 10),
    fixed<sparse_transpose>("nn.sparse_transpose", "sparse_transpose", 10),
};

}  // namespace

std::span<const Implementation> sparse_implementations() { return kSparseImplementations; }

}  // namespace tilewright::lower
