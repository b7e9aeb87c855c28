// SPDX-License-Identifier: Apache-2.0
// Shared by rewriting passes: iteration over a module's functions, access to constants and shapes, use counts.
#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

// Applies `rewrite` to every function that is neither Primitive nor an external compiler's. A function returned
// unchanged keeps its identity, so that the runner sees no change.
Module rewrite_functions(const Module& module, const std::function<Expr(const Expr& function)>& rewrite);
// rewrite_graph over all those functions, entering nested ones but not Primitive ones.
Module rewrite_module(const Module& module, const Rewrite& rewrite);
// The same for one expression.
Expr rewrite_expr(const Expr& root, const Rewrite& rewrite);

// post_order over the operands that `operands` gives for an expression.
std::vector<Expr> post_order_over(const Expr& root, const std::function<std::vector<Expr>(const Expr&)>& operands);

// The data of a constant, or null.
const Tensor* constant_data(const Expr& e);
// The value that all elements of a numeric constant share (-0.0 counts as 0 only for integers).
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
const TensorTypeNode& tensor_of(const Expr& e);  // an internal error when `e` is not a tensor
bool is_float_tensor(const Expr& e);
bool same_tensor_type(const Expr& a, const Expr& b);
// A possibly negative axis as 0..rank-1.
int64_t positive_axis(int64_t axis, size_t rank);

// How often each expression is used as an operand (the root counts once more).
using UseCounts = std::unordered_map<const ExprNode*, int>;
UseCounts count_uses(const Expr& root);

// The node names of both, joined by '+'.
Span join_spans(const Span& a, const Span& b);

// A reshape call; the expression itself if it has the shape.
Expr reshape_to(const Expr& e, const std::vector<int64_t>& shape);
// A constant of the given shape, every element `value`.
Expr full_constant(double value, DataType dtype, std::vector<int64_t> shape = {});

// The values of a per-channel constant: along `axis` of a tensor of rank `rank`
// it has one value per channel (or one for all), and every other axis has size
// 1 or is absent. Returns them as a vector of `channels` elements in its dtype.
std::optional<Tensor> per_channel(const Expr& e, size_t rank, int64_t axis, int64_t channels);

}  // namespace tilewright::relay
