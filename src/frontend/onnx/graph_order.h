// SPDX-License-Identifier: Apache-2.0
// In which order a graph's nodes run, and what they read.
#pragma once
#include <string>
#include <vector>

#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

// Everything the node and the nodes of its subgraphs read: names that a subgraph takes from outside are among them.
void collect_reads(const Node& node, std::vector<std::string>* out);

// Node indices, producers before users; file order wherever it is one already. Throws ConversionFailure (convert.h) for
// values that two nodes make and for cycles.
std::vector<size_t> execution_order(const std::vector<Node>& nodes);

}  // namespace tilewright::onnx
