// SPDX-License-Identifier: Apache-2.0
// The parameters of main: inputs with their sizes, weights, and weights that the model mutates.
#include <algorithm>
#include <cctype>

#include "base/checked.h"
#include "base/format.h"
#include "frontend/torch/alias.h"
#include "frontend/torch/importer.h"

namespace tilewright::torch {

using onnx::refuse;

namespace {

bool is_symbol(const std::string& text) {
  return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

std::string meta_text(const TensorMeta& meta) {
  std::string out = meta.dtype.str() + "[";
  for (size_t i = 0; i < meta.sizes.size(); ++i)
    out += (i ? "," : "") + (meta.sizes[i].value ? std::to_string(*meta.sizes[i].value) : meta.sizes[i].expression);
  return out + "]";
}

}  // namespace

const TensorMeta* Importer::input_meta(const std::string& name) const {
  auto it = program_.graph.tensors.find(name);
  return it == program_.graph.tensors.end() ? nullptr : &it->second;
}

const Range* Importer::range_of(const std::string& symbol) const {
  auto it = program_.ranges.find(symbol);
  return it == program_.ranges.end() ? nullptr : &it->second;
}

void Importer::bind_shapes() {
  std::string known;
  for (const InputSpec& spec : program_.inputs)
    if (spec.kind == InputSpec::kUser) known += (known.empty() ? "" : ", ") + spec.name;
  auto is_input = [&](const std::string& name) {
    return std::any_of(program_.inputs.begin(), program_.inputs.end(),
                       [&](const InputSpec& spec) { return spec.kind == InputSpec::kUser && spec.name == name; });
  };
  for (const auto& [name, value] : options_.constants)
    if (!is_input(name))
      refuse(ErrorCode::kUnknownInput, format("the model has no input named '{}'", name), "constants",
             "its inputs are " + known);
  for (const auto& [name, sizes] : options_.shapes) {
    const TensorMeta* meta = input_meta(name);
    if (!is_input(name) || !meta)
      refuse(ErrorCode::kUnknownInput, format("the model has no input named '{}'", name), "shapes",
             "its inputs are " + known);
    if (meta->sizes.size() != sizes.size())
      refuse(ErrorCode::kShapeMismatch,
             format("the input '{}' has {} dimensions, {} were given", name, meta->sizes.size(), sizes.size()),
             "shapes", "the model says " + meta_text(*meta));
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Size& size = meta->sizes[i];
      if (sizes[i] < -1) refuse(ErrorCode::kInvalidArgument, format("{} is not a size", sizes[i]), "shapes");
      if (sizes[i] == -1) continue;
      if (size.value && *size.value != sizes[i])
        refuse(ErrorCode::kShapeMismatch,
               format("dimension {} of the input '{}' is {}, not {}", i, name, *size.value, sizes[i]), "shapes",
               "the model says " + meta_text(*meta) + "; export it with dynamic_shapes");
      if (!is_symbol(size.expression)) continue;
      // torch.export specialises sizes 0 and 1, so ranges that begin at 2 admit them as well.
      const Range* range = range_of(size.expression);
      const bool small = range && range->least && *range->least > 2 && sizes[i] < *range->least;
      if (small || (range && range->most && sizes[i] > *range->most))
        refuse(ErrorCode::kShapeMismatch,
               format("the dimension '{}' was exported for sizes from {} to {}, not {}", size.expression,
                      range->least ? std::to_string(*range->least) : "0",
                      range->most ? std::to_string(*range->most) : "any", sizes[i]),
               "shapes", "export the model with another range in dynamic_shapes");
      auto [it, fresh] = symbols_.emplace(size.expression, Dim(sizes[i]));
      if (!fresh && !(it->second == Dim(sizes[i])))
        refuse(ErrorCode::kShapeMismatch,
               format("the dimension '{}' is given as {} and as {}", size.expression, it->second.str(), sizes[i]),
               "shapes");
    }
  }
}

Shape Importer::input_shape(const std::string& name, const TensorMeta& meta) const {
  auto given = options_.shapes.find(name);
  Shape shape;
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    const Size& size = meta.sizes[i];
    auto bound = symbols_.find(size.expression);
    if (size.value)
      shape.emplace_back(*size.value);
    else if (given != options_.shapes.end() && given->second[i] >= 0)
      shape.emplace_back(given->second[i]);
    else if (bound != symbols_.end())
      shape.push_back(bound->second);
    else
      shape.push_back(is_symbol(size.expression) ? Dim::symbol(size.expression) : Dim::any());
  }
  for (const Dim& d : shape)
    if (auto n = d.constant(); n && *n < 0)
      refuse(ErrorCode::kMalformedModel, format("a size of '{}' is {}", name, *n));
  if (auto dims = static_shape(shape))
    if (auto count = checked_element_count(*dims); !count)
      throw ConversionFailure{std::move(count).error().at(format("input '{}'", name))};
  return shape;
}

void Importer::add_input(const std::string& name, const Expr& var) {
  inputs_.push_back(var);
  input_names_.push_back(name);
  onnx_.add_input(name, var);
}

void Importer::add_user_input(const InputSpec& spec, Scope& scope) {
  if (auto given = options_.constants.find(spec.name); given != options_.constants.end()) {
    scope.values.emplace(spec.name, in_own_memory(Value(relay::make_constant(given->second))));
    return;
  }
  const relay::Span span = relay::make_span(spec.name);
  if (const TensorMeta* meta = input_meta(spec.name)) {
    if (!meta->strided)
      refuse(ErrorCode::kUnsupportedModel, "sparse inputs cannot be compiled", format("input '{}'", spec.name));
    if (meta->complex)
      refuse(ErrorCode::kUnsupportedModel, "it is of complex numbers", format("input '{}'", spec.name),
             "take torch.view_as_real of it, and torch.view_as_complex in the model");
    Expr var = relay::make_var(spec.name, tensor_type(input_shape(spec.name, *meta), meta->dtype), span);
    add_input(spec.name, var);
    Value v = in_own_memory(Value(var), spec.name, InputSpec::kUser);
    memories_.push_back(v.view);
    scope.values.emplace(spec.name, std::move(v));
    return;
  }
  if (!program_.graph.integers.count(spec.name))
    refuse(ErrorCode::kMalformedModel, format("the input '{}' has no type", spec.name));
  Expr var = relay::make_var(spec.name, tensor_type({}, kInt64), span);
  add_input(spec.name, var);
  scope.values.emplace(spec.name, Value::number(var));
}

void Importer::add_weight(const InputSpec& spec, Scope& scope) {
  auto it = program_.weights.find(spec.target);
  const relay::Span span = relay::make_span(spec.target);
  const TensorMeta* meta = input_meta(spec.name);
  if (changed_.count(spec.target)) {
    if (!meta && it == program_.weights.end())
      refuse(ErrorCode::kMalformedModel, format("the weight '{}' has no type", spec.target));
    const Type type = meta ? tensor_type(input_shape(spec.name, *meta), meta->dtype)
                           : tensor_type(to_shape(it->second.shape()), it->second.dtype());
    const bool taken =
        std::find(input_names_.begin(), input_names_.end(), spec.target) != input_names_.end() || spec.target.empty();
    const std::string name = taken ? spec.name : spec.target;
    Expr var = relay::make_var(name, type, span);
    add_input(name, var);
    Value v = in_own_memory(Value(var), spec.target, spec.kind);
    v.complex = meta && meta->complex;
    memories_.push_back(v.view);
    scope.values.emplace(spec.name, std::move(v));
    return;
  }
  if (it == program_.weights.end()) {
    auto why = program_.why.find(spec.target);
    unreadable_.emplace(spec.name, why != program_.why.end()
                                       ? why->second
                                       : format("the model does not hold its weight '{}'", spec.target));
    return;
  }
  Value v;
  if (!options_.freeze_params && it->second.dtype().is_float()) {
    Expr var = relay::make_var(spec.target, tensor_type(to_shape(it->second.shape()), it->second.dtype()), span);
    inputs_.push_back(var);
    v = Value(var);
    if (options_.params) options_.params->emplace(spec.target, it->second);
  } else {
    v = Value(relay::make_constant(it->second, span));
  }
  v.complex = meta && meta->complex;
  v = in_own_memory(std::move(v), spec.target, spec.kind);
  memories_.push_back(v.view);
  scope.values.emplace(spec.name, std::move(v));
}

void Importer::add_inputs(Scope& scope) {
  for (const InputSpec& spec : program_.inputs)
    if (spec.kind == InputSpec::kUser) add_user_input(spec, scope);
  // Mutated weights come before the others.
  for (const bool changed : {true, false})
    for (const InputSpec& spec : program_.inputs) {
      const bool weight = spec.kind == InputSpec::kParameter || spec.kind == InputSpec::kBuffer ||
                          spec.kind == InputSpec::kTensorConstant;
      if (weight && (changed_.count(spec.target) != 0) == changed) add_weight(spec, scope);
      if (changed) continue;
      if (spec.kind == InputSpec::kLiteral && !spec.name.empty())
        scope.values.emplace(spec.name, literal_value(spec.literal));
      if (spec.kind == InputSpec::kObject)
        unreadable_.emplace(spec.name, format("the model holds the object '{}', which is pickled", spec.target));
      if (spec.kind == InputSpec::kToken) scope.values.emplace(spec.name, Value());
    }
}

}  // namespace tilewright::torch
