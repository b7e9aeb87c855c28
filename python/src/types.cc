// SPDX-License-Identifier: Apache-2.0
// Types, dimensions and attributes.
#include <algorithm>

#include "loops.h"
#include "relay.h"
#include "relay/op.h"
#include "relay/script_ops.h"
#include "relay/structural.h"
#include "relay/text_literal.h"
#include "relay/unify.h"
#include "tir/text.h"

namespace tilewright::python {
namespace {

std::map<std::string, PyObject*> classes;  // by kind of type or dimension; never released

template <class T>
nb::object instance(const char* kind, const T& value) {
  auto found = classes.find(kind);
  if (found == classes.end()) return nb::cast(value);
  nb::object out = nb::inst_alloc(found->second);
  new (nb::inst_ptr<T>(out)) T(value);
  nb::inst_mark_ready(out);
  return out;
}

const char* kind_name(TypeKind kind) {
  switch (kind) {
#define TW_KIND(name)     \
  case TypeKind::k##name: \
    return #name;
    TW_TYPE_KINDS(TW_KIND)
#undef TW_KIND
  }
  return "";
}

// The components of a type, by kind.
nb::tuple fields_of(const Type& t) {
  switch (t->kind) {
    case TypeKind::kTensor: {
      nb::list dims;
      for (const Dim& d : as_tensor(t)->shape) dims.append(wrap(d));
      return nb::make_tuple(dims, as_tensor(t)->dtype.str());
    }
    case TypeKind::kTuple:
      return nb::make_tuple(wrap_all(as_tuple(t)->fields));
    case TypeKind::kFunc:
      return nb::make_tuple(wrap_all(as_func(t)->args), wrap(as_func(t)->result), wrap_all(as_func(t)->variables));
    case TypeKind::kReference:
      return nb::make_tuple(wrap(as_reference(t)->value));
    case TypeKind::kVariable:
      return nb::make_tuple(as_variable(t)->name);
    case TypeKind::kData:
      return nb::make_tuple(as_data(t)->name, wrap_all(as_data(t)->args));
    case TypeKind::kIncomplete:
      return nb::make_tuple();
  }
  return nb::make_tuple();
}

// Symbols by name as loop IR variables; the variable used last represents the symbol.
std::map<std::string, tir::PrimExpr>& symbol_variables() {
  static auto* variables = new std::map<std::string, tir::PrimExpr>;
  return *variables;
}

Dim dim_of(const tir::PrimExpr& e);

// round(cast(float64, h) * 2.0), as scripts write the sizes of what is scaled: 2*h where the factor is an integer.
std::optional<Dim> rounded_product(const tir::PrimExpr& e) {
  const auto* round = tir::as<tir::CallNode>(e);
  if (!round || (round->op != tir::Intrinsic::k_round && round->op != tir::Intrinsic::k_floor &&
                 round->op != tir::Intrinsic::k_ceil))
    return std::nullopt;
  const tir::PrimExpr& scaled = round->args[0];
  if (scaled->kind != tir::ExprKind::kMul) return std::nullopt;
  const auto& product = static_cast<const tir::BinaryNode&>(*scaled);
  const auto* size = tir::as<tir::CastNode>(product.a);
  const auto* factor = tir::as<tir::FloatImmNode>(product.b);
  if (!size || !factor || factor->value != static_cast<double>(static_cast<int64_t>(factor->value)))
    return std::nullopt;
  return dim_of(size->value) * Dim(static_cast<int64_t>(factor->value));
}

Dim dim_of(const tir::PrimExpr& e) {
  using tir::ExprKind;
  if (auto value = tir::as_const_int(e)) return Dim(*value);
  if (const auto* n = tir::as<tir::VarNode>(e)) {
    symbol_variables()[n->name] = e;
    return Dim::symbol(n->name);
  }
  if (const auto* n = tir::as<tir::CastNode>(e)) {
    if (const auto scaled = rounded_product(n->value)) return *scaled;
    return dim_of(n->value);
  }
  static const std::map<ExprKind, DimKind> kKinds = {
      {ExprKind::kAdd, DimKind::kAdd},      {ExprKind::kMul, DimKind::kMul}, {ExprKind::kFloorDiv, DimKind::kFloorDiv},
      {ExprKind::kFloorMod, DimKind::kMod}, {ExprKind::kMin, DimKind::kMin}, {ExprKind::kMax, DimKind::kMax}};
  if (tir::is_binary(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    if (e->kind == ExprKind::kSub) return dim_of(n.a) - dim_of(n.b);
    if (auto found = kKinds.find(e->kind); found != kKinds.end())
      return make_dim(found->second, dim_of(n.a), dim_of(n.b));
  }
  throw nb::type_error(("a dimension is no expression such as " + tir::to_text(e)).c_str());
}

Dim dim_of(nb::handle object) {
  if (nb::isinstance<tir::PrimExpr>(object)) return dim_of(nb::cast<tir::PrimExpr>(object));
  if (nb::isinstance<Dim>(object)) return nb::cast<Dim>(object);
  if (PyUnicode_Check(object.ptr())) {
    std::string name = nb::cast<std::string>(object);
    return name == "?" ? Dim::any() : Dim::symbol(name);
  }
  if (!PyIndex_Check(object.ptr())) throw nb::type_error("a dimension is an integer, tir.Any() or a symbol");
  return Dim(nb::cast<int64_t>(nb::steal(PyNumber_Index(object.ptr()))));
}

// Python values of any attribute as literals of the text form.
relay::Literal literal_of(nb::handle object);

// Collects the fields that are lists of integers: for these a single integer is accepted.
class ListFields : public AttrVisitor {
 public:
  std::vector<std::string> names;
  void visit(const char*, bool*) override {}
  void visit(const char*, int64_t*) override {}
  void visit(const char*, double*) override {}
  void visit(const char*, std::string*) override {}
  void visit(const char*, DataType*) override {}
  void visit(const char*, std::optional<int64_t>*) override {}
  void visit(const char* name, std::vector<int64_t>*) override { names.emplace_back(name); }
  void visit(const char* name, std::optional<std::vector<int64_t>>*) override { names.emplace_back(name); }
  void visit(const char*, std::vector<double>*) override {}
  void visit(const char*, std::vector<std::string>*) override {}
  void visit(const char*, std::vector<std::vector<int64_t>>*) override {}
};

relay::Literal literal_of(nb::handle object) {
  relay::Literal out;
  if (object.is_none()) return out;
  if (PyBool_Check(object.ptr())) {
    out.kind = relay::Literal::kBool;
    out.integer = object.ptr() == Py_True;
  } else if (PyUnicode_Check(object.ptr())) {
    out.kind = relay::Literal::kString;
    out.text = nb::cast<std::string>(object);
  } else if (PyFloat_Check(object.ptr())) {
    out.kind = relay::Literal::kFloat;
    out.real = nb::cast<double>(object);
  } else if (PyIndex_Check(object.ptr())) {
    out.kind = relay::Literal::kInt;
    out.integer = nb::cast<int64_t>(nb::steal(PyNumber_Index(object.ptr())));
    out.real = static_cast<double>(out.integer);
  } else if (PySequence_Check(object.ptr())) {
    out.kind = relay::Literal::kList;
    for (nb::handle item : object) out.list.push_back(literal_of(item));
  } else if (Py_TYPE(object.ptr())->tp_as_number && Py_TYPE(object.ptr())->tp_as_number->nb_float) {
    out.kind = relay::Literal::kFloat;
    out.real = PyFloat_AsDouble(object.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
  } else {
    out.kind = relay::Literal::kString;  // numpy dtypes and targets, by name
    out.text = nb::cast<std::string>(nb::str(object));
  }
  return out;
}

// Converts attribute fields to Python values.
class Reader : public AttrVisitor {
 public:
  nb::dict fields;
  void visit(const char* name, bool* v) override { fields[name] = nb::bool_(*v); }
  void visit(const char* name, int64_t* v) override { fields[name] = *v; }
  void visit(const char* name, double* v) override { fields[name] = *v; }
  void visit(const char* name, std::string* v) override { fields[name] = *v; }
  void visit(const char* name, DataType* v) override { fields[name] = v->str(); }
  void visit(const char* name, std::optional<int64_t>* v) override { fields[name] = *v ? nb::cast(**v) : nb::none(); }
  void visit(const char* name, std::vector<int64_t>* v) override { fields[name] = *v; }
  void visit(const char* name, std::optional<std::vector<int64_t>>* v) override {
    fields[name] = *v ? nb::cast(**v) : nb::none();
  }
  void visit(const char* name, std::vector<double>* v) override { fields[name] = *v; }
  void visit(const char* name, std::vector<std::string>* v) override { fields[name] = *v; }
  void visit(const char* name, std::vector<std::vector<int64_t>>* v) override { fields[name] = *v; }
};

}  // namespace

nb::object wrap(const Type& t) { return t ? instance(kind_name(t->kind), t) : nb::none(); }
nb::object wrap(const Dim& d) {
  if (d.is_const()) {
    auto made = classes.find("IntImm");
    return made == classes.end() ? nb::cast(d.value()) : nb::object(nb::borrow(made->second)(d.value()));
  }
  if (d.node()->kind == DimKind::kSymbol) {
    auto known = symbol_variables().find(d.node()->name);
    return wrap(known == symbol_variables().end() ? tir::make_var(d.node()->name) : known->second);
  }
  return instance(d.node()->kind == DimKind::kAny ? "Any" : "Dim", d);
}
nb::list wrap_all(const std::vector<Type>& list) {
  nb::list out;
  for (const Type& t : list) out.append(wrap(t));
  return out;
}

std::vector<Type> types_of(nb::handle sequence) {
  std::vector<Type> out;
  if (!sequence.is_none())
    for (nb::handle t : sequence) out.push_back(type_of(t));
  return out;
}
Shape shape_of(nb::handle sequence) {
  Shape out;
  if (PyIndex_Check(sequence.ptr()) && !PySequence_Check(sequence.ptr())) return {dim_of(sequence)};
  for (nb::handle d : sequence) out.push_back(dim_of(d));
  return out;
}
Type type_of(nb::handle object) {
  if (object.is_none()) return incomplete_type();
  if (nb::isinstance<Type>(object)) return nb::cast<Type>(object);
  if (PyUnicode_Check(object.ptr()))
    return tensor_type({}, unwrap(parse_dtype(nb::cast<std::string>(object))));  // of rank 0
  std::string message = std::string("a ") + Py_TYPE(object.ptr())->tp_name + " is no type";
  throw nb::type_error(message.c_str());
}

nb::object to_python(const AttrValue& value) {
  return std::visit([](const auto& v) { return nb::cast(v); }, value);
}
AttrValue attr_value_of(nb::handle object) {
  auto value = literal_of(object).as_attr();
  if (!value) throw nb::type_error("an attribute is a bool, a number, a string or a list of integers or strings");
  return *value;
}
relay::DictAttrs dict_attrs_of(nb::handle mapping) {
  relay::DictAttrs out;
  if (mapping.is_none()) return out;
  for (auto [key, value] : nb::cast<nb::dict>(mapping))
    if (!value.is_none()) out.emplace(nb::cast<std::string>(key), attr_value_of(value));
  return out;
}
nb::dict to_python(const relay::DictAttrs& attrs) {
  nb::dict out;
  for (const auto& [key, value] : attrs) out[key.c_str()] = to_python(value);
  return out;
}

void bind_types(nb::module_& m) {
  m.def(
      "_set_class", [](const std::string& kind, nb::object cls) { classes[kind] = cls.release().ptr(); }, any, any);
  nb::class_<Dim>(m, "Dim", "A dimension that is no number: a symbol, arithmetic on symbols, or unknown")
      .def(nb::init<const Dim&>())
      .def("__str__", &Dim::str)
      .def("__repr__", &Dim::str)
      .def(
          "__eq__", [](const Dim& a, nb::handle b) { return nb::isinstance<Dim>(b) && a == nb::cast<const Dim&>(b); },
          any)
      .def("__hash__", [](const Dim& self) { return std::hash<std::string>()(self.str()); })
      .def_prop_ro("_value", [](const Dim& self) { return self.constant(); });
  m.def("any_dim", [] { return Dim::any(); });
  m.def(
      "dim_arithmetic",
      [](const std::string& op, nb::object a, nb::object b) {
        Dim x = dim_of(a), y = dim_of(b);
        return wrap(op == "+" ? x + y : op == "-" ? x - y : op == "*" ? x * y : floordiv(x, y));
      },
      any, any, any);

  nb::class_<Type>(m, "Type", "A type of the graph IR")
      .def(nb::init<const Type&>())
      .def("__str__", [](const Type& self) { return type_str(self); })
      .def("__repr__", [](const Type& self) { return type_str(self); })
      .def(
          "astext", [](const Type& self, bool) { return type_str(self); }, nb::arg("show_meta_data") = true)
      .def(
          "same_as",
          [](const Type& a, nb::handle b) { return nb::isinstance<Type>(b) && a == nb::cast<const Type&>(b); }, any)
      .def(
          "__eq__",
          [](const Type& a, nb::handle b) {
            return nb::isinstance<Type>(b) &&
                   (a == nb::cast<const Type&>(b) || relay::structural_equal(a, nb::cast<const Type&>(b)));
          },
          any)
      .def("__hash__", [](const Type& self) { return std::hash<std::string>()(type_str(self)); })
      .def_prop_ro("_fields", fields_of);
  m.def(
      "tensor_type",
      [](nb::object shape, const std::string& dtype) {
        return tensor_type(shape_of(shape), unwrap(parse_dtype(dtype)));
      },
      any, any);
  m.def(
      "tuple_type", [](nb::object fields) { return tuple_type(types_of(fields)); }, any);
  m.def(
      "func_type",
      [](nb::object args, nb::object result, nb::object variables) {
        return func_type(types_of(args), type_of(result), types_of(variables));
      },
      any, any, any);
  m.def(
      "reference_type", [](nb::object value) { return reference_type(type_of(value)); }, any);
  m.def("variable_type", [](const std::string& name) { return variable_type(name); });
  m.def(
      "data_type", [](const std::string& name, nb::object args) { return data_type(name, types_of(args)); }, any, any);
  m.def("incomplete_type", [] { return Type(make_node<IncompleteTypeNode>()); });
  m.def("is_complete", [](const Type& t) { return is_complete(t); });
  m.def("substitute_types", [](const Type& t, nb::dict values) {
    TypeMap map;
    for (auto [variable, value] : values) map[nb::cast<const Type&>(variable).get()] = type_of(nb::borrow(value));
    return wrap(substitute_types(t, map));
  });
  nb::class_<relay::Unifier>(m, "Unifier", "Finds what unknown types stand for")
      .def(nb::init<>())
      .def("unify",
           [](relay::Unifier& self, const Type& a, const Type& b) {
             if (std::string clash = self.unify(a, b); !clash.empty())
               raise(Diagnostic(ErrorCode::kTypeMismatch, clash));
           })
      .def("resolved", [](const relay::Unifier& self, const Type& t) { return wrap(self.resolved(t)); });

  nb::class_<AttrsRef>(m, "Attrs", "The attributes of a call: `attrs.strides`, `attrs[\"strides\"]`")
      .def_prop_ro("_fields",
                   [](const AttrsRef& self) {
                     Reader reader;
                     const_cast<AttrsNode*>(self.get())->visit(reader);
                     return reader.fields;
                   })
      .def_prop_ro("_type_key", [](const AttrsRef& self) { return self->type_name(); })
      .def(
          "__eq__",
          [](const AttrsRef& a, nb::handle b) {
            return nb::isinstance<AttrsRef>(b) && attrs_equal(a, nb::cast<const AttrsRef&>(b));
          },
          any)
      .def("__hash__", [](const AttrsRef& self) { return attrs_hash(self); })
      .def("__str__", [](const AttrsRef& self) { return attrs_str(self); });
  m.def(
      "make_attrs",
      [](const std::string& op, nb::object values) -> nb::object {
        const relay::OpDef* def = relay::find_op(op);
        if (!def) raise(Diagnostic(ErrorCode::kUnknownOp, "no operator is called " + op));
        if (nb::isinstance<AttrsRef>(values)) return nb::object(values);
        AttrsRef attrs = def->make_attrs ? def->make_attrs() : AttrsRef();
        std::vector<relay::NamedLiteral> literals;
        ListFields lists;
        if (attrs) const_cast<AttrsNode*>(attrs.get())->visit(lists);
        if (!values.is_none())
          for (auto [key, value] : nb::cast<nb::dict>(values)) {
            std::string name = nb::cast<std::string>(key);
            relay::Literal literal = literal_of(value);
            // The classic interface has one name for both forms of split.
            if (op == "split" && name == "indices_or_sections" && literal.kind == relay::Literal::kInt)
              name = "sections";
            if (literal.kind == relay::Literal::kInt &&
                std::find(lists.names.begin(), lists.names.end(), name) != lists.names.end()) {
              relay::Literal list;
              list.kind = relay::Literal::kList;
              list.list.push_back(std::move(literal));
              literal = std::move(list);
            }
            literals.push_back({name, std::move(literal), 0});
          }
        relay::Lexer lexer("", "attributes");
        if (!attrs && !literals.empty() && relay::find_script_op(op))
          return nb::cast(unwrap(relay::script_attributes(literals, lexer)));
        unwrap(relay::assign_attributes(attrs, op, literals, lexer));
        return attrs ? nb::cast(attrs) : nb::none();
      },
      any, any);
}

}  // namespace tilewright::python
