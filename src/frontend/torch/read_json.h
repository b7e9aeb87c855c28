// SPDX-License-Identifier: Apache-2.0
// The graph of an exported program as torch.export's schema writes it (JSON). Any bytes give a Program or a diagnostic.
//
// Beyond that schema, for graphs that other sources write in it: {"as_value": {"name": N}} is a value of any kind,
// {"as_list": [argument, ...]} a list of anything, and targets may leave out "torch.ops.".
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "frontend/torch/graph.h"

namespace tilewright::torch {

// The newest schema that is understood. A newer minor version only adds to it.
inline constexpr int64_t kSchemaMajor = 8;

// Errors: MalformedModel, LimitExceeded, UnsupportedModel (another major version of the schema).
Result<Program> read_program(std::string_view json, std::map<std::string, Tensor> weights = {});

// dtype, sizes and layout from the schema's TensorMeta.
// Throws nlohmann's exceptions and Diagnostic.
TensorMeta read_tensor_meta(const nlohmann::json& meta);
// Reads and writes one node: the JSON form that deferred nodes carry (frontend/torch/wait.h).
Result<Node> read_node(std::string_view json);
std::string write_node(const Node& node);

}  // namespace tilewright::torch
