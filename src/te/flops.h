// SPDX-License-Identifier: Apache-2.0
// How much a computation computes, for rates ("GFLOPS") of schedules that are measured.
#pragma once
#include "te/schedule.h"

namespace tilewright::te {

// Operations of all computed stages as they are written, each element once: arithmetic, comparisons and logic count one
// each, a mathematical function one, index expressions nothing; a reduction counts what it combines and the
// combination. Error: InvalidArgument (a size that only a call knows).
Result<double> count_flops(const Schedule& schedule);

}  // namespace tilewright::te
