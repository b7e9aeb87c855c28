// SPDX-License-Identifier: Apache-2.0
// Operators that programs have in addition to those on typed tensors: deferred nodes, and functions of the runtime.
// Their result types are incomplete until the run.
#include "relay/ops/define.h"
#include "relay/ops/program/attrs_program.h"

namespace tilewright::relay {
namespace {

Result<Type> known_at_run_time(const TypeArgs&) { return incomplete_type(); }

Result<std::vector<Value>> only_in_programs(const EvalArgs&) {
  return Diagnostic(ErrorCode::kUnsupportedModel, "the value needs sizes or data that only a run has", {},
                    "compile the module for the VM, which converts it when it runs");
}

OpDef program_op(const char* name, const char* doc, AttrsRef (*make)()) {
  OpDef d =
      define_op(name, doc, {{"operands", "any values"}}, OpPattern::kOpaque, known_at_run_time, only_in_programs, make);
  d.num_inputs = -1;
  d.stateful = true;  // nothing is known of it that a pass could use
  return d;
}

}  // namespace

std::vector<OpDef> program_ops() {
  return {
      program_op("onnx.node", "A node of an ONNX model, converted when the sizes and values that it needs are known.",
                 make_default_attrs<OnnxNodeAttrs>),
      program_op("vm.host", "A function of the runtime, on values as they are.", make_default_attrs<HostAttrs>)
          .with({.sized_by_data = true}),
  };
}

}  // namespace tilewright::relay
