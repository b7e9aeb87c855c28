// SPDX-License-Identifier: Apache-2.0
// The loops of hybrid scripts. Their order may change where no two iterations that change places access the same
// element (tir/dependence.h, and indices dimension by dimension, also of free sizes). Test:
// python/tests/test_te_hybrid.py
#pragma once
#include <span>
#include <vector>

#include "te/flatten.h"
#include "te/stage_plan.h"

namespace tilewright::te {

// The loops of statements: a nest's from the outside inwards, later nests first, as in the classic stack.
std::vector<ScriptLoop> script_loops(const tir::Stmt& body);

// Applies the schedule of a script's stage to the kernels that `flatten` made of its statements. Errors:
// InvalidArgument (an order, vectorized or parallel loop that could change results).
Status schedule_script(Planning& planning, const Stage& stage, Flatten& flatten, std::span<tir::PrimFunc> kernels);

}  // namespace tilewright::te
