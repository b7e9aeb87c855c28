// SPDX-License-Identifier: Apache-2.0
// The parameters and results of main.
#include <algorithm>
#include <cctype>

#include "base/checked.h"
#include "base/format.h"
#include "frontend/onnx/importer.h"

namespace tilewright::onnx {
namespace {

// Exporters name dimensions freely; the graph IR's text form needs identifiers.
std::string symbol_name(const std::string& param) {
  std::string out;
  for (char c : param) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "d" + out;
  return out;
}

// Whether a graph asks if the value is there.
bool asks_for(const Graph& graph, const std::string& value) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
    if (n.op_type == "OptionalHasElement" && !n.inputs.empty() && n.inputs[0] == value) return true;
    return std::any_of(n.attributes.begin(), n.attributes.end(), [&](const Attribute& a) {
      return std::any_of(a.graphs.begin(), a.graphs.end(), [&](const auto& g) { return asks_for(*g, value); });
    });
  });
}

}  // namespace

void Importer::bind_shapes() {
  for (const auto& [name, sizes] : options_.shapes) {
    const ValueInfo* info = nullptr;
    std::string known;
    for (const auto& input : model_.graph.inputs) {
      if (input.name == name) info = &input;
      known += (known.empty() ? "" : ", ") + input.name;
    }
    if (!info)
      refuse(ErrorCode::kUnknownInput, format("the model has no input named '{}'", name), "shapes",
             "its inputs are " + known);
    const ValueType* type = tensor_of(info->type);
    if (!type) refuse(ErrorCode::kShapeMismatch, format("the input '{}' is not a tensor", name), "shapes");
    if (!type->shape) continue;
    const auto& dims = *type->shape;
    if (dims.size() != sizes.size())
      refuse(ErrorCode::kShapeMismatch,
             format("the input '{}' has {} dimensions, {} were given", name, dims.size(), sizes.size()), "shapes",
             "the model says " + info->type.str());
    for (size_t i = 0; i < dims.size(); ++i) {
      if (sizes[i] < -1) refuse(ErrorCode::kInvalidArgument, format("{} is not a size", sizes[i]), "shapes");
      if (sizes[i] == -1) continue;
      if (dims[i].value && *dims[i].value != sizes[i])
        refuse(ErrorCode::kShapeMismatch,
               format("dimension {} of the input '{}' is {}, not {}", i, name, *dims[i].value, sizes[i]), "shapes",
               "the model says " + info->type.str());
      if (dims[i].param.empty() || dims[i].param == "?") continue;
      auto [it, fresh] = symbols_.emplace(dims[i].param, Dim(sizes[i]));
      if (!fresh && !(it->second == Dim(sizes[i])))
        refuse(ErrorCode::kShapeMismatch,
               format("the dimension '{}' is given as {} and as {}", dims[i].param, it->second.str(), sizes[i]),
               "shapes");
    }
  }
}

// main's parameter for an input that is not a tensor of known rank, or may be absent: its type is known only at run
// time. Null for other inputs.
Expr Importer::program_input(const ValueInfo& info) {
  const auto kind = info.type.kind;
  const ValueType* tensor = tensor_of(info.type);
  const bool other = kind == ValueType::kSequence ||
                     (kind == ValueType::kOptional &&
                      (!(tensor && tensor->elem && tensor->shape) || asks_for(model_.graph, info.name)));
  const bool unranked =
      kind == ValueType::kTensor && info.type.elem && !info.type.shape && !options_.shapes.count(info.name);
  if (!programs() || !(other || unranked)) return {};
  is_program = true;
  input_kinds_.push_back(other ? "value" : "unranked " + info.type.elem->str());
  return relay::make_var(info.name, incomplete_type(), relay::make_span(info.name));
}

void Importer::add_input(const std::string& name, const Expr& var) {
  inputs_.push_back(var);
  input_names_.push_back(name);
}

// A map comes in as two vectors of one length, NAME.keys and NAME.values.
Value Importer::map_input(const ValueInfo& info) {
  const ValueType& type = info.type;
  const ValueType* values = type.element ? tensor_of(*type.element) : nullptr;
  if (!type.elem || !values || !values->elem)
    refuse(ErrorCode::kUnsupportedModel, format("inputs of type {} cannot be compiled", type.str()),
           format("input '{}'", info.name));
  std::vector<Value> parts;
  const Dim length = Dim::symbol(symbol_name(info.name + "_size"));
  for (const auto& [suffix, dtype] : {std::pair(".keys", *type.elem), std::pair(".values", *values->elem)}) {
    const std::string name = info.name + suffix;
    const Expr var = relay::make_var(name, tensor_type({length}, dtype), relay::make_span(name));
    input_kinds_.push_back("tensor");
    add_input(name, var);
    parts.emplace_back(var);
  }
  is_program = true;
  Value out;
  out.sequence = std::make_shared<const std::vector<Value>>(std::move(parts));
  return out;
}

void Importer::add_graph_input(const ValueInfo& info, Scope& scope) {
  std::string where = format("input '{}'", info.name);
  if (auto given = options_.values.find(info.name); given != options_.values.end()) {
    Value v;
    bool optional = info.type.kind == ValueType::kOptional;
    if (!optional || !given->second.empty()) {
      std::vector<Value> elements;
      for (const Tensor& t : given->second) elements.emplace_back(relay::make_constant(t, relay::make_span(info.name)));
      v.sequence = std::make_shared<const std::vector<Value>>(std::move(elements));
    }
    scope.values.emplace(info.name, v);
    return;
  }
  if (Expr var = program_input(info)) {
    add_input(info.name, var);
    scope.values.emplace(info.name, var);
    return;
  }
  if (info.type.kind == ValueType::kMap) {
    scope.values.emplace(info.name, map_input(info));
    return;
  }
  const ValueType* type = tensor_of(info.type);
  if (!type)
    refuse(ErrorCode::kUnsupportedModel, format("inputs of type {} cannot be compiled yet", info.type.str()), where);
  if (!type->elem) refuse(ErrorCode::kMalformedModel, "the input has no element type", where);
  auto given = options_.shapes.find(info.name);
  Shape shape;
  if (type->shape) {
    for (size_t i = 0; i < type->shape->size(); ++i) {
      const auto& d = (*type->shape)[i];
      auto bound = symbols_.find(d.param);
      if (d.value)
        shape.push_back(*d.value);
      else if (given != options_.shapes.end() && given->second[i] >= 0)
        shape.push_back(given->second[i]);
      else if (bound != symbols_.end())
        shape.push_back(bound->second);
      else
        shape.push_back(d.param.empty() || d.param == "?" ? Dim::any() : Dim::symbol(symbol_name(d.param)));
    }
  } else if (given != options_.shapes.end()) {
    for (int64_t size : given->second) shape.push_back(size >= 0 ? Dim(size) : Dim::any());
  } else {
    refuse(ErrorCode::kFreeDimension, "the input has no shape", where,
           format("give its sizes: --shape {}=...", info.name));
  }
  if (auto dims = static_shape(shape))
    if (auto count = checked_element_count(*dims); !count) throw ConversionFailure{std::move(count).error().at(where)};
  Expr var = relay::make_var(info.name, tensor_type(shape, *type->elem), relay::make_span(info.name));
  if (!static_shape(shape)) is_program = true;
  input_kinds_.push_back("tensor");
  add_input(info.name, var);
  scope.values.emplace(info.name, var);
}

// The outputs as main's result: one value, or a tuple. An ordinary module returns tensors only, so a sequence of known
// length is returned element by element.
Expr Importer::results(const Values& outputs, relay::DictAttrs* attrs) {
  std::vector<Expr> results;
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model_.graph.outputs[i].name;
    is_program = is_program || !outputs[i].present();
    if (outputs[i].expr || (is_program && programs())) {
      results.push_back(one_value(outputs[i]));
      names.push_back(name);
      continue;
    }
    if (!outputs[i].sequence)
      refuse(ErrorCode::kUnsupportedModel, "an output that is absent cannot be compiled", format("output '{}'", name));
    for (size_t k = 0; k < outputs[i].sequence->size(); ++k) {
      const Expr& element = (*outputs[i].sequence)[k].expr;
      if (!element)
        refuse(ErrorCode::kUnsupportedModel, "a sequence of sequences cannot be compiled", format("output '{}'", name));
      results.push_back(element);
      names.push_back(format("{}[{}]", name, k));
    }
  }
  (*attrs)["output_names"] = names;
  return results.size() == 1 ? results[0] : relay::make_tuple(results);
}

}  // namespace tilewright::onnx
