# SPDX-License-Identifier: Apache-2.0
"""Broadcasting binary operators on tensors and numbers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import te
from ..te.tensor import Tensor
from ..tir import op as tir_op
from ..tir.expr import dtype_of
from .elemwise import BROADCAST


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and int(size) == 1


def _same(a: Any, b: Any) -> bool:
    return int(a) == int(b) if isinstance(a, int) and isinstance(b, int) else bool(a == b)


def broadcast_shape(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """The broadcast shape. ValueError if the shapes are incompatible."""
    out = []
    for d in range(1, max(len(a), len(b)) + 1):
        x, y = (a[-d] if d <= len(a) else 1), (b[-d] if d <= len(b) else 1)
        if _is_one(x) or _same(x, y) or not _is_one(y) and isinstance(y, int) and not isinstance(x, int):
            out.append(y)
        elif _is_one(y) or not isinstance(y, int):
            out.append(x)
        else:
            raise ValueError(f"Incompatible broadcast dims: {x} and {y}")
    return out[::-1]


def read(x: Any, shape: Sequence[Any], indices: Sequence[Any]) -> Any:
    """The element of x, broadcast, at the indices of the result."""
    if not isinstance(x, Tensor):
        return x
    skipped = len(shape) - x.ndim
    return x(*[0 if _is_one(size) and not _is_one(shape[d + skipped]) else indices[d + skipped] for d, size in enumerate(x.shape)])


def _binary(name: str, function: Any) -> Any:
    def compute(lhs: Any, rhs: Any) -> Any:
        tensors = [x for x in (lhs, rhs) if isinstance(x, Tensor)]
        if not tensors:
            return function(lhs, rhs)
        shape = tensors[0].shape if len(tensors) == 1 else broadcast_shape(lhs.shape, rhs.shape)
        dtype = tensors[0].dtype
        a, b = (x if isinstance(x, Tensor) else tir_op.const(x, dtype) if isinstance(x, (int, float)) and not hasattr(x, "dtype") else x for x in (lhs, rhs))
        return te.compute(shape, lambda *i: function(read(a, shape, i), read(b, shape, i)), name=f"T_{name}", tag=BROADCAST)
    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = f"{name}(a, b), with broadcasting."
    return compute


def _divide(a: Any, b: Any) -> Any:
    return tir_op.div(a, b)


def _logical(kind: Any) -> Any:
    return lambda a, b: kind(*(x if dtype_of(x) == "bool" else x != tir_op.const(0, dtype_of(x)) for x in (a, b)))


add = _binary("add", lambda a, b: a + b)
subtract = _binary("subtract", lambda a, b: a - b)
multiply = _binary("multiply", lambda a, b: a * b)
divide = _binary("divide", _divide)
floor_divide = _binary("floor_divide", lambda a, b: tir_op.floordiv(a, b) if "int" in dtype_of(a) else tir_op.floor(_divide(a, b)))
mod = _binary("mod", lambda a, b: tir_op.truncmod(a, b) if "int" in dtype_of(a) else tir_op.fmod(a, b))
floor_mod = _binary("floor_mod", lambda a, b: tir_op.floormod(a, b) if "int" in dtype_of(a) else a - tir_op.floor(_divide(a, b)) * b)
maximum = _binary("maximum", lambda a, b: te.max(a, b))
minimum = _binary("minimum", lambda a, b: te.min(a, b))
power = _binary("power", tir_op.power)
left_shift = _binary("left_shift", lambda a, b: a << b)
right_shift = _binary("right_shift", lambda a, b: a >> b)
bitwise_and = _binary("bitwise_and", lambda a, b: a & b)
bitwise_or = _binary("bitwise_or", lambda a, b: a | b)
bitwise_xor = _binary("bitwise_xor", lambda a, b: a ^ b)
greater = _binary("greater", lambda a, b: a > b)
less = _binary("less", lambda a, b: a < b)
greater_equal = _binary("greater_equal", lambda a, b: a >= b)
less_equal = _binary("less_equal", lambda a, b: a <= b)
equal = _binary("equal", lambda a, b: a == b)
not_equal = _binary("not_equal", lambda a, b: a != b)
logical_and = _binary("logical_and", _logical(tir_op.all))
logical_or = _binary("logical_or", _logical(tir_op.any))
logical_xor = _binary("logical_xor", _logical(lambda a, b: a.astype("uint8") != b.astype("uint8")))


def broadcast_to(data: Tensor, shape: Any) -> Tensor:
    """Repeats dimensions of size 1 to the given shape."""
    whole = list(shape)
    return te.compute(whole, lambda *i: read(data, whole, i), name="T_broadcast_to", tag=BROADCAST)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """x where the condition is non-zero, else y."""
    shape = broadcast_shape(broadcast_shape(condition.shape, x.shape), y.shape)

    def element(*i: Any) -> Any:
        c = read(condition, shape, i)
        return tir_op.if_then_else(c if dtype_of(c) == "bool" else c != tir_op.const(0, dtype_of(c)), read(x, shape, i), read(y, shape, i))
    return te.compute(shape, element, name="T_where", tag=BROADCAST)


__all__ = ["add", "bitwise_and", "bitwise_or", "bitwise_xor", "broadcast_shape", "broadcast_to", "divide", "equal", "floor_divide", "floor_mod", "greater", "greater_equal", "left_shift", "less",
           "less_equal", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "not_equal", "power", "right_shift", "subtract", "where"]
