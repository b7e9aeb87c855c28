// SPDX-License-Identifier: Apache-2.0
// SplitArgs: limits the number of kernel arguments.
// What: a concatenate of more fields than relay.SplitArgs.max_function_args becomes concatenates of that many at most,
// kept apart by annotation.stop_fusion. The default, -1, means no limit.
// Requires: typed module.
// Ensures: the same values.
// Why here: right before fusion, which heeds stop_fusion and removes it.
// Test: tests/relay/passes/split_args*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> split_args(const Module& module, PassContext& context);
}  // namespace tilewright::relay
