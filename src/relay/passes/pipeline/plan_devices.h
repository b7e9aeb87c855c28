// SPDX-License-Identifier: Apache-2.0
// PlanDevices: assigns a device to every value and inserts copies between devices.
// What: an operator's operands and results share a device. on_device fixes its operand's device; its result is on that
// of its users. Undetermined values are on relay.fallback_device_type (the CPU). on_device disappears, leaving a
// device_copy where the two sides differ; where the result is not on the CPU, the function gets the attribute
// result_device_type.
// Requires: typed module.
// Ensures: the same values; no on_device remains. Two devices for one value are an error.
// Why here: after the rewrites, before fusion, since copies separate groups.
// Test: tests/relay/passes/plan_devices*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> plan_devices(const Module& module, PassContext& context);
}  // namespace tilewright::relay
