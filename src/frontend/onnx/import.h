// SPDX-License-Identifier: Apache-2.0
// ONNX to the graph IR. Shapes that can be computed are: a chain Shape, Gather, Concat, Reshape of a model whose input
// sizes are known leaves nothing but constants. Everything a model uses that cannot be imported is reported in one
// diagnostic, node by node.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/proto.h"
#include "relay/expr.h"

namespace tilewright::onnx {

// A converter of the caller's own: a node, the version of its operator set and its inputs (null: absent) to a value for
// each output.
using CustomConverter = std::function<Result<std::vector<relay::Expr>>(const Node& node, int64_t version,
                                                                       const std::vector<relay::Expr>& inputs)>;

// What becomes of what only a run decides: it is refused, or it stays in the module, control flow as Relay's and nodes
// that wait for sizes or values as calls of onnx.node (docs/vm.md). kAlways: an output that is a sequence is one value,
// as programs have it, also where its length is known and an ordinary library would have as many outputs.
enum class Programs { kRefused, kWhereNeeded, kAlways };

struct ImportOptions {
  // Sizes of inputs by name; -1 leaves a dimension as the model has it. A named dimension bound here is bound
  // everywhere.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Inputs that become constants of the module (a Reshape's target that the model takes as an input, say).
  std::map<std::string, Tensor> constants;
  // Inputs that are sequences (their elements) or absent optionals (an empty list): values of the import, too.
  std::map<std::string, std::vector<Tensor>> values;
  // Initializers become Constants. Otherwise float initializers become parameters of main (after the inputs), and
  // `params` receives their values; integers stay constants, since shapes depend on them.
  bool freeze_params = true;
  std::map<std::string, Tensor>* params = nullptr;
  // Receives the inputs whose values the import would have needed to go on (see `constants`).
  std::vector<std::string>* needed_constants = nullptr;
  Programs programs = Programs::kRefused;
  // By domain and operator ("", "Relu"); they go before the built-in ones.
  std::map<std::pair<std::string, std::string>, CustomConverter> converters;
  // Channels in a block of com.microsoft.nchwc's weights where a file does not tell (channel_blocks.h); 0: refused
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

// One line per operator that can be imported: "Conv 1", "Add 7" (name, first version of the converter).
struct SupportedOp {
  std::string domain, op;
  int since;
};
std::vector<SupportedOp> supported_ops();

}  // namespace tilewright::onnx
