// SPDX-License-Identifier: Apache-2.0
// A loop IR function as two LLVM functions: the entry that the loader calls, and the body with its pointers as
// arguments.
#pragma once
#include <span>

#include "base/result.h"
#include "ir/target.h"
#include "tir/passes/lower_kernel.h"

namespace llvm {
class Function;
class Module;
class TargetMachine;
}  // namespace llvm

namespace tilewright::codegen {

// Attributes every function of an artifact carries: CPU, features, vector width, no unwinding.
void set_function_attributes(llvm::Function* function, const Target& target);
// Passes that emit_kernel requires. LLVM supports masks, gathers, shuffles and conversions natively.
extern const std::span<const tir::KernelPass> kLlvmLegalize;
// Adds `function` to the module. Errors: CodegenFailed, naming the kernel.
Status emit_kernel(llvm::Module& module, const tir::PrimFunc& function, const Target& target);
// The optimisation passes that kernels need after emit_kernel: no vectoriser, no unroller.
void optimize_kernels(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tilewright::codegen
