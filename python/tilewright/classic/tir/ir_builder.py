# SPDX-License-Identifier: Apache-2.0
"""Builds loops statement by statement: for a function over buffers, a te.extern body, or a tensor intrinsic."""
from __future__ import annotations

import typing

from ... import _core
from .buffer import Buffer, decl_buffer
from .expr import Var
from .op import likely as _likely
from .reduction import ThreadAxis
from .stmt import evaluate, loop_kind, write


class WithScope:
    """A scope that `with` opens and closes."""

    def __init__(self, enter_value: typing.Any, exit_cb: typing.Callable[[], None]):
        self._enter_value, self._exit_cb = enter_value, exit_cb

    def __enter__(self) -> typing.Any:
        return self._enter_value

    def __exit__(self, ptype: typing.Any, value: typing.Any, trace: typing.Any) -> None:
        if ptype is None:
            self._exit_cb()


class BufferVar:
    """A buffer in a program: `var[i]` is an element, `var[i] = value` emits a store. With several dimensions `var[i, j]`, or a flat
    index `var[k]`."""

    def __init__(self, builder: "IRBuilder", buffer: Buffer, content_type: str | None = None):
        self._builder, self._buffer, self._content_type = builder, buffer, content_type or buffer.dtype

    dtype = property(lambda self: self._content_type)
    name = property(lambda self: self._buffer.name)
    shape = property(lambda self: self._buffer.shape)
    buffer = property(lambda self: self._buffer)

    def asobject(self) -> Buffer:
        return self._buffer

    def __getitem__(self, index: typing.Any) -> typing.Any:
        return self._buffer[index] if self._content_type == self._buffer.dtype else self._buffer.vload(index, self._content_type)

    def __setitem__(self, index: typing.Any, value: typing.Any) -> None:
        at = list(index) if isinstance(index, tuple) else [index]
        self._builder.emit(write(self._buffer, at, value))

    def access_ptr(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return self._buffer.access_ptr(*args, **kwargs)


class IRBuilder:
    """Emits statements into the current `with` scope; `get()` returns all of them."""

    def __init__(self) -> None:
        self._open: list[list[typing.Any]] = [[]]

    def _end(self, parts: list[typing.Any]) -> typing.Any:
        """The statements of a scope. Allocations and lets enclose the statements emitted after them."""
        out: list[typing.Any] = []
        for part in reversed(parts):
            out = [part(_core.stmt_seq(out[::-1]))] if callable(part) else out + [part]
        return _core.stmt_seq(out[::-1])

    def emit(self, stmt: typing.Any) -> None:
        """Emits a statement, a call as a statement, or a function that makes a statement around those emitted after it in the scope."""
        self._open[-1].append(stmt if callable(stmt) and not isinstance(stmt, _core.Stmt) else evaluate(stmt))

    def get(self) -> typing.Any:
        """All statements; empties the builder."""
        if len(self._open) != 1:
            raise RuntimeError("cannot call get inside construction scope")
        parts, self._open = self._open[0], [[]]
        return self._end(parts)

    def _scope(self, close: typing.Callable[[typing.Any], typing.Any], value: typing.Any = None) -> WithScope:
        self._open.append([])

        def ended() -> None:
            body = self._end(self._open.pop())
            self._open[-1].append(close(body))
        return WithScope(value, ended)

    def for_range(self, begin: typing.Any, end: typing.Any, name: str = "i", dtype: typing.Any = None, kind: typing.Any = "serial") -> WithScope:
        """`with ib.for_range(0, n, name="i") as i:`"""
        loop = loop_kind(kind)
        if dtype is None:
            dtype = next((e.dtype for e in (end, begin) if hasattr(e, "dtype")), "int32")
        var = Var(name, dtype)
        extent = end if isinstance(begin, int) and begin == 0 else end - begin
        return self._scope(lambda body: _core.stmt_for(var, begin, extent, loop, body, None), var)

    def while_loop(self, condition: typing.Any) -> WithScope:
        """`with ib.while_loop(i[0] < n):` repeats as long as the condition, evaluated before each iteration, holds."""
        return self._scope(lambda body: _core.stmt_while(condition, body))

    def if_scope(self, cond: typing.Any) -> WithScope:
        """Statements under a condition."""
        return self._scope(lambda body: _core.stmt_if(cond, body, None))

    def else_scope(self) -> WithScope:
        """The else branch of the if_scope just before."""
        parts = self._open[-1]
        if not parts or callable(parts[-1]) or parts[-1]._kind != "If" or parts[-1]._fields[2] is not None:
            raise RuntimeError("else_scope can only follow an if_scope")
        condition, then_case, _ = parts.pop()._fields
        return self._scope(lambda body: _core.stmt_if(condition, then_case, body))

    def new_scope(self) -> WithScope:
        return self._scope(lambda body: body)

    def let(self, var_name: typing.Any, value: typing.Any) -> Var:
        """Binds a value to a variable for the rest of the scope."""
        from .expr import dtype_of
        var = Var(var_name, dtype_of(value)) if isinstance(var_name, str) else var_name
        self._open[-1].append(lambda body: _core.stmt_let(var, value, body))
        return var

    def allocate(self, dtype: str, shape: typing.Any, name: str = "buf", axis_separators: typing.Any = None, scope: str = "") -> BufferVar:
        """Allocates memory for the rest of the scope."""
        shape = shape if isinstance(shape, (list, tuple)) else (shape,)
        buffer = decl_buffer(shape, dtype, name, scope=scope)
        self._open[-1].append(lambda body: _core.stmt_block("", [], None, None, body, [buffer], None))
        return BufferVar(self, buffer)

    def buffer_ptr(self, buf: typing.Any, shape: typing.Any = None) -> BufferVar:
        """Access to a buffer's elements."""
        return BufferVar(self, buf)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """Access to memory of an unknown size, for looking at loops; a function's parameters have sizes (tvm.tir.decl_buffer)."""
        return BufferVar(self, decl_buffer((Var(f"{name}_size"),), content_type, name, scope=scope))

    def likely(self, expr: typing.Any) -> typing.Any:
        return _likely(expr)

    def scope_attr(self, node: typing.Any, attr_key: str, value: typing.Any) -> None:
        """An attribute of the rest of the scope. "thread_extent" makes it a GPU thread loop, which cannot be built; others have no
        effect."""
        if attr_key != "thread_extent":
            return
        axis = node if isinstance(node, ThreadAxis) else None
        if axis is None:
            raise ValueError("a thread_extent is of a te.thread_axis")
        self._open[-1].append(lambda body: _core.stmt_for(axis.var, 0, value, 0, body, {"thread": axis.thread_tag}))


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()


__all__ = ["BufferVar", "IRBuilder", "WithScope", "create"]
