// SPDX-License-Identifier: Apache-2.0
// Statements of the loop IR over arrays: created from Python, decomposed, walked and rewritten by Python functions.
#include <algorithm>

#include "base/format.h"
#include "loops.h"
#include "relay.h"
#include "te/block_schedule.h"
#include "tir/block.h"
#include "tir/operands.h"
#include "tir/passes/inline_calls.h"
#include "tir/passes/loop_rewrites.h"
#include "tir/structural.h"
#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::python {
namespace {

using tir::PrimExpr;
using tir::Stmt;
using tir::StmtKind;

const char* stmt_kind_name(StmtKind kind) {
  switch (kind) {
#define TW_KIND(name)     \
  case StmtKind::k##name: \
    return #name;
    TW_TIR_STMTS(TW_KIND)
#undef TW_KIND
  }
  return "";
}

Diagnostic bad_statement(std::string what, std::string hint = {}) {
  return Diagnostic(ErrorCode::kInvalidArgument, std::move(what), "statement", std::move(hint));
}

tir::Annotations annotations_of(nb::handle dict) {
  tir::Annotations out;
  if (dict.is_none()) return out;
  for (auto [key, value] : nb::cast<nb::dict>(dict))
    out.emplace_back(nb::cast<std::string>(nb::str(key)), nb::cast<std::string>(nb::str(value)));
  return out;
}
nb::dict wrap_annotations(const tir::Annotations& list) {
  nb::dict out;
  for (const auto& [key, value] : list) out[key.c_str()] = value;
  return out;
}

nb::object wrap_array(const Ref<Node>& node) {
  const auto* array = tir::array_of(node);
  return array ? loop_instance("Array", tir::Array(array)) : nb::none();
}

nb::list wrap_stmts(const std::vector<Stmt>& list) {
  nb::list out;
  for (const Stmt& s : list) out.append(wrap_stmt(s));
  return out;
}

nb::list wrap_arguments(const std::vector<tir::ExternArgument>& args) {
  nb::list out;
  for (const tir::ExternArgument& a : args) {
    if (a.buffer)
      out.append(nb::make_tuple("address", nb::cast(a.buffer), wrap(a.value)));
    else if (a.address)
      out.append(nb::make_tuple("address", wrap_array(static_cast<const tir::ReadNode&>(*a.value).source),
                                wrap_all(static_cast<const tir::ReadNode&>(*a.value).indices)));
    else
      out.append(wrap(a.value));
  }
  return out;
}

nb::tuple fields_of_stmt(const Stmt& s) {
  if (const auto* n = tir::as<tir::ForNode>(s))
    return nb::make_tuple(wrap(n->var), wrap(n->min), wrap(n->extent), static_cast<int>(n->for_kind),
                          wrap_stmt(n->body), wrap_annotations(n->annotations));
  if (const auto* n = tir::as<tir::StoreNode>(s))
    return nb::make_tuple(nb::cast(n->buffer), wrap(n->value), nb::make_tuple(wrap(n->index)));
  if (const auto* n = tir::as<tir::WriteNode>(s))
    return nb::make_tuple(wrap_array(n->target), wrap(n->value), wrap_all(n->indices));
  if (const auto* n = tir::as<tir::PrefetchNode>(s)) return nb::make_tuple(nb::cast(n->buffer), wrap(n->index));
  if (const auto* n = tir::as<tir::LetStmtNode>(s))
    return nb::make_tuple(wrap(n->var), wrap(n->value), wrap_stmt(n->body));
  if (const auto* n = tir::as<tir::IfNode>(s))
    return nb::make_tuple(wrap(n->condition), wrap_stmt(n->then_case),
                          n->else_case ? wrap_stmt(n->else_case) : nb::none());
  if (const auto* n = tir::as<tir::WhileNode>(s)) return nb::make_tuple(wrap(n->condition), wrap_stmt(n->body));
  if (const auto* n = tir::as<tir::SeqNode>(s)) return nb::make_tuple(wrap_stmts(n->stmts));
  if (const auto* n = tir::as<tir::AllocateNode>(s)) return nb::make_tuple(nb::cast(n->buffer), wrap_stmt(n->body));
  if (const auto* n = tir::as<tir::CallExternNode>(s))
    return nb::make_tuple(n->name, wrap_arguments(n->args), n->packed);
  if (const auto* n = tir::as<tir::BlockNode>(s)) {
    nb::list axes, memory;
    for (const tir::BlockAxis& a : n->axes)
      axes.append(nb::make_tuple(wrap(a.var), wrap(a.min), wrap(a.extent), a.reduces, wrap(a.value)));
    for (const Ref<Node>& m : n->memory) memory.append(wrap_array(m));
    return nb::make_tuple(n->name, axes, wrap(n->predicate), n->init ? wrap_stmt(n->init) : nb::none(),
                          wrap_stmt(n->body), memory, wrap_annotations(n->annotations));
  }
  return nb::make_tuple();
}

// A scalar or vector value of the buffer's element type.
PrimExpr stored_value(nb::handle value, DataType element) {
  const PrimExpr e = prim_expr_of(value);
  return e->dtype.element() == element ? e : unwrap(tir::convert(element.with_lanes(e->dtype.lanes), e));
}

Stmt optional_stmt(nb::handle s) { return s.is_none() ? Stmt() : nb::cast<Stmt>(s); }

// The names by which scripts refer to a node kind: "tir.For".
std::vector<std::string> classic_kinds(const char* kind) {
  const std::string k = kind;
  if (k == "Write" || k == "Store") return {"tir.BufferStore", "tir.Store"};
  if (k == "Read" || k == "Load") return {"tir.BufferLoad", "tir.Load", "tir.ProducerLoad"};
  if (k == "If") return {"tir.IfThenElse"};
  if (k == "Seq") return {"tir.SeqStmt"};
  if (k == "CallExtern") return {"tir.Evaluate", "tir.Call"};
  if (k == "Extern") return {"tir.Call"};
  if (k == "Block") return {"tir.Block", "tir.BlockRealize"};
  return {"tir." + k};
}

// Calls Python functions before and after visiting children; a node that they return replaces the visited one.
class Rewriter {
 public:
  Rewriter(nb::object before, nb::object after, nb::object only)
      : before_(std::move(before)), after_(std::move(after)) {
    if (only.is_none()) return;
    all_ = false;
    for (nb::handle name : only) only_.push_back(nb::cast<std::string>(nb::str(name)));
  }
  Stmt stmt(const Stmt& s) {
    const bool asked = is_asked(stmt_kind_name(s->kind));
    if (asked && !before_.is_none())
      if (nb::object made = before_(wrap_stmt(s)); !made.is_none()) return nb::cast<Stmt>(made);
    Stmt out = tir::map_children(
        s, [&](const PrimExpr& e) { return expr(e); }, [&](const Stmt& child) { return stmt(child); });
    if (asked && !after_.is_none())
      if (nb::object made = after_(wrap_stmt(out)); !made.is_none()) return nb::cast<Stmt>(made);
    return out;
  }
  PrimExpr expr(const PrimExpr& e) {
    const bool asked = is_asked(tir::kind_name(e->kind));
    if (asked && !before_.is_none())
      if (nb::object made = before_(wrap(e)); !made.is_none()) return same_dtype(made, e);
    PrimExpr out = tir::map_children(e, [&](const PrimExpr& child) { return expr(child); });
    if (asked && !after_.is_none())
      if (nb::object made = after_(wrap(out)); !made.is_none()) return same_dtype(made, e);
    return out;
  }

 private:
  static PrimExpr same_dtype(nb::handle made, const PrimExpr& e) {
    return unwrap(tir::convert(e->dtype.element(), prim_expr_of(made)));
  }
  bool is_asked(const char* kind) const {
    if (all_) return true;
    for (const std::string& name : classic_kinds(kind))
      if (std::find(only_.begin(), only_.end(), name) != only_.end()) return true;
    return false;
  }
  nb::object before_, after_;
  bool all_ = true;
  std::vector<std::string> only_;
};

void visit_after_children(const PrimExpr& e, const nb::object& f, bool first) {
  if (first) f(wrap(e));
  tir::for_each_child(e, [&](const PrimExpr& child) { visit_after_children(child, f, first); });
  if (!first) f(wrap(e));
}
void visit_after_children(const Stmt& s, const nb::object& f, bool first) {
  if (first) f(wrap_stmt(s));
  tir::for_each_own_expr(s, [&](const PrimExpr& e) { visit_after_children(e, f, first); });
  tir::for_each_child(s, [&](const Stmt& child) { visit_after_children(child, f, first); });
  if (!first) f(wrap_stmt(s));
}

std::vector<tir::ExternArgument> arguments_of(nb::handle args) {
  std::vector<tir::ExternArgument> out;
  for (nb::handle a : args) {
    const bool address = nb::isinstance<nb::tuple>(a);
    tir::ExternArgument& made = out.emplace_back();
    made.address = address;
    made.value = prim_expr_of(address ? nb::object(nb::cast<nb::tuple>(a)[1]) : nb::borrow(a));
    if (address && made.value->kind != tir::ExprKind::kRead)
      raise(bad_statement("an address is of an element of a buffer"));
  }
  return out;
}

void bind_makers(nb::module_& m) {
  m.def(
      "stmt_for",
      [](nb::object var, nb::object min, nb::object extent, int kind, const Stmt& body, nb::object annotations) {
        const PrimExpr v = prim_expr_of(var);
        if (v->kind != tir::ExprKind::kVar || !v->dtype.is_int() || v->dtype.lanes != 1 || v->dtype.bits < 32)
          raise(bad_statement("a loop runs over something that is no variable of int32 or int64"));
        if (kind < 0 || kind > static_cast<int>(tir::ForKind::kParallel)) raise(bad_statement("no such kind of loop"));
        return wrap_stmt(tir::make_for(v, unwrap(tir::convert(v->dtype, prim_expr_of(min))),
                                       unwrap(tir::convert(v->dtype, prim_expr_of(extent))), body,
                                       static_cast<tir::ForKind>(kind), annotations_of(annotations)));
      },
      any, any, any, any, any, any);
  m.def(
      "stmt_write",
      [](nb::object target, nb::object indices, nb::object value) {
        if (nb::isinstance<tir::Buffer>(target)) {
          const auto& b = nb::cast<const tir::Buffer&>(target);
          std::vector<PrimExpr> at = prim_exprs_of(indices);
          if (at.size() != 1) raise(bad_statement(format("{} indices for the flat memory '{}'", at.size(), b->name)));
          const PrimExpr index = unwrap(tir::convert(kInt64.with_lanes(at[0]->dtype.lanes), at[0]));
          return wrap_stmt(make_node<tir::StoreNode>(b, index, stored_value(value, b->dtype), PrimExpr()));
        }
        const auto& array = nb::cast<const tir::Array&>(target);
        return wrap_stmt(tir::write(array, prim_exprs_of(indices), stored_value(value, array->dtype.element())));
      },
      any, any, any);
  m.def(
      "stmt_let",
      [](nb::object var, nb::object value, const Stmt& body) {
        const PrimExpr v = prim_expr_of(var);
        if (v->kind != tir::ExprKind::kVar) raise(bad_statement("a let binds something that is no variable"));
        return wrap_stmt(tir::let_stmt(v, unwrap(tir::convert(v->dtype, prim_expr_of(value))), body));
      },
      any, any, any);
  m.def(
      "stmt_if",
      [](nb::object condition, const Stmt& then_case, nb::object else_case) {
        const PrimExpr c = prim_expr_of(condition);
        if (c->dtype != kBool) raise(bad_statement(format("an if on {}", c->dtype.str()), "give a comparison"));
        return wrap_stmt(make_node<tir::IfNode>(c, then_case, optional_stmt(else_case)));  // as the script says
      },
      any, any, any);
  m.def(
      "stmt_while",
      [](nb::object condition, const Stmt& body) {
        const PrimExpr c = prim_expr_of(condition);
        if (c->dtype != kBool) raise(bad_statement(format("a while on {}", c->dtype.str()), "give a comparison"));
        return wrap_stmt(tir::make_while(c, body));
      },
      any, any);
  m.def("stmt_seq", [](nb::object list) {
    std::vector<Stmt> parts;
    for (nb::handle s : list) parts.push_back(nb::cast<Stmt>(s));
    return wrap_stmt(tir::seq(std::move(parts)));
  });
  m.def("stmt_call", [](const std::string& name, nb::object args, bool packed) {
    return wrap_stmt(tir::call_extern(name, arguments_of(args), packed));
  });
  m.def(
      "stmt_block",
      [](const std::string& name, nb::object axes, nb::object predicate, nb::object init, const Stmt& body,
         nb::object memory, nb::object annotations) {
        std::vector<tir::BlockAxis> list;
        for (nb::handle item : axes) {
          const nb::tuple a = nb::cast<nb::tuple>(item);
          const PrimExpr var = prim_expr_of(a[0]);
          auto as_var = [&](nb::handle e) { return unwrap(tir::convert(var->dtype, prim_expr_of(e))); };
          list.push_back({var, as_var(a[1]), as_var(a[2]), nb::cast<bool>(a[3]), as_var(a[4])});
        }
        std::vector<Ref<Node>> arrays;
        for (nb::handle a : memory) arrays.emplace_back(nb::cast<const tir::Array&>(a));
        const PrimExpr where = predicate.is_none() ? PrimExpr() : prim_expr_of(predicate);
        return wrap_stmt(make_node<tir::BlockNode>(name, std::move(list), where, optional_stmt(init), body,
                                                   std::move(arrays), annotations_of(annotations)));
      },
      any, any, any, any, any, any, any);
}

}  // namespace

nb::object wrap_stmt(const Stmt& s) { return loop_instance(stmt_kind_name(s->kind), s); }

void bind_statements(nb::module_& m) {
  nb::class_<Stmt>(m, "Stmt", "A statement of the loop IR")
      .def(nb::init<const Stmt&>())
      .def_prop_ro("_kind", [](const Stmt& self) { return stmt_kind_name(self->kind); })
      .def_prop_ro("_fields", fields_of_stmt)
      .def("_text", [](const Stmt& self) { return tir::to_text(self); })
      .def(
          "same_as",
          [](const Stmt& self, nb::handle o) { return nb::isinstance<Stmt>(o) && nb::cast<const Stmt&>(o) == self; },
          any)
      .def(
          "__eq__",
          [](const Stmt& self, nb::handle o) { return nb::isinstance<Stmt>(o) && nb::cast<const Stmt&>(o) == self; },
          any)
      .def("__hash__", [](const Stmt& self) { return reinterpret_cast<intptr_t>(self.get()); });
  nb::class_<tir::Buffer>(m, "FlatBuffer", "Memory as a kernel sees it: elements one after another")
      .def(
          "__eq__", [](const tir::Buffer& self, const tir::Buffer& other) { return self == other; }, nb::is_operator())
      .def_prop_ro("name", [](const tir::Buffer& self) { return self->name; })
      .def_prop_ro("dtype", [](const tir::Buffer& self) { return self->dtype.str(); })
      .def_prop_ro("size", [](const tir::Buffer& self) { return self->size; })
      .def("__hash__", [](const tir::Buffer& self) { return reinterpret_cast<intptr_t>(self.get()); })
      .def("__repr__", [](const tir::Buffer& self) { return format("buffer({}, {})", self->name, self->dtype.str()); });
  nb::class_<tir::Array>(m, "Array", "Memory by its dimensions")
      .def(nb::init<const tir::Array&>())
      .def_prop_ro("name", [](const tir::Array& self) { return self->name; })
      .def_prop_ro("dtype", [](const tir::Array& self) { return self->dtype.str(); })
      .def_prop_ro("shape", [](const tir::Array& self) { return nb::tuple(wrap_all(self->shape)); })
      .def_prop_ro("strides", [](const tir::Array& self) { return wrap_all(self->strides); })
      .def_prop_ro("_scope", [](const tir::Array& self) { return self->scope; })
      .def(
          "_element",
          [](const tir::Array& self, nb::object indices, const std::string& dtype) {
            const DataType type = unwrap(parse_dtype(dtype));
            if (type.element() != self->dtype.element())
              raise(bad_statement(format("'{}' holds {}, not {}", self->name, self->dtype.str(), dtype)));
            return wrap(tir::read(type, self, self->name, prim_exprs_of(indices)));
          },
          any, any)
      .def(
          "_same",
          [](const tir::Array& self, nb::handle o) {
            return nb::isinstance<tir::Array>(o) && nb::cast<const tir::Array&>(o) == self;
          },
          any)
      .def("__hash__", [](const tir::Array& self) { return reinterpret_cast<intptr_t>(self.get()); });
  m.def(
      "array",
      [](const std::string& name, const std::string& dtype, nb::object shape, const std::string& scope,
         nb::object strides) {
        return tir::make_array(name, unwrap(parse_dtype(dtype)), prim_exprs_of(shape), scope, prim_exprs_of(strides));
      },
      any, any, any, any, any);
  bind_makers(m);
  m.def("extern_value", [](const std::string& dtype, const std::string& name, nb::object args) {
    return wrap(tir::extern_value(unwrap(parse_dtype(dtype)), name, prim_exprs_of(args)));
  });
  m.def(
      "prim_ramp",
      [](nb::object base, int64_t stride, int lanes) { return wrap(tir::ramp(prim_expr_of(base), stride, lanes)); },
      any, any, any);
  m.def(
      "prim_broadcast", [](nb::object value, int lanes) { return wrap(tir::broadcast(prim_expr_of(value), lanes)); },
      any, any);
  m.def(
      "stmt_visit",
      [](nb::object node, nb::object f, bool first) {
        nb::isinstance<Stmt>(node) ? visit_after_children(nb::cast<Stmt>(node), f, first)
                                   : visit_after_children(prim_expr_of(node), f, first);
      },
      any, any, any);
  m.def(
      "stmt_rewrite",
      [](nb::object node, nb::object before, nb::object after, nb::object only) -> nb::object {
        Rewriter rewriter(before, after, only);
        return nb::isinstance<Stmt>(node) ? wrap_stmt(rewriter.stmt(nb::cast<Stmt>(node)))
                                          : wrap(rewriter.expr(prim_expr_of(node)));
      },
      any, any, any, any);
  m.def(
      "stmt_pass",  // of tir::loop_rewrites, by name
      [](const std::string& name, const Stmt& s, int64_t option) {
        for (const tir::StmtPass& pass : tir::loop_rewrites())
          if (name == pass.name) return wrap_stmt(pass.run(s, option));
        raise(Diagnostic(ErrorCode::kInvalidArgument, "no pass over statements is called '" + name + "'"));
      },
      any, any, any);
  m.def(
      "stmt_substitute",
      [](const Stmt& s, nb::dict variables) {
        tir::Substitution at;
        std::vector<PrimExpr> kept;
        for (auto [key, to] : variables) {
          kept.push_back(prim_expr_of(key));
          at[kept.back().get()] = unwrap(tir::convert(kept.back()->dtype, prim_expr_of(to)));
        }
        return wrap_stmt(tir::substitute(s, at));
      },
      any, any);
  m.def(
      "stmt_equal",
      [](nb::object a, nb::object b, bool map_free) {
        if (nb::isinstance<Stmt>(a) != nb::isinstance<Stmt>(b)) return false;
        return nb::isinstance<Stmt>(a)
                   ? tir::structural_equal(nb::cast<const Stmt&>(a), nb::cast<const Stmt&>(b), map_free)
                   : tir::structural_equal(prim_expr_of(a), prim_expr_of(b), map_free);
      },
      any, any, any);
  m.def(
      "stmt_hash",
      [](nb::object node, bool map_free) {
        const uint64_t hash = nb::isinstance<Stmt>(node) ? tir::structural_hash(nb::cast<const Stmt&>(node), map_free)
                                                         : tir::structural_hash(prim_expr_of(node), map_free);
        return hash >> 1;
      },
      any, any);
  // Of [(name, function or None)]: for each the function without calls of the others, or None where it has none.
  m.def("inline_calls", [](nb::list named) {
    tir::CallableFunctions functions;
    std::vector<const tir::BlockFunction*> each;
    for (nb::handle pair : named) {
      each.push_back(pair[1].is_none() ? nullptr : &nb::cast<const tir::BlockFunction&>(pair[1]));
      functions[nb::cast<std::string>(pair[0])] = each.back();
    }
    tir::InlinedFunctions made = unwrap(tir::inline_calls(functions));
    nb::list out;
    for (const tir::BlockFunction* function : each) {
      auto found = made.find(function);
      out.append(found == made.end() ? nb::none() : nb::cast(found->second));
    }
    return out;
  });
  // Parameters are arrays and variables.
  nb::class_<tir::BlockFunction>(m, "BlockFunction", "A function over arrays")
      .def("__init__",
           [](tir::BlockFunction* self, const std::string& name, nb::object params, const Stmt& body) {
             new (self) tir::BlockFunction{name, {}, body};
             for (nb::handle p : params) {
               if (nb::isinstance<tir::Array>(p))
                 self->params.push_back({nb::cast<const tir::Array&>(p), {}});
               else
                 self->params.push_back({{}, prim_expr_of(p)});
             }
           })
      .def_rw("name", &tir::BlockFunction::name)
      .def_prop_ro("params",
                   [](const tir::BlockFunction& self) {
                     nb::list out;
                     for (const auto& p : self.params) out.append(p.array ? wrap_array(p.array) : wrap(p.var));
                     return out;
                   })
      .def("specialized",  // values of variables: [(variable, expression)]
           [](const tir::BlockFunction& self, nb::object values) {
             tir::Substitution map;
             for (nb::handle pair : values) {
               const PrimExpr var = prim_expr_of(pair[0]);
               map[var.get()] = unwrap(tir::convert(var->dtype, prim_expr_of(pair[1])));
             }
             return te::specialized(self, map);
           })
      .def_prop_ro("body", [](const tir::BlockFunction& self) { return wrap_stmt(self.body); })
      .def("equals",
           [](const tir::BlockFunction& self, const tir::BlockFunction& o) { return tir::structural_equal(self, o); })
      .def("structural_hash", [](const tir::BlockFunction& self) { return tir::structural_hash(self) >> 1; });
}

}  // namespace tilewright::python
