// SPDX-License-Identifier: Apache-2.0
// Serialised nodes: what an onnx.node of a Relay module carries from the import to the run.
#pragma once
#include <string>

#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

// A serialised model of this one node. Attributes must be plain values: no references, graphs or types.
std::string write_node(const Node& node, int64_t version);
// Reads the model back. Errors: MalformedModel.
Result<Model> read_node(const std::string& bytes);

}  // namespace tilewright::onnx
