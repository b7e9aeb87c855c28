// SPDX-License-Identifier: Apache-2.0
// Where a value lives: a device, the target its kernels are compiled for, a kind of memory. What is not said is not
// constrained. Functions keep them as texts, in attributes that the text form writes beside the parameters.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/attrs.h"
#include "relay/expr.h"
#include "relay/text_literal.h"

namespace tilewright::relay {

// The result's device, and the parameters' (a list of texts; "" where nothing is said).
inline constexpr const char* kDeviceAttr = "virtual_device";
inline constexpr const char* kParamDevicesAttr = "param_virtual_devices";

struct VirtualDevice {
  int64_t type = 0;  // as DLPack numbers devices; 0: any
  int64_t id = -1;   // -1: any
  std::string target, host, memory_scope;
  bool operator==(const VirtualDevice&) const = default;
  bool unconstrained() const { return *this == VirtualDevice{}; }
  // "VirtualDevice(device_type=1, virtual_device_id=0, target=\"llvm\")"
  std::string text() const;
};

// What both say together; nothing where they differ.
std::optional<VirtualDevice> joined(const VirtualDevice& a, const VirtualDevice& b);
// What `known` leaves open, as `fallback` says it; of another device nothing is taken but that there is one.
VirtualDevice completed(VirtualDevice known, const VirtualDevice& fallback);

// The fields of VirtualDevice(...). Errors: ParseError.
Result<VirtualDevice> parse_virtual_device(Lexer& lexer);
Result<VirtualDevice> parse_virtual_device(const std::string& text);

// The devices in the attributes of on_device, and of device_copy (source, destination).
VirtualDevice device_of(const AttrsRef& on_device);
std::pair<VirtualDevice, VirtualDevice> devices_of(const AttrsRef& device_copy);
AttrsRef on_device_attrs(const VirtualDevice& device, bool constrain_result, bool constrain_body);
AttrsRef device_copy_attrs(const VirtualDevice& from, const VirtualDevice& to);
// The named attributes that say a device: virtual_device, src_virtual_device, dst_virtual_device of a call.
std::vector<NamedLiteral> device_literals(const std::string& name, const VirtualDevice& device, size_t at);

// A function's result's and parameters' devices; unconstrained where nothing is said.
struct FunctionDevices {
  VirtualDevice result;
  std::vector<VirtualDevice> params;
};
Result<FunctionDevices> devices_of(const FunctionNode& function);

}  // namespace tilewright::relay
