// SPDX-License-Identifier: Apache-2.0
// How kernel templates see tensors: a strided window of a buffer. Halos and concat slots are just offsets and strides.
#pragma once
#include <functional>
#include <vector>

#include "ir/target.h"
#include "tir/stmt.h"

namespace tilewright::topi {

struct View {
  tir::Buffer buffer;
  std::vector<int64_t> shape;    // logical extents, for instance {N, C/16, H, W, 16}
  std::vector<int64_t> strides;  // in elements
  int64_t offset = 0;            // element of index (0, ..., 0)
  // Zero elements around the interior that readers may touch: index -before .. extent + after of each dimension is
  // readable and zero (empty: no halo). A convolution whose padding fits the halo needs no border code.
  std::vector<int64_t> halo_before, halo_after;

  DataType dtype() const { return buffer->dtype; }
  // Flat element index of a logical index; the last one may be a vector (a Ramp) when its stride is 1.
  tir::PrimExpr flat(const std::vector<tir::PrimExpr>& index) const;
  tir::PrimExpr load(const std::vector<tir::PrimExpr>& index) const;
  tir::Stmt store(const std::vector<tir::PrimExpr>& index, tir::PrimExpr value) const;
};

// What happens to a result before it is stored, in registers: bias, residual, activation, quantise ... `index` is the
// logical index of the result's first lane in the output view; a vector value runs along the last dimension.
using Epilogue = std::function<tir::PrimExpr(tir::PrimExpr value, const std::vector<tir::PrimExpr>& index)>;

// An operand computed on the fly: the element (or vector along the last dimension) at an index.
using Operand = std::function<tir::PrimExpr(const std::vector<tir::PrimExpr>& index, int lanes)>;

// Everything a template needs besides its operands.
struct KernelContext {
  const Target* target;
  tir::PrimExpr tid, nthreads;  // the thread's number and count: split outer work by these (see parallel_range)
};

// begin/end of thread tid's share of [0, extent): contiguous, whole units of `granule`.
struct Range {
  tir::PrimExpr begin, end;
};
Range parallel_range(const KernelContext& context, int64_t extent, int64_t granule = 1);
// for unit in the thread's share of [0, extent): body(unit)
tir::Stmt parallel_for(const KernelContext& context, const char* name, int64_t extent,
                       const std::function<tir::Stmt(tir::PrimExpr)>& body);

// What a template says about itself before it is chosen.
struct Cost {
  double flops = 0, bytes = 0;
  double microseconds = 0;  // one thread
};

}  // namespace tilewright::topi
