// SPDX-License-Identifier: Apache-2.0
// The execution plan as the classic graph JSON: nodes, arg_nodes, heads, node_row_ptr, attrs.
#pragma once
#include <string>
#include <vector>

#include "base/formats/plan.h"

namespace tilewright::runtime {

struct GraphNode {
  std::string name;  // unique
  bool is_call = false;
  size_t index = 0;                               // of the input, parameter or step
  std::vector<std::pair<size_t, size_t>> inputs;  // (node, output)
  std::vector<uint32_t> outputs;                  // plan buffers of a step's outputs
};

// Inputs, then parameters, then steps in execution order.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<std::pair<size_t, size_t>> heads;
};
Graph graph_of(const plan::Plan& plan);
std::string write_graph_json(const plan::Plan& plan);

}  // namespace tilewright::runtime
