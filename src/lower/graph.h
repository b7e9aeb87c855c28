// SPDX-License-Identifier: Apache-2.0
// A fused module as a flat list: tensors, and the groups (future kernels) that make them. The form lowering works on.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "relay/expr.h"

namespace tilewright::lower {

struct Choice;  // strategy.h

struct GraphTensor {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;  // as in the graph's types, blocked layouts included
  enum class Kind { kInput, kParam, kComputed } kind = Kind::kComputed;
  Tensor data;                 // kParam
  Tensor original;             // kParam that was repacked for its kernel: what it was
  int producer = -1;           // kComputed: the group that makes it
  int producer_output = 0;
  std::vector<int> consumers;  // groups, each once, in order
  bool is_output = false;
};

struct Group {
  const relay::FunctionNode* function = nullptr;
  std::vector<int> inputs;   // tensors, one per flattened parameter, then one per lifted constant
  std::vector<const relay::ConstantNode*> lifted;  // non-scalar constants of the body, in the order of their inputs
  std::vector<int> outputs;  // tensors, one per flattened result
  std::string name;          // "nn.conv2d+add+nn.relu"
  std::string source;        // the model's node names
  std::shared_ptr<const Choice> choice;  // how it will be lowered; null until chosen
};

struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<Group> groups;  // in execution order
  std::vector<int> inputs, outputs;
  std::vector<std::string> output_names;
  std::vector<relay::Expr> keep;  // functions made here (copies), kept alive
};

// Flattens `main` of a fused module: its body is calls to Primitive functions, tuples and projections. A result that is
// an input, a constant or named twice gets a copying group. Errors: FreeDimension (a symbolic shape is left),
// UnsupportedModel (control flow, a call that is not to a fusion group).
Result<Graph> extract_graph(const relay::Module& fused);

}  // namespace tilewright::lower
