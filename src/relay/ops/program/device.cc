// SPDX-License-Identifier: Apache-2.0
// Operators that leave values alone and speak to passes: where a value lives, where fusion stops.
#include "relay/ops/define.h"
#include "relay/ops/program/attrs_device.h"
#include "relay/ops/reference.h"

namespace tilewright::relay {
namespace {

Result<Type> same_type(const TypeArgs& args) { return args.types[0]; }
Result<std::vector<Value>> same_values(const EvalArgs& args) {
  return std::vector<Value>(args.inputs.begin(), args.inputs.end());
}

}  // namespace

std::vector<OpDef> device_ops() {
  const std::vector<ArgDoc> data = {{"data", "any tensor"}};
  return {
      define_op("annotation.stop_fusion", "The same values; what computes them and what uses them are not fused.", data,
                OpPattern::kOpaque, same_type, same_values, nullptr),
      define_op("device_copy", "The same values on another device.", data, OpPattern::kOpaque, same_type, same_values,
                make_default_attrs<DeviceCopyAttrs>)
          .with({.elements = Elements::kSame}),
      define_op("on_device", "The same values; the operand is computed on the named device. PlanDevices acts on it.",
                data, OpPattern::kOpaque, same_type, same_values, make_default_attrs<OnDeviceAttrs>),
  };
}

}  // namespace tilewright::relay
