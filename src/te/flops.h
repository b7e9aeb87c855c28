// SPDX-License-Identifier: Apache-2.0
// Operation counts of computations, for measured rates ("GFLOPS").
#pragma once
#include "te/schedule.h"

namespace tilewright::te {

// The operations of all computed stages as written, each element once: arithmetic, comparisons and logic count one, a
// mathematical function one, index expressions nothing; a reduction counts its operand and the combination. Error:
// InvalidArgument (a size known only at a call).
Result<double> count_flops(const Schedule& schedule);

}  // namespace tilewright::te
