// SPDX-License-Identifier: Apache-2.0
// The function by which an artifact is called through tvm-ffi (the calling convention of TVM's successor):
// __tvm_ffi_main(inputs..., outputs...), tensors in memory of the caller's.
#pragma once
#include "base/formats/plan.h"
#include "ir/target.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace tilewright::codegen {

// Checks its arguments as tensors of the plan's inputs and outputs, then calls `run` (tw_run). What it needs from the
// process, memory and the way to report an error, are weak symbols: an artifact loads without them. Models with element
// types that DLPack lacks get no such function.
void emit_ffi_entry(llvm::Module& module, const plan::Plan& plan, const Target& target, llvm::Function* run);

}  // namespace tilewright::codegen
