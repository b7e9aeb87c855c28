// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets of JSON runtimes share: a record of any content, or a graph of any text whose constants are
// made to fit, is a diagnostic or a function that stays inside its tensors.
#pragma once
#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/graph.h"
#include "plugins/module_record.h"

namespace tilewright::fuzz {

inline constexpr size_t kMostBytes = 1 << 20;

// An input is 'r' and a record, or 'g' and a graph.
inline plugins::ModuleRecord record_of(std::string_view input) {
  const std::string rest(input.substr(1));
  if (input[0] == 'r') return plugins::read_record(rest);
  plugins::ModuleRecord record{"f", rest, {}};
  const nlohmann::json graph = nlohmann::json::parse(rest);
  for (const nlohmann::json& node : graph.at("nodes")) {
    if (node.at("op") != "const") continue;
    size_t bytes = node.at("attrs").at("dtype").at(0).at(0) == "float64" ? 8 : 4;
    for (const nlohmann::json& d : node.at("attrs").at("shape").at(0).at(0))
      bytes = std::min(bytes, kMostBytes) * std::min(d.get<size_t>(), kMostBytes);
    record.constants.emplace_back(std::min(bytes, kMostBytes), '\0');
  }
  return record;
}

// Runs it over tensors with exactly the memory that the graph says: a sanitizer sees what lies beyond. Throws what the
// graph or the plan says of it.
template <class Plan>
void run(plugins::ModuleRecord record) {
  const plugins::Graph graph(record.graph, record.constants);
  if (graph.bytes() > kMostBytes) return;
  Plan plan(graph, record.constants);
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<DLTensor> tensors;
  std::vector<size_t> nodes = graph.inputs();
  nodes.insert(nodes.end(), graph.heads().begin(), graph.heads().end());
  for (size_t i : nodes) {
    const plugins::Graph::Node& node = graph.nodes()[i];
    memory.push_back(std::make_unique<char[]>(node.bytes));
    DLTensor t{};
    t.data = memory.back().get(), t.device = {kDLCPU, 0};
    t.ndim = static_cast<int32_t>(node.shape.size()), t.shape = const_cast<int64_t*>(node.shape.data());
    t.dtype = {kDLFloat, static_cast<uint8_t>(node.dtype == "float64" ? 64 : 32), 1};
    tensors.push_back(t);
  }
  std::vector<tw_value> values(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) values[i].kind = TW_TENSOR, values[i].as.tensor = &tensors[i];
  const Args args(values.data(), static_cast<int32_t>(values.size()));
  graph.check(args);
  plan.call(args);
  plan.call(args);  // as often as one likes
  if (tensors.empty()) return;
  int64_t other = 1 << 21;  // more than any of them
  tensors[0].ndim = 1, tensors[0].shape = &other;
  try {
    graph.check(args);
  } catch (const std::exception&) {
    return;
  }
  __builtin_trap();
}

template <class Plan>
void run_json(std::string_view input) {
  try {
    run<Plan>(record_of(input));
  } catch (const std::exception&) {
  }
}

// The text of a node of one operator, for seeds: attributes are JSON without braces.
inline std::string node(const std::string& op, const std::string& name, const std::string& shape,
                        const std::string& inputs = "", const std::string& attrs = "",
                        const std::string& dtype = "float32") {
  std::string out = R"({"op":")" + op + R"(","name":")" + name + "\",";
  if (op == "kernel") out += R"("inputs":[)" + inputs + "],";
  return out + R"("attrs":{)" + attrs + (attrs.empty() ? "" : ",") + R"("shape":[[[)" + shape + R"(]]],"dtype":[[")" +
         dtype + "\"]]}}";
}
inline std::string graph(const std::vector<std::string>& nodes, const std::string& heads) {
  std::string out = R"({"nodes":[)";
  for (const std::string& n : nodes) out += (&n == nodes.data() ? "" : ",") + n;
  return out + R"(],"heads":[)" + heads + "]}";
}
// Both forms of input for a graph, which runs.
template <class Plan>
void add_seeds(const std::string& text, std::vector<std::string>* seeds) {
  seeds->push_back("g" + text);
  seeds->push_back("r" + plugins::write_record(record_of(seeds->back())));
  run<Plan>(record_of(seeds->back()));
}

}  // namespace tilewright::fuzz
