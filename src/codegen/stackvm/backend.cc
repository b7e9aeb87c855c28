// SPDX-License-Identifier: Apache-2.0
#include "codegen/stackvm/backend.h"

#include "base/format.h"
#include "codegen/stackvm/assembler.h"
#include "tir/passes/legalize_small_floats.h"
#include "tir/passes/legalize_sub_bytes.h"
#include "tir/passes/simplify.h"

namespace tilewright::codegen {
namespace {

constexpr tir::KernelPass kByteCodeLegalize[] = {
    {"legalize_sub_bytes", tir::legalize_sub_bytes},
    {"legalize_small_floats", tir::legalize_small_floats},
    {"simplify", tir::simplify},
};
constexpr const char* kByteCodeForms[] = {"stackvm"};

Result<Target> resolve_stackvm(Target target) {
  if (!target.mattr.empty() || !target.mtriple.empty() || !target.mcpu.empty())
    return Diagnostic(ErrorCode::kUnknownTarget,
                      "the target stackvm is for any processor and takes no -mcpu, -mattr or -mtriple", {},
                      "leave them out, or use the target llvm");
  // The cost of an instruction is that of finding out which it is: the more lanes each has, the better.
  target.vector_bits = 512, target.vector_registers = 32;
  target.machine.source = MachineModel::Source::kTable, target.machine.family = "the machine of byte code";
  target.machine.gflops = 3, target.machine.l1_gbps = 16, target.machine.l2_gbps = 14, target.machine.l3_gbps = 12;
  target.machine.dram_gbps = 8;
  return target;
}

Result<stackvm::Program> assembled(const tir::PrimFunc& function) {
  if (!function.body) return Diagnostic(ErrorCode::kCodegenFailed, "the kernel has no body", "kernel " + function.name);
  return assemble(TW_TRY(tir::run_kernel_passes(function, kByteCodeLegalize)));
}

Result<Kernels> compile_byte_code(std::span<const tir::PrimFunc> functions, const Target&, int,
                                  const std::function<void(int, int)>& progress, KernelCache*) {
  Kernels out;
  const int total = static_cast<int>(functions.size());
  for (const tir::PrimFunc& f : functions) {
    out.objects.push_back(stackvm::write_program(TW_TRY(assembled(f))));
    if (progress) progress(static_cast<int>(out.objects.size()), total);
  }
  return out;
}

Result<std::string> byte_code_text(const tir::PrimFunc& function, const Target&, std::string_view) {
  return stackvm::to_text(TW_TRY(assembled(function)));
}

}  // namespace

Backend stackvm_backend() {
  return {"stackvm",         "byte code that the runtime runs by itself",
          resolve_stackvm,   kByteCodeLegalize,
          compile_byte_code, byte_code_text,
          kByteCodeForms,    Product::kByteCode};
}

}  // namespace tilewright::codegen
