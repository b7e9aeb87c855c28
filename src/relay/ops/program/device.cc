// SPDX-License-Identifier: Apache-2.0
// Identity operators that tell passes something: where a value lives, where fusion stops, where a region for an
// external code generator begins and ends.
#include "base/format.h"
#include "relay/ops/define.h"
#include "relay/ops/program/attrs_device.h"
#include "relay/ops/reference.h"

namespace tilewright::relay {
namespace {

Result<Type> same_type(const TypeArgs& args) { return args.types[0]; }
Result<std::vector<Value>> same_values(const EvalArgs& args) {
  return std::vector<Value>(args.inputs.begin(), args.inputs.end());
}
// Marks that PartitionGraph did not consume have no effect on a build.
Result<Expr> without_mark(const TypeArgs& args) { return args.args[0]; }
Result<Type> marked_type(const TypeArgs& args) {
  if (args.types.size() == 1) return args.types[0];
  return Diagnostic(ErrorCode::kTypeMismatch, format("it takes 1 operand, not {}", args.types.size()));
}
OpDef define_mark(const char* name, const char* doc) {
  OpDef mark = define_composed(name, doc, {{"data", "any tensor, or a tuple of them"}}, OpPattern::kOpaque,
                               without_mark, make_default_attrs<CompilerAttrs>, marked_type);
  mark.num_inputs = -1;
  return mark;
}

}  // namespace

std::vector<OpDef> device_ops() {
  const std::vector<ArgDoc> data = {{"data", "any tensor"}};
  return {
      define_mark("annotation.compiler_begin",
                  "The same values; here they enter a part that an external code generator is to take."),
      define_mark("annotation.compiler_end", "The same values; here they leave such a part."),
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
