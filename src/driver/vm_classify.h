// SPDX-License-Identifier: Apache-2.0
// How a VM program runs one ONNX node: in a region, by a function of the runtime, by the interpreter, or as control
// flow.
#pragma once
#include <functional>
#include <map>
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
  bool renamed = false;      // `part` names it otherwise than its scope
};

// Names of a graph. A subgraph sees its parents', a function's body does not.
struct VmScope {
  const VmScope* parent = nullptr;
  std::unordered_map<std::string, Slot> values;
  int depth = 0;  // of functions in each other
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

// What the names of operators mean where a node is.
struct Language {
  const std::vector<onnx::Function>& functions;
  const std::map<std::string, int64_t>& opsets;
  int64_t* looked_at;  // nodes, over the whole model: functions may multiply each other
  const onnx::Function* find(const onnx::Node& node) const;
  int64_t version() const;  // of the standard operators
};

// Errors: MalformedModel (an operand that nothing makes), LimitExceeded (functions that call each other without end).
Result<Treatment> classify(const Language& language, const onnx::Node& node, const VmScope& scope);

// "Name\nkey=value\n...": the source of the region that calls the runtime's function for a kHost node.
std::string host_source(const onnx::Node& node);

Slot slot_of(const onnx::ValueType& type);
int64_t int_attribute(const onnx::Node& node, std::string_view name, int64_t fallback);

}  // namespace tilewright::driver
