# SPDX-License-Identifier: Apache-2.0
"""Visitors of expressions: a class with a method per kind of expression, `visit_call`, `visit_var` ..."""
from __future__ import annotations

from typing import Any

from .adt import Clause, Constructor, Match, PatternConstructor, PatternTuple, PatternVar
from .analysis import post_order_visit
from .expr import (Call, Constant, Expr, Function, GlobalVar, If, Let, Op, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var, _like)

_METHODS = {"Call": "visit_call", "Constant": "visit_constant", "Function": "visit_function", "GlobalVar": "visit_global_var", "If": "visit_if",
            "Let": "visit_let", "Op": "visit_op", "Tuple": "visit_tuple", "TupleGetItem": "visit_tuple_getitem", "Var": "visit_var",
            "Constructor": "visit_constructor", "Match": "visit_match", "RefCreate": "visit_ref_create", "RefRead": "visit_ref_read", "RefWrite": "visit_ref_write"}


class ExprFunctor:
    """Visits each expression once and caches the result in `memo_map`."""

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}

    def visit(self, expr: Any) -> Any:
        expr = _like(expr)
        if expr in self.memo_map:
            return self.memo_map[expr]
        method = getattr(self, _METHODS[expr._kind], None)
        if method is None:
            raise NotImplementedError(f"{type(self).__name__} has no method for {type(expr).__name__}")
        result = method(expr)
        self.memo_map[expr] = result
        return result


for _method in _METHODS.values():
    def _missing(self: Any, _: Any, method: str = _method) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no method {method}")
    setattr(ExprFunctor, _method, _missing)


class ExprVisitor(ExprFunctor):
    """Visits all expressions; override the methods of interest and call `super()` to visit the operands."""

    def visit_call(self, call: Call) -> None:
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_constant(self, const: Constant) -> None:
        pass

    def visit_op(self, op: Op) -> None:
        pass

    def visit_var(self, var: Var) -> None:
        pass

    def visit_global_var(self, gvar: GlobalVar) -> None:
        pass

    def visit_constructor(self, con: Constructor) -> None:
        pass

    def visit_function(self, fn: Function) -> None:
        for param in fn.params:
            self.visit(param)
        self.visit(fn.body)

    def visit_if(self, i: If) -> None:
        for part in (i.cond, i.true_branch, i.false_branch):
            self.visit(part)

    def visit_let(self, let: Let) -> None:
        for part in (let.var, let.value, let.body):
            self.visit(part)

    def visit_match(self, m: Match) -> None:
        self.visit(m.data)
        for clause in m.clauses:
            self.visit(clause.rhs)

    def visit_tuple(self, tup: Tuple) -> None:
        for field in tup.fields:
            self.visit(field)

    def visit_tuple_getitem(self, t: TupleGetItem) -> None:
        self.visit(t.tuple_value)

    def visit_ref_create(self, r: RefCreate) -> None:
        self.visit(r.value)

    def visit_ref_read(self, r: RefRead) -> None:
        self.visit(r.ref)

    def visit_ref_write(self, r: RefWrite) -> None:
        self.visit(r.ref)
        self.visit(r.value)


class ExprMutator(ExprFunctor):
    """Rebuilds changed expressions; unchanged ones keep their identity."""

    def visit_call(self, call: Call) -> Expr:
        op, args = self.visit(call.op), [self.visit(a) for a in call.args]
        return call if op == call.op and args == call.args else Call(op, args, call.attrs, None, call._span)

    def visit_constant(self, const: Constant) -> Expr:
        return const

    def visit_op(self, op: Op) -> Expr:
        return op

    def visit_var(self, var: Var) -> Expr:
        return var

    def visit_global_var(self, gvar: GlobalVar) -> Expr:
        return gvar

    def visit_global_id(self, gvar: GlobalVar) -> Expr:
        return gvar

    def visit_constructor(self, con: Constructor) -> Expr:
        return con

    def visit_function(self, fn: Function) -> Expr:
        params, body = [self.visit(p) for p in fn.params], self.visit(fn.body)
        return fn if params == fn.params and body == fn.body else Function(params, body, None, fn.type_params, fn.attrs, fn._span)

    def visit_if(self, i: If) -> Expr:
        old = [i.cond, i.true_branch, i.false_branch]
        parts = [self.visit(p) for p in old]
        return i if parts == old else If(*parts)

    def visit_let(self, let: Let) -> Expr:
        old = [let.var, let.value, let.body]
        parts = [self.visit(p) for p in old]
        return let if parts == old else Let(*parts)

    def visit_match(self, m: Match) -> Expr:
        clauses = m.clauses
        made = [Clause(self.visit_pattern(c.lhs), self.visit(c.rhs)) for c in clauses]
        data = self.visit(m.data)
        same = data == m.data and all(a.rhs == b.rhs and a.lhs == b.lhs for a, b in zip(made, clauses))
        return m if same else Match(data, made, m.complete)

    def visit_pattern(self, pattern: Any) -> Any:
        if isinstance(pattern, PatternVar):
            var = self.visit(pattern.var)
            return pattern if var == pattern.var else PatternVar(var)
        if isinstance(pattern, (PatternConstructor, PatternTuple)):
            parts = [self.visit_pattern(p) for p in pattern.patterns]
            if parts == pattern.patterns:
                return pattern
            return PatternTuple(parts) if isinstance(pattern, PatternTuple) else PatternConstructor(pattern.constructor, parts)
        return pattern

    def visit_tuple(self, tup: Tuple) -> Expr:
        fields = [self.visit(f) for f in tup.fields]
        return tup if fields == tup.fields else Tuple(fields, tup._span)

    def visit_tuple_getitem(self, t: TupleGetItem) -> Expr:
        value = self.visit(t.tuple_value)
        return t if value == t.tuple_value else TupleGetItem(value, t.index)

    def visit_ref_create(self, r: RefCreate) -> Expr:
        value = self.visit(r.value)
        return r if value == r.value else RefCreate(value)

    def visit_ref_read(self, r: RefRead) -> Expr:
        ref = self.visit(r.ref)
        return r if ref == r.ref else RefRead(ref)

    def visit_ref_write(self, r: RefWrite) -> Expr:
        ref, value = self.visit(r.ref), self.visit(r.value)
        return r if ref == r.ref and value == r.value else RefWrite(ref, value)


__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor", "post_order_visit"]
