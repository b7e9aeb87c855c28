// SPDX-License-Identifier: Apache-2.0
// CanonicalizeQnn: quantised operators become plain ones.
// What: scales and zero points are written out; products are those of integers without their zero points; what changes
// scale is multiplied in float64, so that the nearest integer is the right one.
// Requires: types.
// Ensures: the values that the operators' references define; no qnn operator is left.
// Why here: before every rewrite, which know plain operators only, and IntegerProducts. Test:
// tests/relay/passes/canonicalize_qnn*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> canonicalize_qnn(const Module& module, PassContext& context);
}  // namespace tilewright::relay
