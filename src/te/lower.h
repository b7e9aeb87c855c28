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
  // One for each stage that is computed by itself, to be run in this order; all take the same buffers: the sizes (when
  // there are any), the arguments, the workspaces. Before tir::lower_kernel: what was asked of loops is still marked.
  std::vector<tir::PrimFunc> kernels;
  // Free variables of shapes and bodies, in the order of the first buffer, int64[...]. They are 0 to 2^31 - 1.
  std::vector<PrimExpr> sizes;
  struct Argument {
    std::string name;
    DataType dtype;
    std::vector<PrimExpr> shape;  // over `size_values`
  };
  std::vector<Argument> arguments;  // the tensors
  // Tensors that are no arguments: how many elements, over `size_values` (int64 variables, by place in `sizes`). Each
  // thread has its own where a stage is computed inside another's loop.
  struct Workspace {
    tir::Buffer buffer;
    PrimExpr elements;
    bool per_thread;
  };
  std::vector<Workspace> workspaces;
  std::vector<PrimExpr> size_values;
  // Functions of the runtime, by name, which get whole tensors.
  struct Call {
    size_t before;  // how many of the kernels run before it
    std::string name;
    struct Value {
      PrimExpr number;    // over size_values, or a number; or
      size_t memory = 0;  // which of the arguments, and behind them which workspace, of `shape` and `dtype`
      std::vector<PrimExpr> shape;
      DataType dtype;
    };
    std::vector<Value> args;
  };
  std::vector<Call> calls;
  std::vector<std::string> imports;  // LLVM IR that goes into the library
  // Threads of a device that loops are bound to. Here they are loops like others; nothing is built from such kernels.
  std::vector<std::string> bound;
};

// `arguments`: inputs and outputs, each in compact row-major memory of its own. `scalars`: variables whose values the
// caller gives; they are the first of `sizes`. Errors: InvalidArgument (a tensor that
// is read or an output that is missing, a stage that is computed inside a loop that does not hold all its consumers).
Result<Lowered> lower(const Schedule& schedule, const std::vector<Tensor>& arguments, const std::string& name,
                      const std::vector<PrimExpr>& scalars = {});

// The same of loops and blocks over arrays: each statement of the function is a kernel. Errors: InvalidArgument.
Result<Lowered> lower(const tir::BlockFunction& function);

inline constexpr int64_t kMaxStackBytes = 16 << 10;  // of one array; larger ones are workspaces

}  // namespace tilewright::te
