// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/torch/read_json.h"
#include "frontend/torch/schema.h"

namespace tilewright::torch {
namespace {

using nlohmann::json;

json json_of(const Argument& a) {
  auto items = [&] {
    json out = json::array();
    for (const Argument& item : a.items) out.push_back(json_of(item));
    return out;
  };
  switch (a.kind) {
    case Argument::kValue:
      return {{"as_value", {{"name", a.text}}}};
    case Argument::kBool:
      return {{"as_bool", a.integer != 0}};
    case Argument::kInt:
      return {{"as_int", a.integer}};
    case Argument::kFloat:
      if (std::isnan(a.number)) return {{"as_float", "NaN"}};
      if (std::isinf(a.number)) return {{"as_float", a.number > 0 ? "Infinity" : "-Infinity"}};
      return {{"as_float", a.number}};
    case Argument::kComplex:
      return {{"as_complex", {{"real", a.number}, {"imag", a.imaginary}}}};
    case Argument::kText:
      return {{"as_string", a.text}};
    case Argument::kDtype:
      return {{"as_scalar_type", a.complex ? complex_number(a.dtype) : dtype_number(a.dtype)}};
    case Argument::kLayout:
      return {{"as_layout", a.integer}};
    case Argument::kMemoryFormat:
      return {{"as_memory_format", a.integer}};
    case Argument::kDevice:
      return {{"as_device", {{"type", a.text}}}};
    case Argument::kList:
      return {{"as_list", items()}};
    case Argument::kNone:
    case Argument::kGraph:
    case Argument::kOther:
      break;
  }
  return {{"as_none", true}};
}

}  // namespace

std::string write_node(const Node& node) {
  json out{{"target", node.target}, {"name", node.name}, {"inputs", json::array()}, {"outputs", json::array()}};
  for (const NamedArgument& input : node.inputs)
    out["inputs"].push_back({{"name", input.name}, {"arg", json_of(input.value)}});
  for (const Argument& output : node.outputs) out["outputs"].push_back(json_of(output));
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tilewright::torch
