// SPDX-License-Identifier: Apache-2.0
// Loop-carried dependences: compares indices, as linear forms over loop variables, between two iterations.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arith/linear.h"
#include "tir/stmt.h"

namespace tilewright::tir {

class Dependence {
 public:
  // `root` must contain every loop that is queried.
  explicit Dependence(const Stmt& root);

  // A buffer of which two iterations of the loop may access the same element, at least one writing it; null if there is
  // none. Conservative: an index that is not linear may be anything. Enclosing loops are in the same iteration, except
  // those whose variables are in `free`.
  const BufferNode* carried_by(const ForNode* loop, const std::unordered_set<const ExprNode*>& free = {});

 private:
  struct Access {
    const BufferNode* buffer;
    PrimExpr index;
    bool writes;
  };
  arith::LinearForm form(const PrimExpr& index);
  arith::LinearForm symbol(const PrimExpr& e, arith::Interval range);
  // Whether e depends on one of the variables, also through lets, or on memory.
  bool varies(const PrimExpr& e, const std::unordered_set<const ExprNode*>& variables) const;

  arith::Ranges ranges_;
  std::vector<PrimExpr> symbols_;  // by number
  std::unordered_map<const ExprNode*, arith::Symbol> numbers_;
  std::unordered_map<const ExprNode*, PrimExpr> lets_;
};

}  // namespace tilewright::tir
