# SPDX-License-Identifier: Apache-2.0
"""Placeholders, computations, axes and sizes."""
from __future__ import annotations

import inspect
import typing

from ... import _core
from ..error import InvalidValue
from ..tir.buffer import buffer_of, decl_buffer
from ..tir.range import Range
from ..tir.stmt import evaluate
from ..tir.expr import SizeVar, Var
from ..tir.reduction import IterVar, Reduce, ThreadAxis
from . import tag as _tag
from .tensor import Tensor
from .tracing import has_traces, traced_stages


def var(name: str = "tindex", dtype: str = "int32", span: object = None) -> Var:
    """A variable: a symbolic size, `te.placeholder((te.var("n"),))`, also in Relay types; or a scalar parameter."""
    return Var(name, dtype)


def size_var(name: str = "size", dtype: str = "int32", span: object = None) -> SizeVar:
    """A non-negative variable."""
    return SizeVar(name, dtype)


def const(value: typing.Any, dtype: str = "int32", span: object = None) -> typing.Any:
    """A number with a dtype."""
    from ..tir.op import const as number
    return number(value, dtype)


def _shape(shape: typing.Any) -> list[typing.Any]:
    return [d for d in shape] if isinstance(shape, (list, tuple)) or hasattr(shape, "__iter__") else [shape]


def placeholder(shape: typing.Any, dtype: str | None = None, name: str = "placeholder") -> Tensor:
    """An input tensor."""
    return _core.te_placeholder(_shape(shape), str(dtype or "float32"), name)


def _axis_names(fcompute: typing.Callable[..., typing.Any], rank: int) -> list[str]:
    """The parameter names of a function. ValueError if their number is wrong."""
    kinds = inspect.Parameter
    try:
        parameters = list(inspect.signature(fcompute).parameters.values())
    except (TypeError, ValueError):  # builtin functions have no signature
        return [f"i{d}" for d in range(rank)]
    if any(p.kind == kinds.VAR_KEYWORD for p in parameters):
        raise ValueError("Variable keyword arguments are not allowed in fcompute")
    names = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD) and p.default is kinds.empty]
    if any(p.kind == kinds.VAR_POSITIONAL for p in parameters):
        names += [f"i{d}" for d in range(len(names), rank)]
    elif not names:
        names = [f"i{d}" for d in range(rank)]
        if rank and not parameters:
            raise ValueError(f"Number of args to fcompute does not match dimension, args=0, dimension={rank}")
    if len(names) != rank:
        raise ValueError(f"Number of args to fcompute does not match dimension, args={len(names)}, dimension={rank}")
    return names


def compute(shape: typing.Any, fcompute: typing.Callable[..., typing.Any], name: str = "compute", tag: str = "", attrs: typing.Any = None, varargs_names: typing.Any = None) -> typing.Any:
    """A tensor whose element at some indices is fcompute(*indices): an expression, or a reduction (te.sum and others) of one.

    If fcompute returns several expressions, the result is a list of tensors. Errors: 101, also a ValueError (invalid body)."""
    if _tag.TagScope.get_current() is not None:
        if tag:
            raise ValueError("nested tag is not allowed for now")
        tag = _tag.TagScope.get_current().tag
    sizes = _shape(shape)
    names = list(varargs_names) if varargs_names else _axis_names(fcompute, len(sizes))
    axes = [_core.te_axis(d, n) for d, n in zip(sizes, names)]
    body = fcompute(*[a.var for a in axes])
    many = isinstance(body, (list, tuple))
    bodies = list(body) if many else [body]
    if not bodies:
        raise ValueError("fcompute gives no expression")
    if not isinstance(bodies[0], Reduce) and has_traces(bodies):
        bodies = traced_stages(name, axes, bodies)
    reduces = [b for b in bodies if isinstance(b, Reduce)]
    if reduces and (len(reduces) != len(bodies) or any(b._combiner is not bodies[0]._combiner and b.source is not bodies[0].source for b in bodies)):
        raise InvalidValue("all bodies of a compute are one reduction's, or none is a reduction")
    if reduces:
        first = bodies[0]
        chosen = [b.value_index for b in bodies]
        if len(first.source) > 1 and chosen != list(range(len(first.source))):
            raise InvalidValue("a compute takes all values of a reduction, in their order")
        source = traced_stages(name, [*axes, *first.axis], first.source) if has_traces(first.source) else first.source
        op = _core.te_compute(name, axes, first.axis, source, first._combiner, first.condition, tag, attrs)
    else:
        op = _core.te_compute(name, axes, [], bodies, None, None, tag, attrs)
    outputs = [op.output(i) for i in range(op.num_outputs)]
    return outputs if many else outputs[0]


def extern(shape: typing.Any, inputs: typing.Any, fcompute: typing.Callable[..., typing.Any], name: str = "extern", dtype: typing.Any = None, in_buffers: typing.Any = None,
           out_buffers: typing.Any = None, tag: str = "", attrs: typing.Any = None) -> typing.Any:
    """Tensors computed by statements: fcompute(ins, outs) gets buffers and returns the statements of an ir_builder, or a call
    (tvm.tir.call_packed, call_extern).

    `shape`: of one output, or a list of shapes; `dtype`: of the outputs (default: that of the inputs). Errors: 101 and ValueError."""
    shapes = [shape] if not shape or isinstance(shape, tuple) or not hasattr(shape[0], "__iter__") else list(shape)
    given = [_core_tensor(t) for t in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
    if in_buffers is not None:
        in_buffers = in_buffers if isinstance(in_buffers, (list, tuple)) else [in_buffers]
        if len(in_buffers) != len(given):
            raise RuntimeError(f"Number of inputs and in_buffers mismatch: {len(given)} vs {len(in_buffers)}.")
    if dtype is None and out_buffers is None:
        kinds = {t.dtype for t in given}
        if len(kinds) != 1:
            raise ValueError("Cannot infer output type, please provide dtype argument")
        dtype = kinds.pop()
    dtypes = [str(dtype)] * len(shapes) if isinstance(dtype, str) or dtype is None else [str(d) for d in dtype]
    ins = list(in_buffers) if in_buffers is not None else [buffer_of(t) for t in given]
    if out_buffers is not None:
        outs = list(out_buffers) if isinstance(out_buffers, (list, tuple)) else [out_buffers]
    else:
        outs = [decl_buffer(list(s), d, name if len(shapes) == 1 else f"{name}.v{i}") for i, (s, d) in enumerate(zip(shapes, dtypes))]
    op = _core.te_extern(name, given, ins, outs, evaluate(fcompute(ins, outs)), False)
    made = [op.output(i) for i in range(op.num_outputs)]
    return made[0] if len(made) == 1 else made


def extern_primfunc(input_tensors: typing.Any, primfunc: typing.Any, **kwargs: typing.Any) -> typing.Any:
    """Tensors computed by a function over buffers: its parameters that it writes are the results, the others, in their order, these
    inputs. ValueError: other sizes or dtypes than the function's."""
    buffers = list(primfunc.buffer_map.values())
    written: list[typing.Any] = []

    def look(node: typing.Any) -> None:
        kind = getattr(node, "_kind", "")
        if kind == "Write":
            written.append(node.buffer)
        elif kind == "CallExtern":
            written.extend(a[1] for a in node._fields[1] if isinstance(a, tuple))
    _core.stmt_visit(primfunc.body, look, True)
    outs = [b for b in buffers if any(b.same_as(w) for w in written)]
    ins = [b for b in buffers if not any(b.same_as(o) for o in outs)]
    given = [_core_tensor(t) for t in input_tensors]
    if [(list(map(str, b.shape)), b.dtype) for b in ins] != [(list(map(str, t.shape)), t.dtype) for t in given]:
        raise ValueError(f"the function reads {ins}, and is given {given}")
    return extern([tuple(b.shape) for b in outs], given, lambda _ins, _outs: primfunc.body, in_buffers=ins, out_buffers=outs, **kwargs)


def _core_tensor(value: typing.Any) -> Tensor:
    if not isinstance(value, _core.Tensor):
        raise ValueError("expect inputs to be tensor")
    return value


def scan(init: typing.Any, update: typing.Any, state_placeholder: typing.Any, inputs: typing.Any = None, name: str = "scan", tag: str = "", attrs: typing.Any = None) -> typing.Any:
    """A recurrence over the first dimension: `init` defines the first elements of the states, `update` each further one from earlier
    ones, read from `state_placeholder`. Several states are lists and give a list of tensors. Error: 101."""
    lists = [[v] if isinstance(v, _core.Tensor) else list(v) for v in (init, update, state_placeholder)]
    if len({len(v) for v in lists}) != 1:
        raise ValueError("init, update, state_placeholder must have same length")
    op = _core.te_scan(name, *lists)
    made = [op.output(i) for i in range(op.num_outputs)]
    return made[0] if len(made) == 1 else made


def reduce_axis(dom: typing.Any, name: str = "rv", thread_tag: str = "", span: object = None) -> IterVar:
    """A reduction axis: `te.reduce_axis((0, n), name="k")`."""
    low, extent = _range(dom)
    return _core.te_reduce_axis(low, extent, name)


def _range(dom: typing.Any) -> tuple[typing.Any, typing.Any]:
    if isinstance(dom, Range):
        return dom.min, dom.extent
    if isinstance(dom, (list, tuple)):
        if len(dom) != 2:
            raise TypeError("need to be list of ranges")
        low, high = dom
        return low, high if isinstance(low, int) and low == 0 else high - low
    return 0, dom


def thread_axis(dom: typing.Any = None, tag: str = "", name: str = "", span: object = None) -> ThreadAxis:
    """A GPU thread index: `te.thread_axis("threadIdx.x")`."""
    if isinstance(dom, str):
        tag, dom = dom, None
    if not tag:
        raise ValueError("tag must be given as Positional or keyword argument")
    return ThreadAxis(None if dom is None else Range.from_min_extent(*_range(dom)), tag, name or tag)


__all__ = ["compute", "const", "extern", "extern_primfunc", "placeholder", "reduce_axis", "scan", "size_var", "thread_axis", "var"]
