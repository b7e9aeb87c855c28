// SPDX-License-Identifier: Apache-2.0
// A node as bytes: what an onnx.node of a Relay module carries from the import to the run.
#pragma once
#include <string>

#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

// A serialised model of the one node; its attributes are values (no references, no graphs, no types).
std::string write_node(const Node& node, int64_t version);
// The model again. Errors: MalformedModel.
Result<Model> read_node(const std::string& bytes);

}  // namespace tilewright::onnx
