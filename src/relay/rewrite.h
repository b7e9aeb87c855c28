// SPDX-License-Identifier: Apache-2.0
// What the rewriting passes share: running over a module's functions, looking at constants and shapes, counting uses.
#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

// The module with `rewrite` applied to each function that is not Primitive and not an external compiler's. Functions
// that come back as the same object keep their identity, so the runner sees that nothing changed.
Module rewrite_functions(const Module& module, const std::function<Expr(const Expr& function)>& rewrite);
// rewrite_graph over all those functions, entering nested ones but not Primitive ones.
Module rewrite_module(const Module& module, const Rewrite& rewrite);
// The same for one expression.
Expr rewrite_expr(const Expr& root, const Rewrite& rewrite);

// post_order over the operands that `operands` gives for an expression.
std::vector<Expr> post_order_over(const Expr& root, const std::function<std::vector<Expr>(const Expr&)>& operands);

// The data of a constant, or null.
const Tensor* constant_data(const Expr& e);
// The value all elements of a numeric constant share (not strings; -0.0 counts as 0 only where `e` is an integer).
std::optional<double> uniform_value(const Expr& e);
bool is_uniform(const Expr& e, double value);

const CallNode* as_call(const Expr& e, std::string_view op);
// Argument i of a call.
inline const Expr& arg(const Expr& e, size_t i) { return as<CallNode>(e)->args[i]; }
template <class A>
const A& attrs_of(const Expr& e) {
  const A* attrs = attrs_as<A>(as<CallNode>(e)->attrs);
  TW_ICHECK(attrs, "attributes of another operator");
  return *attrs;
}
const TensorTypeNode& tensor_of(const Expr& e);  // a bug when `e` is not a tensor
bool is_float_tensor(const Expr& e);
bool same_tensor_type(const Expr& a, const Expr& b);
// Axis counted from the front.
int64_t positive_axis(int64_t axis, size_t rank);

// How often each expression is an operand (once more for the root).
using UseCounts = std::unordered_map<const ExprNode*, int>;
UseCounts count_uses(const Expr& root);

// The model's node names of both, joined by '+'.
Span join_spans(const Span& a, const Span& b);

// A reshape call, or the expression itself when the shape is its own.
Expr reshape_to(const Expr& e, const std::vector<int64_t>& shape);
// A constant of the given shape, every element `value`.
Expr full_constant(double value, DataType dtype, std::vector<int64_t> shape = {});

// A per-channel constant: along axis `axis` of a tensor of rank `rank` it has one value per channel (or one for all),
// every other axis has size 1 or is missing in front. Returns the values as a vector of `channels` elements in its
// dtype.
std::optional<Tensor> per_channel(const Expr& e, size_t rank, int64_t axis, int64_t channels);

}  // namespace tilewright::relay
