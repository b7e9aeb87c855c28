// SPDX-License-Identifier: Apache-2.0
// Models as bytes: single nodes, and models that were read and then changed.
#pragma once
#include <map>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

// The fields of a NodeProto. Its attributes are values: no references, no graphs, no types.
void write_node_fields(protozero::pbf_writer& out, const Node& node);

// A node of a changed model. With `source`, what is no input and no output is copied from that node of the original,
// byte by byte, subgraphs too.
struct EditedNode {
  Node node;
  int64_t source = -1;
};
struct EditedOutput {
  std::string name;
  DataType dtype;
};
struct EditedModel {
  const Model* original = nullptr;  // what is not said below is copied from its bytes
  std::vector<EditedNode> nodes;    // each behind those it reads
  std::vector<NamedTensor> initializers;
  std::vector<EditedOutput> more_outputs;
  std::map<std::string, int64_t> more_opsets;
};
// One file with all weights inside. Errors: LimitExceeded (the format's 2 GiB).
Result<std::string> write_model(const EditedModel& model);

}  // namespace tilewright::onnx
