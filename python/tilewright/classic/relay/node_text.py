# SPDX-License-Identifier: Apache-2.0
"""What `repr` of an expression says: the kinds of its nodes and their fields, as the classic stack's does."""
from __future__ import annotations

from typing import Any

_MOST = 5_000  # nodes, those of shared parts as often as they are used; longer ones are given as program text


class _TooLong(Exception):
    pass


class _Writer:
    def __init__(self) -> None:
        self._count = 0

    def text(self, e: Any) -> str:
        self._count += 1
        if self._count > _MOST:
            raise _TooLong
        kind = type(e).__name__
        write = getattr(self, "_" + kind.lower(), None)
        return repr(e) if write is None else str(write(e))

    def _all(self, parts: Any) -> str:
        return f"[{', '.join(map(self.text, parts))}]"

    def _var(self, e: Any) -> str:
        return f"Var({e.name_hint}" + (")" if e.type_annotation is None else f", ty={e.type_annotation!r})")

    def _globalvar(self, e: Any) -> str:
        return f"GlobalVar({e.name_hint})"

    def _op(self, e: Any) -> str:
        return f"Op({e.name})"

    def _constant(self, e: Any) -> str:
        return f"Constant({e.data.numpy()})"

    def _call(self, e: Any) -> str:
        attrs = "(nullptr)" if e.attrs is None else f"{e.attrs.type_key}({e.attrs})"
        return f"CallNode({self.text(e.op)}, {self._all(e.args)}, {attrs}, [{', '.join(map(repr, e.type_args))}])"

    def _function(self, e: Any) -> str:
        attrs = "{" + ", ".join(f"{k!r}: {v!r}" for k, v in e.attrs.items()) + "}" if e.attrs else "(nullptr)"
        return f"FunctionNode({self._all(e.params)}, {e.ret_type!r}, {self.text(e.body)}, [{', '.join(map(repr, e.type_params))}], {attrs})"

    def _let(self, e: Any) -> str:
        return f"LetNode({self.text(e.var)}, {self.text(e.value)}, {self.text(e.body)})"

    def _if(self, e: Any) -> str:
        return f"IfNode({self.text(e.cond)}, {self.text(e.true_branch)}, {self.text(e.false_branch)})"

    def _tuple(self, e: Any) -> str:
        return f"Tuple({self._all(e.fields)})"

    def _tuplegetitem(self, e: Any) -> str:
        return f"TupleGetItemNode({self.text(e.tuple_value)}, {e.index})"

    def _refcreate(self, e: Any) -> str:
        return f"RefCreateNode({self.text(e.value)})"

    def _refread(self, e: Any) -> str:
        return f"RefReadNode({self.text(e.ref)})"

    def _refwrite(self, e: Any) -> str:
        return f"RefWriteNode({self.text(e.ref)}, {self.text(e.value)})"


def node_text(e: Any) -> str | None:
    """None if it is longer than anyone reads."""
    try:
        return _Writer().text(e)
    except (_TooLong, RecursionError):
        return None


__all__ = ["node_text"]
