# SPDX-License-Identifier: Apache-2.0
"""Explicit memory as inserted by ManifestAlloc: storage, tensors in it, and kernels that write them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..expr import Call, Tuple, _like


def alloc_storage(size: Any, alignment: Any, device: Any = None, dtype_hint: str = "float32") -> Call:
    number = 0 if device is None else int(getattr(device, "device_id", getattr(device, "virtual_device_id", 0)))
    kind = 1 if device is None else int(getattr(device, "device_type_int", device.device_type))
    return Call("memory.alloc_storage", [_like(size), _like(alignment)], {"dtype": dtype_hint, "device_type": kind, "device_id": number})


def alloc_tensor(storage: Any, offset: Any, shape: Any, dtype: str = "float32", assert_shape: Sequence[int] | None = None) -> Call:
    return Call("memory.alloc_tensor", [_like(storage), _like(offset), _like(shape)],
                {"dtype": dtype, **({} if assert_shape is None else {"assert_shape": [int(d) for d in assert_shape]})})


def shape_of(expr: Any) -> Call:
    return Call("vm.shape_of", [_like(expr)], {"dtype": "int64"})


def invoke_tvm_op(func: Any, inputs: Any, outputs: Any) -> Call:
    """Calls a function that writes its results to the tensors of `outputs`."""
    as_tuple = lambda v: v if not isinstance(v, (list, tuple)) else Tuple(list(v))  # noqa: E731
    return Call("vm.invoke_tvm_op", [func, as_tuple(inputs), as_tuple(outputs)])


def reshape_tensor(data: Any, shape: Any, newshape: Sequence[int] = ()) -> Call:
    return Call("vm.reshape_tensor", [_like(data), _like(shape)], {"newshape": [int(d) for d in newshape]})


def flatten_tuple_type(ty: Any) -> list[Any]:
    """The tensor types inside a type, in order."""
    from ...ir.ty import TensorType, TupleType
    if isinstance(ty, TensorType):
        return [ty]
    if isinstance(ty, TupleType):
        return [leaf for field in ty.fields for leaf in flatten_tuple_type(field)]
    raise TypeError(f"a {type(ty).__name__} is no tensor and no tuple")


def from_tuple_type(ty: Any, expr: Any) -> list[Any]:
    """The tensors inside an expression of that type."""
    from ...ir.ty import TupleType
    from ..expr import TupleGetItem
    return [leaf for i, field in enumerate(ty.fields) for leaf in from_tuple_type(field, TupleGetItem(expr, i))] if isinstance(ty, TupleType) else [expr]


def to_tuple_type(ty: Any, exprs: Sequence[Any]) -> Any:
    """An expression of that type made of its tensors."""
    from ...ir.ty import TupleType

    def take(t: Any, rest: list[Any]) -> Any:
        return Tuple([take(field, rest) for field in t.fields]) if isinstance(t, TupleType) else rest.pop(0)
    rest = list(exprs)
    made = take(ty, rest)
    if rest:
        raise ValueError(f"{len(rest)} expressions are left over")
    return made


TABLE: dict[str, Any] = {**{f"memory.{f.__name__}": f for f in (alloc_storage, alloc_tensor, flatten_tuple_type, from_tuple_type, to_tuple_type)},
                         **{f"vm.{f.__name__}": f for f in (shape_of, invoke_tvm_op, reshape_tensor)}}
