# SPDX-License-Identifier: Apache-2.0
"""Scalar expressions as the classic printers write them: `repr` without types, `str` with the type of each variable where it is first named."""
from __future__ import annotations

import collections
from typing import Any

_INFIX = {"Add": " + ", "Sub": " - ", "Mul": "*", "Div": "/", "Mod": " % ", "EQ": " == ", "NE": " != ", "LT": " < ", "LE": " <= ", "GT": " > ", "GE": " >= ", "And": " && ", "Or": " || "}
_CALLS = {"FloorDiv": "floordiv", "FloorMod": "floormod", "Min": "min", "Max": "max", "BitAnd": "bitwise_and", "BitOr": "bitwise_or", "BitXor": "bitwise_xor",
          "ShiftLeft": "shift_left", "ShiftRight": "shift_right"}


class Printer:
    """One text; names of several variables of a name are numbered."""

    def __init__(self, types: bool):
        self._types = types
        self._names: dict[Any, str] = {}
        self._used: collections.Counter[str] = collections.Counter()

    def text(self, e: Any) -> str:
        kind = getattr(e, "_kind", type(e).__name__)
        if isinstance(e, bool):
            return str(e)
        if isinstance(e, int):
            return self._number(getattr(e, "dtype", "int32"), int(e))
        if isinstance(e, float):
            return self._real(getattr(e, "dtype", "float32"), float(e))
        if isinstance(e, str):
            return f'"{e}"'
        if kind == "Var":
            return self._variable(e)
        if kind == "BitXor" and isinstance(e._fields[1], int) and e._fields[1] == -1:
            return self._called("bitwise_not", e, e._fields[:1], intrinsic=True)
        if kind == "Add" and isinstance(e._fields[1], int) and e._fields[1] < 0:  # what subtracting a number makes
            return f"({self.text(e._fields[0])} - {self._number(e._fields[1].dtype, -e._fields[1])})"
        if kind in _INFIX:
            a, b = map(self.text, e._fields[:2])
            return f"({a}{' / ' if kind == 'Div' and self._types else _INFIX[kind]}{b})"
        if kind in _CALLS:
            return self._called(_CALLS[kind], e, e._fields[:2], intrinsic=kind.startswith(("Bit", "Shift")))
        return self._other(kind, e)

    def _other(self, kind: str, e: Any) -> str:
        if kind == "Not":
            return f"!{self.text(e._fields[0])}"
        if kind == "Select":
            return f"select({self._list(e._fields)})"
        if kind == "Cast":
            return f"cast({e.dtype}, {self.text(e._fields[0])})" if self._types else f"{e.dtype}({self.text(e._fields[0])})"
        if kind == "Reinterpret":
            return self._called("reinterpret", e, e._fields[:1], intrinsic=True)
        if kind == "Extern" and not str(e._fields[0]).startswith("tir."):
            return self._called("call_extern", e, [str(e._fields[0]), *e._fields[1]], intrinsic=True)
        if kind in ("Call", "Extern"):
            return self._called(str(e._fields[0]).removeprefix("tir."), e, e._fields[1], intrinsic=True)
        if kind == "Read":
            return f"{getattr(e._fields[0], 'name', e._fields[0])}[{self._list(e._fields[1])}]"
        if kind == "Let":
            bound = "let {} = {} in {}".format(*map(self.text, e._fields))
            return bound if self._types else f"({bound})"
        if kind == "Ramp":
            return f"ramp({self._list(e._fields)})"
        if kind == "Broadcast":
            return f"broadcast({self._list(e._fields)})" if self._types else f"x{e._fields[1]}({self.text(e._fields[0])})"
        if kind == "Shuffle":
            return f"shuffle({self._list([*e._fields[0], *e._fields[1]])})"
        return e._text() if hasattr(e, "_text") else str(e)

    def _list(self, parts: Any) -> str:
        return ", ".join(self.text(p) for p in parts)

    def _called(self, name: str, e: Any, args: Any, intrinsic: bool = False) -> str:
        if not intrinsic:
            return f"{name}({self._list(args)})"
        return f"@tir.{name}({self._list(args)}, dtype={e.dtype})" if self._types else f"tir.{name}({self._list(args)})"

    def _variable(self, v: Any) -> str:
        name = str(v._fields[0])
        if not self._types:
            return name
        known = self._names.get(v)
        if known is not None:
            return known
        count = self._used[name]
        self._used[name] += 1
        self._names[v] = name = f"{name}_{count}" if count else name
        return f"{name}: {v.dtype}"

    def _number(self, dtype: str, value: int) -> str:
        if dtype == "int32":
            return str(value)
        if dtype == "bool":
            return str(bool(value))
        return f"{value}{dtype.replace('uint', 'u').replace('int', 'i')}" if self._types else f"({dtype}){value}"

    def _real(self, dtype: str, value: float) -> str:
        shown = f"{value:.6g}"
        return f"{shown}{dtype.replace('float', 'f')}" if self._types else shown + {"float32": "f", "float16": "h"}.get(dtype, "")


def short(e: Any) -> str:
    return Printer(False).text(e)


def pretty(e: Any) -> str:
    return Printer(True).text(e)
