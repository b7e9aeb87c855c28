// SPDX-License-Identifier: Apache-2.0
// What rules of gradients are written with. A rule gives the gradient of each operand of a call when its result's is
// `g`; a null one means zero, none at all that there is no rule for such attributes.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "relay/calls.h"

namespace tilewright::relay::gradients {

struct Entry {
  std::string_view op;
  GradientRule rule;
  bool any_shape = false;  // sizes need not be known
};
void add(const FactsOf& facts, std::span<const Entry> entries);

inline const Expr& x_of(const Expr& e) { return arg(e, 0); }
inline const Expr& y_of(const Expr& e) { return arg(e, 1); }
bool is_static(const Expr& e);
std::vector<int64_t> dims(const Expr& e);
Expr scalar(double value, const Expr& like);  // in its dtype
Expr zeros_like(const Expr& e);
Expr subtract(const Expr& a, const Expr& b);
Expr multiply(const Expr& a, const Expr& b);
Expr divide(const Expr& a, const Expr& b);
Expr negative(const Expr& a);
Expr where(const Expr& condition, const Expr& a, const Expr& b);
Expr summed(const Expr& x, std::vector<int64_t> axes, bool keepdims);
Expr broadcast(const Expr& x, const std::vector<int64_t>& shape);
// A broadcast operand's gradient: summed over what was repeated.
Expr collapsed(const Expr& gradient, const Expr& operand);
// The rule of an operator that gives the elements another shape.
Gradients of_reshape(const Expr& e, const Expr& g);

}  // namespace tilewright::relay::gradients
