// SPDX-License-Identifier: Apache-2.0
// Top-k: the first k of every line along an axis in sorted order, for elements of up to 32 bits (64: select_wide.h).
// Each element becomes one 64-bit key, its order above its position, so that keys are distinct and the sort is stable;
// NaN is largest. For small k a sorted list is kept, which most elements do not enter; for large k a histogram of
// leading digits selects candidates, which are then radix sorted (Knuth, The Art of Computer Programming 3, 5.2.5). A
// line is processed by one thread, so results do not depend on their number.
#pragma once
#include "topi/rank.h"

namespace tilewright::topi {

// Whether it applies: dtype and extent fit one key. Short lines with large k are better sorted by counting ranks.
bool can_select(const RankProblem& problem, DataType dtype);
// Scratch per thread, in kInt64 elements.
int64_t select_scratch_bytes(const RankProblem& problem, DataType dtype);
// `values` and `indices` may each be null.
tir::Stmt select_first(const RankProblem& problem, DataType dtype, const Operand& input, const View* values,
                       const View* indices, const KernelContext& context);
Cost select_cost(const RankProblem& problem, DataType dtype);

}  // namespace tilewright::topi
