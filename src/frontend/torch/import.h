// SPDX-License-Identifier: Apache-2.0
// ATen graphs to graph IR. Shape computations are folded during the import; all unsupported parts of a model are
// reported in one diagnostic, node by node. Views and in-place operators become purely functional (alias.h).
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

// A user-defined converter: from a node and its arguments to one value per output.
using CustomConverter = std::function<Result<std::vector<relay::Expr>>(const Node& node, const NamedValues& arguments)>;

struct ImportOptions {
  // Sizes of inputs by name; -1 keeps the model's dimension. Binding a symbol binds it everywhere.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Inputs that become constants of the module.
  std::map<std::string, Tensor> constants;
  // If true, weights become constants. Otherwise floating-point ones become parameters of main behind the inputs, with
  // their values in `params`.
  bool freeze_params = true;
  std::map<std::string, Tensor>* params = nullptr;
  // What becomes of nodes that only a run can decide.
  Programs programs = Programs::kRefused;
  // By target, with or without its overload ("aten.add.Tensor", "aten.add"); they take precedence over the built-in
  // ones.
  std::map<std::string, CustomConverter> converters;
};

// main's parameters are the model's inputs in order, then the buffers that it mutates. Its body is a tuple (unless
// there is only one) of the outputs, then the new values of mutated buffers (named with the suffix ".new") and inputs.
// main carries "input_names" and "output_names"; spans are node names. Errors: MalformedModel, LimitExceeded,
// UnsupportedOp (all such nodes at once), UnsupportedModel (pickled weights), FreeDimension, TypeMismatch, UnknownInput
// and ShapeMismatch (options.shapes).
Result<relay::Module> import_torch(const Program& program, const ImportOptions& options = {});

// The operators that can be imported, as "aten.add"; their in-place forms can be, too.
std::vector<std::string> supported_ops();

}  // namespace tilewright::torch
