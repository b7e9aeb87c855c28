# SPDX-License-Identifier: Apache-2.0
"""Gradients of tensor expressions, as tensor expressions."""
from __future__ import annotations

import math
import typing

from ... import _core
from ..arith import detect_linear_equation
from ..tir import op as _op
from ..tir.expr import Select, dtype_of
from ..tir.reduction import min as _least, prod as _product, sum as _sum
from .operation import compute, const, reduce_axis
from .tensor import ComputeOp, PlaceholderOp, Tensor

Part = typing.Tuple[Tensor, list, typing.Any]  # an element that is read, and the derivative with respect to it

# The derivative of f at x, given x and f(x).
_SLOPES: dict[str, typing.Callable[[typing.Any, typing.Any], typing.Any]] = {
    "exp": lambda x, y: y, "exp2": lambda x, y: y * math.log(2), "log": lambda x, y: 1 / x, "log2": lambda x, y: 1 / (x * math.log(2)), "log10": lambda x, y: 1 / (x * math.log(10)), "log1p": lambda x, y: 1 / (1.0 + x),
    "sqrt": lambda x, y: 0.5 / y, "rsqrt": lambda x, y: -0.5 * y / x, "tanh": lambda x, y: 1.0 - y * y, "sigmoid": lambda x, y: y * (1.0 - y),
    "sin": lambda x, y: _op.cos(x), "cos": lambda x, y: -1.0 * _op.sin(x), "tan": lambda x, y: 1.0 + y * y, "sinh": lambda x, y: _op.cosh(x), "cosh": lambda x, y: _op.sinh(x),
    "asin": lambda x, y: 1.0 / _op.sqrt(1.0 - x * x), "acos": lambda x, y: -1.0 / _op.sqrt(1.0 - x * x), "atan": lambda x, y: 1.0 / (1.0 + x * x),
    "asinh": lambda x, y: 1.0 / _op.sqrt(x * x + 1.0), "acosh": lambda x, y: 1.0 / _op.sqrt(x * x - 1.0), "atanh": lambda x, y: 1.0 / (1.0 - x * x),
    "erf": lambda x, y: 2 / math.sqrt(math.pi) * _op.exp(-1.0 * x * x), "fabs": lambda x, y: Select(x >= 0.0, const(1.0, dtype_of(x)), const(-1.0, dtype_of(x)))}
_FLAT = {"floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "popcount", "clz"}


def _scaled(parts: list[Part], by: typing.Callable[[typing.Any], typing.Any]) -> list[Part]:
    return [(tensor, indices, by(factor)) for tensor, indices, factor in parts]


def _times(parts: list[Part], factor: typing.Any) -> list[Part]:
    return _scaled(parts, lambda f: factor if isinstance(f, float) and f == 1 else f * factor)


def _parts(e: typing.Any) -> list[Part]:
    """The elements that an expression reads, with the derivatives with respect to them. ValueError: a function without a derivative."""
    kind = getattr(e, "_kind", "")
    if not isinstance(e, _core.PrimExpr) or kind == "Var" or "float" not in dtype_of(e):
        return []
    if kind == "Read":
        return [(e.producer, e.indices, const(1.0, e.dtype))]
    if kind in ("Add", "Sub"):
        return _parts(e.a) + (_parts(e.b) if kind == "Add" else _times(_parts(e.b), const(-1.0, e.dtype)))
    if kind == "Mul":
        return _times(_parts(e.a), e.b) + _times(_parts(e.b), e.a)
    if kind == "Div":
        return _scaled(_parts(e.a), lambda f: f / e.b) + _scaled(_parts(e.b), lambda f: f * (-1.0 * e.a / (e.b * e.b)))
    if kind in ("Max", "Min"):
        first, zero = (e.a >= e.b if kind == "Max" else e.a <= e.b), const(0.0, e.dtype)
        return _scaled(_parts(e.a), lambda f: Select(first, f, zero)) + _scaled(_parts(e.b), lambda f: Select(first, zero, f))
    if kind == "Cast":
        source = dtype_of(e.value)
        return _scaled(_parts(e.value), lambda f: f if source == e.dtype else f.astype(source))
    if kind == "Let":
        return _parts(_core.prim_substitute(e.body, {e.var: e.value}))
    if kind == "Select":
        return _chosen(Select, e.condition, e.true_value, e.false_value)
    if kind == "Call":
        return _of_call(e)
    raise ValueError(f"the gradient of '{e}' is not known; give the function another form")


def _chosen(choose: typing.Any, condition: typing.Any, yes: typing.Any, no: typing.Any) -> list[Part]:
    zero = const(0.0, dtype_of(yes) if isinstance(yes, _core.PrimExpr) else dtype_of(no))
    return _scaled(_parts(yes), lambda f: choose(condition, f, zero)) + _scaled(_parts(no), lambda f: choose(condition, zero, f))


def _of_call(e: typing.Any) -> list[Part]:
    name, args = str(e.op).split(".")[-1], e.args
    if name == "if_then_else":
        return _chosen(_op.if_then_else, *args)
    if name == "pow":
        x, y = args
        return _times(_parts(x), y * _op.power(x, y - 1.0)) + _times(_parts(y), _op.log(x) * e)
    if name == "fma":
        return _times(_parts(args[0]), args[1]) + _times(_parts(args[1]), args[0]) + _parts(args[2])
    if name in _FLAT:
        return []
    if name not in _SLOPES:
        raise ValueError(f"the gradient of '{name}' is not known; give the function another form")
    return _times(_parts(args[0]), _SLOPES[name](args[0], e))


def _reduction_kind(op: typing.Any) -> str:
    """The kind of a reduction: Add, Mul, Max or Min. ValueError for any other."""
    combiner = op._combiner
    result = combiner.result[0]
    if len(combiner.result) == 1 and getattr(result, "_kind", "") in ("Add", "Mul", "Max", "Min"):
        return str(result._kind)
    raise ValueError(f"the gradient of the reduction of '{op.name}' is not known: it is no sum, product, maximum or minimum")


def _again(axes: list[typing.Any]) -> tuple[list[typing.Any], dict[typing.Any, typing.Any]]:
    """Fresh copies of reduction axes, and the substitution of the originals by them."""
    made = [reduce_axis((a.dom.min, a.dom.min + a.dom.extent), name=a.var.name) for a in axes]
    return made, {a.var: m.var for a, m in zip(axes, made)}


def _flat_index(axes: list[typing.Any]) -> typing.Any:
    flat: typing.Any = 0
    for a in axes:
        flat = flat * a.dom.extent + (a.var - a.dom.min)
    return flat


def _reduced_parts(op: typing.Any, out: Tensor) -> list[Part]:
    """The parts of a reduction with its axes free, to be summed over them. Of equal maxima or minima only the first contributes."""
    kind, source, axes = _reduction_kind(op), op._values[0], list(op.reduce_axis)
    held = op._condition
    if isinstance(held, _core.PrimExpr):
        identity = op._combiner.identity_element[0]
        source = _op.if_then_else(held, source, identity)
    parts = _parts(source)
    if kind == "Add" or not parts:
        return parts
    at, names = [a.var for a in op.axis], [a.var.name for a in op.axis]
    other, renamed = _again(axes)

    def with_indices(e: typing.Any, indices: typing.Any, more: dict[typing.Any, typing.Any]) -> typing.Any:
        return _core.prim_substitute(e, {**dict(zip(at, indices)), **more})
    if kind == "Mul":
        sizes = [a.dom.extent for a in axes]

        def rest(*i: typing.Any) -> typing.Any:
            same = _op.all(*[r.var == v + a.dom.min for r, v, a in zip(other, i[len(at):], axes)])
            return _product(_op.if_then_else(same, const(1.0, out.dtype), with_indices(source, i, renamed)), axis=other)
        others = compute((*out.shape, *sizes), rest, name=f"{out.name}.rest", varargs_names=names + [a.var.name for a in axes])
        return _times(parts, others(*at, *[a.var - a.dom.min for a in axes]))
    many = 2**31 - 1
    place = compute(tuple(out.shape), lambda *i: _least(_op.if_then_else(with_indices(source, i, renamed) == out(*i), _flat_index(other), many), axis=other), name=f"{out.name}.place")
    zero = const(0.0, out.dtype)
    return _scaled(parts, lambda f: Select(place(*at) == _flat_index(axes), f, zero))


def _contribution(head: Tensor, before: int, op: typing.Any, part: Part) -> Tensor:
    """The contribution of one read element in a computation's body to the gradient of its tensor."""
    tensor, indices, slope = part
    left = [*op.axis, *op.reduce_axis]  # axes to be summed over unless an index determines them

    def element(*i: typing.Any) -> typing.Any:
        values: dict[typing.Any, typing.Any] = {}
        holds, free = [], list(left)
        for want, index in zip(i[before:], indices):
            index = _core.prim_substitute(index, values) if values and isinstance(index, _core.PrimExpr) else index
            for axis in free:
                linear = detect_linear_equation(index, [axis.var])
                if not linear or not isinstance(linear[0], int) or abs(int(linear[0])) != 1:
                    continue
                value = _core.prim_simplify((want - linear[1]) * int(linear[0]), [])
                free.remove(axis)
                values = {v: _core.prim_substitute(x, {axis.var: value}) if isinstance(x, _core.PrimExpr) else x for v, x in values.items()}
                values[axis.var] = value
                if not (value is want and int(axis.dom.min) == 0 and _same(axis.dom.extent, tensor.shape[list(i[before:]).index(want)])):
                    holds += [value >= axis.dom.min, value < axis.dom.min + axis.dom.extent]
                break
            else:
                holds.append(_op.all(_equal(index, want)))
        fresh, renamed = _again(free)
        values = {**{v: _core.prim_substitute(x, renamed) if isinstance(x, _core.PrimExpr) else x for v, x in values.items()}, **renamed}

        def put(e: typing.Any) -> typing.Any:
            return _core.prim_substitute(e, values) if isinstance(e, _core.PrimExpr) else e
        made = head(*i[:before], *[put(a.var) - a.dom.min for a in op.axis]) * put(slope)
        if holds:
            made = _op.if_then_else(_op.all(*[put(h) for h in holds]), made, const(0.0, tensor.dtype))
        return _sum(made, axis=fresh) if fresh else made
    shape = (*head.shape[:before], *tensor.shape)
    return compute(shape, element, name=f"{tensor.op.name}.grad", varargs_names=[f"i{d}" for d in range(len(shape))])


def _equal(a: typing.Any, b: typing.Any) -> typing.Any:
    return _core.prim_binary("EQ", a, b)


def _same(a: typing.Any, b: typing.Any) -> bool:
    return a == b if isinstance(a, int) and isinstance(b, int) else getattr(a, "same_as", lambda x: False)(b)


def _in_order(output: Tensor) -> list[Tensor]:
    """The operations that the output depends on, in topological order."""
    order: list[Tensor] = []
    seen: set[Tensor] = set()
    waiting = [(output, False)]
    while waiting:
        tensor, done = waiting.pop()
        if done:
            order.append(tensor)
        elif tensor not in seen:
            seen.add(tensor)
            waiting.append((tensor, True))
            waiting += [(t, False) for t in tensor.op.input_tensors]
    return order


def gradient(output: Tensor, inputs: typing.Any, head: Tensor | None = None) -> list[Tensor]:
    """The gradients of a tensor with respect to others, each of shape head.shape[:-output.ndim] + input.shape. head is the gradient of
    something with respect to the output; without it the full Jacobians, of shape output.shape + input.shape.

    ValueError: an operation on the way is not a computation, or has no known derivative."""
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    rank = output.ndim
    if head is None:
        head = compute((*output.shape, *output.shape), lambda *i: _core.prim_cast(output.dtype, _op.all(*[_equal(a, b) for a, b in zip(i[:rank], i[rank:])])) if rank
                       else const(1.0, output.dtype), name="identity")
    before = head.ndim - rank
    if before < 0 or not all(_same(a, b) or not isinstance(a, int) or not isinstance(b, int) for a, b in zip(head.shape[before:], output.shape)):
        raise ValueError(f"the head is {tuple(head.shape)}; its last dimensions are not the output's, {tuple(output.shape)}")
    order = _in_order(output)
    needed = set(inputs)
    for tensor in order:
        if any(t in needed for t in tensor.op.input_tensors):
            needed.add(tensor)
    heads: dict[Tensor, list[Tensor]] = {output: [head]}
    for tensor in reversed(order):
        if tensor not in heads or tensor not in needed or isinstance(tensor.op, PlaceholderOp):
            continue
        if tensor in inputs and not any(t in needed for t in tensor.op.input_tensors):
            continue
        if not isinstance(tensor.op, ComputeOp) or tensor.op.num_outputs != 1:
            raise ValueError(f"'{tensor.op.name}' is no computation of one tensor; its gradient is not known")
        whole = _added(heads[tensor])
        heads[tensor] = [whole]
        parts = _reduced_parts(tensor.op, tensor) if tensor.op._combiner is not None else _parts(tensor.op._values[0])
        for part in parts:
            if part[0] in needed:
                heads.setdefault(part[0], []).append(_contribution(whole, before, tensor.op, part))
    shape = tuple(head.shape[:before])
    return [_added(heads[t]) if t in heads else compute((*shape, *t.shape), lambda *i, t=t: const(0.0, t.dtype), name=f"{t.op.name}.grad",
                                                        varargs_names=[f"i{d}" for d in range(before + t.ndim)]) for t in inputs]


def _added(parts: list[Tensor]) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    rank = parts[0].ndim

    def total(*i: typing.Any) -> typing.Any:
        out = parts[0](*i)
        for part in parts[1:]:
            out = out + part(*i)
        return out
    return compute(tuple(parts[0].shape), total, name=f"{parts[0].op.name}.sum", varargs_names=[f"i{d}" for d in range(rank)])


__all__ = ["gradient"]
