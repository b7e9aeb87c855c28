// SPDX-License-Identifier: Apache-2.0
// Expressions of a computation in terms of a kernel: indices in int64, which the loop IR's addresses are made of,
// variables as what loops and sizes give them, elements as loads.
#pragma once
#include <functional>
#include <unordered_map>

#include "tir/expr.h"

namespace tilewright::te {

class Widening {
 public:
  using PrimExpr = tir::PrimExpr;
  // What stands for a read, given its indices in int64.
  using OnRead = std::function<PrimExpr(const tir::ReadNode& read, std::vector<PrimExpr> indices)>;
  explicit Widening(OnRead on_read) : on_read_(std::move(on_read)) {}

  void bind(const PrimExpr& var, PrimExpr value) { values_[var.get()] = std::move(value); }  // an int64 value
  // An integer expression as int64. Arithmetic of int32 is taken not to overflow, as everywhere in index arithmetic.
  PrimExpr index(const PrimExpr& e);
  // The expression with its own dtype.
  PrimExpr value(const PrimExpr& e);

 private:
  OnRead on_read_;
  std::unordered_map<const tir::ExprNode*, PrimExpr> values_;
};

}  // namespace tilewright::te
