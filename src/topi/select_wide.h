// SPDX-License-Identifier: Apache-2.0
// select_first for 64-bit elements; any extent.
#pragma once
#include "topi/rank.h"

namespace tilewright::topi {

// Scratch per thread, in kInt64 elements.
int64_t wide_scratch_bytes(const RankProblem& problem);
tir::Stmt select_first_wide(const RankProblem& problem, DataType dtype, const Operand& input, const View* values,
                            const View* indices, const KernelContext& context);

}  // namespace tilewright::topi
