// SPDX-License-Identifier: Apache-2.0
// PlanDevices: every value gets a device; copies stand where it changes.
// What: values that an operator reads and writes share a device; on_device names it. Its operand is computed there, its
//   result is wherever its users are. What nothing decides is on relay.fallback_device_type (the processor). on_device
//   disappears, leaving a device_copy where the two sides differ; where the result is not on the processor, the
//   function gets the attribute result_device_type.
// Requires: typed module. Ensures: the same values; no on_device remains. Two devices for one value are an error.
// Why here: after the rewrites, before fusion, which copies end.
// Test: tests/relay/passes/plan_devices*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> plan_devices(const Module& module, PassContext& context);
}  // namespace tilewright::relay
