// SPDX-License-Identifier: Apache-2.0
// How large and how deep the expressions of a file may become: passes and printing recurse over scopes and types, and
// shared parts may print exponentially larger than their file. One object watches one file being read.
#pragma once
#include <string>
#include <unordered_map>

#include "relay/expr.h"

namespace tilewright::relay {

inline constexpr int kMaxNesting = 200;

class Limits {
 public:
  // What is wrong with a type or a new expression, or an empty string. Operands must have been asked about before.
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
