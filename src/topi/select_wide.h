// SPDX-License-Identifier: Apache-2.0
// select_first for 64-bit elements, any extent; for narrower ones where every element of a line is sorted.
#pragma once
#include "topi/rank.h"

namespace tilewright::topi {

// Long lines and small k: this many candidates are held at once, of which all but the first k are dropped when they are
// full. That should happen once.
int64_t candidates(const RankProblem& problem);
// Lines of up to this length are sorted by two leading digits, others by three.
inline constexpr int64_t kShortLine = 512;
// Scratch per thread, in kInt64 elements.
int64_t wide_scratch_bytes(const RankProblem& problem);
tir::Stmt select_first_wide(const RankProblem& problem, DataType dtype, const Operand& input, const View* values,
                            const View* indices, const KernelContext& context);

}  // namespace tilewright::topi
