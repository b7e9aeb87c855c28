// SPDX-License-Identifier: Apache-2.0
// Limits on the size and depth of the expressions in a file: passes and printing recurse over scopes and types, and
// shared subexpressions can print exponentially larger than their file. One object checks one file while it is read.
#pragma once
#include <string>
#include <unordered_map>

#include "relay/expr.h"

namespace tilewright::relay {

inline constexpr int kMaxNesting = 200;

class Limits {
 public:
  // Why a type or new expression exceeds the limits, or an empty string. Operands must have been checked before.
  std::string problem(const Type& type);
  std::string problem(const Expr& e);

 private:
  struct Extent {
    int64_t leaves = 1;
    int depth = 1;
  };
  Extent extent_of(const Type& type);
  int nesting_of(const Expr& e) const;
  std::unordered_map<const TypeNode*, std::pair<Type, Extent>> extents_;
  std::unordered_map<const ExprNode*, int> nesting_;
};

}  // namespace tilewright::relay
