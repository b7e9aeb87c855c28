// SPDX-License-Identifier: Apache-2.0
// How kernel templates see tensors: as strided windows of buffers. Halos and concat slots are just offsets and strides.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/target.h"
#include "tir/stmt.h"

namespace tilewright::topi {

using Index = std::vector<tir::PrimExpr>;

struct View {
  tir::Buffer buffer;
  std::vector<int64_t> shape;    // logical extents, for instance {N, C/16, H, W, 16}
  std::vector<int64_t> strides;  // in elements
  int64_t offset = 0;            // offset of index (0, ..., 0), in elements
  // Zero elements around the interior that readers may touch: index -before .. extent + after of each dimension is
  // readable and zero (empty: no halo). A convolution whose padding fits the halo needs no border code.
  std::vector<int64_t> halo_before, halo_after;

  int rank() const { return static_cast<int>(shape.size()); }
  DataType dtype() const { return buffer->dtype; }
  // Flat element index of a logical index.
  tir::PrimExpr flat(const Index& index) const;
  // `lanes` elements along the last dimension from `index` on: one contiguous load when its stride is 1, one
  // element broadcast when it is 0, lane by lane otherwise. Lanes that the mask switches off are not read.
  tir::PrimExpr load(const Index& index, int lanes = 1, const tir::PrimExpr& mask = {}) const;
  // Stores value's lanes along the last dimension.
  tir::Stmt store(const Index& index, const tir::PrimExpr& value, tir::PrimExpr mask = {}) const;
  // Whether elements are contiguous in row-major order.
  bool contiguous() const;
};
// A view of the whole buffer, row-major.
View make_view(tir::Buffer buffer, std::vector<int64_t> shape);
// The elements as one dimension; the view must be contiguous.
View flattened(const View& view);

// What happens to a result before it is stored, in registers: bias, residual, activation, quantise ... `index` is the
// logical index of the result's first lane in the output view; a vector value runs along the last dimension. The value
// has the accumulator's dtype, the result must have the output view's. `mask` (bool lanes, null when all lanes are
// real) says which lanes will be stored: loads of further operands must use it. Called once per stored vector.
using Epilogue = std::function<tir::PrimExpr(tir::PrimExpr value, const Index& index, const tir::PrimExpr& mask)>;
// An epilogue that only converts to `dtype`.
Epilogue convert_epilogue(DataType dtype);

// An operand computed on the fly: the element (or `lanes` elements along the last dimension) at an index; mask as
// above.
using Operand = std::function<tir::PrimExpr(const Index& index, int lanes, const tir::PrimExpr& mask)>;
Operand view_operand(const View& view);

// Everything else a template needs.
struct KernelContext {
  const Target* target;
  // The thread's index and number of threads, int64: templates divide outer loops by these. Null: single-threaded.
  tir::PrimExpr tid, nthreads;
  // Scratch memory of the thread, uninitialised; null if the template requested none.
  tir::Buffer scratch = {};
};

// The share [begin, end) of thread tid in [0, extent): contiguous, in whole units of `granule`. Shares depend on the
// number of threads, sums never do: templates only divide dimensions of their output.
struct Range {
  tir::PrimExpr begin, end;
};
Range parallel_range(const KernelContext& context, int64_t extent, int64_t granule = 1);
// for unit in the thread's share of [0, extent): body(unit)
tir::Stmt parallel_for(const KernelContext& context, const char* name, int64_t extent,
                       const std::function<tir::Stmt(tir::PrimExpr)>& body);

// Serial loop for name in [begin, end); loops of one iteration disappear.
tir::Stmt loop(const char* name, tir::PrimExpr begin, tir::PrimExpr end,
               const std::function<tir::Stmt(tir::PrimExpr)>& body);
tir::Stmt loop(const char* name, int64_t extent, const std::function<tir::Stmt(tir::PrimExpr)>& body);
// `let name = value in body(name)`; constants and variables are passed directly. By value, since the body may overwrite
// what the argument came from.
tir::Stmt bind(const char* name, tir::PrimExpr value, const std::function<tir::Stmt(tir::PrimExpr)>& body);
// The multi-index of linear index `unit` in the row-major space `extents`.
Index unravel(const tir::PrimExpr& unit, const std::vector<int64_t>& extents);
// The number of taps, `dilation` apart from `start` on, below `bound`.
tir::PrimExpr taps_below(const tir::PrimExpr& start, int64_t bound, int64_t kernel, int64_t dilation);
// A mask of lanes [0, valid); null if all are valid.
tir::PrimExpr tail_mask(int lanes, int64_t valid);
// a*b + c: fused for floats, wrapping for integers.
tir::PrimExpr multiply_add(const tir::PrimExpr& a, const tir::PrimExpr& b, const tir::PrimExpr& c);
// The dtype in which products of this dtype are accumulated: float32 for narrower floats, int32 for narrower integers.
DataType accumulator_dtype(DataType dtype);
// The value of an integer constant, if it is one.
const int64_t* constant_value(const tir::PrimExpr& e);

int64_t product(const std::vector<int64_t>& extents);
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// The predicted cost of a template.
struct Cost {
  double flops = 0, bytes = 0;
  double microseconds = 0;  // of one thread
  double shared = 0;        // additional time of two threads over half of one's, from shared memory bandwidth
  // The figure for comparisons: one and two threads count equally.
  double weighed() const { return microseconds + shared; }
};
// Time of one thread if arithmetic and memory traffic overlap. `gbps`: 10^9 bytes per second.
double overlapped_microseconds(double cycles, double bytes, double gbps, const MachineModel& machine);
// Bandwidth for data of this size: the L2 cache's if they fit.
double cache_gbps(double bytes, const MachineModel& machine);

}  // namespace tilewright::topi
