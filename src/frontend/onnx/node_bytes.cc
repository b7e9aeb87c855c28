// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/node_bytes.h"

#include <memory>
#include <span>

#include "frontend/onnx/write.h"

namespace tilewright::onnx {
std::string write_node(const Node& node, int64_t version) {
  std::string bytes;
  protozero::pbf_writer model(bytes);
  model.add_int64(1, 8);
  {
    protozero::pbf_writer graph(model, 7);
    protozero::pbf_writer out(graph, 1);
    write_node_fields(out, node);
  }
  protozero::pbf_writer opset(model, 8);
  opset.add_string(1, node.domain);
  opset.add_int64(2, version);
  return bytes;
}

Result<Model> read_node(const std::string& bytes) {
  auto owner = std::make_shared<const std::string>(bytes);
  Model model = TW_TRY(read_model(SharedBytes{std::as_bytes(std::span(*owner)), owner}, ""));
  if (model.graph.nodes.size() != 1)
    return Diagnostic(ErrorCode::kMalformedModel, "an onnx.node holds no node, or more than one");
  return model;
}

}  // namespace tilewright::onnx
