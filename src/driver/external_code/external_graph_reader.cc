// SPDX-License-Identifier: Apache-2.0
#include "driver/external_code/external_graph_reader.h"

#include "base/format.h"

namespace tilewright::driver {
namespace {

Result<ExternalNode> read_node(const nlohmann::json& given) {
  ExternalNode node;
  node.op = given.at("op").get<std::string>();
  node.name = given.at("name").get<std::string>();
  node.attrs = given.at("attrs");
  for (const auto& entry : given.value("inputs", nlohmann::json::array()))
    node.inputs.push_back({entry.at(0).get<size_t>(), entry.at(1).get<size_t>()});
  for (const auto& shape : node.attrs.at("shape").at(0)) node.shapes.push_back(shape.get<std::vector<int64_t>>());
  for (const auto& name : node.attrs.at("dtype").at(0)) {
    node.dtypes.push_back(TW_TRY(parse_dtype(name.get<std::string>())));
  }
  return node;
}

}  // namespace

Result<ExternalNodes> read_external_graph(const std::string& json) {
  try {
    const nlohmann::json graph = nlohmann::json::parse(json);
    ExternalNodes out;
    for (const auto& node : graph.at("nodes")) out.nodes.push_back(TW_TRY(read_node(node)));
    for (const auto& index : graph.at("arg_nodes")) out.arguments.push_back(index.get<size_t>());
    for (const auto& head : graph.at("heads"))
      out.heads.push_back({head.at(0).get<size_t>(), head.at(1).get<size_t>()});
    return out;
  } catch (const nlohmann::json::exception& e) {
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("the graph of an external function is damaged: {}", e.what()));
  }
}

}  // namespace tilewright::driver
