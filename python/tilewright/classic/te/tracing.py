# SPDX-License-Identifier: Apache-2.0
"""Traced elements: values that a function of the runtime sees, and may replace, while a tensor is computed."""
from __future__ import annotations

import typing

from ... import _core
from ..error import InvalidValue
from ..registry import get_global_func, register_func
from ..tir.op import TRACE


register_func("tvm.default_trace_action", lambda *values: print(list(values)), override=True)


def _is_trace(e: typing.Any) -> bool:
    return getattr(e, "_kind", "") == "Extern" and str(e._fields[0]).startswith(TRACE)


def _seen_by(action: str) -> str:
    """The name of a function of whole tensors, the last of them the result, that calls the action for each element."""
    name = f"tilewright.trace.{action}"

    def each(*tensors: typing.Any) -> None:
        act, values = get_global_func(action), [t.numpy() for t in tensors]
        out = values[-1].copy()
        for at in range(out.size):
            seen = [v.flat[at].item() for v in values[:-1]]
            got = act(*seen)
            out.flat[at] = seen[-1] if got is None else got
        tensors[-1].copyfrom(out)
    register_func(name, each, override=True)
    return name


def traced_stages(name: str, axes: typing.Any, bodies: list[typing.Any]) -> list[typing.Any]:
    """The bodies with each trace replaced by an element of a tensor that is computed before: what is seen, element by element, by stages
    of their own. InvalidValue: a trace that only some elements have."""
    from ..tir import op as _op
    from .operation import compute, extern

    def stage(e: typing.Any) -> typing.Any:
        action, args = str(e._fields[0]).removeprefix(TRACE), e._fields[1]
        shape = [a.dom.extent for a in axes]

        def over(value: typing.Any) -> typing.Any:
            return compute(shape, lambda *at: _core.prim_substitute(value, {a.var: v + a.dom.min for a, v in zip(axes, at)}), name=f"{name}.traced")
        inputs = [over(a) for a in args]
        made = extern(tuple(shape), inputs, lambda ins, outs: _op.call_packed(_seen_by(action), *ins, outs[0]), name=f"{name}.trace", dtype=e.dtype)
        return made(*[a.var - a.dom.min for a in axes])

    def rewritten(e: typing.Any, chosen: bool) -> typing.Any:
        if not _has_trace(e):
            return e
        if chosen:
            raise InvalidValue("a trace inside a choice is not for all elements; trace the choice itself")
        if _is_trace(e):
            return stage(_core.extern_value(e.dtype, str(e._fields[0]), [rewritten(a, False) for a in e._fields[1]]))
        inside = e._kind == "Select" or (e._kind == "Call" and str(e.op).endswith("if_then_else"))
        made: dict[int, typing.Any] = {}
        for part in _parts(e):
            if _has_trace(part):
                made[hash(part)] = rewritten(part, inside)
        return _core.stmt_rewrite(e, lambda node: made.get(hash(node)), None, None)
    return [rewritten(b, False) for b in bodies]


def _parts(e: typing.Any) -> list[typing.Any]:
    out = []
    for field in e._fields:
        out += [p for p in (field if isinstance(field, (list, tuple)) else [field]) if isinstance(p, _core.PrimExpr)]
    return out


def _has_trace(e: typing.Any) -> bool:
    found: list[bool] = []
    if isinstance(e, _core.PrimExpr):
        _core.stmt_visit(e, lambda node: found.append(True) if _is_trace(node) else None, True)
    return bool(found)


def has_traces(bodies: list[typing.Any]) -> bool:
    """Whether any of these expressions has a trace."""
    return any(_has_trace(b) for b in bodies)


__all__ = ["has_traces", "traced_stages"]
