// SPDX-License-Identifier: Apache-2.0
// ONNX to graph IR. Shape computations are folded during the import: with known
// input sizes, a chain of Shape, Gather, Concat, Reshape leaves only constants.
// All unsupported parts of a model are reported in one diagnostic, node by node.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/proto.h"
#include "relay/expr.h"

namespace tilewright::onnx {

// A user-defined converter: from a node, its opset version
// and its inputs (null: absent) to one value per output.
using CustomConverter = std::function<Result<std::vector<relay::Expr>>(const Node& node, int64_t version,
                                                                       const std::vector<relay::Expr>& inputs)>;

// What becomes of nodes that only a run can decide: refused, or kept, with control flow as Relay's and nodes that wait
// for sizes or values as calls of onnx.node (docs/vm.md). kAlways: a sequence output stays one value, as in programs,
// also where its length is known and a library would have one output per element.
enum class Programs { kRefused, kWhereNeeded, kAlways };

struct ImportOptions {
  // Sizes of inputs by name; -1 keeps the model's dimension.
  // Binding a named dimension binds it everywhere.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Inputs that become constants of the module, such as a Reshape's target shape.
  std::map<std::string, Tensor> constants;
  // Inputs that are sequences (their elements) or absent optionals (an empty list); they are bound at import as well.
  std::map<std::string, std::vector<Tensor>> values;
  // If true, initializers become constants. Otherwise floating-point ones become parameters of main behind the inputs,
  // with their values in `params`; integers stay constants, since shapes depend on them.
  bool freeze_params = true;
  std::map<std::string, Tensor>* params = nullptr;
  // Receives the names of inputs whose values the import would have needed (see `constants`).
  std::vector<std::string>* needed_constants = nullptr;
  Programs programs = Programs::kRefused;
  // By domain and operator, as {"", "Relu"}; they take precedence over the built-in ones.
  std::map<std::pair<std::string, std::string>, CustomConverter> converters;
  // The channel block size of com.microsoft.nchwc weights where it cannot be inferred (channel_blocks.h); 0: an error
  // then.
  int64_t channel_block = 0;
  ReadOptions read;
};

// Reads and imports a model. main's parameters are the model's inputs in order; its body is the output, or a tuple of
// the outputs. main carries "input_names" and "output_names"; spans are node names; metadata goes to the Module.
// Errors: FileNotFound, MalformedModel, LimitExceeded, UnsupportedOp (all such nodes at once), UnsupportedModel,
// FreeDimension, TypeMismatch, UnknownInput and ShapeMismatch (options.shapes).
Result<relay::Module> import_onnx(const std::string& path, const ImportOptions& options = {});
Result<relay::Module> import_onnx(const SharedBytes& bytes, const ImportOptions& options = {});
Result<relay::Module> import_onnx(const Model& model, const ImportOptions& options = {});

// One entry per importable operator: name and first opset version of the converter, as "Conv 1", "Add 7".
struct SupportedOp {
  std::string domain, op;
  int since;
};
std::vector<SupportedOp> supported_ops();

}  // namespace tilewright::onnx
