// SPDX-License-Identifier: Apache-2.0
// How kernel templates see tensors: a strided window of a buffer. Halos and concat slots are just offsets and strides.
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
  int64_t offset = 0;            // element of index (0, ..., 0)
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
  // Elements in the order of the index lie one after another, without gaps.
  bool contiguous() const;
};
// A view of the whole buffer, row-major.
View make_view(tir::Buffer buffer, std::vector<int64_t> shape);
// The same elements as one dimension; the view must be contiguous.
View flattened(const View& view);

// What happens to a result before it is stored, in registers: bias, residual, activation, quantise ... `index` is the
// logical index of the result's first lane in the output view; a vector value runs along the last dimension. The value
// has the accumulator's dtype, the result must have the output view's. `mask` (bool lanes, null when all lanes are
// real) says which lanes will be stored: loads of further operands must use it. Called once per stored vector.
using Epilogue = std::function<tir::PrimExpr(tir::PrimExpr value, const Index& index, const tir::PrimExpr& mask)>;
// The epilogue that only converts to `dtype`.
Epilogue convert_epilogue(DataType dtype);

// An operand computed on the fly: the element (or `lanes` elements along the last dimension) at an index; mask as
// above.
using Operand = std::function<tir::PrimExpr(const Index& index, int lanes, const tir::PrimExpr& mask)>;
Operand view_operand(const View& view);

// Everything a template needs besides its operands.
struct KernelContext {
  const Target* target;
  // The thread's number and count, int64: templates split outer work by these. Null: the kernel runs whole.
  tir::PrimExpr tid, nthreads;
  // Memory of the thread's own, undefined at first; null where the template asked for none.
  tir::Buffer scratch = {};
};

// begin/end of thread tid's share of [0, extent): contiguous, whole units of `granule`. Shares depend on the thread
// count, sums never do: templates split only dimensions of their output.
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
// `let name = value in body(name)`; constants and variables are passed through.
// By value: the body may overwrite where the value came from.
tir::Stmt bind(const char* name, tir::PrimExpr value, const std::function<tir::Stmt(tir::PrimExpr)>& body);
// The index of flat element `unit` in a row-major space of `extents`.
Index unravel(const tir::PrimExpr& unit, const std::vector<int64_t>& extents);
// How many taps of a window that starts at `start`, `dilation` apart, lie below `bound`.
tir::PrimExpr taps_below(const tir::PrimExpr& start, int64_t bound, int64_t kernel, int64_t dilation);
// Lanes [0, valid) on; null when all are.
tir::PrimExpr tail_mask(int lanes, int64_t valid);
// a*b + c: fused for floats, wrapping for integers.
tir::PrimExpr multiply_add(const tir::PrimExpr& a, const tir::PrimExpr& b, const tir::PrimExpr& c);
// What products of this dtype are summed in: float32 for narrower floats, int32 for narrower integers.
DataType accumulator_dtype(DataType dtype);
// The value of an integer constant, if it is one.
const int64_t* constant_value(const tir::PrimExpr& e);

int64_t product(const std::vector<int64_t>& extents);
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// What a template says about itself before it is chosen.
struct Cost {
  double flops = 0, bytes = 0;
  double microseconds = 0;  // one thread
  double shared = 0;        // of two threads' time what lies beyond the half of one's: memory that they share
  // What choices are compared by: both thread counts weigh the same.
  double weighed() const { return microseconds + shared; }
};
// Of one thread, whose arithmetic and memory overlap. `gbps`: 10^9 bytes a second.
double overlapped_microseconds(double cycles, double bytes, double gbps, const MachineModel& machine);
// How fast data of so many bytes come: from the second-level cache where they fit.
double cache_gbps(double bytes, const MachineModel& machine);

}  // namespace tilewright::topi
