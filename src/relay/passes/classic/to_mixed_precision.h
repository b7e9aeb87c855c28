// SPDX-License-Identifier: Apache-2.0
// ToMixedPrecision: float32 arithmetic in a narrower float where that is safe.
// What: contractions (convolutions, matrix products) always take float16 operands; operators that gain nothing by width
//   (elementwise, pools, data movement) follow when all their operands that are not constants are narrow; everything
//   that loses (sums, exponentials, normalisations) stays in float32. Casts stand where the two meet, one per value and
//   direction.
// Requires: typed module. Ensures: parameters keep their types; results are float32 again under
//   relay.ToMixedPrecision.keep_orig_output_dtype, else what they became.
// Why here: before fusion, which takes the casts in. Not in the default pipeline: it trades accuracy.
// Test: tests/relay/passes/to_mixed_precision*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> to_mixed_precision(const Module& module, PassContext& context);
// The same for another narrow type (bfloat16).
Result<Module> to_mixed_precision(const Module& module, DataType narrow, bool keep_output_dtype);
}  // namespace tilewright::relay
