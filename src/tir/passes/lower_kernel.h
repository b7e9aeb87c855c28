// SPDX-License-Identifier: Apache-2.0
// The way of a kernel from a template to code generation: divide_parallel, unroll, vectorize, simplify,
// storage_rewrite, verify.
//
// Ensures: verify(result, Form::kFinal) holds. Error: VerifyFailed, a fault of what made the kernel.
#pragma once
#include <span>

#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::tir {

struct KernelPass {
  const char* name;
  PrimFunc (*run)(PrimFunc);
};
// The passes in order, for listing and for running a part of them.
extern const KernelPass kKernelPasses[];
extern const int kKernelPassCount;

Result<PrimFunc> lower_kernel(PrimFunc function);

// The one runner of kernel passes: these in order. What they change is verified, in the final form. Error:
// VerifyFailed.
Result<PrimFunc> run_kernel_passes(PrimFunc function, std::span<const KernelPass> passes);

}  // namespace tilewright::tir
