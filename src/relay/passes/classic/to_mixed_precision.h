// SPDX-License-Identifier: Apache-2.0
// ToMixedPrecision: float32 arithmetic in a narrower float where that is safe.
// What: contractions (convolutions, matrix products) always take float16 operands, and sum in float16; operators that
// gain nothing by width follow when all their operands are narrow, or are parameters or constants; those that lose
// (sums, exponentials, normalisations) stay in float32. A script's rule for an operator takes precedence. Casts are
// inserted between the two, one per value and direction.
// Requires: typed module.
// Ensures: parameters keep their types; results are cast back to float32 under
// relay.ToMixedPrecision.keep_orig_output_dtype.
// Why here: before fusion, which absorbs the casts. Not in the default pipeline: it trades accuracy.
// Test: tests/relay/passes/to_mixed_precision*.txt
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "ir/pass_context.h"
#include "relay/op.h"

namespace tilewright::relay {
Result<Module> to_mixed_precision(const Module& module, PassContext& context);

struct PrecisionRule {
  Narrowing narrowing = Narrowing::kFollows;
  DataType accumulated, result;  // accumulation dtype; result dtype
};
// A custom rule for a call of an operator, or nothing to use the built-in one.
using PrecisionRules = std::function<std::optional<PrecisionRule>(const std::string& op, const Expr& call)>;
// With another narrow type (bfloat16), and custom rules.
Result<Module> to_mixed_precision(const Module& module, DataType narrow, bool keep_output_dtype,
                                  const PrecisionRules& rules);
}  // namespace tilewright::relay
