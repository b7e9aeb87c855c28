// SPDX-License-Identifier: Apache-2.0
// Legalize: rewrites operators without a kernel into operators with one.
// What: convolutions, pools and resizes are moved to the standard layouts, islands of 2-D convolutions as a whole;
// einsum becomes matrix products; one_hot, trilu, gather_nd, variance, logsumexp, adaptive pools, mirror_pad,
// upsampling, space_to_batch_nd and their like become slices, takes, comparisons, reductions and reshapes
// (legalize_rules.h).
// Requires: static shapes; an operator without them stays.
// Ensures: the same values.
// Why here: before the rewrites, which then see plain operators only (after FlattenAtrousConv, which wants the
// originals).
// Test: tests/relay/passes/legalize*.txt, python/tests/test_operators.py
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> legalize(const Module& module, PassContext& context);
}  // namespace tilewright::relay
