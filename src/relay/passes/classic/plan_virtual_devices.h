// SPDX-License-Identifier: Apache-2.0
// PlanVirtualDevices: PlanDevices as scripts of the classic stack ask for it, with the targets of a compilation.
// What: every value gets a virtual device. An operator's operands and results share one; a function has one per
// parameter and result (the same at every call); on_device and device_copy fix them. Undetermined values are placed on
// the first of `devices`, shapes on the second, the host; the others supply targets for devices without one. The result
// is explicit: attributes of functions, on_device around operands and bindings on another device than their users, and
// device_copy where a value moves. The pass is idempotent.
// Requires: typed module.
// Ensures: the same values. A value with two devices is an error.
// Why beside PlanDevices: a build needs the copies only, this form is what scripts read, edit and compare.
// Test: python/tests/classic_programs/devices.py
#pragma once
#include "ir/pass_context.h"
#include "relay/virtual_device.h"

namespace tilewright::relay {
// `devices`: texts of virtual devices, at least two. Errors: InvalidArgument.
Result<Module> plan_virtual_devices(const Module& module, const std::vector<std::string>& devices);
}  // namespace tilewright::relay
