// SPDX-License-Identifier: Apache-2.0
// A serialised model taken to pieces: whole fields (tag, length and bytes) of the file, in its order, from which models
// of some of its nodes are put together without writing a node or a weight anew.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/proto.h"

namespace tilewright::onnx {

struct ModelParts {
  std::vector<std::string_view> head;       // version, operator sets
  std::vector<std::string_view> functions;  // model-local ones
  std::string_view graph;                   // its content
};
// In the order of Graph::nodes and Graph::initializers.
struct GraphParts {
  std::vector<std::string_view> nodes, initializers;
};

// Of bytes that read_model has taken. Errors: MalformedModel.
Result<ModelParts> model_parts(std::string_view model);
Result<GraphParts> graph_parts(std::string_view graph);
// The content of the graph that an attribute of the node (as in GraphParts) holds.
Result<std::string_view> subgraph_part(std::string_view node, std::string_view attribute);

// The fields before the nodes and initializers of a model that computes `outputs` from `inputs`; `rest` is how many
// bytes of such fields follow.
std::string graph_head(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs, uint64_t rest);

// An initializer or a Constant node (as in GraphParts) whose value goes by another name: the fields to put one after
// the other, of which the first are kept in `text`. Empty where it cannot be renamed without a copy (sparse
// initializers).
Result<std::vector<std::string_view>> renamed_constant(std::string_view field, const std::string& name,
                                                       std::string* text);

// The body of `function` (as in ModelParts) as a model of its own, without the model's functions: the attributes of
// `call`, a node, are put in, and what it leaves out of the inputs is left out inside. Without operator sets of its own
// the function has those of `head`. Errors: MalformedModel.
Result<std::string> called_function(std::string_view function, std::string_view call,
                                    const std::vector<std::string_view>& head);

}  // namespace tilewright::onnx
