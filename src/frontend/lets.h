// SPDX-License-Identifier: Apache-2.0
// What the importers' run-time control flow has in common: values bound around an expression, so that several branches
// or steps read what was computed once, and the types of what is carried.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "relay/expr.h"

namespace tilewright::frontend {

class Lets {
 public:
  // A variable for e; constants and variables stand for themselves.
  relay::Expr bound(const std::string& name, const relay::Expr& e) {
    if (e->kind == relay::ExprKind::kConstant || e->kind == relay::ExprKind::kVar) return e;
    for (const auto& [var, value] : lets_)
      if (value == e) return var;
    lets_.emplace_back(relay::make_var(name, e->type), e);
    return lets_.back().first;
  }
  // e with the bindings around it.
  relay::Expr around(relay::Expr e) const {
    for (size_t i = lets_.size(); i-- > 0;) e = make_node<relay::LetNode>(lets_[i].first, lets_[i].second, e);
    return e;
  }

 private:
  std::vector<std::pair<relay::Expr, relay::Expr>> lets_;
};

// The type that fits values of both types: sizes that differ are free, other differences leave all of it open.
Type common_type(const Type& a, const Type& b);

}  // namespace tilewright::frontend
