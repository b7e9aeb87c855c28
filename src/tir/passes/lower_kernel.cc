// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/lower_kernel.h"

#include <iterator>

#include "tir/passes/divide_parallel.h"
#include "tir/passes/simplify.h"
#include "tir/passes/storage_rewrite.h"
#include "tir/passes/unroll.h"
#include "tir/passes/vectorize.h"
#include "tir/verify.h"

namespace tilewright::tir {

const KernelPass kKernelPasses[] = {
    {"divide_parallel", divide_parallel}, {"unroll", unroll}, {"vectorize", vectorize}, {"simplify", simplify},
    {"storage_rewrite", storage_rewrite},
};
const int kKernelPassCount = static_cast<int>(std::size(kKernelPasses));

Result<PrimFunc> run_kernel_passes(PrimFunc function, std::span<const KernelPass> passes) {
  const Stmt before = function.body;
  for (const auto& pass : passes) function = pass.run(std::move(function));
  if (function.body != before) TW_TRY_STATUS(verify(function, Form::kFinal));
  return function;
}

Result<PrimFunc> lower_kernel(PrimFunc function) {
  TW_TRY_STATUS(verify(function));
  function = TW_TRY(run_kernel_passes(std::move(function), kKernelPasses));
  TW_TRY_STATUS(verify(function, Form::kFinal));
  return function;
}

}  // namespace tilewright::tir
