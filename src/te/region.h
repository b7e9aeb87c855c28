// SPDX-License-Identifier: Apache-2.0
// Region analysis: the range of an index while some of its variables vary, as bounds `lo` and `hi` over the others.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "tir/passes/simplify.h"

namespace tilewright::te {

struct Region {
  tir::PrimExpr lo, hi;
};

// Variables in scope, outermost first, with their known ranges.
class Scopes {
 public:
  void add(const tir::PrimExpr& var, arith::Interval range) { ranges_.emplace_back(var, range); }
  tir::PrimExpr simplify(const tir::PrimExpr& e) const { return tir::simplify_expr(e, ranges_); }
  bool proves(const tir::PrimExpr& condition) const { return tir::as_const_int(simplify(condition)) == 1; }

 private:
  std::vector<tir::VariableRange> ranges_;
};

using Running = std::map<const tir::ExprNode*, Region>;
// Nothing: it may be anywhere (its value is loaded from memory).
std::optional<Region> region_of(const tir::PrimExpr& index, const Running& running, const Scopes& scopes);
Region hull(const Region& a, const Region& b, const Scopes& scopes);

}  // namespace tilewright::te
