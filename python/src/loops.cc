// SPDX-License-Identifier: Apache-2.0
// Expressions of the loop IR: created from Python with
// the operands' common dtype, and decomposed again.
#include "loops.h"

#include "base/format.h"
#include "relay.h"
#include "te/tensor.h"
#include "tir/bounds.h"
#include "tir/modular.h"
#include "tir/operands.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::python {
namespace {

using tir::ExprKind;
using tir::PrimExpr;

std::map<std::string, PyObject*> classes_of_loops;  // by kind; never released

PrimExpr number_of(nb::handle object, DataType dtype) {
  if (dtype.is_float()) {
    const double value = PyFloat_AsDouble(object.ptr());
    if (value == -1.0 && PyErr_Occurred()) throw nb::python_error();
    return tir::make_float(value, dtype);
  }
  if (!dtype.is_integral() && !dtype.is_bool())
    throw nb::type_error(format("there are no numbers of {}", dtype.str()).c_str());
  nb::object index = nb::steal(PyNumber_Long(object.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow > 0 && dtype == kUInt64) {
    value = static_cast<int64_t>(PyLong_AsUnsignedLongLong(index.ptr()));
    overflow = 0;
  }
  if (PyErr_Occurred()) throw nb::python_error();
  if (overflow) throw nb::value_error(format("the number does not fit in {}", dtype.str()).c_str());
  return tir::make_int(value, dtype);
}

// The explicit dtype of a number, if it has one.
std::optional<DataType> said_dtype(nb::handle object) {
  if (!nb::hasattr(object, "dtype")) return std::nullopt;
  return unwrap(parse_dtype(nb::cast<std::string>(nb::str(object.attr("dtype")))));
}

bool is_plain_number(nb::handle object) {
  return (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) && !PyBool_Check(object.ptr()) &&
         !nb::hasattr(object, "dtype");
}

// A number without dtype takes the dtype of a float operand.
std::pair<PrimExpr, PrimExpr> operands(nb::handle a, nb::handle b) {
  const bool plain_a = is_plain_number(a), plain_b = is_plain_number(b);
  if (plain_a == plain_b) return {prim_expr_of(a), prim_expr_of(b)};
  const PrimExpr other = prim_expr_of(plain_a ? b : a);
  nb::handle number = plain_a ? a : b;
  const bool as_other = other->dtype.is_float();
  PrimExpr made = as_other ? number_of(number, other->dtype.element()) : prim_expr_of(number);
  return plain_a ? std::pair(made, other) : std::pair(other, made);
}

std::optional<ExprKind> binary_kind(const std::string& name) {
  for (int k = 0; tir::is_binary(static_cast<ExprKind>(k)); ++k)
    if (name == tir::kind_name(static_cast<ExprKind>(k))) return static_cast<ExprKind>(k);
  return std::nullopt;
}

std::optional<tir::Intrinsic> intrinsic_of(const std::string& name) {
  static const std::map<std::string, tir::Intrinsic> kNames = {
#define TW_INTRINSIC(name, arity) {#name, tir::Intrinsic::k_##name},
      TW_TIR_INTRINSICS(TW_INTRINSIC)
#undef TW_INTRINSIC
  };
  auto found = kNames.find(name);
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

std::vector<tir::VariableRange> ranges_of(nb::handle sequence) {
  std::vector<tir::VariableRange> out;
  for (nb::handle item : sequence) {
    nb::tuple row = nb::cast<nb::tuple>(item);
    out.emplace_back(prim_expr_of(row[0]), arith::Interval{nb::cast<int64_t>(row[1]), nb::cast<int64_t>(row[2])});
  }
  return out;
}

// The fields of a node, by kind; the Python classes give them names.
nb::tuple fields_of(const PrimExpr& e) {
  if (tir::is_binary(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    return nb::make_tuple(wrap(n.a), wrap(n.b));
  }
  if (const auto* n = tir::as<tir::VarNode>(e)) return nb::make_tuple(n->name);
  if (const auto* n = tir::as<tir::NotNode>(e)) return nb::make_tuple(wrap(n->a));
  if (const auto* n = tir::as<tir::CastNode>(e)) return nb::make_tuple(wrap(n->value));
  if (const auto* n = tir::as<tir::ReinterpretNode>(e)) return nb::make_tuple(wrap(n->value));
  if (const auto* n = tir::as<tir::SelectNode>(e))
    return nb::make_tuple(wrap(n->condition), wrap(n->on_true), wrap(n->on_false));
  if (const auto* n = tir::as<tir::CallNode>(e))
    return nb::make_tuple(std::string("tir.") + tir::intrinsic_name(n->op), wrap_all(n->args));
  if (const auto* n = tir::as<tir::ExternNode>(e)) return nb::make_tuple(n->name, wrap_all(n->args));
  if (const auto* n = tir::as<tir::ReadNode>(e)) {
    const auto* tensor = dynamic_cast<const te::TensorNode*>(n->source.get());
    if (const auto* array = tir::array_of(n->source))
      return nb::make_tuple(loop_instance("Array", tir::Array(array)), wrap_all(n->indices));
    return nb::make_tuple(tensor ? loop_instance("Tensor", te::Tensor(tensor)) : nb::none(), wrap_all(n->indices));
  }
  if (const auto* n = tir::as<tir::LetNode>(e)) return nb::make_tuple(wrap(n->var), wrap(n->value), wrap(n->body));
  if (const auto* n = tir::as<tir::RampNode>(e))
    return nb::make_tuple(wrap(n->base), n->stride, static_cast<int>(n->dtype.lanes));
  if (const auto* n = tir::as<tir::BroadcastNode>(e))
    return nb::make_tuple(wrap(n->value), static_cast<int>(n->dtype.lanes));
  if (const auto* n = tir::as<tir::ShuffleNode>(e)) return nb::make_tuple(wrap_all(n->vectors), n->indices);
  if (const auto* n = tir::as<tir::LoadNode>(e)) return nb::make_tuple(nb::cast(n->buffer), wrap(n->index));
  return nb::make_tuple();
}

}  // namespace

PyObject* loop_class(const std::string& kind) {
  auto found = classes_of_loops.find(kind);
  return found == classes_of_loops.end() ? nullptr : found->second;
}

PrimExpr prim_expr_of(nb::handle object) {
  if (nb::isinstance<PrimExpr>(object)) return nb::cast<PrimExpr>(object);
  if (PyBool_Check(object.ptr())) return tir::make_int(object.ptr() == Py_True, kBool);
  if (nb::hasattr(object, "asobject")) {
    nb::object made = object.attr("asobject")();
    if (nb::isinstance<PrimExpr>(made)) return nb::cast<PrimExpr>(made);
    if (PyLong_Check(made.ptr()) || PyFloat_Check(made.ptr())) return prim_expr_of(made);  // folded to a constant
  }
  if (PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) || PyNumber_Check(object.ptr())) {
    if (auto dtype = said_dtype(object)) return number_of(object, *dtype);
    if (PyFloat_Check(object.ptr())) return number_of(object, kFloat32);
    if (PyLong_Check(object.ptr())) {
      int overflow = 0;
      const int64_t value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
      return number_of(object, overflow == 0 && value == static_cast<int32_t>(value) ? kInt32 : kInt64);
    }
  }
  throw nb::type_error(format("a {} is no expression", Py_TYPE(object.ptr())->tp_name).c_str());
}

std::vector<PrimExpr> prim_exprs_of(nb::handle sequence) {
  std::vector<PrimExpr> out;
  for (nb::handle item : sequence) out.push_back(prim_expr_of(item));
  return out;
}

nb::object wrap(const PrimExpr& e) {
  if (!e) return nb::none();
  PyObject* cls = loop_class(tir::kind_name(e->kind));
  if (cls && e->kind == ExprKind::kIntImm)
    return nb::borrow(cls)(e->dtype.str(), static_cast<const tir::IntImmNode&>(*e).value);
  if (cls && e->kind == ExprKind::kFloatImm)
    return nb::borrow(cls)(e->dtype.str(), static_cast<const tir::FloatImmNode&>(*e).value);
  const bool is_size = e->kind == ExprKind::kVar && static_cast<const tir::VarNode&>(*e).is_size;
  return loop_instance(is_size ? "SizeVar" : tir::kind_name(e->kind), e);
}

nb::list wrap_all(const std::vector<PrimExpr>& list) {
  nb::list out;
  for (const PrimExpr& e : list) out.append(wrap(e));
  return out;
}

void bind_loops(nb::module_& m) {
  m.def(
      "_set_loop_class", [](const std::string& kind, nb::object cls) { classes_of_loops[kind] = cls.release().ptr(); },
      any, any);
  nb::class_<PrimExpr>(m, "PrimExpr", "An expression of the loop IR")
      .def(nb::init<const PrimExpr&>())
      .def_prop_ro("dtype", [](const PrimExpr& self) { return self->dtype.str(); })
      .def_prop_ro("_kind", [](const PrimExpr& self) { return tir::kind_name(self->kind); })
      .def_prop_ro("_fields", fields_of)
      .def(
          "same_as",
          [](const PrimExpr& self, nb::handle other) {
            return nb::isinstance<PrimExpr>(other) && nb::cast<const PrimExpr&>(other) == self;
          },
          any)
      .def("__hash__", [](const PrimExpr& self) { return reinterpret_cast<intptr_t>(self.get()); })
      .def("__str__", [](const PrimExpr& self) { return tir::to_text(self); })
      .def("__repr__", [](const PrimExpr& self) { return tir::to_text(self); });
  m.def(
      "prim_expr", [](nb::object object) { return wrap(prim_expr_of(object)); }, any);
  m.def("prim_var", [](const std::string& name, const std::string& dtype, bool is_size) {
    return wrap(tir::make_var(name, unwrap(parse_dtype(dtype)), is_size));
  });
  m.def(
      "prim_const",
      [](nb::object value, const std::string& dtype) {
        const DataType type = unwrap(parse_dtype(dtype));
        return wrap(tir::broadcast(number_of(value, type.element()), type.lanes));
      },
      any, any);
  m.def(
      "prim_binary",
      [](const std::string& kind, nb::object a, nb::object b) {
        const auto known = binary_kind(kind);
        if (!known) throw nb::value_error("no such operator");
        auto [x, y] = operands(a, b);
        return wrap(unwrap(tir::operate(*known, x, y)));
      },
      any, any, any);
  // Creates exactly this node, without folding.
  m.def(
      "prim_node",
      [](const std::string& kind, nb::object a, nb::object b) {
        const auto known = binary_kind(kind);
        if (!known) throw nb::value_error("no such operator");
        auto [x, y] = operands(a, b);
        (void)unwrap(tir::operate(*known, x, y));  // reports why the operands are invalid
        (void)unwrap(tir::match_operands(&x, &y));
        const bool truth = tir::is_comparison(*known);
        return wrap(make_node<tir::BinaryNode>(*known, truth ? kBool.with_lanes(x->dtype.lanes) : x->dtype, x, y));
      },
      any, any, any);
  m.def(
      "prim_not", [](nb::object a) { return wrap(unwrap(tir::negate(prim_expr_of(a)))); }, any);
  m.def(
      "prim_choose",
      [](bool lazy, nb::object condition, nb::object on_true, nb::object on_false) {
        auto [t, f] = operands(on_true, on_false);
        return wrap(unwrap(tir::choose(lazy, prim_expr_of(condition), t, f)));
      },
      any, any, any, any);
  m.def(
      "prim_call",
      [](const std::string& name, nb::object args) {
        const auto known = intrinsic_of(name);
        if (!known) raise(Diagnostic(ErrorCode::kInvalidArgument, "no intrinsic is called '" + name + "'"));
        return wrap(unwrap(tir::apply(*known, prim_exprs_of(args))));
      },
      any, any);
  m.def(
      "prim_cast",
      [](const std::string& dtype, nb::object value) {
        return wrap(unwrap(tir::convert(unwrap(parse_dtype(dtype)), prim_expr_of(value))));
      },
      any, any);
  m.def(
      "prim_cast_node",  // also of a constant
      [](const std::string& dtype, nb::object value) {
        return wrap(tir::PrimExpr(make_node<tir::CastNode>(unwrap(parse_dtype(dtype)), prim_expr_of(value))));
      },
      any, any);
  m.def(
      "prim_reinterpret",
      [](const std::string& dtype, nb::object value) {
        const DataType type = unwrap(parse_dtype(dtype));
        const PrimExpr e = prim_expr_of(value);
        if (type.bytes() != e->dtype.bytes())
          raise(
              Diagnostic(ErrorCode::kDtypeMismatch, format("{} and {} have other sizes", e->dtype.str(), type.str())));
        return wrap(tir::reinterpret(type, e));
      },
      any, any);
  // Ranges: (variable, minimum, maximum).
  m.def(
      "prim_simplify",
      [](nb::object value, nb::object ranges) {
        return wrap(tir::simplify_index(prim_expr_of(value), ranges_of(ranges)));
      },
      any, any);
  m.def(
      "prim_bounds",
      [](nb::object value, nb::object ranges) {
        const arith::Interval i = tir::bounds_of(prim_expr_of(value), ranges_of(ranges));
        return nb::make_tuple(i.lo, i.hi);
      },
      any, any);
  // Multiples: (variable, coefficient, base).
  m.def(
      "prim_modular",
      [](nb::object value, nb::object known) {
        std::vector<tir::VariableMultiples> sets;
        for (nb::handle item : known) {
          const nb::tuple row = nb::cast<nb::tuple>(item);
          sets.emplace_back(prim_expr_of(row[0]),
                            tir::ModularSet{nb::cast<int64_t>(row[1]), nb::cast<int64_t>(row[2])});
        }
        const tir::ModularSet set = tir::modular_set(prim_expr_of(value), sets);
        return nb::make_tuple(set.coefficient, set.base);
      },
      any, any);
  m.def("prim_modular_intersect", [](int64_t coefficient, int64_t base, int64_t coefficient2, int64_t base2) {
    const tir::ModularSet set = tir::intersect({coefficient, base}, {coefficient2, base2});
    return nb::make_tuple(set.coefficient, set.base);
  });
  m.def(
      "prim_let",
      [](nb::object var, nb::object value, nb::object body) {
        const PrimExpr v = prim_expr_of(var);
        if (v->kind != ExprKind::kVar)
          raise(Diagnostic(ErrorCode::kInvalidArgument, "a let binds something that is no variable"));
        return wrap(tir::let(v, unwrap(tir::convert(v->dtype, prim_expr_of(value))), prim_expr_of(body)));
      },
      any, any, any);
  m.def(
      "prim_shuffle",
      [](nb::object vectors, const std::vector<int>& indices) {
        const std::vector<PrimExpr> parts = prim_exprs_of(vectors);
        int lanes = 0;
        for (const PrimExpr& e : parts) {
          if (e->dtype.element() != parts[0]->dtype.element())
            raise(Diagnostic(ErrorCode::kDtypeMismatch, "the vectors of a shuffle have other dtypes"));
          lanes += e->dtype.lanes;
        }
        for (const int i : indices)
          if (i < 0 || i >= lanes)
            raise(Diagnostic(ErrorCode::kInvalidArgument, format("a shuffle of {} lanes has no lane {}", lanes, i)));
        if (parts.empty() || indices.empty())
          raise(Diagnostic(ErrorCode::kInvalidArgument, "a shuffle takes a vector and an index or more"));
        return wrap(tir::shuffle(parts, indices));
      },
      any, any);
  m.def(
      "prim_uses",
      [](nb::object value, nb::object var) {
        const PrimExpr wanted = prim_expr_of(var);
        bool found = false;
        tir::for_each_expr(prim_expr_of(value), [&](const PrimExpr& e) { found = found || e == wanted; });
        return found;
      },
      any, any);
  m.def(
      "prim_substitute",
      [](nb::object value, nb::dict variables) {
        tir::Substitution at;
        std::vector<PrimExpr> kept;
        for (auto [key, to] : variables) {
          kept.push_back(prim_expr_of(key));
          at[kept.back().get()] = unwrap(tir::convert(kept.back()->dtype, prim_expr_of(to)));
        }
        return wrap(tir::substitute(prim_expr_of(value), at));
      },
      any, any);
}

}  // namespace tilewright::python
