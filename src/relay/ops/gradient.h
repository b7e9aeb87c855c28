// SPDX-License-Identifier: Apache-2.0
// Building blocks for gradient rules. A rule gives the gradient of each operand of a call from `g`, that of its result;
// null means zero, an empty list that there is no rule for these attributes.
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
Expr scalar(double value, const Expr& like);  // in the dtype of `like`
Expr zeros_like(const Expr& e);
Expr subtract(const Expr& a, const Expr& b);
Expr multiply(const Expr& a, const Expr& b);
Expr divide(const Expr& a, const Expr& b);
Expr negative(const Expr& a);
Expr where(const Expr& condition, const Expr& a, const Expr& b);
Expr summed(const Expr& x, std::vector<int64_t> axes, bool keepdims);
Expr broadcast(const Expr& x, const std::vector<int64_t>& shape);
// The gradient of a broadcast operand: sums over the broadcast axes.
Expr collapsed(const Expr& gradient, const Expr& operand);
// The rule for operators that only change the shape.
Gradients of_reshape(const Expr& e, const Expr& g);

}  // namespace tilewright::relay::gradients
