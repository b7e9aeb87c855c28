# SPDX-License-Identifier: Apache-2.0
"""Dispatches main on the size of an axis: each of a list of sizes gets a function specialised for it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import tir
from ..ir.ty import TensorType, TupleType
from . import op
from .expr import Function, GlobalVar, If, Tuple, TupleGetItem, Var, bind, const


def override_shape(tensor_type: Any, axis: int, dim: Any) -> Any:
    """The type with another size of an axis, in every field of a tuple."""
    if isinstance(tensor_type, TupleType):
        return TupleType([override_shape(t, axis, dim) for t in tensor_type.fields])
    shape = list(tensor_type.shape)
    shape[axis] = dim
    return TensorType(shape, tensor_type.dtype)


def _fields(value: Any, of_type: Any, change: Any) -> Any:
    """Applies `change` to a tensor, or to every field of a tuple."""
    if isinstance(of_type, TupleType):
        return Tuple([_fields(TupleGetItem(value, i), t, change) for i, t in enumerate(of_type.fields)])
    return change(value)


def flexible_dispatch(mod: Any, buckets: Sequence[int], axis: int = 0, auto_pad: bool = False, pad_value: float = 0,
                      input_indices: Sequence[int] | None = None, affects_output: bool = True) -> Any:
    """See relay.transform.FlexibleShapeDispatch. ValueError: an input that does not exist or lacks the axis, or buckets that are not
    ascending."""
    from .transform import InferType
    mod = InferType()(mod)
    main = mod["main"]
    indices = [0] if input_indices is None else list(input_indices)
    buckets = [int(b) for b in buckets]
    if buckets != sorted(set(buckets)) or any(b < 1 for b in buckets):
        raise ValueError(f"sizes rise from 1 on, not {buckets}")
    for i in indices:
        if not 0 <= i < len(main.params) or not -len(main.params[i].type_annotation.shape) <= axis < len(main.params[i].type_annotation.shape):
            raise ValueError(f"there is no input {i} with an axis {axis}")

    def specialised(size: Any) -> GlobalVar:
        """A copy of main specialised for a size, added to the module."""
        values = {p: Var(p.name_hint, override_shape(p.type_annotation, axis, size) if i in indices else p.type_annotation) for i, p in enumerate(main.params)}
        made = GlobalVar(f"main_{size}" if isinstance(size, int) else "main_any")
        mod[made] = Function(list(values.values()), bind(main.body, values), override_shape(main.ret_type, axis, size) if affects_output else main.ret_type,
                             main.type_params, main.attrs)
        return made

    params = [Var(p.name_hint, override_shape(p.type_annotation, axis, tir.Any()) if i in indices else p.type_annotation) for i, p in enumerate(main.params)]
    size = op.take(op.shape_of(params[indices[0]], dtype="int32"), const(axis % len(main.params[indices[0]].type_annotation.shape), "int32"), axis=0)
    result_type = override_shape(main.ret_type, axis, tir.Any()) if affects_output else main.ret_type

    def padded(value: Any, bucket: int, of_type: Any) -> Any:
        """The tensor padded at the end of the axis to the bucket's size."""
        shape = [int(d) for d in of_type.shape]
        more = op.full(const(pad_value, of_type.dtype), shape, of_type.dtype)
        place = axis % len(shape)
        return op.strided_slice(op.concatenate([value, more], axis=place), [0], [bucket], [1], axes=[place])

    def case(bucket: int) -> Any:
        function, arguments = specialised(bucket), list(params)
        for i in indices:
            wanted = override_shape(main.params[i].type_annotation, axis, bucket)
            value = padded(params[i], bucket, wanted) if auto_pad else params[i]
            arguments[i] = op.reshape(value, [int(d) for d in wanted.shape])
        result = function(*arguments)
        if not affects_output:
            return result
        rows = op.arange(const(0, "int32"), size, const(1, "int32"), dtype="int32")
        return _fields(result, main.ret_type, lambda y: op.take(y, rows, axis=axis))

    body = specialised(tir.Any())(*params)
    for at in range(len(buckets) - 1, -1, -1):
        fits = op.equal(size, const(buckets[at], "int32"))
        if auto_pad:
            fits = op.less_equal(size, const(buckets[at], "int32"))
            if at:
                fits = op.logical_and(fits, op.greater(size, const(buckets[at - 1], "int32")))
        body = If(fits, case(buckets[at]), body)
    mod["main"] = Function(params, body, result_type, main.type_params, main.attrs)
    return InferType()(mod)


__all__ = ["flexible_dispatch", "override_shape"]
