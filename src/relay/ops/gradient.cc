// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/gradient.h"

#include "relay/ops/training/attrs_training.h"

namespace tilewright::relay::gradients {

void add(const FactsOf& facts, std::span<const Entry> entries) {
  for (const Entry& entry : entries) {
    OpFacts& op = facts(entry.op);
    op.gradient = entry.rule;
    op.gradient_of_any_shape = entry.any_shape;
  }
}

std::vector<int64_t> dims(const Expr& e) { return static_shape(tensor_of(e).shape).value(); }
Expr scalar(double value, const Expr& like) { return full_constant(value, tensor_of(like).dtype); }
Expr subtract(const Expr& a, const Expr& b) { return call("subtract", {a, b}); }
Expr multiply(const Expr& a, const Expr& b) { return call("multiply", {a, b}); }
Expr divide(const Expr& a, const Expr& b) { return call("divide", {a, b}); }
Expr negative(const Expr& a) { return call("negative", {a}); }
Expr summed(const Expr& x, std::vector<int64_t> axes, bool keepdims) {
  if (axes.empty()) return x;
  return call("sum", {x}, make_attrs<ReduceAttrs>([&](auto& a) {
                a.axis = std::move(axes);
                a.keepdims = keepdims;
              }));
}
bool is_static(const Expr& e) {
  const auto* t = as_tensor(e->type);
  return !t || static_shape(t->shape);
}
Expr broadcast(const Expr& x, const std::vector<int64_t>& shape) {
  if (dims(x) == shape) return x;
  return call("broadcast_to", {x}, make_attrs<InitOpAttrs>([&](auto& a) { a.shape = shape; }));
}
Expr collapsed(const Expr& gradient, const Expr& operand) {
  if (same_tensor_type(gradient, operand)) return gradient;
  if (!is_static(gradient) || !is_static(operand)) return call("collapse_sum_like", {gradient, operand});
  std::vector<int64_t> from = dims(gradient), to = dims(operand), axes;
  size_t extra = from.size() - to.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (i < extra || (to[i - extra] == 1 && from[i] != 1)) axes.push_back(static_cast<int64_t>(i));
  return reshape_to(summed(gradient, axes, false), to);
}
Expr zeros_like(const Expr& e) {
  return is_static(e) ? full_constant(0, tensor_of(e).dtype, dims(e)) : call("zeros_like", {e});
}
Gradients of_reshape(const Expr& e, const Expr& g) {
  if (!is_static(arg(e, 0))) return {call("reshape_like", {g, arg(e, 0)})};
  return {reshape_to(g, dims(arg(e, 0)))};
}
Expr where(const Expr& condition, const Expr& a, const Expr& b) { return call("where", {condition, a, b}); }

}  // namespace tilewright::relay::gradients
