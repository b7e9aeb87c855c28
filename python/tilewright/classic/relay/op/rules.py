# SPDX-License-Identifier: Apache-2.0
"""Operator rewrites registered by scripts. They run before the compiler's pass of the same purpose, in builds and when called directly."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .... import _core
from ..expr import Call, Function, Op
from ..expr_functor import ExprMutator
from .registry import register_op_attr, registered

# The compiler's pass before which the rules of each attribute run.
_PASSES = {"Legalize": "FTVMLegalize", "AlterOpLayout": "FTVMAlterOpLayout"}


class _Rewriter(ExprMutator):
    """Replaces each call by its rule's result, operands first."""

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
        made = rule(new.attrs, new.args, [*types, call.checked_type])
        if made is None:
            return new
        if not isinstance(made, _core.Expr):
            raise TypeError(f"the {self._key} of {call.op.name} gave a {type(made).__name__}, not an expression")
        return made


def apply_rules(mod: Any, attr_key: str) -> Any:
    """Applies to every call the rule of its operator, if there is one."""
    rules = registered(attr_key)
    if attr_key == "FTVMQnnLegalize":
        from ..qnn.legalizations import RULES
        rules = {**RULES, **rules}
    if not rules:
        return mod
    if attr_key == "FTVMAlterOpLayout":
        def asked(call: Call, attrs: Any, inputs: list[Any]) -> Any:
            return rules[call.op.name](attrs, inputs, [a.checked_type for a in call.args], call.checked_type)
        return _core.rewrite_layouts(mod, {name: asked for name in rules})._completed()
    out = mod._completed()
    for name, function in out.functions.items():
        out[name] = _Rewriter(rules, attr_key).visit(function)
    return out._completed()


class _Rounding(ExprMutator):
    """Sets the rounding mode of requantize calls without one from the surrounding requantize_config."""

    def __init__(self, rounding: str):
        super().__init__()
        self._rounding = rounding

    def visit_call(self, call: Call) -> Any:
        new = super().visit_call(call)
        if not (isinstance(new.op, Op) and new.op.name == "qnn.requantize" and new.attrs["rounding"] == "None"):
            return new
        return Call(new.op, new.args, {**dict(new.attrs.items()), "rounding": self._rounding}, None, new._span)


def _configured(mod: Any, rounding: str) -> Any:
    out = mod._completed()
    for name, function in out.functions.items():
        out[name] = _Rounding(rounding).visit(function)
    return out._completed()


def rules_by_pass() -> dict[str, Callable[[Any], Any]]:
    """The rules to run, by the compiler's pass that follows them."""
    from ..qnn.requantize_config import current_requantize_config
    rounding = current_requantize_config().rounding
    rules: dict[str, Callable[[Any], Any]] = {name: (lambda mod, key=key: apply_rules(mod, key)) for name, key in _PASSES.items() if registered(key)}
    quantised: list[Callable[[Any], Any]] = [lambda mod, key=key: apply_rules(mod, key) for key in ("FTVMQnnLegalize", "FTVMQnnCanonicalize") if registered(key)]
    if rounding != "UPWARD":
        quantised.append(lambda mod: _configured(mod, rounding))
    if quantised:
        rules["CanonicalizeQnn"] = lambda mod: functools.reduce(lambda done, step: step(done), quantised, mod)
    return rules


def register_legalize(op_name: str, legal_op: Any = None, level: int = 10) -> Any:
    """legal_op(attrs, inputs, types) returns the replacement of the call, or None; the last of `types` is the result's."""
    return register_op_attr(op_name, "FTVMLegalize", legal_op, level)


def register_alter_op_layout(op_name: str, alter_layout: Any = None, level: int = 10) -> Any:
    """alter_layout(attrs, inputs, types, out_type) returns the call in other layouts, or None. Its inputs may have other layouts
    already; layout_transform is inserted where layouts differ."""
    return register_op_attr(op_name, "FTVMAlterOpLayout", alter_layout, level)


__all__ = ["apply_rules", "register_alter_op_layout", "register_legalize", "rules_by_pass"]
