// SPDX-License-Identifier: Apache-2.0
// WidenSmallFloats: makes float16 and bfloat16 storage types: computation is in float32.
// What: operators of small floats become operators of float32 whose results stay float32 until the small type is
// required: by an output, a function call, a reinterpretation. A cast to a small float in the model itself still
// rounds. Data movement keeps the operand's type. Constants are widened here.
// Requires: typed module, composed operators expanded.
// Ensures: no operator but moves and casts has small operands; the functions' types are what they were. With
// -math=strict every operator's result is rounded to its type, as in the reference interpreter.
// Why here: before Legalize, so that every later pass and every kernel sees the float32 twin of the model. The casts at
// the borders fuse with elementwise kernels. See docs/decisions/012-small-floats.md.
// Test: tests/relay/passes/widen_small_floats*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> widen_small_floats(const Module& module, PassContext& context);
}  // namespace tilewright::relay
