// SPDX-License-Identifier: Apache-2.0
// Which loops carry dependences: indices as sums over loop variables, compared between two iterations of a loop.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arith/linear.h"
#include "tir/stmt.h"

namespace tilewright::tir {

class Dependence {
 public:
  // `root` holds every loop asked about.
  explicit Dependence(const Stmt& root);

  // A buffer of which two iterations of the loop may use one element that one of them writes; null when there is none.
  // Conservative: an index that is no sum over loop variables may be any. Loops around it are in the same iteration,
  // but those whose variables are in `free`.
  const BufferNode* carried_by(const ForNode* loop, const std::unordered_set<const ExprNode*>& free = {});

 private:
  struct Access {
    const BufferNode* buffer;
    PrimExpr index;
    bool writes;
  };
  arith::LinearForm form(const PrimExpr& index);
  arith::LinearForm symbol(const PrimExpr& e, arith::Interval range);
  // Whether the value of e changes with one of the variables, through lets, or with memory.
  bool varies(const PrimExpr& e, const std::unordered_set<const ExprNode*>& variables) const;

  arith::Ranges ranges_;
  std::vector<PrimExpr> symbols_;  // by number
  std::unordered_map<const ExprNode*, arith::Symbol> numbers_;
  std::unordered_map<const ExprNode*, PrimExpr> lets_;
};

}  // namespace tilewright::tir
