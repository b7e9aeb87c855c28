// SPDX-License-Identifier: Apache-2.0
// Serialises models: single nodes, and edited copies of models that were read.
#pragma once
#include <map>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

// The fields of a NodeProto. Attributes must be plain values: no references, graphs or types.
void write_node_fields(protozero::pbf_writer& out, const Node& node);

// A node of an edited model. With `source`, everything except inputs and outputs is copied byte by byte from that node
// of the original, subgraphs included.
struct EditedNode {
  Node node;
  int64_t source = -1;
};
struct EditedOutput {
  std::string name;
  DataType dtype;
};
struct EditedModel {
  const Model* original = nullptr;  // everything not given below is copied from its bytes
  std::vector<EditedNode> nodes;    // in topological order
  std::vector<NamedTensor> initializers;
  std::vector<EditedOutput> more_outputs;
  std::map<std::string, int64_t> more_opsets;
};
// One file that contains all weights. Errors: LimitExceeded (the format's 2 GiB).
Result<std::string> write_model(const EditedModel& model);

}  // namespace tilewright::onnx
