// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/lower_kernel.h"

#include <iterator>

#include "tir/passes/simplify.h"
#include "tir/passes/storage_rewrite.h"
#include "tir/passes/unroll.h"
#include "tir/passes/vectorize.h"
#include "tir/verify.h"

namespace tilewright::tir {

const KernelPass kKernelPasses[] = {
    {"unroll", unroll},
    {"vectorize", vectorize},
    {"simplify", simplify},
    {"storage_rewrite", storage_rewrite},
};
const int kKernelPassCount = static_cast<int>(std::size(kKernelPasses));

Result<PrimFunc> lower_kernel(PrimFunc function) {
  TW_TRY_STATUS(verify(function));
  for (const auto& pass : kKernelPasses) function = pass.run(std::move(function));
  TW_TRY_STATUS(verify(function, Form::kFinal));
  return function;
}

}  // namespace tilewright::tir
