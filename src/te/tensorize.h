// SPDX-License-Identifier: Apache-2.0
// Whether a piece of code computes what loops of a stage do, and where its arrays lie then.
#pragma once
#include "te/stage_plan.h"

namespace tilewright::te {

// The loops of `stage` from the tensorized one inwards, against the intrinsic's operation: their extents, the
// expression, and the strides that the intrinsic's arrays ask for. Fills in plan->intrinsic. Errors: InvalidArgument.
Status match_intrinsic(Planning& planning, const Stage& stage, StagePlan* plan);

}  // namespace tilewright::te
