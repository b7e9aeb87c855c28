// SPDX-License-Identifier: Apache-2.0
// Modules of the graph IR: functions and data types by name.
#include <algorithm>

#include <nanobind/stl/optional.h>

#include "relay.h"
#include "relay/bind.h"
#include "relay/infer_type.h"
#include "relay/interpreter.h"
#include "relay/prelude.h"
#include "relay/structural.h"
#include "relay/text.h"
#include "relay/verifier.h"

namespace tilewright::python {
namespace {

using namespace relay;
using Arrays = std::map<std::string, ReadArray>;

// A string or a GlobalVar.
std::string name_of(nb::handle key) {
  if (PyUnicode_Check(key.ptr())) return nb::cast<std::string>(key);
  if (nb::isinstance<Expr>(key))
    if (const auto* global = as<GlobalVarNode>(nb::cast<const Expr&>(key))) return global->name;
  throw nb::type_error("a function of a module is named by a string or a GlobalVar");
}

Expr global_of(const Module& self, const std::string& name) {
  auto found = self.functions.find(name);
  if (found == self.functions.end()) {
    std::string known;
    for (const auto& [other, _] : self.functions) known += (known.empty() ? "" : ", ") + other;
    throw nb::value_error(
        ("Cannot find global var \"" + name + "\" in the Module; candidates are: [" + known + "]").c_str());
  }
  return make_global_var(name, found->second->type);
}

// Replaces constructors that a script created before the module defined their type by the module's.
Expr resolved(const Module& module, const Expr& root) {
  auto own = [&](const ConstructorNode& c) -> Expr {
    auto type = module.types.find(c.data_type);
    if (type == module.types.end())
      raise(Diagnostic(ErrorCode::kTypeMismatch, "the module has no data type " + c.data_type, c.name));
    for (const Expr& known : type->second.constructors)
      if (as<ConstructorNode>(known)->name == c.name) return known;
    raise(Diagnostic(ErrorCode::kTypeMismatch, c.data_type + " has no constructor " + c.name));
  };
  std::function<Pattern(const Pattern&)> in_pattern = [&](const Pattern& p) -> Pattern {
    std::vector<Pattern> fields;
    for (const Pattern& f : p->fields) fields.push_back(in_pattern(f));
    const auto* c = as<ConstructorNode>(p->expr);
    if (c && c->tag < 0) return make_pattern(p->kind, own(*c), std::move(fields));
    return fields == p->fields ? p : make_pattern(p->kind, p->expr, std::move(fields));
  };
  return rewrite_graph(
      root,
      [&](const Expr&, const Expr& e) -> Expr {
        if (const auto* c = as<ConstructorNode>(e); c && c->tag < 0) return own(*c);
        const auto* match = as<MatchNode>(e);
        if (!match) return e;
        std::vector<Clause> clauses;
        bool changed = false;
        for (const Clause& clause : match->clauses) {
          clauses.push_back({in_pattern(clause.pattern), clause.body});
          changed |= !(clauses.back().pattern == clause.pattern);
        }
        return changed ? make_match(match->data, std::move(clauses), match->complete, match->span) : e;
      },
      true);
}

bool has_loose_constructors(const Expr& root) {
  std::function<bool(const Pattern&)> loose = [&](const Pattern& p) {
    const auto* c = as<ConstructorNode>(p->expr);
    return (c && c->tag < 0) || std::any_of(p->fields.begin(), p->fields.end(), loose);
  };
  for (const Expr& e : post_order(root, true)) {
    if (const auto* c = as<ConstructorNode>(e); c && c->tag < 0) return true;
    if (const auto* match = as<MatchNode>(e))
      for (const Clause& clause : match->clauses)
        if (loose(clause.pattern)) return true;
  }
  return false;
}

Module bind_params(const Module& module, const Arrays& params) {
  std::map<std::string, Tensor> constants;
  for (const auto& [name, array] : params) constants.emplace(name, tensor_of(array));
  return unwrap(relay::bind_params(module, constants));
}

std::string text_of(const Module& self, bool metadata, const nb::object& annotate = nb::none()) {
  TextOptions options;
  options.metadata = metadata;
  options.classic_names = true;
  if (!annotate.is_none())
    options.annotate = [&](const Expr& e) { return nb::cast<std::string>(nb::str(annotate(wrap(e)))); };
  return print_module(self, options).text;
}

void add_function(Module& self, nb::handle key, nb::handle value) {
  if (!nb::isinstance<Expr>(value) || !as<FunctionNode>(nb::cast<const Expr&>(value)))
    throw nb::type_error("an IRModule holds functions");
  self.functions[name_of(key)] = nb::cast<const Expr&>(value);
}

void add_type(Module& self, const std::string& name, nb::object variables, nb::object constructors) {
  TypeDefinition definition;
  definition.variables = types_of(variables);
  Type made = data_type(name, definition.variables);
  int64_t tag = 0;
  for (nb::handle c : constructors) {
    const auto* loose = as<ConstructorNode>(nb::cast<const Expr&>(c));
    if (!loose) throw nb::type_error("a data type is made of constructors");
    definition.constructors.push_back(make_constructor(loose->name, as_func(loose->type)->args, made, tag++));
  }
  self.types[name] = std::move(definition);
}

}  // namespace

Module completed(const Module& module) {
  Module out = module;
  for (auto& [name, function] : out.functions)
    if (has_loose_constructors(function)) function = resolved(out, function);
  PassContext context;
  return unwrap(infer_type(out, context));
}

void bind_modules(nb::module_& m) {
  nb::class_<Module>(m, "IRModule", nb::dynamic_attr(), "A graph module: functions by name, entry main")
      .def(nb::init<>())
      .def(
          "__init__",
          [](Module* self, nb::object functions, nb::object types) {  // {GlobalVar or name: function}
            auto* made = new (self) Module();
            if (!types.is_none())
              for (auto [_, data] : nb::cast<nb::dict>(types))
                add_type(*made, nb::cast<std::string>(data.attr("header").attr("name_hint")), data.attr("type_vars"),
                         data.attr("constructors"));
            if (!functions.is_none())
              for (auto [key, value] : nb::cast<nb::dict>(functions)) add_function(*made, key, value);
          },
          nb::arg("functions").none(), nb::arg("type_definitions") = nb::none())
      .def(
          "astext",
          [](const Module& self, bool metadata, const nb::object& annotate) {
            return text_of(self, metadata, annotate);
          },
          nb::arg("show_meta_data") = true, nb::arg("annotate") = nb::none(),
          "The module as Relay text, with its constants unless show_meta_data is False; annotate(expression) gives the "
          "comment behind each")
      .def("__str__", [](const Module& self) { return text_of(self, false); })
      .def(
          "__contains__", [](const Module& self, nb::handle name) { return self.functions.count(name_of(name)) != 0; },
          any)
      .def("structural_equal",
           [](const Module& a, const Module& b) { return structural_equal(a, b, StructuralOptions{}); })
      .def("structural_hash", [](const Module& self) { return structural_hash(self) >> 1; })
      .def(
          "__eq__",
          [](const Module& a, nb::handle b) {
            return nb::isinstance<Module>(b) && structural_equal(a, nb::cast<const Module&>(b), StructuralOptions{});
          },
          any)
      .def("__hash__", [](const Module& self) { return self.functions.size(); })
      .def(
          "__getitem__",
          [](const Module& self, nb::handle key) -> nb::object {
            std::string name = name_of(key);
            if (auto type = self.types.find(name); type != self.types.end() && !self.functions.count(name))
              return nb::cast(self).attr("_type_data")(name);
            return wrap((global_of(self, name), self.functions.at(name)));
          },
          any)
      .def(
          "_set_function",
          [](Module& self, nb::handle name, nb::handle function) { add_function(self, name, function); }, any, any)
      .def("_set_type", add_type)
      .def("_type",
           [](const Module& self, const std::string& name) {  // (type variables, constructors)
             auto found = self.types.find(name);
             if (found == self.types.end()) throw nb::value_error(("Cannot find global type var " + name).c_str());
             return nb::make_tuple(wrap_all(found->second.variables), wrap_all(found->second.constructors));
           })
      .def_prop_ro("_type_names",
                   [](const Module& self) {
                     std::vector<std::string> names;
                     for (const auto& [name, _] : self.types) names.push_back(name);
                     return names;
                   })
      .def("_remove", [](Module& self, const std::string& name) { self.functions.erase(name); })
      .def("get_global_var", [](const Module& self, const std::string& name) { return wrap(global_of(self, name)); })
      .def("get_global_vars",
           [](const Module& self) {
             nb::list out;
             for (const auto& [name, function] : self.functions)
               out.append(wrap(make_global_var(name, function->type)));
             return out;
           })
      .def("_update",
           [](Module& self, const Module& other) {
             for (const auto& [name, definition] : other.types) self.types[name] = definition;
             for (const auto& [name, function] : other.functions) self.functions[name] = function;
           })
      .def("copy", [](const Module& self) { return Module(self); })
      .def_prop_ro("functions",
                   [](const Module& self) {
                     nb::dict out;
                     for (const auto& [name, function] : self.functions)
                       out[wrap(make_global_var(name, function->type))] = wrap(function);
                     return out;
                   })
      .def("bind_params", bind_params)
      .def("_completed", completed, "With every type inferred")
      .def("_with_distinct_parameters", with_distinct_parameters)
      .def("_with_prelude", [](const Module& self) { return unwrap(with_prelude(self)); })
      .def("_with_tensor_arrays",
           [](const Module& self, const std::string& dtype, const std::map<std::string, std::vector<int64_t>>& shapes,
              std::optional<int64_t> batch_dim) {
             relay::TensorArrays of;
             of.dtype = unwrap(parse_dtype(dtype));
             of.batch_dim = batch_dim;
             for (auto [name, field] : {std::pair{"shape", &of.shape},
                                        {"indices", &of.indices_shape},
                                        {"value", &of.value_shape},
                                        {"lengths", &of.lengths_shape}})
               if (auto found = shapes.find(name); found != shapes.end()) *field = found->second;
             return unwrap(relay::with_tensor_arrays(self, of));
           })
      .def("_verify", [](const Module& self) { unwrap(verify_module(self)); })
      .def_prop_ro("metadata", [](const Module& self) { return self.metadata; })
      .def("_set_metadata",
           [](Module& self, const std::string& key, const std::string& value) { self.metadata[key] = value; });
  // Runs the reference interpreter on named inputs; returns one array per tensor of the result.
  m.def("interpret", [](const Module& module, const Arrays& inputs) {
    std::map<std::string, Value> values;
    for (const auto& [name, array] : inputs) values.emplace(name, value_from(tensor_of(array)));
    auto result = [&] {
      nb::gil_scoped_release release;
      return interpret(module, values);
    }();
    nb::list out;
    for (const Value& v : unwrap(std::move(result))) out.append(numpy_of(to_tensor(v)));
    return out;
  });
  m.def("prelude_text", [] { return std::string(prelude_text()); });
  m.def(
      "parse_module",
      [](const std::string& text, const std::vector<ReadArray>& constants, const std::string& origin, bool spans,
         bool open, std::vector<std::string> devices) {
        std::vector<Tensor> tensors;
        for (const auto& c : constants) tensors.push_back(tensor_of(c));
        ParseOptions options;
        options.origin = origin;
        options.spans = spans;
        options.open = open;
        options.virtual_devices = std::move(devices);
        return unwrap(parse_module(text, tensors, options));
      },
      nb::arg("text"), nb::arg("constants") = std::vector<ReadArray>(), nb::arg("origin") = "text",
      nb::arg("spans") = false, nb::arg("open") = false, nb::arg("virtual_devices") = std::vector<std::string>());
  m.def(
      "parse_expression",
      [](const std::string& text, const std::vector<ReadArray>& constants, const std::string& origin) {
        std::vector<Tensor> tensors;
        for (const auto& c : constants) tensors.push_back(tensor_of(c));
        ParseOptions options;
        options.origin = origin;
        options.open = options.spans = true;
        return wrap(unwrap(parse_expression(text, tensors, options)));
      },
      nb::arg("text"), nb::arg("constants") = std::vector<ReadArray>(), nb::arg("origin") = "text");
}

}  // namespace tilewright::python
