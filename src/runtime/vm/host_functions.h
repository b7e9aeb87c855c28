// SPDX-License-Identifier: Apache-2.0
// Host functions: called by VM programs without any compilation. They
// build and access sequences, optionals and references, count and collect
// in loops, and implement operators with data-dependent result sizes.
#pragma once
#include <map>
#include <span>
#include <string>

#include "runtime/vm/machine.h"
#include "runtime/vm/program.h"

namespace tilewright::runtime::vm {

struct HostCall {
  std::span<const Value> inputs;  // null: an omitted operand
  std::span<Value> outputs;       // initially null
  const std::map<std::string, std::string>& attributes;
  MemoryPool& pool;

  // Errors: TypeMismatch if the operand is omitted or of another kind.
  Result<Tensor> tensor(size_t i) const;
  Result<int64_t> integer(size_t i) const;
  Result<std::vector<int64_t>> integers(size_t i) const;  // at most 64
  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  Result<int64_t> attribute(const char* name, int64_t fallback) const;
  // Sets an output; unused ones are dropped.
  void give(size_t i, Value v) {
    if (i < outputs.size()) outputs[i] = std::move(v);
  }
};
using HostFunction = Status (*)(HostCall&);

// Null if there is no such function. Names are those of ONNX operators, and lower-case ones for our own.
HostFunction find_host_function(std::string_view name);

struct HostEntry {
  const char* name;
  HostFunction function;
};
// One table per file; find_host_function searches them all.
std::span<const HostEntry> value_functions();    // host_values.cc
std::span<const HostEntry> tensor_functions();   // host_tensors.cc
std::span<const HostEntry> select_functions();   // host_select.cc
std::span<const HostEntry> picture_functions();  // host_pictures.cc

// A region of format "host": the first line names the function, the others are attributes.
struct HostRegion {
  HostFunction function = nullptr;
  std::map<std::string, std::string> attributes;
};
// Errors: BadArtifact (no such function, a malformed attribute).
Result<HostRegion> host_function_of(const Region& region);

// An empty optional. A sequence is a data type with tag 0 and its elements as fields.
inline constexpr int64_t kNoneTag = 1;
bool is_none(const Value& v);

Diagnostic host_error(std::string what);
// Requires elements of whole bytes, which can be copied. Error: UnsupportedOp.
Status check_copyable(const Tensor& t);

}  // namespace tilewright::runtime::vm
