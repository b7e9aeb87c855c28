// SPDX-License-Identifier: Apache-2.0
#include "runtime/vm/host_functions.h"

#include <charconv>

#include "base/format.h"

namespace tilewright::runtime::vm {

Diagnostic host_error(std::string what) { return Diagnostic(ErrorCode::kInvalidArgument, std::move(what)); }

bool is_none(const Value& v) { return v && v->kind == Object::Kind::kAdt && v->tag == kNoneTag; }

Status check_copyable(const Tensor& t) {
  if (t.dtype().is_string() || t.dtype().bits % 8 != 0)
    return Diagnostic(ErrorCode::kUnsupportedOp,
                      format("elements of type {} cannot be moved one by one", t.dtype().str()));
  return Ok{};
}

Result<Tensor> HostCall::tensor(size_t i) const {
  if (!has(i)) return Diagnostic(ErrorCode::kTypeMismatch, format("operand {} is missing", i));
  if (inputs[i]->kind != Object::Kind::kTensor)
    return Diagnostic(ErrorCode::kTypeMismatch, format("operand {} is not a tensor", i));
  return inputs[i]->tensor;
}

Result<int64_t> HostCall::integer(size_t i) const {
  const Tensor t = TW_TRY(tensor(i));
  if (t.size() != 1 || !(t.dtype().is_integral() || t.dtype().is_bool()))
    return Diagnostic(ErrorCode::kTypeMismatch,
                      format("operand {} is {} {}, not one integer", i, t.dtype().str(), shape_str(t.shape())));
  return t.at_int(0);
}

Result<std::vector<int64_t>> HostCall::integers(size_t i) const {
  const Tensor t = TW_TRY(tensor(i));
  if (t.rank() > 1 || t.size() > 64 || !t.dtype().is_integral())
    return Diagnostic(ErrorCode::kTypeMismatch, format("operand {} is {} {}, not a short list of integers", i,
                                                       t.dtype().str(), shape_str(t.shape())));
  std::vector<int64_t> out;
  for (int64_t k = 0; k < t.size(); ++k) out.push_back(t.at_int(k));
  return out;
}

Result<int64_t> HostCall::attribute(const char* name, int64_t fallback) const {
  auto it = attributes.find(name);
  if (it == attributes.end()) return fallback;
  int64_t v = 0;
  const char* end = it->second.data() + it->second.size();
  auto [stop, error] = std::from_chars(it->second.data(), end, v);
  if (error != std::errc() || stop != end)
    return Diagnostic(ErrorCode::kBadArtifact, format("the attribute '{}' of a function is not a number", name));
  return v;
}

HostFunction find_host_function(std::string_view name) {
  for (auto table : {value_functions(), tensor_functions(), select_functions(), picture_functions()})
    for (const HostEntry& e : table)
      if (name == e.name) return e.function;
  return nullptr;
}

Result<HostRegion> host_function_of(const Region& region) {
  HostRegion out;
  auto bad = [&](const std::string& line) {
    return Diagnostic(ErrorCode::kBadArtifact,
                      format("the VM program calls the function '{}', which this runtime does not have", line), {},
                      "compile the model again");
  };
  const std::string& text = region.source;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (at == 0) {
      out.function = find_host_function(line);
      if (!out.function) return bad(line);
    } else if (!line.empty()) {
      const size_t equals = line.find('=');
      if (equals == std::string::npos) return bad(line);
      out.attributes[line.substr(0, equals)] = line.substr(equals + 1);
    }
    at = end + 1;
  }
  return out;
}

}  // namespace tilewright::runtime::vm
