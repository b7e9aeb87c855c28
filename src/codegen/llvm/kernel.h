// SPDX-License-Identifier: Apache-2.0
// A loop IR function as two LLVM functions: the one the loader calls, and the body with its pointers as arguments.
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
// What emit_kernel has done before it emits. Masks, gathers, shuffles and conversions LLVM does natively.
extern const std::span<const tir::KernelPass> kLlvmLegalize;
// Adds `function` to the module. Errors: CodegenFailed, naming the kernel.
Status emit_kernel(llvm::Module& module, const tir::PrimFunc& function, const Target& target);
// The passes kernels need after emit_kernel and no others: no vectorizer, no unroller.
void optimize_kernels(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tilewright::codegen
