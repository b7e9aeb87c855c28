// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/graph_order.h"

#include <functional>
#include <queue>
#include <set>
#include <unordered_map>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

void collect_reads(const Node& node, std::vector<std::string>* out) {
  for (const auto& name : node.inputs)
    if (!name.empty()) out->push_back(name);
  // A Gradient node refers by attribute to the value it differentiates.
  if (node.op_type == "Gradient" && node.domain == "ai.onnx.preview.training")
    if (const Attribute* y = node.find("y"); y && !y->s.empty()) out->push_back(y->s);
  for (const auto& a : node.attributes)
    for (const auto& g : a.graphs) {
      for (const auto& n : g->nodes) collect_reads(n, out);
      for (const auto& v : g->outputs) out->push_back(v.name);
    }
}

std::vector<size_t> execution_order(const std::vector<Node>& nodes) {
  std::unordered_map<std::string, size_t> producer;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const auto& name : nodes[i].outputs)
      if (!name.empty() && !producer.emplace(name, i).second)
        throw ConversionFailure{Diagnostic(ErrorCode::kMalformedModel, format("two nodes make the value '{}'", name),
                                           "node " + nodes[i].label())};
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::string> reads;
    collect_reads(nodes[i], &reads);
    std::set<size_t> from;
    for (const auto& name : reads)
      if (auto it = producer.find(name); it != producer.end()) from.insert(it->second);
    for (size_t p : from) {
      users[p].push_back(i);
      ++missing[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (size_t u : users[i])
      if (--missing[u] == 0) ready.push(u);
  }
  if (order.size() < nodes.size())
    for (size_t i = 0; i < nodes.size(); ++i)
      if (missing[i] > 0)
        throw ConversionFailure{Diagnostic(ErrorCode::kMalformedModel,
                                           "the node depends on its own result (a cycle in the graph)",
                                           "node " + nodes[i].label())};
  return order;
}

}  // namespace tilewright::onnx
