# SPDX-License-Identifier: Apache-2.0
"""Copies of expressions with some fields replaced: `FunctionWithFields(f, body=new)`. Fields that are not given are kept; if nothing
differs, the expression itself is returned."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .adt import Match
from .expr import Call, Constant, Function, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var, _like


def _placed(node: Any, virtual_device: Any) -> Any:
    """Attaches a device to the expression; builds use relay.annotation.on_device instead."""
    if isinstance(node, Function):
        return node if virtual_device == node.virtual_device else node.with_attr("virtual_device", virtual_device.text)
    node.__dict__["_virtual_device"] = virtual_device
    return node


def _copier(kind: Any, names: tuple[str, ...], make: Callable[..., Any]) -> Any:
    def copy(node: Any, *parts: Any, virtual_device: Any = None, span: Any = None, **named: Any) -> Any:
        if not isinstance(node, kind):
            raise TypeError(f"{kind.__name__}WithFields takes a {kind.__name__}, not a {type(node).__name__}")
        if len(names) < len(parts) <= len(names) + 2:
            virtual_device, span = (*parts[len(names):], span)[:2]
            parts = parts[:len(names)]
        unknown = set(named) - set(names)
        if unknown or len(parts) > len(names):
            raise TypeError(f"{kind.__name__}WithFields has the fields {', '.join(names)}")
        given = {**{n: p for n, p in zip(names, parts) if p is not None}, **{n: p for n, p in named.items() if p is not None}}
        old = {n: getattr(node, n) for n in names}
        if span is None and virtual_device in (None, node.virtual_device) and all(old[n] is v or n != "data" and old[n] == v for n, v in given.items()):
            return node
        made = make(*{**old, **given}.values(), span if span is not None else node._span)
        return _placed(made, node.virtual_device if virtual_device is None else virtual_device)
    copy.__name__ = f"{kind.__name__}WithFields"
    return copy


FunctionWithFields = _copier(Function, ("params", "body", "ret_type", "type_params", "attrs"), lambda p, b, r, t, a, s: Function(p, b, r, t, a, s))
CallWithFields = _copier(Call, ("op", "args", "attrs", "type_args"), lambda o, a, at, t, s: Call(o, a, at, t, s))
LetWithFields = _copier(Let, ("var", "value", "body"), lambda v, x, b, s: Let(v, x, b, s))
IfWithFields = _copier(If, ("cond", "true_branch", "false_branch"), lambda c, t, f, s: If(c, t, f, s))
TupleWithFields = _copier(Tuple, ("fields",), lambda f, s: Tuple(f, s))
TupleGetItemWithFields = _copier(TupleGetItem, ("tuple_value", "index"), lambda t, i, s: TupleGetItem(t, i, s))
RefCreateWithFields = _copier(RefCreate, ("value",), lambda v, s: RefCreate(v))
RefReadWithFields = _copier(RefRead, ("ref",), lambda r, s: RefRead(_like(r)))
RefWriteWithFields = _copier(RefWrite, ("ref", "value"), lambda r, v, s: RefWrite(r, v))
MatchWithFields = _copier(Match, ("data", "clauses", "complete"), lambda d, c, complete, s: Match(d, c, complete))
ConstantWithFields = _copier(Constant, ("data",), lambda d, s: Constant(d, s))


def VarWithFields(variable: Var, vid: Any = None, type_annotation: Any = None, virtual_device: Any = None, span: Any = None) -> Var:
    """Variables are compared by identity (`vid`): with another name or type the result is a new variable."""
    if not isinstance(variable, Var):
        raise TypeError(f"VarWithFields takes a Var, not a {type(variable).__name__}")
    name = variable.name_hint if vid is None else getattr(vid, "name_hint", vid)
    if name == variable.name_hint and type_annotation in (None, variable.type_annotation) and span is None and virtual_device in (None, variable.virtual_device):
        return variable
    return _placed(Var(name, variable.type_annotation if type_annotation is None else type_annotation, span),
                   variable.virtual_device if virtual_device is None else virtual_device)


__all__ = ["CallWithFields", "ConstantWithFields", "FunctionWithFields", "IfWithFields", "LetWithFields", "MatchWithFields", "RefCreateWithFields",
           "RefReadWithFields", "RefWriteWithFields", "TupleGetItemWithFields", "TupleWithFields", "VarWithFields"]
