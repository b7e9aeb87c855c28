// SPDX-License-Identifier: Apache-2.0
// How a VM program runs one ONNX node: in a region, by a function of the runtime, by the interpreter, or as control
// flow.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/proto.h"

namespace tilewright::driver {

// What the compiler of a region will know of a value.
enum class Known {
  kNo,     // computed from data
  kInput,  // computed from small integer inputs of the model: settings, compiled in
  kShape,  // computed from shapes
  kConstant,
};
enum class Sort { kTensor, kSequence, kOptional, kAny };

struct Slot {
  Known known = Known::kNo;
  Sort sort = Sort::kTensor;
  bool text = false;
  int64_t reg = -1;
  std::ptrdiff_t node = -1;  // that makes it, in the graph being compiled
  std::string_view part;     // a constant's field in the file: an initializer, or a Constant node
  Tensor data;               // a constant's value
};

// Names of a graph. A subgraph sees its parents'.
struct VmScope {
  const VmScope* parent = nullptr;
  std::unordered_map<std::string, Slot> values;
  const Slot* find(const std::string& name) const {
    for (const VmScope* s = this; s; s = s->parent)
      if (auto it = s->values.find(name); it != s->values.end()) return &it->second;
    return nullptr;
  }
};

struct Treatment {
  enum Kind { kRegion, kHost, kEvaluate, kControl, kAlias, kConstant } kind = kRegion;
  std::vector<std::string> values;  // operands of a region that must be values when it is compiled
  std::vector<Slot> outputs;        // what will be known of them
};

// Errors: MalformedModel (an operand that nothing makes).
Result<Treatment> classify(const onnx::Model& model, const onnx::Node& node, const VmScope& scope);

// "Name\nkey=value\n...": the source of the region that calls the runtime's function for a kHost node.
std::string host_source(const onnx::Node& node);

Slot slot_of(const onnx::ValueType& type);
int64_t int_attribute(const onnx::Node& node, std::string_view name, int64_t fallback);

}  // namespace tilewright::driver
