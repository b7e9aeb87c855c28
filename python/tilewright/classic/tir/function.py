# SPDX-License-Identifier: Apache-2.0
"""Loop functions and their modules: the result of `tvm.lower` and the input of `tvm.build`."""
from __future__ import annotations

import textwrap
import typing
import zlib
from collections.abc import Iterator, Mapping

from ... import _core
from .buffer import Buffer, decl_buffer
from .expr import Var
from .stmt import evaluate, visit_accesses


def _attributes(values: Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    from ..relay.attrs import DictAttrs
    return DictAttrs(values)


class _BufferMap(dict):  # type: ignore[type-arg]
    """Buffers by the names of their parameters; the parameters are keys, too."""

    def __getitem__(self, key: typing.Any) -> typing.Any:
        return dict.__getitem__(self, getattr(key, "name", key))

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, getattr(key, "name", key))

    def get(self, key: typing.Any, default: typing.Any = None) -> typing.Any:
        return dict.get(self, getattr(key, "name", key), default)


def _parameter(given: typing.Any, buffers: Mapping[str, Buffer], body: typing.Any) -> typing.Any:
    """The buffer or variable of a parameter: of a handle without a buffer, the buffer whose data it is in the body."""
    given = given.asobject() if hasattr(given, "asobject") else given
    if isinstance(given, Buffer) or not isinstance(given, Var):
        return given
    if given.name in buffers or given.dtype != "handle":
        return buffers.get(given.name, given)
    found: list[Buffer] = []

    def see(_writes: bool, buffer: Buffer, _indices: typing.Any) -> None:
        if buffer.data is given or buffer.name == given.name:
            found.append(buffer)
    visit_accesses(evaluate(body), see)
    return found[0] if found else decl_buffer((1,), "uint8", given.name)


class PrimFunc:
    """A function over buffers: statements from a script, or the kernels of a lowered schedule.

    PrimFunc(params, body): params are buffers and variables, or handles that `buffer_map` maps to buffers."""

    def __init__(self, params: typing.Any, body: typing.Any, ret_type: typing.Any = None, buffer_map: Mapping[typing.Any, Buffer] | None = None, attrs: Mapping[str, typing.Any] | None = None,
                 span: object = None):
        buffers = {getattr(k, "name", k): v for k, v in (buffer_map or {}).items()}
        made = [_parameter(p, buffers, body) for p in params]
        for p in made:
            if not isinstance(p, Buffer) and not (isinstance(p, Var) and ("int" in p.dtype or p.dtype in ("float32", "float64"))):
                raise ValueError(f"the parameter {p} is no buffer and no number; give a tvm.tir.decl_buffer, or say its buffer in buffer_map")
            if [q for q in made if q is p][1:]:
                raise ValueError(f"the parameter {p} is given twice")
        name = str((attrs or {}).get("global_symbol", "main"))
        self._function, self._kernels, self._handles = _core.BlockFunction(name, made, evaluate(body)), None, None
        self.attrs = _attributes({"global_symbol": name, **(attrs or {})})

    @classmethod
    def _of(cls, lowered: typing.Any = None, function: typing.Any = None, attrs: Mapping[str, typing.Any] | None = None) -> "PrimFunc":
        out = cls.__new__(cls)
        out._kernels, out._function, out._handles = lowered, function, None
        out.attrs = _attributes({"global_symbol": (lowered or function).name, "tir.noalias": True, **(attrs or {})})
        return out

    def _named(self, handles: typing.Sequence[str] | None) -> "PrimFunc":
        """Itself, with the names of the parameters where a script gave them others than their buffers'."""
        self._handles = list(handles) if handles is not None else None
        return self

    @property
    def _names(self) -> list[str]:
        params = self._function.params
        return self._handles if self._handles is not None and len(self._handles) == len(params) else [p.name for p in params]

    @property
    def _lowered(self) -> typing.Any:
        if self._kernels is None:
            self._kernels = _core.te_lower_function(self._function)
        return self._kernels

    @property
    def params(self) -> list[typing.Any]:
        """The parameters: variables, and handles of buffers."""
        if self._function is not None:
            return [Var(name, "handle") if isinstance(p, Buffer) else p for name, p in zip(self._names, self._function.params)]
        return [Var(a[0], "handle") if isinstance(a, tuple) else a for a in self._lowered.arguments]

    @property
    def buffer_map(self) -> dict[str, Buffer]:
        """The buffers by parameter handle."""
        if self._function is not None:
            return _BufferMap({name: p for name, p in zip(self._names, self._function.params) if isinstance(p, Buffer)})
        return _BufferMap({a[0]: decl_buffer(a[2], a[1], a[0]) for a in self._lowered.arguments if isinstance(a, tuple)})

    @property
    def body(self) -> typing.Any:
        """The statements; those of kernels are concatenated."""
        if self._function is not None:
            return self._function.body
        parts = self._lowered.bodies
        return parts[0] if len(parts) == 1 else _core.stmt_seq(parts)

    def with_body(self, new_body: typing.Any, span: object = None) -> "PrimFunc":
        """A copy with another body. Error 103: of kernels, a variable or a buffer that does not belong to the function."""
        if self._function is not None:
            return PrimFunc._of(function=_core.BlockFunction(self._function.name, self._function.params, new_body), attrs=self.attrs)._named(self._handles)
        return PrimFunc._of(self._lowered.with_body(new_body), attrs=self.attrs)

    def with_attr(self, key: typing.Any, value: typing.Any = None) -> "PrimFunc":
        """A copy with attributes added: a key and a value, or a dict. `global_symbol` is the function's name."""
        new = dict(key) if isinstance(key, Mapping) else {key: value}
        if "global_symbol" not in new:
            return PrimFunc._of(self._kernels, self._function, {**self.attrs, **new})._named(self._handles)
        name = str(new["global_symbol"])
        if self._function is not None:
            return PrimFunc._of(function=_core.BlockFunction(name, self._function.params, self._function.body), attrs={**self.attrs, **new})._named(self._handles)
        return PrimFunc._of(self._kernels.renamed(name), attrs={**self.attrs, **new})

    def without_attr(self, key: str) -> "PrimFunc":
        """A copy without an attribute."""
        return PrimFunc._of(self._kernels, self._function, None)._named(self._handles)._with({k: v for k, v in self.attrs.items() if k != key})

    def _with(self, attrs: Mapping[str, typing.Any]) -> "PrimFunc":
        self.attrs = _attributes(attrs)
        return self

    def specialize(self, param_map: Mapping[typing.Any, typing.Any]) -> "PrimFunc":
        """The function for given values of size parameters, or for given buffers of handles, whose sizes say those values.
        ValueError: of kernels, or a buffer of another rank, size or dtype."""
        if self._function is None:
            raise ValueError("kernels are of one form; specialize the function before it is lowered")
        values: list[tuple[typing.Any, typing.Any]] = []
        for key, value in param_map.items():
            if not isinstance(value, Buffer):
                values.append((key, value))
                continue
            old = self.buffer_map.get(getattr(key, "name", ""))
            if old is None or len(old.shape) != len(value.shape) or old.dtype != value.dtype:
                raise ValueError(f"the parameter {key} is no buffer like {value!r}")
            for size, given in zip(old.shape, value.shape):
                if isinstance(size, Var):
                    values.append((size, given))
                elif not _core.stmt_equal(size, given, False):
                    raise ValueError(f"the buffer '{old.name}' has the size {size}, not {given}")
        return PrimFunc._of(function=self._function.specialized(values), attrs=self.attrs)

    def structurally_equals(self, other: typing.Any) -> bool:
        """Whether body, parameters and attributes are structurally equal."""
        if not isinstance(other, PrimFunc) or {k: str(v) for k, v in self.attrs.items()} != {k: str(v) for k, v in other.attrs.items()}:
            return False
        if self._function is not None and other._function is not None:
            return bool(self._function.equals(other._function))
        return self is other or bool(self._lowered.text(False) == other._lowered.text(False))

    def same_as(self, other: typing.Any) -> bool:
        return self is other

    def structural_hash(self) -> int:
        own = self._function.structural_hash() if self._function is not None else zlib.crc32(self._lowered.text(False).encode())
        return own ^ zlib.crc32(repr(sorted((k, str(v)) for k, v in self.attrs.items())).encode())

    def script(self, *_: typing.Any, **__: typing.Any) -> str:
        """TVMScript that `tvm.script.from_source` can parse; for a lowered function its kernels' loops as text."""
        if self._function is None:
            return self._lowered.text(False)
        return "# from tvm.script import tir as T\n" + _core.block_script(self._function, "", False)

    def astext(self, show_meta_data: bool = True) -> str:
        return self.script()

    def show(self, *_: typing.Any, **__: typing.Any) -> None:
        print(self.script())

    def __repr__(self) -> str:
        return self.script()


class LoopModule:
    """Functions by name."""

    def __init__(self, functions: Mapping[str, PrimFunc] | None = None, attrs: Mapping[str, typing.Any] | None = None):
        self.functions = {str(name): function for name, function in (functions or {}).items()}
        self.attrs = _attributes(attrs) if attrs else None

    def copy(self) -> "LoopModule":
        return LoopModule(self.functions, self.attrs)

    shallow_copy = copy

    def with_attr(self, attr_key: str, attr_value: typing.Any) -> "LoopModule":
        """A copy with an attribute."""
        return LoopModule(self.functions, {**(self.attrs or {}), attr_key: attr_value})

    def get_attr(self, attr_key: str) -> typing.Any:
        return (self.attrs or {}).get(attr_key)

    def structurally_equals(self, other: typing.Any) -> bool:
        """Whether functions of the same names are structurally equal."""
        return isinstance(other, LoopModule) and self.functions.keys() == other.functions.keys() and all(f.structurally_equals(other.functions[n]) for n, f in self.functions.items())

    def structural_hash(self) -> int:
        return zlib.crc32(repr(sorted((n, f.structural_hash()) for n, f in self.functions.items())).encode())

    def __getitem__(self, name: typing.Any) -> PrimFunc:
        name = getattr(name, "name_hint", name)
        if name not in self.functions:
            raise ValueError(f"the module has no function '{name}'; it has {', '.join(self.functions)}")
        return self.functions[name]

    def __setitem__(self, name: typing.Any, function: PrimFunc) -> None:
        self.functions[str(getattr(name, "name_hint", name))] = function

    def __contains__(self, name: typing.Any) -> bool:
        return getattr(name, "name_hint", name) in self.functions

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def update(self, other: typing.Any) -> None:
        """Adds the functions of another module, replacing those of the same name."""
        self.functions.update(other.functions if isinstance(other, LoopModule) else other)

    def get_global_vars(self) -> list[typing.Any]:
        from ..relay.expr import GlobalVar
        return [GlobalVar(name) for name in self.functions]

    def get_global_var(self, name: str) -> typing.Any:
        """The name of a function. ValueError: there is none of that name."""
        from ..relay.expr import GlobalVar
        return GlobalVar(self[name] and str(name))

    def script(self, *_: typing.Any, **__: typing.Any) -> str:
        """A TVMScript class that `tvm.script.from_source` can parse; for lowered functions their kernels' loops as text."""
        if any(f._function is None for f in self.functions.values()):
            return "\n".join(f.script() for f in self.functions.values())
        parts = [_core.block_script(f._function, name, False) for name, f in self.functions.items()]
        return "# from tvm.script import tir as T\n@tvm.script.ir_module\nclass Module:\n" + textwrap.indent("\n".join(parts), "    ")

    def show(self, *_: typing.Any, **__: typing.Any) -> None:
        print(self.script())

    def astext(self, show_meta_data: bool = True) -> str:
        return self.script()

    def __repr__(self) -> str:
        return self.script()


def loops_of(mod: typing.Any) -> LoopModule:
    """The module of loop functions that a pass is given: itself, that of one function, or what was set in an empty IRModule()."""
    if isinstance(mod, PrimFunc):
        return LoopModule({str(mod.attrs["global_symbol"]): mod})
    made = getattr(mod, "_loops", mod)
    if not isinstance(made, LoopModule):
        raise TypeError(f"this is for modules of loops, not for a {type(mod).__name__}")
    return made


__all__ = ["LoopModule", "PrimFunc", "loops_of"]
