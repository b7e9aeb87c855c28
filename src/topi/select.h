// SPDX-License-Identifier: Apache-2.0
// The first k of every line along an axis, in order, for elements of up to 32 bits (of 64: select_wide.h). Each element
// becomes one 64-bit number, its order above its position, so that no two are equal and equal elements stay in the
// order they had; NaN is larger than every number. Few of a line are kept in a sorted list that most elements do not
// reach; many are found by counting leading digits, and the candidates sorted digit by digit (Knuth, The Art of
// Computer Programming 3, 5.2.5). A line is done by one thread, so results do not depend on their number.
#pragma once
#include "topi/direct.h"

namespace tilewright::topi {

// Whether it applies: dtype and extent fit into one number. Small lines of which many are wanted are better ranked.
bool can_select(const RankProblem& problem, DataType dtype);
// Memory of the thread's own, kInt64.
int64_t select_scratch_bytes(const RankProblem& problem, DataType dtype);
// `values` and `indices` may each be null.
tir::Stmt select_first(const RankProblem& problem, DataType dtype, const Operand& input, const View* values,
                       const View* indices, const KernelContext& context);
Cost select_cost(const RankProblem& problem, DataType dtype);

}  // namespace tilewright::topi
