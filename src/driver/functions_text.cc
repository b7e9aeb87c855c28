// SPDX-License-Identifier: Apache-2.0
#include "driver/functions_text.h"

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "tir/text.h"

namespace tilewright::driver {
namespace {
using nlohmann::json;

Diagnostic not_a_function(const std::string& what) {
  return {ErrorCode::kProtocolError, "a function's text is none: " + what, {}, "both processes are of one version"};
}

// Checks the memory that a kernel accesses, which all kernels share.
Status check_kernel(const LoweredFunction& f, const tir::PrimFunc& kernel) {
  const auto& [arguments, workspaces] = std::tie(f.lowered.arguments, f.lowered.workspaces);
  if (kernel.params.size() != arguments.size() + workspaces.size()) return not_a_function("a kernel's parameters");
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const bool own = i < arguments.size();
    const DataType dtype = own ? arguments[i].dtype : workspaces[i - arguments.size()].buffer->dtype;
    if (kernel.params[i]->dtype != dtype) return not_a_function("the dtype of a kernel's parameter");
  }
  return Ok{};
}

}  // namespace

Result<std::string> to_text(const LoweredFunction& function) {
  const te::Lowered& lowered = function.lowered;
  if (!lowered.sizes.empty() || !lowered.bound.empty())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      lowered.bound.empty()
                          ? "a size that only a call knows cannot be measured"
                          : format("a loop is bound to '{}', and processors have no such threads", lowered.bound[0]),
                      format("function {}", function.name),
                      lowered.bound.empty() ? "give the template numbers" : "use parallel in the place of bind");
  if (!lowered.calls.empty() || !lowered.imports.empty())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      lowered.calls.empty()
                          ? "a function that brings LLVM IR along cannot be measured"
                          : format("it calls the function '{}', which another process has not", lowered.calls[0].name),
                      format("function {}", function.name), "measure it in this process, with time_evaluator");
  json j{{"name", function.name}, {"arguments", json::array()}, {"workspaces", json::array()}};
  for (const auto& a : lowered.arguments) {
    json shape = json::array();
    for (const tir::PrimExpr& d : a.shape) shape.push_back(tir::as_const_int(d).value_or(0));
    j["arguments"].push_back({a.name, a.dtype.str(), shape});
  }
  for (const auto& w : lowered.workspaces)
    j["workspaces"].push_back(
        {w.buffer->name, w.buffer->dtype.str(), tir::as_const_int(w.elements).value_or(0), w.per_thread});
  for (const tir::PrimFunc& kernel : lowered.kernels) j["kernels"].push_back(tir::to_text(kernel));
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<LoweredFunction> parse_function(const std::string& text) {
  try {
    const json j = json::parse(text);
    LoweredFunction out;
    out.name = j.at("name");
    for (const json& a : j.at("arguments")) {
      const DataType dtype = TW_TRY(parse_dtype(a.at(1).get<std::string>()));
      te::Lowered::Argument argument{a.at(0), dtype, {}};
      for (const json& d : a.at(2)) argument.shape.push_back(tir::make_int(d.get<int64_t>()));
      out.lowered.arguments.push_back(std::move(argument));
      out.scalar.push_back(false);
    }
    for (const json& w : j.at("workspaces")) {
      const int64_t elements = w.at(2);
      if (elements < 0) return not_a_function("a workspace's size");
      const DataType dtype = TW_TRY(parse_dtype(w.at(1).get<std::string>()));
      tir::Buffer buffer = tir::make_buffer(w.at(0), dtype, elements);
      out.lowered.workspaces.push_back({std::move(buffer), tir::make_int(elements), w.at(3).get<bool>()});
    }
    for (const json& kernel : j.at("kernels")) {
      out.lowered.kernels.push_back(TW_TRY(tir::parse_func(kernel.get<std::string>())));
      TW_TRY_STATUS(check_kernel(out, out.lowered.kernels.back()));
    }
    return out;
  } catch (const json::exception& e) {
    return not_a_function(e.what());
  }
}

}  // namespace tilewright::driver
