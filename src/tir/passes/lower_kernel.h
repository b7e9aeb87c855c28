// SPDX-License-Identifier: Apache-2.0
// The way of a kernel from a template to code generation: unroll, vectorize, simplify, storage_rewrite, verify.
//
// Ensures: verify(result, Form::kFinal) holds. Error: VerifyFailed, a fault of what made the kernel.
#pragma once
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

}  // namespace tilewright::tir
