// SPDX-License-Identifier: Apache-2.0
// The execution order of a graph's nodes, and the names that nodes read.
#pragma once
#include <string>
#include <vector>

#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

// All names that the node and the nodes of its subgraphs read, including those that a subgraph captures from outside.
void collect_reads(const Node& node, std::vector<std::string>* out);

// Node indices in topological order, which is file order where that is one already. Throws ConversionFailure
// (convert.h) for names that two nodes define and for cycles.
std::vector<size_t> execution_order(const std::vector<Node>& nodes);

}  // namespace tilewright::onnx
