// SPDX-License-Identifier: Apache-2.0
// A fused module as flat lists of tensors and groups (future kernels): the form that lowering works on.
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
  std::vector<int64_t> shape;  // as in the module's types, blocked layouts included
  enum class Kind { kInput, kParam, kComputed } kind = Kind::kComputed;
  Tensor data;        // kParam: as in the module
  Weight weight;      // kParam: as its kernels read it
  int producer = -1;  // kComputed: the group that computes it
  int producer_output = 0;
  std::vector<int> consumers;  // groups, each once, in order
  bool is_output = false;
  uint32_t device = 0;   // index into Graph::devices
  std::string layout;    // "NCHW16c" for channel blocks; empty for plain layouts and tensors that are no images
  Halo halo;             // zeros around it in memory, set by place()
  bool slotted = false;  // written directly into its part of a concatenation (set by place())
};

// How a group that only reinterprets memory relates its tensors.
struct Renaming {
  enum class Kind { kNone, kReshape, kConcat, kSlice, kWithin } kind = Kind::kNone;
  size_t axis = 0;              // concat, slice
  std::vector<int64_t> starts;  // concat: each input's start along axis; slice: each output's
  int host = -1;  // kWithin, a concat whose operands are a contiguous run of another's: the tensor that contains it
  int64_t host_start = 0;  // and its offset along the axis
};

struct Group {
  const relay::FunctionNode* function = nullptr;
  std::vector<int> inputs;                         // tensors: one per flattened parameter, then one per lifted constant
  std::vector<const relay::ConstantNode*> lifted;  // non-scalar constants of the body, in input order
  std::vector<int> outputs;                        // tensors, one per flattened result
  std::string name;                                // "nn.conv2d+add+nn.relu"
  std::string source;                              // the model's node names
  std::shared_ptr<const Choice> choice;            // null until chosen
  Renaming renaming;                               // set by place()
  plan::StepKind kind = plan::StepKind::kKernel;
  std::string external, compiler;  // kExternal: the function's name, and its code generator
  // Not a kernel of ours: operands must be compact, without halos.
  bool plain() const { return kind != plan::StepKind::kKernel; }
};

struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<Group> groups;  // in execution order
  std::vector<int> inputs, outputs;
  std::vector<std::string> output_names;
  std::vector<int32_t> devices = {1};  // device types; the first is the CPU
  std::vector<relay::Expr> keep;       // functions created here (copies), kept alive
  bool placed = false;                 // place() has run: halos are known
  bool apart = false;                  // MemoryOptions::apart
  // weight forms shared by the library's variants; null: each kernel chooses its own
  const WeightForms* forms = nullptr;
};

// Creates a group that copies tensor `id`; its output is not set yet.
Group copy_group(Graph* graph, int id);

// Flattens `main` of a fused module, whose body consists of calls to Primitive functions and to functions of external
// compilers (attribute Compiler), device_copy in groups of their own, tuples and projections. Values not separated by a
// copy are on one device. A result that is an input, a constant or returned twice gets a copying group. Errors:
// FreeDimension (a symbolic shape), UnsupportedModel (control flow, a call of something that is not a fusion group).
Result<Graph> extract_graph(const relay::Module& fused);

}  // namespace tilewright::lower
