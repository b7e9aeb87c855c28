// SPDX-License-Identifier: Apache-2.0
// Pieces that reductions, softmax and normalisation share.
#pragma once
#include "topi/reduce.h"

namespace tilewright::topi {

// One step of a reduction and the value it starts from.
struct Combine {
  ReduceKind kind;
  DataType element;
  tir::PrimExpr operator()(const tir::PrimExpr& a, const tir::PrimExpr& b) const;
  tir::PrimExpr neutral(DataType dtype) const;
  tir::PrimExpr across(const tir::PrimExpr& vector) const;  // over the lanes
};

// A reduction along a row of `extent` elements: up to 4 vector accumulators, whole vectors, then one masked vector.
class RowReduction {
 public:
  using Element = std::function<tir::PrimExpr(tir::PrimExpr i, int lanes, const tir::PrimExpr& mask)>;
  RowReduction(Combine combine, int lanes, int64_t extent);
  tir::Stmt clear() const;
  // May be called for several rows in turn; `also` gets each vector for a further use (a store).
  tir::Stmt accumulate(
      const Element& element,
      const std::function<tir::Stmt(tir::PrimExpr i, tir::PrimExpr value, const tir::PrimExpr& mask)>& also = {}) const;
  tir::PrimExpr result() const;  // a scalar
  tir::Stmt scope(tir::Stmt body) const;

 private:
  Combine combine_;
  int lanes_, wide_;
  int64_t extent_;
  tir::Buffer acc_, value_;
};

// Vectors along a row of `extent` elements: f(i, lanes, mask).
tir::Stmt along_row(int lanes, int64_t extent, int unroll,
                    const std::function<tir::Stmt(tir::PrimExpr i, int lanes, const tir::PrimExpr& mask)>& f);
// Names every element of an index (empty ones stay empty).
tir::Stmt bind_all(const Index& index, const std::function<tir::Stmt(Index)>& body);

}  // namespace tilewright::topi
