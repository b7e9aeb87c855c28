// SPDX-License-Identifier: Apache-2.0
// ATen graphs to the graph IR. Shapes that can be computed are. Everything a model uses that cannot be imported is
// reported in one diagnostic, node by node. Views and in-place operators become functions of values (alias.h).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/import.h"
#include "frontend/torch/convert.h"
#include "relay/expr.h"

namespace tilewright::torch {

using onnx::Programs;

// A converter of the caller's own: a node and its arguments to a value for each output.
using CustomConverter = std::function<Result<std::vector<relay::Expr>>(const Node& node, const NamedValues& arguments)>;

struct ImportOptions {
  // Sizes of inputs by name; -1 leaves a dimension as the model has it. A symbol bound here is bound everywhere.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Inputs that become constants of the module.
  std::map<std::string, Tensor> constants;
  // Weights become Constants. Otherwise float ones become parameters of main (after the inputs), and `params` receives
  // their values.
  bool freeze_params = true;
  std::map<std::string, Tensor>* params = nullptr;
  // What becomes of what only a run decides.
  Programs programs = Programs::kRefused;
  // By target with or without its overload ("aten.add.Tensor", "aten.add"); they go before the built-in ones.
  std::map<std::string, CustomConverter> converters;
};

// main's parameters are the model's inputs in order, then the buffers that it changes; its body is the outputs, then
// the changed buffers (named with ".new" behind) and inputs, as a tuple unless there is but one. main carries
// "input_names" and "output_names"; spans are node names. Errors: MalformedModel, LimitExceeded, UnsupportedOp (all
// such nodes at once), UnsupportedModel (weights that are pickled), FreeDimension, TypeMismatch, UnknownInput and
// ShapeMismatch (options.shapes).
Result<relay::Module> import_torch(const Program& program, const ImportOptions& options = {});

// The operators that can be imported, "aten.add"; in-place forms follow.
std::vector<std::string> supported_ops();

}  // namespace tilewright::torch
