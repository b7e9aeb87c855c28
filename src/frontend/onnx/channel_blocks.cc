// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/channel_blocks.h"

#include <unordered_map>

namespace tilewright::onnx {

namespace {

int64_t int_of(const Node& node, const char* name, int64_t fallback) {
  const Attribute* a = node.find(name);
  return a && a->kind == AttributeKind::kInt ? a->i : fallback;
}

struct BlockedGraph {
  std::unordered_map<std::string, std::vector<int64_t>> weights;  // shapes of initializers
  std::unordered_map<std::string, const Node*> makers;

  explicit BlockedGraph(const Graph& graph) {
    for (const auto& t : graph.initializers) weights.emplace(t.name, t.data.shape());
    for (const Node& n : graph.nodes)
      for (const auto& o : n.outputs) makers.emplace(o, &n);
  }
  const Node* maker(const std::string& name) const {
    auto it = makers.find(name);
    return it == makers.end() ? nullptr : it->second;
  }
  // The shape of the constant weight; null when the node is no convolution or its weight is not constant.
  const std::vector<int64_t>* weight_of(const Node* node) const {
    if (!node || node->op_type != "Conv" || node->inputs.size() < 2) return nullptr;
    auto it = weights.find(node->inputs[1]);
    return it == weights.end() || it->second.size() != 4 ? nullptr : &it->second;
  }
};

bool makes_blocks(const Node* node) {
  return node && node->domain == kBlockedDomain && node->op_type != "ReorderOutput";
}

// The optimiser rounds output channels up to whole blocks. It rounds input channels up too, except when there are fewer
// than one block of them: such a convolution reads a plain NCHW tensor.
bool conv_fits(const BlockedGraph& graph, const Node& node, int64_t block) {
  const auto* weight = graph.weight_of(&node);
  if (!weight) return true;
  const int64_t outputs = (*weight)[0], inputs = (*weight)[1], groups = int_of(node, "group", 1);
  if (outputs % block != 0 || groups < 1) return false;
  if (groups > 1) return (inputs == 1 && groups == outputs) || (inputs % block == 0 && outputs / groups % block == 0);
  const bool blocked = makes_blocks(graph.maker(node.inputs[0]));
  return inputs < block ? !blocked : inputs % block == 0;
}
bool output_fits(const BlockedGraph& graph, const Node& node, int64_t block) {
  const Node* from = node.inputs.empty() ? nullptr : graph.maker(node.inputs[0]);
  const auto* weight = graph.weight_of(from);
  if (!weight || from->domain != kBlockedDomain) return true;
  const int64_t channels = int_of(node, "channels", 0), rest = (*weight)[0] - channels;
  return rest >= 0 && rest < block;
}

bool all_fit(const Graph& graph, int64_t block) {
  const BlockedGraph known(graph);
  for (const Node& n : graph.nodes) {
    if (n.domain != kBlockedDomain) continue;
    if (n.op_type == "Conv" && !conv_fits(known, n, block)) return false;
    if (n.op_type == "ReorderOutput" && !output_fits(known, n, block)) return false;
  }
  return true;
}

}  // namespace

Model with_channel_blocks(const Model& model, int64_t otherwise) {
  const bool wide = all_fit(model.graph, 16), narrow = all_fit(model.graph, 8);
  const int64_t block = wide == narrow ? otherwise : wide ? 16 : 8;
  Model out = model;
  if (block == 0) return out;
  for (Node& n : out.graph.nodes) {
    if (n.domain != kBlockedDomain || n.find(kChannelBlock)) continue;
    n.attributes.push_back(int_attribute(kChannelBlock, block));
  }
  return out;
}

}  // namespace tilewright::onnx
