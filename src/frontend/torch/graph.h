// SPDX-License-Identifier: Apache-2.0
// An ATen graph of any origin: torch.export's archive, or a graph written in the same schema. Plain data, not yet
// checked against the schemas of operators.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "frontend/onnx/proto.h"

namespace tilewright::torch {

using onnx::SharedBytes;

inline constexpr int64_t kMaxNodes = 1'000'000;  // nodes of a program, including subgraphs
inline constexpr int kMaxDepth = 64;             // nesting of graphs, and of lists

struct Graph;

// An argument or result of a node: a literal, or the name of a value.
struct Argument {
  enum Kind {
    kNone,
    kValue,  // text: the value's name
    kBool,   // integer
    kInt,
    kFloat,
    kComplex,  // number, imaginary
    kText,
    kDtype,
    kLayout,        // integer, as the schema numbers them
    kMemoryFormat,  // integer, as the schema numbers them
    kDevice,        // text
    kGraph,         // text: its name; graph
    kList,
    kOther  // text: the schema's name for its kind
  } kind = kNone;
  std::string text;
  int64_t integer = 0;
  double number = 0, imaginary = 0;
  DataType dtype = kFloat32;
  bool complex = false;  // kDtype: of numbers of two parts of this type
  std::vector<Argument> items;
  std::shared_ptr<const Graph> graph;
};

struct NamedArgument {
  std::string name;  // name in the operator's schema; empty for operators on graphs
  Argument value;
};

struct Node {
  std::string target;  // "aten.conv2d.default"
  std::string name;
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;  // kValue, kNone, or a kList of them
};

// A size: a number, or an expression over symbols.
struct Size {
  std::optional<int64_t> value;
  std::string expression;  // "s0", "2*s1"
};

struct TensorMeta {
  DataType dtype = kFloat32;
  std::vector<Size> sizes;
  bool strided = true;
  bool complex = false;  // of pairs of numbers of this dtype, which are the last of `sizes`
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta> tensors;
  std::map<std::string, Size> integers;
};

struct InputSpec {
  enum Kind { kUser, kParameter, kBuffer, kTensorConstant, kLiteral, kObject, kToken } kind = kUser;
  std::string name;    // the value's name in the graph; empty for a literal of the user
  std::string target;  // "layer1.0.weight"
  Argument literal;    // kLiteral
};

struct OutputSpec {
  enum Kind { kUser, kLoss, kBufferMutation, kParameterMutation, kInputMutation, kGradient, kToken } kind = kUser;
  Argument value;
  std::string target;  // the buffer or input that the output updates
};

struct Range {
  std::optional<int64_t> least, most;
};

struct Program {
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::map<std::string, Range> ranges;     // by symbol
  std::map<std::string, Tensor> weights;   // parameters, buffers and constants by qualified name
  std::map<std::string, std::string> why;  // weights that cannot be read, with the reason
  std::string torch_version;
  int64_t schema_major = 0, schema_minor = 0;
};

}  // namespace tilewright::torch
