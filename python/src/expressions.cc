// SPDX-License-Identifier: Apache-2.0
// Expressions: created from Python without types (the compiler infers them), and decomposed again.
#include "base/format.h"
#include "relay.h"
#include "relay/classic/json.h"
#include "relay/infer_type.h"
#include "relay/op.h"
#include "relay/script_ops.h"
#include "relay/structural.h"
#include "relay/text.h"

namespace tilewright::python {
namespace {

using namespace relay;

PyObject* classes[32] = {};         // by kind of expression
PyObject* pattern_classes[8] = {};  // by kind of pattern

const char* kind_name(ExprKind kind) {
  switch (kind) {
#define TW_KIND(name)     \
  case ExprKind::k##name: \
    return #name;
    TW_EXPR_KINDS(TW_KIND)
#undef TW_KIND
  }
  return "";
}

template <class T>
nb::object instance(PyObject* cls, const T& value) {
  if (!cls) return nb::cast(value);
  nb::object out = nb::inst_alloc(cls);
  new (nb::inst_ptr<T>(out)) T(value);
  nb::inst_mark_ready(out);
  return out;
}

nb::object attrs_object(const AttrsRef& attrs) { return attrs ? nb::cast(attrs) : nb::none(); }

// The fields of a node, by kind; the Python classes give them names.
nb::tuple fields_of(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kVar:
      return nb::make_tuple(as<VarNode>(e)->name);
    case ExprKind::kGlobalVar:
      return nb::make_tuple(as<GlobalVarNode>(e)->name);
    case ExprKind::kConstant:
      return nb::make_tuple();
    case ExprKind::kOp:
      return nb::make_tuple(as<OpNode>(e)->def->name);
    case ExprKind::kCall: {
      const auto& c = *as<CallNode>(e);
      return nb::make_tuple(wrap(c.callee), wrap_all(c.args), attrs_object(c.attrs));
    }
    case ExprKind::kFunction: {
      const auto& f = *as<FunctionNode>(e);
      return nb::make_tuple(wrap_all(f.params), wrap(f.body), to_python(f.attrs), wrap_all(f.type_variables),
                            wrap(as_func(f.type)->result));
    }
    case ExprKind::kTuple:
      return nb::make_tuple(wrap_all(as<TupleNode>(e)->fields));
    case ExprKind::kTupleGetItem:
      return nb::make_tuple(wrap(as<TupleGetItemNode>(e)->tuple), as<TupleGetItemNode>(e)->index);
    case ExprKind::kLet:
      return nb::make_tuple(wrap(as<LetNode>(e)->var), wrap(as<LetNode>(e)->value), wrap(as<LetNode>(e)->body));
    case ExprKind::kIf: {
      const auto& branch = *as<IfNode>(e);
      return nb::make_tuple(wrap(branch.condition), wrap(branch.then_branch), wrap(branch.else_branch));
    }
    case ExprKind::kConstructor: {
      const auto& c = *as<ConstructorNode>(e);
      return nb::make_tuple(c.name, wrap_all(as_func(c.type)->args), c.data_type, c.tag);
    }
    case ExprKind::kMatch: {
      nb::list clauses;
      for (const Clause& clause : as<MatchNode>(e)->clauses)
        clauses.append(nb::make_tuple(wrap(clause.pattern), wrap(clause.body)));
      return nb::make_tuple(wrap(as<MatchNode>(e)->data), clauses, as<MatchNode>(e)->complete);
    }
    case ExprKind::kRefCreate:
      return nb::make_tuple(wrap(as<RefCreateNode>(e)->value));
    case ExprKind::kRefRead:
      return nb::make_tuple(wrap(as<RefReadNode>(e)->reference));
    case ExprKind::kRefWrite:
      return nb::make_tuple(wrap(as<RefWriteNode>(e)->reference), wrap(as<RefWriteNode>(e)->value));
  }
  return nb::make_tuple();
}

Span span_of(nb::handle object) {
  return object.is_none() ? Span() : make_span(nb::cast<std::string>(nb::str(object)));
}

const Expr& expr_of(nb::handle object) {
  if (nb::isinstance<Expr>(object)) return nb::cast<const Expr&>(object);
  std::string message = std::string("a ") + Py_TYPE(object.ptr())->tp_name + " is no Relay expression";
  throw nb::type_error(message.c_str());
}

// Typed if the operands' types are known and valid; if they do not fit, InferType reports it, as in the classic stack.
Expr make_call(const Expr& callee, std::vector<Expr> args, const AttrsRef& attrs, const Span& span) {
  if (const auto* op = as<OpNode>(callee)) {
    auto typed = try_call(op->def->name, args, attrs, span);
    return typed.ok() ? *typed : make_node<CallNode>(callee, std::move(args), attrs, incomplete_type(), span);
  }
  const auto* constructor = as<ConstructorNode>(callee);
  const auto* type = as_func(callee->type);
  if ((constructor && constructor->tag < 0) || (type && type->args.size() != args.size()))
    return make_node<CallNode>(callee, std::move(args), AttrsRef(), incomplete_type(), span);
  Expr made = call_function(callee, args, span);
  return is_complete(made->type) ? made
                                 : make_node<CallNode>(callee, std::move(args), AttrsRef(), incomplete_type(), span);
}

Expr with_span(const Expr& e, const Span& span) {
  switch (e->kind) {
    case ExprKind::kVar:
      return make_var(as<VarNode>(e)->name, e->type, span);
    case ExprKind::kConstant:
      return make_constant(as<ConstantNode>(e)->data, span);
    case ExprKind::kCall: {
      const auto& c = *as<CallNode>(e);
      return make_node<CallNode>(c.callee, c.args, c.attrs, c.type, span);
    }
    case ExprKind::kTuple:
      return make_tuple(as<TupleNode>(e)->fields, span);
    case ExprKind::kTupleGetItem:
      return make_get(as<TupleGetItemNode>(e)->tuple, as<TupleGetItemNode>(e)->index, span);
    default:
      return e;
  }
}

void bind_makers(nb::module_& m) {
  m.def(
      "make_var",
      [](const std::string& name, nb::object type, nb::object span) {
        return make_var(name, type_of(type), span_of(span));
      },
      any, any, any);
  m.def(
      "make_global_var", [](const std::string& name, nb::object type) { return make_global_var(name, type_of(type)); },
      any, any);
  m.def(
      "make_constant",
      [](const ReadArray& array, nb::object span) { return make_constant(tensor_of(array), span_of(span)); }, any, any);
  m.def("make_op", [](const std::string& name) {
    const OpDef* def = find_op(name);
    if (!def) raise(Diagnostic(ErrorCode::kUnknownOp, "no operator is called " + name));
    return Expr(make_node<OpNode>(def));
  });
  m.def(
      "make_call",
      [](nb::object callee, nb::object args, nb::object attrs, nb::object span) {
        return make_call(expr_of(callee), exprs_of(args), attrs.is_none() ? AttrsRef() : nb::cast<AttrsRef>(attrs),
                         span_of(span));
      },
      any, any, any, any);
  m.def(
      "make_function",
      [](nb::object params, nb::object body, nb::object result, nb::object variables, nb::object attrs,
         nb::object span) {
        std::vector<Expr> vars = exprs_of(params);
        for (const Expr& v : vars)
          if (!as<VarNode>(v)) throw nb::type_error("the parameters of a function are variables");
        return Expr(make_node<FunctionNode>(std::move(vars), expr_of(body), dict_attrs_of(attrs), span_of(span),
                                            types_of(variables), type_of(result)));
      },
      any, any, any, any, any, any);
  m.def(
      "make_tuple", [](nb::object fields, nb::object span) { return make_tuple(exprs_of(fields), span_of(span)); }, any,
      any);
  m.def(
      "make_get",
      [](nb::object tuple, int64_t index, nb::object span) { return make_get(expr_of(tuple), index, span_of(span)); },
      any, any, any);
  m.def(
      "make_let",
      [](nb::object var, nb::object value, nb::object body, nb::object span) {
        if (!as<VarNode>(expr_of(var))) throw nb::type_error("a let binds a variable");
        return Expr(make_node<LetNode>(expr_of(var), expr_of(value), expr_of(body), span_of(span)));
      },
      any, any, any, any);
  m.def(
      "make_if",
      [](nb::object condition, nb::object yes, nb::object no, nb::object span) {
        return Expr(make_node<IfNode>(expr_of(condition), expr_of(yes), expr_of(no), span_of(span)));
      },
      any, any, any, any);
  m.def(
      "make_ref",
      [](const std::string& kind, nb::object operands) -> Expr {
        std::vector<Expr> x = exprs_of(operands);
        if (kind == "RefCreate") return make_node<RefCreateNode>(x.at(0));
        if (kind == "RefRead") return make_node<RefReadNode>(x.at(0));
        return make_node<RefWriteNode>(x.at(0), x.at(1));
      },
      any, any);
  // Not part of a module yet: its tag is determined when a module defines the type.
  m.def(
      "make_constructor",
      [](const std::string& name, nb::object inputs, const std::string& type) {
        return make_constructor(name, types_of(inputs), data_type(type), -1);
      },
      any, any, any);
  m.def(
      "make_pattern",
      [](const std::string& kind, nb::object expr, nb::object fields) {
        std::vector<Pattern> parts;
        if (!fields.is_none())
          for (nb::handle f : fields) parts.push_back(nb::cast<Pattern>(f));
        PatternKind k = kind == "Wildcard" ? PatternKind::kWildcard
                        : kind == "Var"    ? PatternKind::kVar
                        : kind == "Tuple"  ? PatternKind::kTuple
                                           : PatternKind::kConstructor;
        if (k == PatternKind::kVar && !as<VarNode>(expr_of(expr))) throw nb::type_error("PatternVar takes a variable");
        if (k == PatternKind::kConstructor && !as<ConstructorNode>(expr_of(expr)))
          throw nb::type_error("PatternConstructor takes a constructor");
        return make_pattern(k, expr.is_none() ? Expr() : expr_of(expr), std::move(parts));
      },
      any, any, any);
  m.def(
      "make_match",
      [](nb::object data, nb::object clauses, bool complete, nb::object span) {
        std::vector<Clause> list;
        for (nb::handle c : clauses) list.push_back({nb::cast<Pattern>(c[0]), expr_of(c[1])});
        if (list.empty()) throw nb::value_error("a match has no clauses");
        return make_match(expr_of(data), std::move(list), complete, span_of(span));
      },
      any, any, any, any);
}

void bind_graphs(nb::module_& m) {
  m.def("post_order", [](const Expr& root) { return wrap_all(post_order(root, true)); });
  m.def("children", [](const Expr& e) { return wrap_all(children(e)); });
  m.def("substitute", [](const Expr& root, nb::dict values) {
    std::map<const VarNode*, Expr> map;
    for (auto [var, value] : values) {
      const auto* v = as<VarNode>(expr_of(var));
      if (!v) throw nb::type_error("what is bound is a variable");
      map[v] = expr_of(value);
    }
    return wrap(substitute(root, map));
  });
  m.def("structural_equal", [](const Expr& a, const Expr& b, bool map_free_vars) {
    return structural_equal(a, b, StructuralOptions{.map_free_variables = map_free_vars});
  });
  m.def("structural_hash", [](const Expr& e, bool map_free_vars) { return structural_hash(e, map_free_vars) >> 1; });
  m.def("free_vars", [](const Expr& e) { return wrap_all(free_variables(e)); });
  m.def("load_json", [](const std::string& text) { return unwrap(load_json(text)); });
  m.def("save_json", [](const Module& module) { return save_json(module); });
  m.def(
      "_set_expr_class",
      [](const std::string& kind, nb::object cls) {
        for (int k = 0; k <= static_cast<int>(ExprKind::kRefWrite); ++k)
          if (kind == kind_name(static_cast<ExprKind>(k))) classes[k] = cls.release().ptr();
      },
      any, any);
  m.def("_set_pattern_classes", [](nb::list list) {
    for (size_t i = 0; i < list.size() && i < 4; ++i) pattern_classes[i] = nb::object(list[i]).release().ptr();
  });
}

// A relation of Python: relation(types, attributes) returns the result's type. What it raises reaches the caller.
ScriptRelation relation_of(nb::object relation) {
  return [relation](const TypeArgs& args) -> Result<Type> {
    nb::gil_scoped_acquire held;
    nb::list types;
    for (const Type& type : args.types) types.append(wrap(type));
    Type made = type_of(relation(types, args.attrs ? nb::cast(args.attrs) : nb::none()));
    if (!made) return Diagnostic(ErrorCode::kTypeMismatch, "its relation gives no type");
    return made;
  };
}

// A gradient of Python: gradient(call, gradient of its result) returns those of the operands.
ScriptGradient gradient_of(nb::object gradient) {
  return [gradient](const Expr& call, const Expr& of_result) -> Result<std::vector<Expr>> {
    nb::gil_scoped_acquire held;
    std::vector<Expr> out;
    for (nb::handle part : nb::list(gradient(wrap(call), wrap(of_result)))) {
      if (!nb::isinstance<Expr>(part)) return Diagnostic(ErrorCode::kTypeMismatch, "its gradient is no expression");
      out.push_back(nb::cast<const Expr&>(part));
    }
    return out;
  };
}

OpDef& script_op(const std::string& name) {
  OpDef* op = find_script_op(name);
  if (!op) throw nb::value_error(("no script defined an operator " + name).c_str());
  return *op;
}

void bind_script_ops(nb::module_& m) {
  m.def("define_op",
        [](const std::string& name, const std::string& doc) { return define_script_op(name, doc) != nullptr; });
  m.def("is_script_op", [](const std::string& name) { return find_script_op(name) != nullptr; });
  m.def("set_op_inputs", [](const std::string& name, int count) { script_op(name).num_inputs = count; });
  m.def("add_op_argument", [](const std::string& name, const std::string& argument, const std::string& doc) {
    script_op(name).args.push_back({kept_text(argument), kept_text(doc)});
  });
  m.def("set_op_pattern",
        [](const std::string& name, int pattern) { script_op(name).pattern = static_cast<OpPattern>(pattern); });
  m.def("set_op_relation", [](const std::string& name, nb::object relation) {
    set_script_relation(script_op(name), relation_of(std::move(relation)));
  });
  m.def(
      "set_op_gradient",
      [](const std::string& name, nb::object gradient) {
        set_script_gradient(name, gradient.is_none() ? ScriptGradient() : gradient_of(std::move(gradient)));
      },
      any, any);
}

}  // namespace

nb::object wrap(const Expr& e) { return e ? instance(classes[static_cast<int>(e->kind)], e) : nb::none(); }
nb::object wrap(const Pattern& pattern) { return instance(pattern_classes[static_cast<int>(pattern->kind)], pattern); }
nb::list wrap_all(const std::vector<Expr>& list) {
  nb::list out;
  for (const Expr& e : list) out.append(wrap(e));
  return out;
}
std::vector<Expr> exprs_of(nb::handle sequence) {
  std::vector<Expr> out;
  for (nb::handle e : sequence) out.push_back(expr_of(e));
  return out;
}

void bind_expressions(nb::module_& m) {
  nb::class_<Expr>(m, "Expr", "An expression of the graph IR")
      .def(nb::init<const Expr&>())
      .def(
          "astext", [](const Expr& self, bool, nb::object) { return print_expr(self); },
          nb::arg("show_meta_data") = true, nb::arg("annotate") = nb::none())
      .def("__str__", [](const Expr& self) { return print_expr(self); })
      .def(
          "same_as",
          [](const Expr& a, nb::handle b) { return nb::isinstance<Expr>(b) && a == nb::cast<const Expr&>(b); }, any)
      .def(
          "__eq__",
          [](const Expr& a, nb::handle b) { return nb::isinstance<Expr>(b) && a == nb::cast<const Expr&>(b); }, any)
      .def("__hash__", [](const Expr& self) { return std::hash<Expr>()(self); })
      .def_prop_ro("_kind", [](const Expr& self) { return kind_name(self->kind); })
      .def_prop_ro("_fields", fields_of)
      .def_prop_ro("_type", [](const Expr& self) { return wrap(self->type); })
      .def_prop_ro("_typed", [](const Expr& self) { return is_complete(self->type); })
      .def_prop_ro("_data",
                   [](const Expr& self) -> nb::object {  // of a constant
                     const auto* c = as<ConstantNode>(self);
                     return c ? numpy_of(c->data) : nb::none();
                   })
      .def_prop_ro("_span",
                   [](const Expr& self) -> nb::object { return self->span ? nb::cast(*self->span) : nb::none(); })
      .def(
          "_with_span", [](const Expr& self, nb::object span) { return wrap(with_span(self, span_of(span))); }, any);
  nb::class_<Pattern>(m, "Pattern", "What a clause of a match looks for")
      .def(nb::init<const Pattern&>())
      .def(
          "__eq__",
          [](const Pattern& a, nb::handle b) { return nb::isinstance<Pattern>(b) && a == nb::cast<const Pattern&>(b); },
          any)
      .def("__hash__", [](const Pattern& self) { return std::hash<Pattern>()(self); })
      .def_prop_ro("_fields", [](const Pattern& self) {
        nb::list fields;
        for (const Pattern& p : self->fields) fields.append(wrap(p));
        return nb::make_tuple(wrap(self->expr), fields);
      });
  bind_makers(m);
  bind_graphs(m);
  bind_script_ops(m);
}

}  // namespace tilewright::python
