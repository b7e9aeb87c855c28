// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/import.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/format.h"
#include "frontend/onnx/channel_blocks.h"
#include "frontend/onnx/file_map.h"
#include "frontend/onnx/graph_order.h"
#include "frontend/onnx/importer.h"

namespace tilewright::onnx {

void refuse(ErrorCode code, std::string message, std::string where, std::string hint) {
  throw ConversionFailure{Diagnostic(code, std::move(message), std::move(where), std::move(hint))};
}

// The type of a tensor, or of the tensor an optional holds; null for others.
const ValueType* tensor_of(const ValueType& type) {
  if (type.kind == ValueType::kOptional && type.element) return tensor_of(*type.element);
  return type.kind == ValueType::kTensor ? &type : nullptr;
}
namespace {

std::string type_text(const Value& v) {
  if (v.sequence) return "sequence";
  if (!v.expr) return v.poisoned ? "?" : "absent";
  return type_str(v.expr->type);
}

// Whether an operator's converter can take the value: its type is known. Strings are handled only as constants.
bool is_typed_number(const Value& v) {
  if (v.sequence) return std::all_of(v.sequence->begin(), v.sequence->end(), is_typed_number);
  if (!v.expr) return true;
  const auto* tensor = as_tensor(v.expr->type);
  return is_complete(v.expr->type) &&
         (!tensor || !tensor->dtype.is_string() || v.expr->kind == relay::ExprKind::kConstant);
}

// Whether the converter handles values of any kind, not only typed tensors.
bool takes_any_value(const Node& node) {
  const std::string& op = node.op_type;
  return op == "Identity" || op == "If" || op == "Loop" || op == "Scan" || op == "Optional" ||
         op.starts_with("Sequence");
}

}  // namespace

void Importer::release_pages(const Tensor& weight) const {
  const std::span<const std::byte> bytes(weight.raw(), static_cast<size_t>(weight.bytes()));
  const std::less_equal<const std::byte*> not_after;
  for (const SharedBytes& file : model_.files)
    if (not_after(file.bytes.data(), bytes.data()) &&
        not_after(bytes.data() + bytes.size(), file.bytes.data() + file.bytes.size()))
      drop_pages({bytes, nullptr, file.mapped});
}

std::vector<std::string> Importer::inputs_of(const Expr& e) {
  std::vector<std::string> names;
  for (const Expr& part : relay::post_order(e))
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (part == inputs_[i]) names.push_back(input_names_[i]);
  if (options_.needed_constants)
    for (const auto& name : names) {
      auto& needed = *options_.needed_constants;
      if (std::find(needed.begin(), needed.end(), name) == needed.end()) needed.push_back(name);
    }
  return names;
}

const Function* Importer::find_function(const Node& node) const {
  for (const auto& f : model_.functions)
    if (f.name == node.op_type && f.domain == node.domain && f.overload == node.overload) return &f;
  return nullptr;
}

void Importer::note_unsupported(const Node& node, int64_t version, const std::vector<Value>& inputs, std::string why) {
  std::string types;
  for (const auto& v : inputs) types += (types.empty() ? "" : ", ") + type_text(v);
  std::string name = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  std::string shown = !node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0];
  unsupported_.add(name, format("opset {}", version), format("'{}' ({})", shown, types), std::move(why));
}

Diagnostic Importer::unsupported_report() const {
  return unsupported_.report(
      "export the model with these operators decomposed (another opset, or a model-local function of the same name), "
      "or take them out; `tilewright ops --onnx` lists what is supported");
}

// With free input sizes, a value that is missing at import depends on a size: name the sizes and the option to set
// them.
Diagnostic Importer::with_free_dimensions(Diagnostic failure) const {
  if (failure.code != ErrorCode::kUnsupportedModel && failure.code != ErrorCode::kFreeDimension) return failure;
  std::string listed, typed;
  for (const auto& info : model_.graph.inputs) {
    const ValueType* type = tensor_of(info.type);
    auto var = std::find(input_names_.begin(), input_names_.end(), info.name);
    if (!type || !type->shape || var == input_names_.end()) continue;
    const Shape& shape = as_tensor(inputs_[static_cast<size_t>(var - input_names_.begin())]->type)->shape;
    if (static_shape(shape)) continue;
    listed += format("{}{} is {}", listed.empty() ? "" : ", ", info.name, type->str());
    typed += format(" --shape {}=", info.name);
    for (size_t i = 0; i < shape.size(); ++i) {
      typed += i ? "x" : "";
      // The first dimension is nearly always the batch; propose 1 for it.
      typed += shape[i].is_const() ? std::to_string(shape[i].value()) : i == 0 ? "1" : "?";
    }
  }
  if (listed.empty()) return failure;
  return Diagnostic(ErrorCode::kFreeDimension,
                    format("the model's input sizes must be given: {} ({})", listed, failure.message), failure.where,
                    format("type{}, with a number for each '?'", typed));
}

Values Importer::inline_function(const Function& function, const Node& node, Scope& scope, std::vector<Value> inputs) {
  Scope inner;
  inner.depth = scope.depth + 1;
  if (inner.depth > kMaxGraphDepth)
    refuse(ErrorCode::kLimitExceeded, "functions call each other too deeply (or without end)");
  inner.opsets = function.opsets.empty() ? scope.opsets : &function.opsets;
  inner.prefix = scope.prefix + (node.name.empty() ? node.op_type : node.name) + "/";
  for (const auto& a : function.defaults) inner.function_attributes[a.name] = &a;
  for (const auto& a : node.attributes) {
    const Attribute* value = &a;
    if (!a.reference.empty()) {
      auto it = scope.function_attributes.find(a.reference);
      if (it == scope.function_attributes.end()) continue;
      value = it->second;
    }
    inner.function_attributes[a.name] = value;
  }
  if (inputs.size() > function.inputs.size())
    refuse(ErrorCode::kMalformedModel, format("the function '{}' takes {} inputs, the node gives {}", function.name,
                                              function.inputs.size(), inputs.size()));
  for (size_t i = 0; i < function.inputs.size(); ++i)
    inner.values[function.inputs[i]] = i < inputs.size() ? inputs[i] : Value();
  import_nodes(function.nodes, inner);
  Values out;
  for (const auto& name : function.outputs) {
    const Value* v = inner.find(name);
    if (!v)
      refuse(ErrorCode::kMalformedModel,
             format("the function '{}' does not make its output '{}'", function.name, name));
    out.push_back(*v);
  }
  return out;
}

Values Importer::custom_conversion(const CustomConverter& converter, const Node& node, int64_t version,
                                   const std::vector<Value>& inputs) {
  std::vector<Expr> operands;
  for (const Value& v : inputs) {
    if (v.sequence) refuse(ErrorCode::kTypeMismatch, "a converter of one's own takes no sequences", node.label());
    operands.push_back(v.expr);
  }
  auto made = converter(node, version, operands);
  if (!made.ok()) throw ConversionFailure{std::move(made).error().at(node.label())};
  if (made->size() < node.outputs.size())
    refuse(ErrorCode::kTypeMismatch,
           format("the converter of {} gave {} values for {} outputs", node.op_type, made->size(), node.outputs.size()),
           node.label());
  Values out;
  for (const Expr& e : *made) {
    if (!as_tensor(e->type))
      refuse(ErrorCode::kTypeMismatch,
             format("the converter of {} gave a value of the type {}, not a tensor", node.op_type, type_str(e->type)),
             node.label());
    out.emplace_back(e);
  }
  return out;
}

Values Importer::convert(const Node& node, Scope& scope, std::vector<Value> inputs) {
  if (++unrolled > kMaxNodes)
    refuse(ErrorCode::kLimitExceeded,
           format("the model grows beyond {} nodes when its functions and loops are expanded", kMaxNodes));
  if (const Function* f = find_function(node)) return inline_function(*f, node, scope, std::move(inputs));
  auto it = scope.opsets->find(node.domain);
  // A missing opset import of another domain means its version 1; the standard domain's is required.
  int64_t version = it != scope.opsets->end() ? it->second : node.domain.empty() ? 0 : 1;
  if (version == 0) refuse(ErrorCode::kMalformedModel, "the model does not import the standard operator set");
  return with_converter(node, scope, version, std::move(inputs));
}

// Whether a program may defer the node: the failure is a missing size or value, which a run will provide.
bool Importer::may_wait(const Node& node, const std::vector<Value>& inputs, const Diagnostic& failure) {
  const bool wants_a_value = failure.code == ErrorCode::kUnsupportedModel || failure.code == ErrorCode::kFreeDimension;
  const bool settled = std::all_of(inputs.begin(), inputs.end(), is_static_value);
  if (failure.code == ErrorCode::kLimitExceeded || failure.code == ErrorCode::kInternal) return false;
  if (!programs() || (!wants_a_value && settled)) return false;
  // Deferred nodes carry no subgraphs: control flow has its own form.
  if (std::any_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& a) { return !a.graphs.empty(); }))
    return false;
  return true;
}

Values Importer::with_converter(const Node& node, Scope& scope, int64_t version, std::vector<Value> inputs) {
  const ConverterEntry* entry = find_converter(node.domain, node.op_type, version);
  bool poisoned = std::any_of(inputs.begin(), inputs.end(), [](const Value& v) { return v.poisoned; });
  Value bad;
  bad.poisoned = true;
  Values outputs(node.outputs.size(), bad);
  const auto custom = options_.converters.find({node.domain, node.op_type});
  if (custom != options_.converters.end())
    return poisoned ? outputs : custom_conversion(custom->second, node, version, inputs);
  const bool only_at_run_time = programs() && node.domain.empty() && node.op_type == kOnlyAtRunTime;
  if (!entry && !only_at_run_time) {
    note_unsupported(node, version, inputs, "");
    return outputs;
  }
  if (poisoned) return outputs;
  if (programs() &&
      (!entry || (!takes_any_value(node) && !std::all_of(inputs.begin(), inputs.end(), is_typed_number)))) {
    return defer(node, scope.function_attributes, version, inputs);
  }
  std::vector<Value> kept = inputs;
  try {
    NodeContext context(*this, scope, node, version, std::move(inputs));
    Values made = entry->convert(context);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= made.size()) {
        note_unsupported(node, version, kept, format("its output {}", i));
        return outputs;
      }
    }
    return made;
  } catch (ConversionFailure& failure) {
    if (may_wait(node, kept, failure.diagnostic)) return defer(node, scope.function_attributes, version, kept);
    if (failure.diagnostic.code != ErrorCode::kUnsupportedOp || !failure.diagnostic.where.empty()) throw;
    note_unsupported(node, version, kept, failure.diagnostic.message);
    return outputs;
  }
}

Values Importer::converted(const Node& node, const std::map<std::string, int64_t>& opsets, std::vector<Value> inputs) {
  Scope scope;
  scope.opsets = &opsets;
  Values out = convert(node, scope, std::move(inputs));
  if (unsupported_.size() > 0) throw ConversionFailure{unsupported_report()};
  return out;
}

void Importer::import_node(const Node& node, Scope& scope) {
  std::vector<Value> inputs;
  for (const auto& name : node.inputs) {
    if (name.empty()) {
      inputs.emplace_back();
      continue;
    }
    const Value* v = scope.find(name);
    if (!v) refuse(ErrorCode::kMalformedModel, format("the node reads '{}', which nothing makes", name));
    inputs.push_back(*v);
  }
  Values outputs = convert(node, scope, std::move(inputs));
  for (size_t i = 0; i < node.outputs.size() && i < outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (!scope.values.emplace(node.outputs[i], outputs[i]).second)
      refuse(ErrorCode::kMalformedModel, format("the value '{}' is made twice", node.outputs[i]));
  }
}

void Importer::import_nodes(const std::vector<Node>& nodes, Scope& scope) {
  for (size_t i : execution_order(nodes)) {
    try {
      import_node(nodes[i], scope);
    } catch (ConversionFailure& failure) {
      Diagnostic& d = failure.diagnostic;
      std::string place = "node " + nodes[i].label();
      if (d.where.rfind("node ", 0) != 0) d.where = d.where.empty() ? place : place + ": " + d.where;
      throw;
    }
  }
}

Values Importer::import_graph(const Graph& graph, Scope& scope) {
  if (scope.depth > kMaxGraphDepth) refuse(ErrorCode::kLimitExceeded, "subgraphs are nested too deeply");
  for (const auto& t : graph.initializers)
    scope.values.try_emplace(t.name, relay::make_constant(t.data, relay::make_span(t.name)));
  import_nodes(graph.nodes, scope);
  Values out;
  for (const auto& info : graph.outputs) {
    const Value* v = scope.find(info.name);
    if (!v) refuse(ErrorCode::kMalformedModel, format("nothing makes the graph's output '{}'", info.name));
    out.push_back(*v);
  }
  return out;
}

Result<relay::Module> Importer::run() try {
  bind_shapes();
  Scope scope;
  scope.opsets = &model_.opsets;
  std::set<std::string> initialized;
  for (const auto& t : model_.graph.initializers) initialized.insert(t.name);
  for (const auto& [name, tensor] : options_.constants) {
    bool known = std::any_of(model_.graph.inputs.begin(), model_.graph.inputs.end(),
                             [&, n = name](const auto& i) { return i.name == n; });
    if (!known) refuse(ErrorCode::kUnknownInput, format("the model has no input named '{}'", name), "constants");
    scope.values.emplace(name, relay::make_constant(tensor, relay::make_span(name)));
  }
  for (const auto& info : model_.graph.inputs)
    // Before IR version 4 every initializer was also listed as an input.
    if (!initialized.count(info.name) && !options_.constants.count(info.name)) add_graph_input(info, scope);
  std::vector<Expr> params = inputs_;
  if (!options_.freeze_params) {
    for (const auto& t : model_.graph.initializers) {
      if (!t.data.dtype().is_float()) continue;
      Expr var =
          relay::make_var(t.name, tensor_type(to_shape(t.data.shape()), t.data.dtype()), relay::make_span(t.name));
      params.push_back(var);
      scope.values.emplace(t.name, var);
      if (options_.params) options_.params->emplace(t.name, t.data);
    }
  }
  Values outputs = import_graph(model_.graph, scope);
  if (unsupported_.size() > 0) return unsupported_report();
  if (outputs.empty()) refuse(ErrorCode::kMalformedModel, "the model has no output");
  relay::DictAttrs attrs;
  attrs["input_names"] = input_names_;
  if (std::any_of(input_kinds_.begin(), input_kinds_.end(), [](const auto& kind) { return kind != "tensor"; }))
    attrs["input_kinds"] = input_kinds_;
  Expr body = results(outputs, &attrs);
  relay::Module module;
  module.functions["main"] = relay::make_function(params, body, attrs);
  module.metadata = model_.metadata;
  return module;
} catch (ConversionFailure& failure) {
  return with_free_dimensions(std::move(failure.diagnostic));
} catch (const std::bad_alloc&) {
  return Diagnostic(ErrorCode::kLimitExceeded, "not enough memory to import the model");
} catch (const InternalError& bug) {
  return Diagnostic(ErrorCode::kInternal, bug.what());
}

Result<relay::Module> import_onnx(const Model& model, const ImportOptions& options) {
  if (model.opsets.count(kBlockedDomain) != 0)
    return Importer(with_channel_blocks(model, options.channel_block), options).run();
  return Importer(model, options).run();
}

Result<relay::Module> import_onnx(const SharedBytes& bytes, const ImportOptions& options) {
  Model model = TW_TRY(read_model(bytes, "", options.read));
  return import_onnx(model, options);
}

Result<relay::Module> import_onnx(const std::string& path, const ImportOptions& options) {
  Model model = TW_TRY(read_model(path, options.read));
  auto module = import_onnx(model, options);
  if (module) return module;
  Diagnostic error = std::move(module).error();
  error.where = path + (error.where.empty() ? "" : ": " + error.where);
  return error;
}

}  // namespace tilewright::onnx
