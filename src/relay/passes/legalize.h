// SPDX-License-Identifier: Apache-2.0
// Legalize: operators without a kernel of their own become ones that have it.
// What: space_to_batch_nd and batch_to_space_nd become pads, reshapes, transposes and slices.
// Requires: static shapes where such an operator stands; it stays otherwise.
// Ensures: the same values.
// Why here: before the rewrites, which then see plain operators only (after FlattenAtrousConv, which wants the
// originals). Test: tests/relay/passes/legalize*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> legalize(const Module& module, PassContext& context);
}  // namespace tilewright::relay
