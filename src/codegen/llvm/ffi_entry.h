// SPDX-License-Identifier: Apache-2.0
// The entry for tvm-ffi (the calling convention of TVM's successor): __tvm_ffi_main(inputs..., outputs...), with the
// caller's tensors.
#pragma once
#include "base/formats/plan.h"
#include "ir/target.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace tilewright::codegen {

// Checks that its arguments are tensors for the plan's inputs and outputs, then calls `run` (tw_run). Functions it
// needs from the process, for memory and error reporting, are weak symbols, so that artifacts load without them. Models
// with element types that DLPack lacks get no such entry.
void emit_ffi_entry(llvm::Module& module, const plan::Plan& plan, const Target& target, llvm::Function* run);

}  // namespace tilewright::codegen
