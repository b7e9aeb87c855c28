// SPDX-License-Identifier: Apache-2.0
// select_first's part for elements of 64 bits; any extent.
#pragma once
#include "topi/direct.h"

namespace tilewright::topi {

// Memory of the thread's own, kInt64.
int64_t wide_scratch_bytes(const RankProblem& problem);
tir::Stmt select_first_wide(const RankProblem& problem, DataType dtype, const Operand& input, const View* values,
                            const View* indices, const KernelContext& context);

}  // namespace tilewright::topi
