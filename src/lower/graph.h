// SPDX-License-Identifier: Apache-2.0
// A fused module as a flat list: tensors, and the groups (future kernels) that make them. The form lowering works on.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "lower/halo.h"
#include "lower/weight.h"
#include "relay/expr.h"

namespace tilewright::lower {

struct Choice;      // strategy.h
class WeightForms;  // weight_forms.h

struct GraphTensor {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;  // as in the graph's types, blocked layouts included
  enum class Kind { kInput, kParam, kComputed } kind = Kind::kComputed;
  Tensor data;        // kParam: as the graph has it
  Weight weight;      // kParam: as its kernels read it
  int producer = -1;  // kComputed: the group that makes it
  int producer_output = 0;
  std::vector<int> consumers;  // groups, each once, in order
  bool is_output = false;
  uint32_t device = 0;   // into Graph::devices
  std::string layout;    // "NCHW16c" where the channels are in blocks; empty: plain, or no picture at all
  Halo halo;             // zeros around it in memory, once place() has run
  bool slotted = false;  // it is written into its place in a concatenation (the same)
};

// How a group that only renames memory relates its tensors.
struct Renaming {
  enum class Kind { kNone, kReshape, kConcat, kSlice, kWithin } kind = Kind::kNone;
  size_t axis = 0;              // concat, slice
  std::vector<int64_t> starts;  // concat: each input's start along axis; slice: each output's
  int host = -1;                // kWithin, a concat that is a run of another one's operands: the tensor that holds it
  int64_t host_start = 0;       // and where along axis
};

struct Group {
  const relay::FunctionNode* function = nullptr;
  std::vector<int> inputs;                         // tensors, one per flattened parameter, then one per lifted constant
  std::vector<const relay::ConstantNode*> lifted;  // non-scalar constants of the body, in the order of their inputs
  std::vector<int> outputs;                        // tensors, one per flattened result
  std::string name;                                // "nn.conv2d+add+nn.relu"
  std::string source;                              // the model's node names
  std::shared_ptr<const Choice> choice;            // how it will be lowered; null until chosen
  Renaming renaming;                               // once place() has run
  plan::StepKind kind = plan::StepKind::kKernel;
  std::string external, compiler;  // kExternal: the function's name, and the code generator that it is for
  // No kernel of ours: its operands are compact and lie as their shapes say.
  bool plain() const { return kind != plan::StepKind::kKernel; }
};

struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<Group> groups;  // in execution order
  std::vector<int> inputs, outputs;
  std::vector<std::string> output_names;
  std::vector<int32_t> devices = {1};  // types; the first is the CPU
  std::vector<relay::Expr> keep;       // functions made here (copies), kept alive
  bool placed = false;                 // place() has run: halos are known
  const WeightForms* forms = nullptr;  // that the library's variants agree on; null: each kernel takes its own
};

// A group that copies tensor `id`, without its output.
Group copy_group(Graph* graph, int id);

// Flattens `main` of a fused module: its body is calls to Primitive functions, to functions of external compilers
// (attribute Compiler), device_copy in a group of its own, tuples and projections. Values that no copy parts are on one
// device. A result that is an input, a constant or named twice gets a copying group. Errors: FreeDimension (a symbolic
// shape is left), UnsupportedModel (control flow, a call that is not to a fusion group).
Result<Graph> extract_graph(const relay::Module& fused);

}  // namespace tilewright::lower
