// SPDX-License-Identifier: Apache-2.0
// Translates a computation's expressions to a kernel's: indices in int64, as in the loop IR's addresses; variables by
// their values; tensor elements as loads.
#pragma once
#include <functional>
#include <unordered_map>

#include "tir/expr.h"

namespace tilewright::te {

class Widening {
 public:
  using PrimExpr = tir::PrimExpr;
  // Gives the replacement of a read, with its indices in int64.
  using OnRead = std::function<PrimExpr(const tir::ReadNode& read, std::vector<PrimExpr> indices)>;
  explicit Widening(OnRead on_read) : on_read_(std::move(on_read)) {}

  void bind(const PrimExpr& var, PrimExpr value) { values_[var.get()] = std::move(value); }  // an int64 value
  // An integer expression as int64. int32 index arithmetic is assumed not to overflow.
  PrimExpr index(const PrimExpr& e);
  // The expression in its own dtype.
  PrimExpr value(const PrimExpr& e);

 private:
  OnRead on_read_;
  std::unordered_map<const tir::ExprNode*, PrimExpr> values_;
};

}  // namespace tilewright::te
