# SPDX-License-Identifier: Apache-2.0
"""Walks over expressions built in Python: a class with a method for each kind, `visit_call`, `visit_var` ..."""
from __future__ import annotations

from typing import Any, Callable

from .expr import Call, Constant, Expr, Function, GlobalVar, If, Let, Tuple, TupleGetItem, TupleWrapper, Var, _post_order

_METHODS = {Call: "visit_call", Constant: "visit_constant", Function: "visit_function", GlobalVar: "visit_global_var", If: "visit_if",
            Let: "visit_let", Tuple: "visit_tuple", TupleGetItem: "visit_tuple_getitem", TupleWrapper: "visit_tuple_wrapper", Var: "visit_var"}


class ExprFunctor:
    """Each expression is visited once; the result is remembered in `memo_map`."""

    def __init__(self) -> None:
        self.memo_map: dict[int, Any] = {}
        self._kept: list[Any] = []  # objects whose ids are keys

    def visit(self, expr: Any) -> Any:
        if id(expr) not in self.memo_map:
            name = next((method for kind, method in _METHODS.items() if isinstance(expr, kind)), None)
            if name is None or not hasattr(self, name):
                raise NotImplementedError(f"{type(self).__name__} has no method for {type(expr).__name__}")
            result = getattr(self, name)(expr)
            self._kept.append(expr)
            self.memo_map[id(expr)] = result
        return self.memo_map[id(expr)]


class ExprVisitor(ExprFunctor):
    """Visits everything; override the methods of the kinds that matter and call `super()` to go on below them."""

    def visit_call(self, call: Call) -> None:
        if isinstance(call.op, Expr):
            self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_constant(self, constant: Constant) -> None:
        pass

    def visit_var(self, var: Var) -> None:
        pass

    def visit_global_var(self, var: GlobalVar) -> None:
        pass

    def visit_function(self, function: Function) -> None:
        for param in function.params:
            self.visit(param)
        self.visit(function.body)

    def visit_if(self, branch: If) -> None:
        for part in (branch.cond, branch.true_branch, branch.false_branch):
            self.visit(part)

    def visit_let(self, let: Let) -> None:
        for part in (let.var, let.value, let.body):
            self.visit(part)

    def visit_tuple(self, tup: Tuple) -> None:
        for field in tup.fields:
            self.visit(field)

    def visit_tuple_getitem(self, item: TupleGetItem) -> None:
        self.visit(item.tuple_value)

    def visit_tuple_wrapper(self, item: TupleWrapper) -> None:
        self.visit(item.tuple_value)


class ExprMutator(ExprFunctor):
    """Rebuilds what changed; what did not keeps its identity."""

    def visit_call(self, call: Call) -> Expr:
        op = self.visit(call.op) if isinstance(call.op, Expr) else call.op
        args = [self.visit(a) for a in call.args]
        return call if op is call.op and _same(args, call.args) else Call(op, args, call.attrs)

    def visit_constant(self, constant: Constant) -> Expr:
        return constant

    def visit_var(self, var: Var) -> Expr:
        return var

    def visit_global_var(self, var: GlobalVar) -> Expr:
        return var

    def visit_function(self, function: Function) -> Expr:
        params, body = [self.visit(p) for p in function.params], self.visit(function.body)
        return function if _same(params, function.params) and body is function.body else Function(params, body, None, None, function.attrs)

    def visit_if(self, branch: If) -> Expr:
        parts = [self.visit(branch.cond), self.visit(branch.true_branch), self.visit(branch.false_branch)]
        return branch if _same(parts, [branch.cond, branch.true_branch, branch.false_branch]) else If(*parts)

    def visit_let(self, let: Let) -> Expr:
        parts = [self.visit(let.var), self.visit(let.value), self.visit(let.body)]
        return let if _same(parts, [let.var, let.value, let.body]) else Let(*parts)

    def visit_tuple(self, tup: Tuple) -> Expr:
        fields = [self.visit(f) for f in tup.fields]
        return tup if _same(fields, tup.fields) else Tuple(fields)

    def visit_tuple_getitem(self, item: TupleGetItem) -> Expr:
        value = self.visit(item.tuple_value)
        return item if value is item.tuple_value else TupleGetItem(value, item.index)

    def visit_tuple_wrapper(self, item: TupleWrapper) -> Expr:
        value = self.visit(item.tuple_value)
        return item if value is item.tuple_value else TupleWrapper(value, item.size)


def _same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


def post_order_visit(expr: Expr, fvisit: Callable[[Expr], None]) -> None:
    """Calls `fvisit` on every expression, operands first."""
    for e in _post_order(expr, True):
        fvisit(e)


__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor", "post_order_visit"]
