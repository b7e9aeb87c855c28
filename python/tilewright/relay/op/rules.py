# SPDX-License-Identifier: Apache-2.0
"""Rewrites of operators that scripts register: they run before the compiler's own pass of that purpose, in builds and alone."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _core
from ..expr import Call, Function, Op
from ..expr_functor import ExprMutator
from .registry import register_op_attr, registered

# The pass before which the rules of an attribute run.
_PASSES = {"Legalize": "FTVMLegalize", "AlterOpLayout": "FTVMAlterOpLayout"}


class _Rewriter(ExprMutator):
    """Each call as its rule makes it, over operands that have been rewritten."""

    def __init__(self, rules: dict[str, Callable[..., Any]], attr_key: str):
        super().__init__()
        self._rules, self._key = rules, attr_key

    def visit_function(self, fn: Function) -> Any:
        return fn if fn.attrs.get("Primitive") else super().visit_function(fn)

    def visit_call(self, call: Call) -> Any:
        new = super().visit_call(call)
        rule = self._rules.get(call.op.name) if isinstance(call.op, Op) else None
        if rule is None:
            return new
        types = [a.checked_type for a in call.args]
        made = rule(new.attrs, new.args, types, call.checked_type) if self._key == "FTVMAlterOpLayout" else rule(new.attrs, new.args, [*types, call.checked_type])
        if made is None:
            return new
        if not isinstance(made, _core.Expr):
            raise TypeError(f"the {self._key} of {call.op.name} gave a {type(made).__name__}, not an expression")
        return _between_layouts(new, made) if self._key == "FTVMAlterOpLayout" else made


def _between_layouts(old: Call, new: Any) -> Any:
    """A call in other layouts than its data and result have gets layout_transform around it, where its rule left that out."""
    if not (isinstance(new, Call) and isinstance(new.op, Op) and new.attrs is not None and old.attrs is not None and "data_layout" in new.attrs.keys()):
        return new
    was, now = dict(old.attrs.items()), dict(new.attrs.items())
    args = list(new.args)
    for place, key in ((0, "data_layout"), (1, "kernel_layout")):
        if was.get(key) and now.get(key) and was[key] != now[key] and place < len(args) and args[place] == old.args[place]:
            args[place] = Call("layout_transform", [args[place]], {"src_layout": was[key], "dst_layout": now[key]})
    out = Call(new.op, args, new.attrs, None, new._span)
    before, after = was.get("out_layout") or was["data_layout"], now.get("out_layout") or now["data_layout"]
    return out if before == after else Call("layout_transform", [out], {"src_layout": after, "dst_layout": before})


def apply_rules(mod: Any, attr_key: str) -> Any:
    """The module with every call rewritten by the rule of its operator, where there is one."""
    rules = registered(attr_key)
    if not rules:
        return mod
    out = mod._completed()
    for name, function in out.functions.items():
        out[name] = _Rewriter(rules, attr_key).visit(function)
    return out._completed()


def rules_by_pass() -> dict[str, Callable[[Any], Any]]:
    """What runs before passes of the compiler."""
    return {name: (lambda mod, key=key: apply_rules(mod, key)) for name, key in _PASSES.items() if registered(key)}


def register_legalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """legal_op(attrs, inputs, types) gives what takes the call's place, or None; types ends with the result's."""
    return register_op_attr(op_name, "FTVMLegalize", legal_op, level)


def register_alter_op_layout(op_name: str, alter_layout: Any = None, level: int = 10) -> Any:
    """alter_layout(attrs, inputs, types, out_type) gives an equal expression, with layout_transform where a layout changes, or None."""
    return register_op_attr(op_name, "FTVMAlterOpLayout", alter_layout, level)


__all__ = ["apply_rules", "register_alter_op_layout", "register_legalize", "rules_by_pass"]
