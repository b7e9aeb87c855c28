// SPDX-License-Identifier: Apache-2.0
// WidenSmallFloats: float16 and bfloat16 are how values are kept, float32 is what is computed in.
// What: operators of small floats become operators of float32 whose results stay float32 until something asks for the
//   small type: an output, a function that is called, a reinterpretation. A cast to a small float that the graph itself
//   has rounds. Operators that only move elements leave them as small as they come. Constants are widened here.
// Requires: typed module, composed operators expanded. Ensures: no operator but moves and casts has small operands; the
//   functions' types are what they were. With -math=strict every operator's result is rounded to its type, as in the
//   reference interpreter.
// Why here: before Legalize, so that every later pass and every kernel sees the float32 twin of the model. Small values
//   are read and written by casts, which join the elementwise kernels at the borders.
// See docs/decisions/012-small-floats.md. Test: tests/relay/passes/widen_small_floats*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> widen_small_floats(const Module& module, PassContext& context);
}  // namespace tilewright::relay
