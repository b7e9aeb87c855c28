// SPDX-License-Identifier: Apache-2.0
// Lowers a template's kernel for code generation: divide_parallel, unroll, vectorize, simplify, storage_rewrite,
// verify.
//
// Ensures: verify(result, Form::kFinal) holds. Error: VerifyFailed, a defect of what made the kernel.
#pragma once
#include <span>

#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::tir {

struct KernelPass {
  const char* name;
  PrimFunc (*run)(PrimFunc);
};
// The passes in order, for listing and for running some of them.
extern const KernelPass kKernelPasses[];
extern const int kKernelPassCount;

Result<PrimFunc> lower_kernel(PrimFunc function);

// The only runner of kernel passes: runs these in order and verifies, in the final form, after each that changed
// something. Error: VerifyFailed.
Result<PrimFunc> run_kernel_passes(PrimFunc function, std::span<const KernelPass> passes);

}  // namespace tilewright::tir
