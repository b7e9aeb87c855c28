# SPDX-License-Identifier: Apache-2.0
"""Operators that scripts implement with tensor expressions: each call is lowered by its schedule to a function of the library, beside
the compiler's own kernels."""
from __future__ import annotations

from typing import Any

from .expr import Call, Function, GlobalVar, Op, Var
from .expr_functor import ExprMutator
from .op.registry import registered
from .op.strategy import OpImplementation, OpStrategy


def _tensors(kind: Any) -> list[Any] | None:
    """The tensor types of a value, in order; None if a size is unknown or a part is not a tensor."""
    fields = getattr(kind, "fields", None)
    if fields is not None:
        parts = [_tensors(f) for f in fields]
        return None if any(p is None for p in parts) else [t for p in parts for t in p or []]
    if not hasattr(kind, "shape") or not all(isinstance(d, int) or hasattr(d, "value") for d in kind.shape):
        return None
    return [kind]


def _placeholders(kinds: list[Any]) -> list[Any]:
    from .. import te
    return [te.placeholder([int(d) for d in k.shape], name=f"placeholder_{i}" if i else "placeholder", dtype=k.dtype) for i, k in enumerate(kinds)]


def _from_parts(name: str) -> OpStrategy | None:
    """The strategy made of register_compute and register_schedule."""
    compute = registered("FTVMCompute").get(name)
    if compute is None:
        return None
    schedule = registered("TSchedule").get(name)
    if schedule is None:
        def schedule(attrs: Any, outs: Any, target: Any) -> Any:
            from ..topi import generic
            return generic.schedule_injective(outs)
    made = OpStrategy()
    made.add_implementation(compute, schedule, name=f"{name}.te")
    return made


def _ask(call: Any, target: Any, inputs: list[Any]) -> OpStrategy | None:
    rule = registered("FTVMStrategy").get(call.op.name)
    if rule is None:
        return _from_parts(call.op.name)
    with target:
        return rule(call.attrs, inputs, call.checked_type, target)


def strategy_of(call: Any, target: Any) -> OpStrategy | None:
    """The script's strategy for the operator of a typed call, with te placeholders for its operands; None if there is none or a size is
    unknown."""
    kinds = [_tensors(a.checked_type) for a in call.args]
    if any(k is None for k in kinds):
        return None
    return _ask(call, target, _placeholders([t for k in kinds for t in k or []]))


class _Replacer(ExprMutator):
    """Replaces calls of operators that scripts implement by calls of named functions."""

    def __init__(self, target: Any, prefix: str, names: set[str]):
        super().__init__()
        self.target, self.prefix, self.names = target, prefix, names
        self.functions: dict[str, Any] = {}     # the called Relay functions, with attribute Extern
        self.lowered: list[Any] = []
        self._known: dict[Any, Any] = {}

    def visit_function(self, fn: Any) -> Any:
        if fn.attrs and any(key in fn.attrs for key in ("Primitive", "Compiler", "Extern")):
            return fn
        return super().visit_function(fn)

    def visit_call(self, call: Any) -> Any:
        made = super().visit_call(call)
        if not isinstance(call.op, Op) or call.op.name not in self.names:
            return made
        ins, outs = [_tensors(a.checked_type) for a in call.args], _tensors(call.checked_type)
        if outs is None or any(k is None for k in ins):
            return made
        key = (call.op.name, str(call.attrs), str([a.checked_type for a in call.args]))
        if key not in self._known:
            self._known[key] = self._function(call, [t for k in ins for t in k or []], outs)
        return made if self._known[key] is None else Call(self._known[key], made.args, None)

    def _function(self, call: Any, ins: list[Any], outs: list[Any]) -> Any:
        inputs = _placeholders(ins)
        strategy = _ask(call, self.target, inputs)
        chosen: OpImplementation | None = max(strategy.implementations if strategy else (), key=lambda i: i.plevel, default=None)
        if chosen is None or not chosen.is_own:
            return None
        symbol = f"{self.prefix}_te_{call.op.name.replace('.', '_')}_{len(self.lowered)}"
        self.lowered.append(self._lower(call, chosen, inputs, outs, symbol))
        params = [Var(f"p{i}", a.checked_type) for i, a in enumerate(call.args)]
        self.functions[symbol] = Function(params, Call(call.op, params, call.attrs), call.checked_type, attrs={"Extern": 1, "global_symbol": symbol})
        return GlobalVar(symbol)

    def _lower(self, call: Any, chosen: OpImplementation, inputs: list[Any], outs: list[Any], symbol: str) -> Any:
        from ..driver.build_module import lowered_for
        with self.target:
            results = chosen.compute(call.attrs, inputs, call.checked_type)
        shapes = [[str(d) for d in r.shape] for r in results]
        if [r.dtype for r in results] != [t.dtype for t in outs] or shapes != [[str(int(d)) for d in t.shape] for t in outs]:
            given = ", ".join(f"{r.dtype}{tuple(r.shape)}" for r in results)
            raise ValueError(f"the implementation '{chosen.name}' of {call.op.name} gives {given}, and the operator {call.checked_type}")
        schedule = chosen.schedule(call.attrs, results, self.target)
        return lowered_for(schedule, [*inputs, *results], symbol, self.target)


def implemented_by_scripts(module: Any) -> bool:
    """Whether a program of one function calls an operator that only a script defines and computes."""
    from ... import _core
    own = {name for name in (*registered("FTVMStrategy"), *registered("FTVMCompute")) if _core.is_script_op(name)}
    if not own or len(module.functions) != 1:
        return False
    return any(isinstance(e, Call) and isinstance(e.op, Op) and e.op.name in own for e in _core.post_order(module["main"]))


def with_te_kernels(module: Any, target: Any, name: str) -> tuple[Any, list[Any]]:
    """The module with the calls of script-implemented operators replaced, and the loops of the functions that replace them."""
    names = set(registered("FTVMStrategy")) | set(registered("FTVMCompute"))
    if not names:
        return module, []
    from . import transform
    typed = transform.InferType()(module)
    replacer = _Replacer(target, f"tvmgen_{name}", names)
    functions = {g: replacer.visit(typed[g.name_hint]) for g in typed.get_global_vars()}
    if not replacer.lowered:
        return module, []
    for g, function in functions.items():
        typed[g] = function
    for symbol, function in replacer.functions.items():
        typed[symbol] = function
    return transform.InferType()(typed), replacer.lowered


__all__ = ["implemented_by_scripts", "strategy_of", "with_te_kernels"]
