// SPDX-License-Identifier: Apache-2.0
// Checks that an intrinsic computes what loops of a stage do, and locates its arrays.
#pragma once
#include "te/stage_plan.h"

namespace tilewright::te {

// Matches the loops of `stage`, from the tensorized one inwards, with the intrinsic's operation: extents, expression,
// and strides that its arrays require. Sets plan->intrinsic. Errors: InvalidArgument.
Status match_intrinsic(Planning& planning, const Stage& stage, StagePlan* plan);

}  // namespace tilewright::te
