// SPDX-License-Identifier: Apache-2.0
// The checked reader of ONNX files: bytes in, plain structs out. Nothing in the bytes is trusted: any input gives a
// Model, or a MalformedModel/LimitExceeded diagnostic that names the position in the file. Limits: kMax* below;
// external data only inside the model's folder, never through links.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"

namespace tilewright::onnx {

inline constexpr int64_t kMaxRank = 32;
inline constexpr int64_t kMaxNodes = 1'000'000;  // nodes of a model, including subgraphs and functions
inline constexpr int kMaxGraphDepth = 64;        // nesting of subgraphs
inline constexpr size_t kMaxNameBytes = 64 << 10;
inline constexpr int64_t kMaxSparseBytes = 64 << 20;  // bytes of a sparse tensor expanded to dense

struct Graph;

// The type of a value. elem is that of a tensor's elements or a map's keys; element that of what a sequence, an
// optional or a map holds.
struct ValueType {
  enum Kind { kNone, kTensor, kSparse, kSequence, kOptional, kMap, kOpaque } kind = kNone;
  std::optional<DataType> elem;  // empty when the file leaves it out
  struct DimInfo {
    std::optional<int64_t> value;  // non-negative
    std::string param;             // empty when unnamed
  };
  std::optional<std::vector<DimInfo>> shape;
  std::shared_ptr<const ValueType> element;
  std::string str() const;  // "float32[1,3,H,?]"
};

struct ValueInfo {
  std::string name;
  ValueType type;
};

enum class AttributeKind {
  kUndefined,
  kFloat,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kTensors,
  kGraphs,
  kSparseTensor,
  kSparseTensors,
  kType,
  kTypes
};
const char* attribute_kind_name(AttributeKind kind);

struct Attribute {
  std::string name;
  AttributeKind kind = AttributeKind::kUndefined;
  std::string reference;  // the attribute of the enclosing function that this one refers to; there is no value then
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<Tensor> tensors;                       // kTensor and kSparseTensor: one
  std::vector<std::shared_ptr<const Graph>> graphs;  // kGraph: one
  std::vector<ValueType> types;                      // kType: one
};
inline Attribute int_attribute(std::string name, int64_t value) {
  Attribute a;
  a.name = std::move(name);
  a.kind = AttributeKind::kInt;
  a.i = value;
  return a;
}

struct Node {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;  // "": an absent optional one
  std::vector<Attribute> attributes;
  const Attribute* find(std::string_view attribute) const;
  // "'conv1' (Conv)", or the first output's name where the node has none.
  std::string label() const;
};

struct NamedTensor {
  std::string name;
  Tensor data;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<NamedTensor> initializers;  // dense; sparse ones are expanded
  std::vector<ValueInfo> inputs, outputs, value_info;
};

struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> defaults;      // attributes with a default value
  std::vector<std::string> attributes;  // attributes without a default
  std::vector<Node> nodes;
  std::map<std::string, int64_t> opsets;
};

// Bytes kept alive by `owner` (a mapping, or a string's buffer).
struct SharedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // a file mapping, whose pages can be dropped and read again
};

struct Model {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  // domain ("" for the standard one) -> version
  Graph graph;
  std::vector<Function> functions;
  std::map<std::string, std::string> metadata;
  std::vector<SharedBytes> files;  // what tensors may be views of: the model's bytes, external data
};

struct ReadOptions {
  // Accept external data files with several hard links, which could give access to files outside the folder.
  bool allow_hard_links = false;
  bool initializers = true;  // false: they are left out, for who wants the inputs of a large model
};

// Reads a model; tensors are views of the file's mapping where they are aligned. Errors: FileNotFound, MalformedModel,
// LimitExceeded.
Result<Model> read_model(const std::string& path, const ReadOptions& options = {});
// From memory. `folder` is where external data lies; empty: external data is refused.
Result<Model> read_model(const SharedBytes& bytes, const std::string& folder, const ReadOptions& options = {});
// One serialised TensorProto (the .pb files of the backend tests).
Result<NamedTensor> read_tensor(const SharedBytes& bytes);
// A serialised SequenceProto of tensors.
Result<std::vector<Tensor>> read_sequence(const SharedBytes& bytes);

// A serialised OptionalProto that holds a tensor (one or none) or a sequence.
Result<std::vector<Tensor>> read_optional_tensor(const SharedBytes& bytes);
Result<std::vector<Tensor>> read_optional_sequence(const SharedBytes& bytes);

// The DataType of an ONNX element type number, or nothing when it is unknown or undefined.
std::optional<DataType> element_type(int64_t onnx_type);

}  // namespace tilewright::onnx
