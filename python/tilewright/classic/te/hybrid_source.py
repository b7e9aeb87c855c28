# SPDX-License-Identifier: Apache-2.0
"""Loops as the text of a hybrid script: what `te.hybrid.build` and the target "hybrid" make of a schedule, and the modules of such texts."""
from __future__ import annotations

import ast
import keyword
import linecache
import os
import re
import typing

import numpy as np

from ... import _core
from ..tir.function import PrimFunc
from ..tir.stmt import ForKind

_INFIX = {"Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "And": "and", "Or": "or",
          "BitAnd": "&", "BitOr": "|", "BitXor": "^", "ShiftLeft": "<<", "ShiftRight": ">>"}
_LOOPS = {ForKind.SERIAL: "range", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorize", ForKind.UNROLLED: "unroll"}
_OTHER_NAMES = {"pow": "power", "fabs": "abs"}  # of functions, in scripts
_WIDEST = (1 << 31) - 1  # a loop's end where it is no number


class SourceError(ValueError):
    """Loops that a hybrid script cannot express."""


class _Writer:
    """The text of one function."""

    def __init__(self, function: PrimFunc, known: typing.Collection[str]):
        self._known = set(known)
        self._lines: list[str] = []
        self._names: dict[typing.Any, str] = {}
        self._used: set[str] = set()
        self._shapes: dict[typing.Any, list[typing.Any]] = {}  # of the tensors, by their memory in a kernel
        self._ranges: list[tuple[typing.Any, int, int]] = []
        self._ends: dict[typing.Any, typing.Any] = {}  # of loops that begin at 0
        self._function = function._lowered

    def _named(self, key: typing.Any, name: str) -> str:
        """The name of a variable or buffer: a word of Python that means nothing else here."""
        if key not in self._names:
            base = re.sub(r"\W", "_", name) or "v"
            base = f"v{base}" if base[0].isdigit() else base
            made, count = base, 0
            while made in self._used or made in self._known or keyword.iskeyword(made):
                count += 1
                made = f"{base}_{count}"
            self._used.add(made)
            self._names[key] = made
        return self._names[key]

    def write(self, name: str) -> str:
        """The definition of a function `name` that returns what it writes."""
        f = self._function
        if f.calls:
            raise SourceError(f"the loops call the runtime's function '{f.calls[0]}', for which a hybrid script has no form")
        params: list[str] = []
        made: list[tuple[int, str]] = []
        tensors = [a for a in f.arguments if isinstance(a, tuple)]
        written = {buffer for body in f.bodies for buffer in _written(body)}
        memory = [kernel[len(kernel) - len(tensors) - len(f.workspaces):] for kernel in f.parameters]  # behind the sizes'
        number = -1
        for a in f.arguments:
            if not isinstance(a, tuple):
                params.append(self._named(("size", str(a._fields[0])), str(a._fields[0])))
                continue
            number += 1
            text = self._named(("tensor", number), a[0])
            for kernel in memory:
                self._names[kernel[number]], self._shapes[kernel[number]] = text, list(a[2])
            if any(kernel[number] in written for kernel in memory):
                made.append((number, text))
            else:
                params.append(text)
        if not made:
            raise SourceError("the loops write none of the function's tensors")
        self._lines = [f"def {name}({', '.join(params)}):"]
        for number, text in made:
            self._line(1, f"{text} = output_tensor({self._shape(tensors[number][2])}, '{tensors[number][1]}')")
        for place, (key, dtype, elements) in enumerate(f.workspaces, len(tensors)):
            text = self._named(("tensor", place), key)
            for kernel in memory:
                self._names[kernel[place]] = text
            self._line(1, f"{text} = allocate({self._shape([elements])}, '{dtype}', 'global')")
        for body in f.bodies:
            self._statement(body, 1)
        self._line(1, "return " + ", ".join(text for _, text in made))
        return "\n".join(self._lines) + "\n"

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _shape(self, shape: typing.Sequence[typing.Any]) -> str:
        plain = [d._fields[0] if getattr(d, "_kind", "") == "Cast" else d for d in shape]  # int64(n), of a size n
        return "(" + ", ".join(self._text(d) for d in plain) + ("," if len(shape) == 1 else "") + ")"

    def _statement(self, s: typing.Any, depth: int) -> None:
        kind = s._kind
        if kind == "Seq":
            for part in s.seq:
                self._statement(part, depth)
            if not s.seq:
                self._line(depth, "pass")
        elif kind == "For":
            self._loop(s, depth)
        elif kind == "If":
            self._line(depth, f"if {self._text(s.condition)}:")
            self._statement(s.then_case, depth + 1)
            if s.else_case is not None:
                self._line(depth, "else:")
                self._statement(s.else_case, depth + 1)
        elif kind == "Store":
            self._line(depth, f"{self._element(s.buffer, s.indices)} = {self._text(s.value)}")
        elif kind == "LetStmt":
            if _reads_sizes(s.value):  # a size of the caller's, which is a parameter
                name = str(s.var._fields[0])
                self._names[s.var] = self._named(("size", name), name)
            else:
                self._line(depth, f"{self._named(s.var, str(s.var._fields[0]))} = {self._text(s.value)}")
            self._statement(s.body, depth)
        elif kind == "Allocate":
            self._line(depth, f"{self._named(s.buffer, s.buffer.name)} = allocate(({int(s.extents[0])},), '{s.buffer.dtype}', 'local')")
            self._statement(s.body, depth)
        elif kind != "Prefetch":
            raise SourceError(f"a hybrid script has no form for the statement {str(s).strip().splitlines()[0]}")

    def _loop(self, s: typing.Any, depth: int) -> None:
        name = self._named(s.loop_var, str(s.loop_var._fields[0]))
        low, extent = s.min, s.extent
        thread = s.annotations.get("thread")
        ends = [self._text(extent)] if isinstance(low, int) and low == 0 else [self._text(low), self._text(low + extent)]
        loop = f"bind('{thread}', {ends[-1]})" if thread and len(ends) == 1 else f"{_LOOPS.get(s.kind, 'range')}({', '.join(ends)})"
        self._line(depth, f"for {name} in {loop}:")
        first, last = (_core.prim_bounds(e, self._ranges) if not isinstance(e, int) else (int(e), int(e)) for e in (low, extent))
        self._ranges.append((s.loop_var, max(first[0], -_WIDEST), min(first[1] + last[1] - 1, _WIDEST)))
        if isinstance(low, int) and low == 0:
            self._ends[s.loop_var] = extent
        self._statement(s.body, depth + 1)
        self._ranges.pop()

    def _element(self, buffer: typing.Any, indices: typing.Any) -> str:
        """An element of a buffer; kernels index memory as a whole, scripts each dimension."""
        index = indices[0] if isinstance(indices, (list, tuple)) else indices
        name = self._names.get(buffer)
        if name is None:
            raise SourceError(f"the loops access '{buffer.name}', which is no tensor of theirs")
        shape = self._shapes.get(buffer, [0])
        parts = []
        for d in range(len(shape) - 1):
            stride: typing.Any = 1
            for size in shape[d + 1:]:
                stride = size * stride if isinstance(stride, int) and stride == 1 or not isinstance(size, int) else stride * size
            part, index = self._divided(index, stride)
            parts.append(part)
        return f"{name}[{', '.join([*parts, self._text(index)])}]"

    def _divided(self, index: typing.Any, stride: typing.Any) -> tuple[str, typing.Any]:
        """The text of index // stride, and index % stride."""
        if isinstance(stride, int):
            made = [_core.prim_simplify(_core.prim_binary(op, index, int(stride)), self._ranges) for op in ("FloorDiv", "FloorMod")]
            return self._text(made[0]), made[1]
        # i * n + j where j is a loop over n
        text, rest = self._text(stride), index
        if getattr(index, "_kind", "") == "Add" and getattr(index._fields[0], "_kind", "") == "Mul":
            (row, width), rest = index._fields[0]._fields, index._fields[1]
            end = self._ends.get(rest) if getattr(rest, "_kind", "") == "Var" else None
            if end is not None and self._text(width) == text == self._text(end):
                return self._text(row), rest
        return f"({self._text(index)} // {text})", _core.prim_binary("FloorMod", index, stride)

    def _text(self, e: typing.Any) -> str:
        kind = getattr(e, "_kind", "")
        if isinstance(e, (bool, int, float)):
            return self._number(e)
        if kind == "Var":
            if e not in self._names:
                name = str(e._fields[0])
                return self._named(("size", name), name)
            return self._names[e]
        if kind == "Load":
            return self._element(e._fields[0], e._fields[1])
        if kind in ("Div", "Mod") and "float" not in e.dtype:
            return f"{'truncdiv' if kind == 'Div' else 'truncmod'}({self._list(e._fields[:2])})"
        if kind == "Div":
            return f"({self._text(e._fields[0])} / {self._text(e._fields[1])})"
        if kind in _INFIX:
            return f"({self._text(e._fields[0])} {_INFIX[kind]} {self._text(e._fields[1])})"
        if kind in ("Min", "Max"):
            return f"{kind.lower()}({self._list(e._fields[:2])})"
        if kind == "Not":
            return f"(not {self._text(e._fields[0])})"
        if kind == "Cast":
            return f"{e.dtype}({self._text(e._fields[0])})" if e.dtype in self._known else self._refuse(e)
        if kind == "Select" or kind == "Call" and str(e._fields[0]) == "tir.if_then_else":
            condition, yes, no = e._fields if kind == "Select" else e._fields[1]
            return f"({self._text(yes)} if {self._text(condition)} else {self._text(no)})"
        if kind == "Let":
            self._names[e._fields[0]] = self._text(e._fields[1])
            return self._text(e._fields[2])
        if kind == "Call":
            name = str(e._fields[0]).removeprefix("tir.")
            name = _OTHER_NAMES.get(name, name)
            if name in self._known:
                return f"{name}({self._list(e._fields[1])})"
        return self._refuse(e)

    def _refuse(self, e: typing.Any) -> typing.NoReturn:
        raise SourceError(f"a hybrid script has no form for the expression {e}")

    def _list(self, parts: typing.Any) -> str:
        return ", ".join(self._text(p) for p in parts)

    def _number(self, e: typing.Any) -> str:
        dtype = getattr(e, "dtype", "")
        if isinstance(e, bool) or dtype == "bool":
            return str(bool(e))
        if isinstance(e, int):
            return str(int(e)) if dtype in ("", "int32", "int64") else f"{dtype}({int(e)})"
        value = float(e)
        text = str(np.float32(value)) if dtype == "float32" and np.isfinite(value) else repr(value)
        return text if dtype in ("", "float32") else f"{dtype}({text})"


def _written(body: typing.Any) -> list[typing.Any]:
    """The memory that statements write."""
    out: list[typing.Any] = []
    _core.stmt_visit(body, lambda node: out.append(node.buffer) if getattr(node, "_kind", "") == "Store" else None, True)
    return out


def _reads_sizes(value: typing.Any) -> bool:
    found: list[bool] = []
    _core.stmt_visit(value, lambda e: found.append(True) if getattr(e, "_kind", "") == "Load" and e._fields[0].name == "sizes" else None, True)
    return bool(found)


def source_of_loops(function: PrimFunc, name: str) -> str:
    """The definition of a Python function that does what the loops do. SourceError: what a script has no form for."""
    from .hybrid import script_names
    return _Writer(function, script_names()).write(name)


class HybridModule:
    """A hybrid script with its text. Called with tensors it returns what it computes, with arrays it runs as Python; given its outputs, too, as
    a built function is, it fills those."""

    type_key = "hybrid"

    def __init__(self, src: str | None = None, name: str | None = None):
        self.name, self._text, self._script = name, "", typing.cast(typing.Any, None)
        if src is not None:
            self._read(src if "hybrid.script" in src else f"import tvm\n@tvm.te.hybrid.script\n{src}", f"<hybrid script {name or ''} {id(self)}>")

    def _read(self, text: str, path: str) -> None:
        from ... import classic
        tree = ast.parse(text, path)
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        if len(found) != 1:
            raise ValueError(f"{path} has {len(found)} functions; a hybrid script is one function")
        tree.body = [node for node in tree.body if not isinstance(node, ast.Import)]  # its "import tvm", which means this package
        linecache.cache[path] = (len(text), None, text.splitlines(True), path)
        names: dict[str, typing.Any] = {"tvm": classic}
        exec(compile(tree, path, "exec"), names)  # noqa: S102  a script that the caller has written or named
        self._text, self._script, self.name = text, names[found[0].name], self.name or found[0].name

    def load(self, path: str | os.PathLike[str]) -> None:
        """Reads a script from a Python file."""
        with open(path, encoding="utf-8") as file:
            self._read(file.read(), os.path.abspath(os.fspath(path)))

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Writes the script as a Python file, whose name ends in .py."""
        name = os.fspath(path)
        with open(name if name.endswith(".py") else f"{name}.py", "w", encoding="utf-8") as file:
            file.write(self.get_source())

    def get_source(self, fmt: str = "") -> str:
        return self._text

    def __getitem__(self, name: str) -> "HybridModule":
        if name not in (self.name, "__tvm_main__"):
            raise AttributeError(f"Module has no function '{name}'; it has '{self.name}'")
        return self

    get_function = __getitem__
    entry_func = property(lambda self: self)

    def __call__(self, *args: typing.Any) -> typing.Any:
        if self._script is None:
            raise ValueError("the module has no script yet: load one")
        wanted = self._script.arity
        given = args[wanted:]
        made = self._script(*args[:wanted])
        if not given:
            return made
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        if len(results) != len(given):
            raise ValueError(f"{self.name} takes {wanted} arguments and {len(results)} outputs, and is given {len(args)} in all")
        for out, value in zip(given, results):
            out.copyfrom(value)
        return None


def build(sch: typing.Any, inputs: typing.Sequence[typing.Any], outputs: typing.Sequence[typing.Any], name: str = "hybrid_func") -> HybridModule:
    """A schedule as a hybrid script, which has its loops as Python text. ValueError: loops that a script has no form for."""
    from ..driver.build_module import lower
    lowered = lower(sch, [*inputs, *outputs], name)[name]
    return HybridModule(source_of_loops(lowered, name), name)


__all__ = ["HybridModule", "SourceError", "build", "source_of_loops"]
