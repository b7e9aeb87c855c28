// SPDX-License-Identifier: Apache-2.0
// Functions that VM programs call on values as they are, without compiling anything: what makes and takes apart
// sequences, optionals and references, what loops count and collect with, and operators whose result's size depends on
// data.
#pragma once
#include <map>
#include <span>
#include <string>

#include "runtime/vm/machine.h"
#include "runtime/vm/program.h"

namespace tilewright::runtime::vm {

struct HostCall {
  std::span<const Value> inputs;  // an operand that is left out is null
  std::span<Value> outputs;       // all null
  const std::map<std::string, std::string>& attributes;
  MemoryPool& pool;

  // Errors: TypeMismatch when the operand is left out or of another kind.
  Result<Tensor> tensor(size_t i) const;
  Result<int64_t> integer(size_t i) const;
  Result<std::vector<int64_t>> integers(size_t i) const;  // at most 64
  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  Result<int64_t> attribute(const char* name, int64_t fallback) const;
  // Sets an output; what nobody asked for is dropped.
  void give(size_t i, Value v) {
    if (i < outputs.size()) outputs[i] = std::move(v);
  }
};
using HostFunction = Status (*)(HostCall&);

// Null when there is no such function. The names are those of the ONNX operators, and lower-case ones of our own.
HostFunction find_host_function(std::string_view name);

struct HostEntry {
  const char* name;
  HostFunction function;
};
// One per file; find_host_function looks through all.
std::span<const HostEntry> value_functions();    // host_values.cc
std::span<const HostEntry> tensor_functions();   // host_tensors.cc
std::span<const HostEntry> select_functions();   // host_select.cc
std::span<const HostEntry> picture_functions();  // host_pictures.cc

// A region of format "host": its first line names the function, the others are attributes.
struct HostRegion {
  HostFunction function = nullptr;
  std::map<std::string, std::string> attributes;
};
// Errors: BadArtifact (no such function, a line that is no attribute).
Result<HostRegion> host_function_of(const Region& region);

// An optional that holds nothing. A sequence is a data type with tag 0 and its elements as fields.
inline constexpr int64_t kNoneTag = 1;
bool is_none(const Value& v);

Diagnostic host_error(std::string what);
// Whether its elements are whole bytes, which can be moved. Error: UnsupportedOp.
Status check_copyable(const Tensor& t);

}  // namespace tilewright::runtime::vm
