// SPDX-License-Identifier: Apache-2.0
// From a fused module to kernels and the plan that runs them, in the steps of lower/steps.h. Equal kernels are emitted
// once.
#pragma once
#include <map>
#include <vector>

#include "base/formats/plan.h"
#include "ir/pass_context.h"
#include "lower/memory_options.h"
#include "lower/strategy.h"
#include "lower/weight.h"
#include "lower/weight_forms.h"
#include "relay/expr.h"

namespace tilewright::lower {

// Where a step's operand lies, for those who look into a run (verify, the debugger).
struct OperandTrace {
  uint32_t buffer = 0;  // into plan.buffers
  DataType dtype;
  std::vector<int64_t> shape, strides;  // logical extents; strides and offset in elements from the buffer's start
  int64_t offset = 0;
  Tensor constant;  // the operand as the graph has it (before packing), when it is a constant
};
struct StepTrace {
  relay::Expr function;  // the group: parameters in the order of inputs (tuples flattened)
  std::vector<OperandTrace> inputs, outputs;
  std::shared_ptr<const Choice> choice;
};

// A function that an external code generator makes: Plan::externals are their names, in the same order.
struct ExternalFunction {
  std::string symbol, compiler;
  relay::Expr function;
};

struct Lowered {
  std::vector<tir::PrimFunc> kernels;    // distinct; plan.kernels are their names
  std::vector<uint32_t> kernel_devices;  // of each kernel: which of plan.devices it is compiled for
  std::vector<ExternalFunction> externals;
  plan::Plan plan;
  std::vector<Weight> params;     // contents of plan.params, in order
  std::vector<StepTrace> traces;  // one per plan step
  // Groups that could not be lowered as one kernel and became one for each operator, with the reason. A user sees only
  // a slower model; for us each is a defect, and tests fail on it.
  std::vector<std::string> taken_apart;
  std::vector<PlacedPool> pools;                       // parts of the arena
  std::vector<int64_t> input_offsets, output_offsets;  // in the arena; empty: they are the user's memory
};

// Targets of devices other than the CPU, by device type (resolved); one that is missing has the CPU's.
using DeviceTargets = std::map<int32_t, Target>;

struct LowerOptions {
  const KernelChooser* chooser = nullptr;  // null: the cost model
  DeviceTargets device_targets;
  const WeightForms* forms = nullptr;
  MemoryOptions memory;
  PassContext* context = nullptr;  // the steps run as passes with it, and are in its log; null: one of their own
};

// The module's shapes must be static and its targets resolved. Errors: FreeDimension, UnsupportedOp, UnsupportedModel,
// InvalidArgument (the chooser's).
Result<Lowered> lower_module(const relay::Module& fused, const Target& target, const LowerOptions& options = {});

}  // namespace tilewright::lower
