// SPDX-License-Identifier: Apache-2.0
// Where a value lives: a device, the target its kernels are compiled for, a memory scope. Omitted parts are
// unconstrained. Functions hold them as text attributes, which the text form prints with the parameters.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/attrs.h"
#include "relay/expr.h"
#include "relay/text_literal.h"

namespace tilewright::relay {

// Attributes for the result's device, and the parameters' (a list of texts, "" for unconstrained).
inline constexpr const char* kDeviceAttr = "virtual_device";
inline constexpr const char* kParamDevicesAttr = "param_virtual_devices";

struct VirtualDevice {
  int64_t type = 0;  // DLPack device type; 0: any
  int64_t id = -1;   // -1: any
  std::string target, host, memory_scope;
  bool operator==(const VirtualDevice&) const = default;
  bool unconstrained() const { return *this == VirtualDevice{}; }
  // "VirtualDevice(device_type=1, virtual_device_id=0, target=\"llvm\")"
  std::string text() const;
};

// The conjunction of both; nothing if they conflict.
std::optional<VirtualDevice> joined(const VirtualDevice& a, const VirtualDevice& b);
// Fills what `known` leaves open from `fallback`; if the two are on different device types, only the device id is
// filled (with 0).
VirtualDevice completed(VirtualDevice known, const VirtualDevice& fallback);

// Parses the fields of VirtualDevice(...). Errors: ParseError.
Result<VirtualDevice> parse_virtual_device(Lexer& lexer);
Result<VirtualDevice> parse_virtual_device(const std::string& text);

// The devices in the attributes of on_device, and of device_copy (source, destination).
VirtualDevice device_of(const AttrsRef& on_device);
std::pair<VirtualDevice, VirtualDevice> devices_of(const AttrsRef& device_copy);
AttrsRef on_device_attrs(const VirtualDevice& device, bool constrain_result, bool constrain_body);
AttrsRef device_copy_attrs(const VirtualDevice& from, const VirtualDevice& to);
// The device attributes of a call: virtual_device, src_virtual_device, dst_virtual_device.
std::vector<NamedLiteral> device_literals(const std::string& name, const VirtualDevice& device, size_t at);

// The devices of a function's result and parameters; unconstrained where not given.
struct FunctionDevices {
  VirtualDevice result;
  std::vector<VirtualDevice> params;
};
Result<FunctionDevices> devices_of(const FunctionNode& function);

}  // namespace tilewright::relay
