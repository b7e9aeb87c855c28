// SPDX-License-Identifier: Apache-2.0
#include "frontend/torch/import.h"

#include <algorithm>
#include <stdexcept>

#include "base/checked.h"
#include "base/format.h"
#include "frontend/torch/alias.h"
#include "frontend/torch/growing.h"
#include "frontend/torch/importer.h"
#include "frontend/torch/wait.h"
#include "relay/op.h"

namespace tilewright::torch {

using onnx::refuse;

namespace {

std::string label_of(const Node& node) { return format("'{}' ({})", node.name, node.target); }

onnx::ImportOptions onnx_options(const ImportOptions& options) {
  onnx::ImportOptions out;
  out.programs = options.programs;
  return out;
}

bool holds_complex(const Value& v) {
  return v.complex || (v.list && std::any_of(v.list->begin(), v.list->end(), holds_complex));
}
bool any_complex(const NamedValues& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const auto& named) { return holds_complex(named.second); });
}

// Operators that mutate a list or dictionary argument, whatever it contains. They cannot be deferred: the mutation
// would be lost.
bool changes_a_list(std::string_view target, const NamedValues& arguments) {
  static constexpr std::string_view kTargets[] = {"aten.append", "aten.extend",    "aten.insert", "aten.pop",
                                                  "aten.clear",  "aten._set_item", "aten.update", "aten.reverse",
                                                  "aten.Delete", "aten.add_"};
  const std::string_view op = without_overload(target);
  const bool list = !arguments.empty() && arguments[0].second.list;
  return list && std::find(std::begin(kTargets), std::end(kTargets), op) != std::end(kTargets);
}

// Operators that read lists and dictionaries themselves, without looking at tensors in them.
bool reads_a_list(std::string_view target, const NamedValues& arguments) {
  static constexpr std::string_view kTargets[] = {"aten.len",  "aten.list",         "aten.items", "aten.keys",
                                                  "aten.get",  "aten.__contains__", "aten.slice", "aten.values",
                                                  "aten.copy", "aten.__getitem__",  "aten.add",   "aten.mul"};
  const std::string_view op = without_overload(target);
  if (op == "aten.__is__" || op == "aten.__isnot__" || op == "aten._unwrap_optional") return true;
  const bool list = !arguments.empty() && arguments[0].second.list;
  return list && std::find(std::begin(kTargets), std::end(kTargets), op) != std::end(kTargets);
}

// In-place operators that change a tensor's shape but not its elements.
bool changes_shape_only(std::string_view functional) {
  static constexpr std::string_view kTargets[] = {"aten.unsqueeze", "aten.squeeze",  "aten.t",      "aten.transpose",
                                                  "aten.swapaxes",  "aten.swapdims", "aten.detach", "aten.as_strided"};
  return std::find(std::begin(kTargets), std::end(kTargets), without_overload(functional)) != std::end(kTargets);
}

bool is_poisoned(const Value& v) {
  return v.poisoned || (v.list && std::any_of(v.list->begin(), v.list->end(), is_poisoned));
}

std::string type_text(const Value& v) {
  if (v.list) return format("list of {}", v.list->size());
  return v.kind == Value::kTensor ? type_str(v.expr->type) : "";
}

// Whether all types that a converter looks at are known.
bool is_typed(const Value& v) {
  if (v.list) return std::all_of(v.list->begin(), v.list->end(), is_typed);
  return !v.expr || is_complete(v.expr->type);
}

}  // namespace

Values convert_resolved(const Place& place, const Node& node, NamedValues arguments) {
  const std::string functional = functional_name(node.target);
  const std::string& target = functional.empty() ? node.target : functional;
  const ConverterEntry* entry = any_complex(arguments) ? find_complex_converter(target) : nullptr;
  if (!entry) entry = find_converter(target);
  if (!entry) refuse(ErrorCode::kUnsupportedOp, "");
  NodeContext context(place, node, std::move(arguments));
  try {
    return entry->convert(context);
  } catch (const std::out_of_range&) {  // an axis or item that does not exist
    context.fail_type("its arguments do not fit its operands");
  } catch (const std::length_error&) {
    context.fail_type("its arguments do not fit its operands");
  }
}

Importer::Importer(const Program& program, const ImportOptions& options)
    : program_(program), options_(options), onnx_options_(onnx_options(options)), onnx_(nothing_, onnx_options_) {}

namespace {
// What a tuple holds in place of a result that has no value: its name, marked.
constexpr std::string_view kMissing = "without value: ";
Value missing_value(const std::string& name) {
  Value v;
  v.text = std::string(kMissing) + name;
  return v;
}
bool is_missing(const Value& v) { return v.kind == Value::kNothing && v.text.starts_with(kMissing); }
}  // namespace

// A list keeps its identity, so that what is appended to it later is seen through all names.
Value Importer::now(const Value& v) {
  Value out = v;
  if (v.list)
    for (Value& item : *v.list) item = now(item);
  if (v.view && v.view->memory->version > 0) {
    out.like = known_of(v);
    out.expr = current(place(), *v.view);
  }
  return out;
}

Value Importer::resolved(const Argument& a, const Scope& scope) {
  if (a.kind == Argument::kList) {
    std::vector<Value> items;
    for (const Argument& item : a.items) items.push_back(resolved(item, scope));
    return Value::of_list(std::move(items));
  }
  if (a.kind != Argument::kValue) return literal_value(a);
  if (const Value* v = scope.find(a.text)) return now(*v);
  if (auto bad = unreadable_.find(a.text); bad != unreadable_.end())
    refuse(ErrorCode::kUnsupportedModel, bad->second, "",
           "export it again, with PyTorch 2.8 or newer; run_decompositions() takes apart weights of own classes");
  refuse(ErrorCode::kMalformedModel, format("the graph reads '{}', which nothing makes", a.text));
}

Values Importer::custom_conversion(const CustomConverter& converter, const Node& node, const NamedValues& arguments) {
  auto made = converter(node, arguments);
  if (!made.ok()) throw ConversionFailure{std::move(made).error()};
  Values out;
  for (Expr& e : *made) {
    if (!e) refuse(ErrorCode::kInvalidArgument, "the converter made nothing for an output");
    out.emplace_back(std::move(e));
  }
  return out;
}

// In a program, a node that lacks a size or value known only at run time is deferred instead of refused.
Values Importer::convert(const Node& node, const NamedValues& arguments) {
  const auto given = [&](std::string_view target) { return options_.converters.find(std::string(target)); };
  auto custom = given(node.target);
  if (custom == options_.converters.end()) custom = given(without_overload(node.target));
  if (custom != options_.converters.end()) return custom_conversion(custom->second, node, arguments);
  if (std::any_of(arguments.begin(), arguments.end(), [](const auto& named) { return is_grown(named.second); }))
    return convert_grown(*this, node, arguments);
  const bool changes_list = changes_a_list(node.target, arguments);
  const bool of_lists = changes_list || reads_a_list(node.target, arguments) || node.target.starts_with("prim.");
  if (!of_lists && any_complex(arguments)) {
    if (!find_complex_converter(node.target)) refuse(ErrorCode::kUnsupportedOp, "complex numbers");
    if (auto shape = shape_of_complex(node, arguments)) return std::move(*shape);
  }
  if (auto made = convert_on_grid(place(), node, arguments)) return std::move(*made);
  if (auto made = sized_by_data(node, arguments)) return std::move(*made);
  if (auto made = answered(node, arguments)) return std::move(*made);
  const bool typed =
      std::all_of(arguments.begin(), arguments.end(), [](const auto& named) { return is_typed(named.second); });
  const bool has_graph = std::any_of(arguments.begin(), arguments.end(),
                                     [](const auto& named) { return named.second.kind == Value::kGraph; });
  const bool looks_at_types = !changes_list && !reads_a_list(node.target, arguments) &&
                              !node.target.starts_with("operator.getitem") &&
                              (!node.target.starts_with("prim.") || node.target.starts_with("prim.NumToTensor")) &&
                              !node.target.starts_with("aten._assert");
  if (programs() && !typed && !has_graph && looks_at_types && find_converter(node.target)) return wait(node, arguments);
  try {
    return convert_resolved(place(), node, arguments);
  } catch (ConversionFailure& failure) {
    const ErrorCode code = failure.diagnostic.code;
    const bool wants_a_value = code == ErrorCode::kUnsupportedModel || code == ErrorCode::kFreeDimension;
    if (!programs() || has_graph || changes_list || !wants_a_value) throw;
    return wait(node, arguments);
  }
}

// What asks for the shape of a complex tensor asks for its real part's.
std::optional<Values> Importer::shape_of_complex(const Node& node, const NamedValues& arguments) {
  static constexpr std::string_view kTargets[] = {"aten.size", "aten.dim", "aten.numel", "aten.sym_size",
                                                  "aten.sym_numel"};
  const bool asks =
      std::find(std::begin(kTargets), std::end(kTargets), without_overload(node.target)) != std::end(kTargets);
  if (!asks || arguments.empty() || !arguments[0].second.complex) return std::nullopt;
  NamedValues of_real = arguments;
  of_real[0].second = made_by("aten.real.default", node, {{"self", arguments[0].second}});
  return convert(node, of_real);
}

Value Importer::made_by(const std::string& target, const Node& near, const NamedValues& arguments) {
  made_nodes_.push_back(std::make_unique<Node>());
  Node& node = *made_nodes_.back();
  node.target = target;
  node.name = near.name;
  node.outputs.resize(1);
  node.outputs[0].kind = Argument::kValue;
  Values made = convert(node, arguments);
  if (made.size() != 1) refuse(ErrorCode::kMalformedModel, format("{} has {} results", target, made.size()));
  return made[0];
}

Values Importer::in_place(const Node& node, const std::string& functional, const NamedValues& arguments) {
  const Value& self = arguments.at(0).second;
  if (self.kind != Value::kTensor || !self.view)
    refuse(ErrorCode::kMalformedModel, "it changes something that is no tensor");
  Node pure = node;
  pure.target = functional;
  Values made = convert(pure, arguments);
  if (made.empty() || !made[0].expr) refuse(ErrorCode::kUnsupportedOp, "a change in place");
  if (self.complex && !made[0].complex)
    made[0] = made_by("aten.complex.default", node,
                      {{"real", made[0]}, {"imag", made_by("aten.zeros_like.default", node, {{"self", made[0]}})}});
  Expr content = made[0].expr;
  if (is_complete(content->type) && is_complete(self.expr->type)) {
    NodeContext c(place(), node, {});
    content = c.cast(content, c.dtype(self.expr));
    if (auto sizes = static_shape(c.shape(self.expr))) content = c.broadcast_to(content, *sizes);
  }
  write_through(place(), self.view.get(), content);
  Value out(content);
  out.view = self.view;
  out.complex = self.complex;
  out.grid = made[0].grid;
  out.like = known_of(self);  // what it is stays as it was
  return {out};
}

// Gives the tensor another shape, under its own name as well.
Values Importer::reshaped_in_place(const Node& node, const std::string& functional, const NamedValues& arguments,
                                   Scope& scope) {
  made_nodes_.push_back(std::make_unique<Node>(node));
  Node& pure = *made_nodes_.back();
  pure.target = functional;
  Values made = convert(pure, arguments);
  share_memory(place(), pure, arguments, &made);
  const Argument& self = node.inputs.at(0).value;
  if (self.kind == Argument::kValue && !made.empty()) scope.values.insert_or_assign(self.text, made[0]);
  return made;
}

void Importer::bind(const Node& node, Values made, Scope& scope) {
  auto name_one = [&](const Argument& output, Value v) {
    if (is_missing(v) && output.kind == Argument::kValue) {
      unreadable_.emplace(output.text, unreadable_.at(v.text.substr(kMissing.size())));
      return;
    }
    if (output.kind == Argument::kValue && !scope.values.emplace(output.text, std::move(v)).second)
      refuse(ErrorCode::kMalformedModel, format("the value '{}' is made twice", output.text));
  };
  const bool one_list = made.size() == 1 && made[0].list != nullptr;
  const bool named_apart =
      node.outputs.size() > 1 || (node.outputs.size() == 1 && node.outputs[0].kind == Argument::kList);
  if (one_list && named_apart) made = Values(*made[0].list);
  std::vector<const Argument*> outputs;
  for (const Argument& output : node.outputs) {
    if (output.kind != Argument::kList) {
      outputs.push_back(&output);
      continue;
    }
    for (const Argument& item : output.items) outputs.push_back(&item);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]->kind != Argument::kValue) continue;
    // Results that have no value, such as a pool's indices, are an error only when something reads them.
    if (i >= made.size()) {
      unreadable_.emplace(outputs[i]->text, format("the output {} of {} cannot be computed yet", i, label_of(node)));
      continue;
    }
    name_one(*outputs[i], std::move(made[i]));
  }
}

void Importer::import_node(const Node& node, Scope& scope) {
  NamedValues arguments;
  bool poisoned = false;
  const bool packs = node.target.starts_with("prim.TupleConstruct");
  for (const NamedArgument& input : node.inputs) {
    // A tuple may hold what has no value, such as a pool's indices, as long as nobody takes it out and reads it.
    const std::string& name = input.value.text;
    const bool without_value = packs && unreadable_.count(name) != 0 && !scope.find(name);
    arguments.emplace_back(input.name, without_value ? missing_value(name) : resolved(input.value, scope));
    poisoned = poisoned || is_poisoned(arguments.back().second);
  }
  Value bad;
  bad.poisoned = true;
  size_t outputs = 0;
  for (const Argument& output : node.outputs) outputs += output.kind == Argument::kList ? output.items.size() : 1;
  const std::string functional = functional_name(node.target);
  const bool known = find_converter(functional.empty() ? node.target : functional) ||
                     options_.converters.count(node.target) ||
                     options_.converters.count(std::string(without_overload(node.target)));
  auto unsupported = [&](const std::string& why) {
    std::string types;
    for (const auto& [name, v] : arguments)
      if (std::string t = type_text(v); !t.empty()) types += (types.empty() ? "" : ", ") + t;
    unsupported_.add(node.target, "", format("'{}' ({})", node.name, types), why);
    bind(node, Values(outputs, bad), scope);
  };
  if (!known) return unsupported("");
  if (poisoned) {
    // A list that it would have changed is no longer what its readers expect.
    if (changes_a_list(node.target, arguments)) arguments[0].second.list->push_back(bad);
    return bind(node, Values(outputs, bad), scope);
  }
  const Scope* around = scope_;
  scope_ = &scope;
  try {
    Values made;
    if (!functional.empty() && changes_shape_only(functional)) {
      made = reshaped_in_place(node, functional, arguments, scope);
    } else if (!functional.empty()) {
      made = in_place(node, functional, arguments);
    } else {
      made = convert(node, arguments);
      if (is_view(node.target)) share_memory(place(), node, arguments, &made);
      for (Value& v : made) v = in_own_memory(std::move(v));
    }
    scope_ = around;
    bind(node, std::move(made), scope);
  } catch (ConversionFailure& failure) {
    scope_ = around;
    const Diagnostic& why = failure.diagnostic;
    if (why.code == ErrorCode::kUnsupportedOp && why.where.empty()) return unsupported(why.message);
    // Lists that nodes before it would have filled are not what it expects: those are what is to be reported.
    if (unsupported_.size() == 0) throw;
    bind(node, Values(outputs, bad), scope);
  }
}

void Importer::import_nodes(const Graph& graph, Scope& scope) {
  for (const Node& node : graph.nodes) {
    if (++imported_ > kMaxNodes)
      refuse(ErrorCode::kLimitExceeded, format("the unrolled model has more than {} nodes", kMaxNodes));
    try {
      import_node(node, scope);
    } catch (ConversionFailure& failure) {
      Diagnostic& d = failure.diagnostic;
      const std::string place = "node " + label_of(node);
      if (!d.where.starts_with("node ")) d.where = d.where.empty() ? place : place + ": " + d.where;
      throw;
    }
  }
}

Values Importer::import_graph(const Graph& graph, Values arguments, const Scope* outside) {
  Scope scope;
  scope.parent = outside;
  scope.depth = (scope_ ? scope_->depth : 0) + 1;
  if (scope.depth > kMaxDepth) refuse(ErrorCode::kLimitExceeded, "graphs are nested too deeply");
  if (arguments.size() != graph.inputs.size())
    refuse(ErrorCode::kMalformedModel,
           format("its graph takes {} inputs, {} are given", graph.inputs.size(), arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (graph.inputs[i].kind == Argument::kValue)
      scope.values.emplace(graph.inputs[i].text, in_own_memory(std::move(arguments[i])));
  import_nodes(graph, scope);
  Values out;
  for (const Argument& output : graph.outputs) out.push_back(resolved(output, scope));
  return out;
}

void Importer::add_result(const Value& v, const std::string& name) {
  if (v.list) {
    for (size_t i = 0; i < v.list->size(); ++i) add_result((*v.list)[i], format("{}[{}]", name, i));
    return;
  }
  if (!v.expr) return;  // None or a string: not an output of a library
  if (v.complex)
    refuse(ErrorCode::kUnsupportedModel, format("the output '{}' is complex", name), "",
           "give torch.view_as_real of it");
  std::string unique = name;
  for (int i = 1; std::find(output_names_.begin(), output_names_.end(), unique) != output_names_.end(); ++i)
    unique = format("{}.{}", name, i);
  results_.push_back(v.expr);
  output_names_.push_back(unique);
}

Result<relay::Module> Importer::finish(Scope& scope) {
  for (const OutputSpec& spec : program_.outputs) {
    if (spec.kind == OutputSpec::kToken) continue;
    if (spec.kind == OutputSpec::kGradient)
      refuse(ErrorCode::kUnsupportedModel, "the model computes gradients", "", "export it for inference");
    std::string name = spec.value.text;
    const bool changes = spec.kind != OutputSpec::kUser && spec.kind != OutputSpec::kLoss;
    if (changes) name = spec.target + ".new";
    add_result(resolved(spec.value, scope), name.empty() ? format("output{}", results_.size()) : name);
  }
  for (const auto& view : memories_) {
    const std::string name = view->memory->owner + ".new";
    const bool listed = std::find(output_names_.begin(), output_names_.end(), name) != output_names_.end();
    if (view->memory->version > 0 && !listed) add_result(Value(view->memory->whole), name);
  }
  if (results_.empty()) refuse(ErrorCode::kMalformedModel, "the model has no output");
  relay::DictAttrs attrs;
  attrs["input_names"] = input_names_;
  attrs["output_names"] = output_names_;
  relay::Module module;
  module.functions["main"] =
      relay::make_function(inputs_, results_.size() == 1 ? results_[0] : relay::make_tuple(results_), attrs);
  return module;
}

Result<relay::Module> Importer::attempt() {
  bind_shapes();
  Scope scope;
  add_inputs(scope);
  import_nodes(program_.graph, scope);
  if (unsupported_.size() > 0)
    return unsupported_.report(
        "run_decompositions() on the exported program may leave operators that can; `tilewright ops --torch` lists "
        "what "
        "is supported");
  return finish(scope);
}

Result<relay::Module> Importer::run() try {
  for (const OutputSpec& spec : program_.outputs)
    if (spec.kind == OutputSpec::kBufferMutation || spec.kind == OutputSpec::kParameterMutation)
      changed_.insert(spec.target);
  auto module = attempt();
  if (!module.ok()) return module;
  // A weight turns out to be mutated, so it must be an input: the import starts again without its value.
  std::set<std::string> changed = changed_;
  for (const auto& view : memories_)
    if (view->memory->version > 0 && view->memory->owner_kind != InputSpec::kUser) changed.insert(view->memory->owner);
  if (changed == changed_) return module;
  Importer again(program_, options_);
  again.changed_ = std::move(changed);
  return again.run();
} catch (ConversionFailure& failure) {
  return std::move(failure.diagnostic);
} catch (const std::bad_alloc&) {
  return Diagnostic(ErrorCode::kLimitExceeded, "not enough memory to import the model");
} catch (const InternalError& bug) {
  return Diagnostic(ErrorCode::kInternal, bug.what());
} catch (const std::out_of_range&) {
  return Diagnostic(ErrorCode::kMalformedModel, "a change in place does not fit what it changes", "",
                    "export the model again");
}

Result<relay::Module> import_torch(const Program& program, const ImportOptions& options) {
  return Importer(program, options).run();
}

}  // namespace tilewright::torch
