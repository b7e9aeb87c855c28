// SPDX-License-Identifier: Apache-2.0
// Compute definitions: one element (or one vector along the last dimension) of an operator's result as a function of
// its operands. For elementwise, broadcasting and injective operators; contractions and reductions have templates.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "relay/op.h"
#include "topi/view.h"

namespace tilewright::lower {

// A range of indices, [first, last).
struct Run {
  int64_t first, last;
  bool within(int64_t low, int64_t high) const { return low <= first && last <= high; }
};

struct ComputeArgs {
  const relay::CallNode& call;
  std::span<const topi::Operand> operands;       // tuple arguments flattened
  std::span<const TensorTypeNode* const> types;  // the operands' types
  const TensorTypeNode& out;                     // the type of the requested result
  int output;                                    // index of the requested result
  const std::vector<tir::PrimExpr>& index;       // scalar int64 indices of the first lane
  int lanes;                                     // 1, or a vector along the last dimension
  const tir::PrimExpr& mask;                     // bool lanes that are valid, or null: all are
  const Run* run = nullptr;  // range of the last dimension that contains all valid lanes; null: unknown

  template <class A>
  const A& attrs() const {
    return *attrs_as<A>(call.attrs);
  }
  int64_t out_dim(size_t i) const { return out.shape[i].value(); }
  int64_t in_dim(size_t operand, size_t i) const { return types[operand]->shape[i].value(); }
  size_t in_rank(size_t operand) const { return types[operand]->shape.size(); }
  // Operand i at the given index; `n` is 1, or `lanes` (then under the mask).
  tir::PrimExpr at(size_t i, const std::vector<tir::PrimExpr>& where, int n) const {
    return operands[i](where, n, n > 1 ? mask : tir::PrimExpr());
  }
  // Operand i at the result's index, by numpy broadcasting.
  tir::PrimExpr broadcast_operand(size_t i) const;
  // A vector whose lane l is `element(index with last + l)`: for index maps under which the last dimension is not
  // contiguous.
  tir::PrimExpr by_lane(const std::function<tir::PrimExpr(const std::vector<tir::PrimExpr>&)>& element) const;
  // The same, with the lane's number.
  tir::PrimExpr by_numbered_lane(
      const std::function<tir::PrimExpr(const std::vector<tir::PrimExpr>&, int lane)>& element) const;
};

using ComputeFn = tir::PrimExpr (*)(const ComputeArgs&);
struct ComputeDef {
  const char* op;
  ComputeFn compute;
};
std::span<const ComputeDef> elementwise_computes();
std::span<const ComputeDef> transform_computes();
// The definition of an operator, or null when it needs a template.
ComputeFn find_compute(std::string_view op);

// An index operand clamped to [0, extent): "wrap" takes it modulo extent, "fast" counts negative ones from the end
// (ONNX), then all clamp, so that no run-time value reads out of bounds.
tir::PrimExpr bounded_index(tir::PrimExpr value, int64_t extent, std::string_view mode = "fast");

// Where along the last dimension the source of a result's elements changes (the operands of a concatenation, the copies
// of a tile, data and padding): ascending positions, none if there are too many. Between two cuts a vector load is
// contiguous.
std::vector<int64_t> run_cuts(const relay::Expr& e, int output);

// Row-major flat index of `index` in `shape`, and back.
tir::PrimExpr flatten_index(const std::vector<tir::PrimExpr>& index, std::span<const int64_t> shape);
std::vector<tir::PrimExpr> unflatten_index(const tir::PrimExpr& flat, std::span<const int64_t> shape);

}  // namespace tilewright::lower
