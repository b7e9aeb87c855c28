// SPDX-License-Identifier: Apache-2.0
// einsum as batched matrix products, contracting the operands pairwise from the left.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "relay/calls.h"
#include "relay/ops/tensor/einsum.h"
#include "relay/passes/legalize/legalize_rules.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// A tensor with named axes, none repeated.
struct Factor {
  Expr value;
  std::string axes;
};

class Contraction {
 public:
  explicit Contraction(std::map<char, int64_t> sizes) : sizes_(std::move(sizes)) {}

  // Sums over the axes that are not in `wanted`.
  Factor summed(const Factor& x, const std::string& wanted) const {
    Ints gone;
    std::string left;
    for (size_t d = 0; d < x.axes.size(); ++d) {
      if (has(wanted, x.axes[d]))
        left += x.axes[d];
      else
        gone.push_back(static_cast<int64_t>(d));
    }
    if (gone.empty()) return x;
    return {call("sum", {x.value}, make_attrs<ReduceAttrs>([&](auto& a) { a.axis = gone; }), x.value->span), left};
  }
  Factor in_order(const Factor& x, const std::string& axes) const {
    Ints order;
    for (char c : axes) order.push_back(static_cast<int64_t>(x.axes.find(c)));
    return {reordered(x.value, order), axes};
  }

  // The product of two factors, summed over the axes that are not in `wanted`.
  Factor product(Factor a, Factor b, const std::string& wanted) const {
    a = summed(a, wanted + b.axes), b = summed(b, wanted + a.axes);
    std::string batch, rows, columns, depth;
    for (char c : a.axes) (has(b.axes, c) ? (has(wanted, c) ? batch : depth) : rows) += c;
    for (char c : b.axes)
      if (!has(a.axes, c)) columns += c;
    if (depth.empty()) return broadcast(a, b, batch + rows + columns);
    // The operand with the result's last axis goes second, so that the result needs no transpose.
    if (!wanted.empty() && has(rows, wanted.back())) std::swap(a, b), std::swap(rows, columns);
    const Factor left = in_order(a, batch + rows + depth);
    const std::string by_rows = batch + columns + depth, by_depth = batch + depth + columns;
    const bool transposed = b.axes != by_depth && (b.axes == by_rows || has(depth, b.axes.back()));
    const Factor right = in_order(b, transposed ? by_rows : by_depth);
    const int64_t n = extent(batch), m = extent(rows), k = extent(depth), w = extent(columns);
    Expr y =
        call("nn.batch_matmul",
             {reshape_to(left.value, {n, m, k}), reshape_to(right.value, transposed ? Ints{n, w, k} : Ints{n, k, w})},
             make_attrs<BatchMatmulAttrs>([&](auto& p) { p.transpose_a = false, p.transpose_b = transposed; }),
             a.value->span);
    const std::string axes = batch + rows + columns;
    return {reshape_to(y, shape(axes)), axes};
  }

 private:
  // No contraction: an outer product by broadcasting.
  Factor broadcast(const Factor& a, const Factor& b, const std::string& axes) const {
    auto spread = [&](const Factor& x) {
      std::string own;
      Ints wide;
      for (char c : axes) {
        if (has(x.axes, c)) own += c;
        wide.push_back(has(x.axes, c) ? sizes_.at(c) : 1);
      }
      return reshape_to(in_order(x, own).value, wide);
    };
    return {both("multiply", spread(a), spread(b)), axes};
  }
  Ints shape(const std::string& axes) const {
    Ints out;
    for (char c : axes) out.push_back(sizes_.at(c));
    return out;
  }
  int64_t extent(const std::string& axes) const {
    int64_t n = 1;
    for (char c : axes) n *= sizes_.at(c);
    return n;
  }
  const std::map<char, int64_t> sizes_;
};

}  // namespace

Expr einsum_of_products(const Expr& e) {
  const auto* operands = as<TupleNode>(arg(e, 0));
  if (!operands) return e;
  std::vector<size_t> ranks;
  for (const Expr& x : operands->fields) ranks.push_back(tensor_of(x).shape.size());
  auto parsed = parse_equation(attrs_of<EinsumAttrs>(e).equation, ranks);
  if (!parsed.ok()) return e;
  const EinsumEquation equation = *parsed;
  std::map<char, int64_t> sizes;
  std::vector<Factor> factors;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::string& axes = equation.operands[i];
    const auto shape = static_shape(tensor_of(operands->fields[i]).shape);
    if (!shape) return e;
    for (size_t d = 0; d < axes.size(); ++d) {
      // Diagonals and broadcast axes of size 1 are left to the generic loop kernel.
      if (has(axes.substr(d + 1), axes[d])) return e;
      if ((*shape)[d] == 0) return e;
      if (auto [it, fresh] = sizes.try_emplace(axes[d], (*shape)[d]); !fresh && it->second != (*shape)[d]) return e;
    }
    factors.push_back({operands->fields[i], axes});
  }
  const Contraction contraction(std::move(sizes));
  Factor result = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) {
    std::string wanted;  // axes that the remaining operands and the result need
    for (size_t j = i + 1; j < factors.size(); ++j) wanted += factors[j].axes;
    result = contraction.product(result, factors[i], wanted + equation.result);
  }
  Expr out = contraction.in_order(contraction.summed(result, equation.result), equation.result).value;
  return same_tensor_type(out, e) ? out : e;
}

}  // namespace tilewright::relay
