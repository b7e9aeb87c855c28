// SPDX-License-Identifier: Apache-2.0
#include "codegen/source/backend.h"

#include "base/format.h"
#include "codegen/source/c_kernel.h"
#include "codegen/source/c_processors.h"
#include "tir/passes/bind_single_thread.h"
#include "tir/passes/legalize_small_floats.h"
#include "tir/passes/legalize_sub_bytes.h"
#include "tir/passes/scalarize.h"
#include "tir/passes/simplify.h"

namespace tilewright::codegen {
namespace {

constexpr tir::KernelPass kSourceLegalize[] = {
    {"bind_single_thread", tir::bind_single_thread},
    {"legalize_sub_bytes", tir::legalize_sub_bytes},
    {"scalarize", tir::scalarize},
    {"legalize_small_floats", tir::legalize_small_floats},
    {"simplify", tir::simplify},
};
// For a processor that only the C compiler knows, which may have vectors.
constexpr tir::KernelPass kAnyLegalize[] = {
    {"bind_single_thread", tir::bind_single_thread},
    {"legalize_sub_bytes", tir::legalize_sub_bytes},
    {"scalarize", tir::scalarize_by_loops},
    {"legalize_small_floats", tir::legalize_small_floats},
    {"simplify", tir::simplify},
};
constexpr const char* kSourceForms[] = {"c"};

// For processors whose vectors the C compiler knows.
constexpr tir::KernelPass kVectorLegalize[] = {
    {"bind_single_thread", tir::bind_single_thread},
    {"legalize_sub_bytes", tir::legalize_sub_bytes},
    {"legalize_small_floats", tir::legalize_small_floats},
    {"simplify", tir::simplify},
};

Result<Target> resolve_c(Target target) {
  if (!target.mattr.empty() || !target.mtriple.empty())
    return Diagnostic(ErrorCode::kUnknownTarget, "the target c is for any processor and takes no -mattr or -mtriple",
                      {}, "leave them out and give them to the C compiler, or use the target llvm");
  if (!target.mcpu.empty()) return resolve_c_processor(std::move(target));
  // What nearly all processors have that have vectors at all; on others a tile's lanes are single statements.
  target.vector_bits = 128, target.vector_registers = 8;
  target.machine.source = MachineModel::Source::kTable, target.machine.family = "any processor that C is for";
  target.machine.gflops = 4, target.machine.l1_gbps = 16, target.machine.l2_gbps = 12, target.machine.l3_gbps = 10,
  target.machine.dram_gbps = 8;
  return target;
}

Result<std::string> print_c(const tir::PrimFunc& function, const Target& target) {
  if (!function.body) return Diagnostic(ErrorCode::kCodegenFailed, "the kernel has no body", "kernel " + function.name);
  const bool vectors = is_vector_c(target);
  std::span<const tir::KernelPass> passes = kSourceLegalize;
  if (vectors) passes = kVectorLegalize;
  if (!vectors && !is_small_c(target)) passes = kAnyLegalize;
  return c_kernel(TW_TRY(tir::run_kernel_passes(function, passes)), is_small_c(target), vectors);
}

Result<Kernels> compile_c(std::span<const tir::PrimFunc> functions, const Target& target, int,
                          const std::function<void(int, int)>& progress, KernelCache*) {
  Kernels out;
  const int total = static_cast<int>(functions.size());
  for (const tir::PrimFunc& f : functions) {
    out.objects.push_back(TW_TRY(print_c(f, target)));
    if (progress) progress(static_cast<int>(out.objects.size()), total);
  }
  return out;
}

Result<std::string> c_text(const tir::PrimFunc& function, const Target& target, std::string_view) {
  return print_c(function, target);
}

}  // namespace

Backend c_backend() {
  return {"c",          "one C99 file for any processor",
          resolve_c,    kSourceLegalize,
          compile_c,    c_text,
          kSourceForms, Product::kSource};
}

}  // namespace tilewright::codegen
