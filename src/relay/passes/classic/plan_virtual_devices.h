// SPDX-License-Identifier: Apache-2.0
// PlanVirtualDevices: PlanDevices as scripts of the classic stack ask for it, with the targets of a compilation.
// What: every value gets a virtual device. What an operator reads and writes shares one, functions have one for each
//   parameter and the result (the same at every call), on_device and device_copy say which. What nothing decides is on
//   the first of `devices`; shapes are on the second, the host's; the others are the targets that devices without one
//   are completed by. The result says all of it: attributes of functions, on_device around operands and bindings that
//   are elsewhere than what uses them, and device_copy where a value moves. Running it again changes nothing.
// Requires: typed module. Ensures: the same values. A value with two devices is an error.
// Why beside PlanDevices: a build needs the copies only, this form is what scripts read, edit and compare.
// Test: python/tests/classic_programs/devices.py
#pragma once
#include "ir/pass_context.h"
#include "relay/virtual_device.h"

namespace tilewright::relay {
// `devices`: texts of virtual devices, at least two. Errors: InvalidArgument.
Result<Module> plan_virtual_devices(const Module& module, const std::vector<std::string>& devices);
}  // namespace tilewright::relay
