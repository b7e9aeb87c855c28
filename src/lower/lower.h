// SPDX-License-Identifier: Apache-2.0
// Lowers a fused module to kernels and an execution plan, in the steps of lower/steps.h. Equal kernels are emitted
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

// The location of a step's operand, for tools that inspect a run (verify, the debugger).
struct OperandTrace {
  uint32_t buffer = 0;  // into plan.buffers
  DataType dtype;
  std::vector<int64_t> shape, strides;  // logical extents; strides in elements
  int64_t offset = 0;
  Tensor constant;  // a constant operand as in the graph, before packing
};
struct StepTrace {
  relay::Expr function;  // the group; its parameters correspond to inputs (tuples flattened)
  std::vector<OperandTrace> inputs, outputs;
  std::shared_ptr<const Choice> choice;
};

// A function compiled by an external code generator; Plan::externals has their names in the same order.
struct ExternalFunction {
  std::string symbol, compiler;
  relay::Expr function;
};

struct Lowered {
  std::vector<tir::PrimFunc> kernels;    // distinct; plan.kernels has their names
  std::vector<uint32_t> kernel_devices;  // by kernel: index into plan.devices of its target
  std::vector<ExternalFunction> externals;
  plan::Plan plan;
  std::vector<Weight> params;     // contents of plan.params, in order
  std::vector<StepTrace> traces;  // one per plan step
  // Groups that could not be lowered as one kernel and were split into one per operator, with the reason. The user only
  // sees a slower model, but each is a defect, and tests fail on it.
  std::vector<std::string> taken_apart;
  std::vector<PlacedPool> pools;                       // parts of the arena
  std::vector<int64_t> input_offsets, output_offsets;  // in the arena; empty: provided by the user
};

// Targets by device type (resolved); a missing one is that of the CPU.
using DeviceTargets = std::map<int32_t, Target>;

struct LowerOptions {
  const KernelChooser* chooser = nullptr;  // null: the cost model
  DeviceTargets device_targets;
  const WeightForms* forms = nullptr;
  MemoryOptions memory;
  PassContext* context = nullptr;  // runs and logs the steps as passes; null: a private context
};

// Requires static shapes and resolved targets. Errors: FreeDimension, UnsupportedOp, UnsupportedModel, InvalidArgument
// (the chooser's).
Result<Lowered> lower_module(const relay::Module& fused, const Target& target, const LowerOptions& options = {});

}  // namespace tilewright::lower
