// SPDX-License-Identifier: Apache-2.0
// Code that selects one of a library's instruction sets, for programs without the runtime.
#pragma once
#include <span>

#include "codegen/codegen.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace tilewright::codegen {

// Emits int choose(): the first set that processor and operating system support, or the one named by TILEWRIGHT_ISA;
// negative: the negated number of an error. `any`: features of every x86-64 processor.
llvm::Function* emit_choose_set(llvm::Module& module, std::span<const InstructionSetPlan> sets, const Target& any);

}  // namespace tilewright::codegen
