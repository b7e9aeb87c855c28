// SPDX-License-Identifier: Apache-2.0
// Shared by the files of this folder: the target machine. LLVM's own headers stay in the .cc files.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/formats/plan.h"
#include "base/result.h"
#include "codegen/codegen.h"
#include "codegen/processor.h"
#include "ir/target.h"

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace tilewright::codegen {

struct TargetMachineDeleter {
  void operator()(llvm::TargetMachine* machine) const;
};
using TargetMachinePtr = std::unique_ptr<llvm::TargetMachine, TargetMachineDeleter>;

// resolve_target for the kind llvm: the CPU, its features and rates.
Result<Target> resolve_cpu(Target target);

enum class Effort { kKernel, kGlue };

// Held while LLVM's process-wide options are changed or relied upon.
std::mutex& llvm_options_lock();
void initialize_llvm();  // once per process; safe to call often
// `target` must come from resolve_target.
TargetMachinePtr make_target_machine(const Target& target, Effort effort);
// LLVM's feature string ("+avx512f,-xop") of a resolved target.
std::string feature_string(const Target& target);

// Errors are those that LLVM reported through the context's diagnostics.
Result<std::string> emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, bool assembly);
// The module for compile_glue.
Result<std::unique_ptr<llvm::Module>> emit_glue(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                                std::span<const InstructionSetPlan> sets, bool system_lib);
// An object that defines empty functions of these names, to link against.
Result<std::string> stub_object(std::span<const std::string> names, const Target& target);

}  // namespace tilewright::codegen
