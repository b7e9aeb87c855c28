// SPDX-License-Identifier: Apache-2.0
// Expressions of the loop IR as Python objects, one class per kind.
#pragma once
#include "bind.h"
#include "tir/stmt.h"

namespace tilewright::python {

// Python integers and floats become int32 (int64 if too large) and float32, unless they have a dtype. An object with
// `asobject` is converted by that. Raises TypeError for anything else.
tir::PrimExpr prim_expr_of(nb::handle object);
std::vector<tir::PrimExpr> prim_exprs_of(nb::handle sequence);
nb::object wrap(const tir::PrimExpr& e);  // None for null
nb::object wrap_stmt(const tir::Stmt& s);
nb::list wrap_all(const std::vector<tir::PrimExpr>& list);

// Creates an object of the Python class registered for the kind (_set_loop_class), or else of the bound class.
template <class T>
nb::object loop_instance(const char* kind, const T& value);
PyObject* loop_class(const std::string& kind);  // null: none

template <class T>
nb::object loop_instance(const char* kind, const T& value) {
  PyObject* cls = loop_class(kind);
  if (!cls) return nb::cast(value);
  nb::object out = nb::inst_alloc(cls);
  new (nb::inst_ptr<T>(out)) T(value);
  nb::inst_mark_ready(out);
  return out;
}

void bind_loops(nb::module_& m);            // PrimExpr
void bind_statements(nb::module_& m);       // Stmt, Array
void bind_block_schedules(nb::module_& m);  // functions over arrays: their script, steps on them
void bind_schedules(nb::module_& m);        // tensors, operations, schedules; lowering and building them

}  // namespace tilewright::python
