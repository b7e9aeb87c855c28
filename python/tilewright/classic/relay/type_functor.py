# SPDX-License-Identifier: Apache-2.0
"""Visitors of types: a class with a method per kind, `visit_tensor_type`, `visit_func_type` ..."""
from __future__ import annotations

from typing import Any

from .adt import Constructor, TypeData
from ..ir.ty import FuncType, GlobalTypeVar, IncompleteType, RelayRefType, TensorType, TupleType, TypeCall, TypeRelation, TypeVar

_METHODS = ((TypeVar, "visit_type_var"), (IncompleteType, "visit_incomplete_type"), (TensorType, "visit_tensor_type"), (FuncType, "visit_func_type"),
            (TupleType, "visit_tuple_type"), (RelayRefType, "visit_ref_type"), (GlobalTypeVar, "visit_global_type_var"), (TypeCall, "visit_type_call"), (TypeData, "visit_type_data"),
            (TypeRelation, "visit_type_relation"))


class TypeFunctor:
    def visit(self, typ: Any) -> Any:
        for kind, method in _METHODS:
            if isinstance(typ, kind):
                if not hasattr(self, method):
                    raise NotImplementedError(f"{type(self).__name__} has no method {method}")
                return getattr(self, method)(typ)
        raise TypeError(f"a {type(typ).__name__} is no type")


class TypeVisitor(TypeFunctor):
    """Visits all parts of a type."""

    def visit_type_var(self, tv: TypeVar) -> None:
        pass

    visit_incomplete_type = visit_tensor_type = visit_global_type_var = visit_type_var  # type: ignore[assignment]

    def visit_func_type(self, ft: FuncType) -> None:
        for part in [*ft.arg_types, ft.ret_type, *ft.type_params]:
            self.visit(part)

    def visit_tuple_type(self, tt: TupleType) -> None:
        for field in tt.fields:
            self.visit(field)

    def visit_ref_type(self, rt: RelayRefType) -> None:
        self.visit(rt.value)

    def visit_type_call(self, tc: TypeCall) -> None:
        self.visit(tc.func)
        for arg in tc.args:
            self.visit(arg)

    def visit_type_data(self, td: TypeData) -> None:
        self.visit(td.header)
        for variable in td.type_vars:
            self.visit(variable)
        for constructor in td.constructors:
            for field in constructor.inputs:
                self.visit(field)


    def visit_type_relation(self, tr: TypeRelation) -> None:
        for arg in tr.args:
            self.visit(arg)


class TypeMutator(TypeFunctor):
    """Rebuilds a type; the default methods return it unchanged."""

    def visit_type_var(self, tv: TypeVar) -> Any:
        return tv

    visit_incomplete_type = visit_tensor_type = visit_global_type_var = visit_type_var  # type: ignore[assignment]

    def visit_func_type(self, ft: FuncType) -> Any:
        return FuncType([self.visit(a) for a in ft.arg_types], self.visit(ft.ret_type), [self.visit(v) for v in ft.type_params])

    def visit_tuple_type(self, tt: TupleType) -> Any:
        return TupleType([self.visit(f) for f in tt.fields])

    def visit_ref_type(self, rt: RelayRefType) -> Any:
        return RelayRefType(self.visit(rt.value))

    def visit_type_call(self, tc: TypeCall) -> Any:
        return TypeCall(self.visit(tc.func), [self.visit(a) for a in tc.args])

    def visit_type_data(self, td: TypeData) -> Any:
        made = [Constructor(c.name_hint, [self.visit(f) for f in c.inputs], td.header) for c in td.constructors]
        return TypeData(self.visit(td.header), [self.visit(v) for v in td.type_vars], made)

    def visit_type_relation(self, tr: TypeRelation) -> Any:
        return TypeRelation(tr.func, [self.visit(a) for a in tr.args], tr.num_inputs, tr.attrs)


__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]
