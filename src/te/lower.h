// SPDX-License-Identifier: Apache-2.0
// A schedule as kernels of the loop IR.
//
// Regions: a stage that is computed inside a consumer's loop computes, of each dimension, from the least to the
// greatest index that one iteration reads (te/region.h). A loop that was split unevenly, or a region that may reach
// over the tensor's edge, has a condition around the innermost statement wherever it cannot be proven to hold.
#pragma once
#include "te/schedule.h"
#include "tir/block.h"

namespace tilewright::te {

struct Lowered {
  // One kernel per stage that is computed at the root, in execution order; all take the same buffers: sizes (if any),
  // arguments, workspaces. Loop annotations remain for tir::lower_kernel.
  std::vector<tir::PrimFunc> kernels;
  // Free variables of shapes and bodies; they are the first buffer, int64[...], in this order. Sizes are 0 to 2^31 - 1;
  // of float variables it has the bits as float64.
  std::vector<PrimExpr> sizes;
  struct Argument {
    std::string name;
    DataType dtype;
    std::vector<PrimExpr> shape;  // over `size_values`
  };
  std::vector<Argument> arguments;  // tensors
  // Intermediate tensors: element counts over `size_values` (int64 or float variables, in the order of `sizes`). If a
  // stage is computed inside another's loop, each thread has its own copy.
  struct Workspace {
    tir::Buffer buffer;
    PrimExpr elements;
    bool per_thread;
  };
  std::vector<Workspace> workspaces;
  std::vector<PrimExpr> size_values;
  // Calls of runtime functions by name, with whole tensors.
  struct Call {
    size_t before;  // number of kernels that run before it
    std::string name;
    struct Value {
      PrimExpr number;    // an integer over size_values, or a constant; or
      size_t memory = 0;  // index of an argument or, behind those, a workspace, with `shape` and `dtype`
      std::vector<PrimExpr> shape;
      DataType dtype;
    };
    std::vector<Value> args;
  };
  std::vector<Call> calls;
  bool returns = false;              // the last argument is memory of one element, which a call returns
  std::vector<bool> numbers;         // for each of `sizes` whether it is any number, no size; empty: none is
  std::vector<std::string> imports;  // LLVM IR to link into the library
  // Device threads that loops are bound to. Such loops run as ordinary ones here; kernels with them cannot be built.
  std::vector<std::string> bound;
};

// `arguments`: inputs and outputs, each in compact row-major memory. `scalars`: variables given by the caller, the
// first of `sizes`. Errors: InvalidArgument (a missing input or output tensor, a stage computed inside a loop that does
// not contain all its consumers).
Result<Lowered> lower(const Schedule& schedule, const std::vector<Tensor>& arguments, const std::string& name,
                      const std::vector<PrimExpr>& scalars = {});

// What each axis and loop of the stages that are computed runs over, first and count, over the variables of the loops
// around it and the sizes. Errors: those of lower.
struct Bound {
  IterVar variable;
  PrimExpr first, extent;
};
Result<std::vector<Bound>> bounds_of(const Schedule& schedule);

// Lowers a function of loops and blocks: each of its statements is a kernel. Errors: InvalidArgument.
Result<Lowered> lower(const tir::BlockFunction& function);

inline constexpr int64_t kMaxStackBytes = 16 << 10;  // of one array; larger ones are workspaces

}  // namespace tilewright::te
