// SPDX-License-Identifier: Apache-2.0
// Code that chooses among a library's instruction sets, for programs without the runtime.
#pragma once
#include <span>

#include "codegen/codegen.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace tilewright::codegen {

// int choose(): the first set that the processor and the operating system can run, or the one that TILEWRIGHT_ISA
// names; less than zero: the number of an error, negated. `any`: what every x86-64 processor can run.
llvm::Function* emit_choose_set(llvm::Module& module, std::span<const InstructionSetPlan> sets, const Target& any);

}  // namespace tilewright::codegen
