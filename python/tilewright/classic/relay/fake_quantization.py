# SPDX-License-Identifier: Apache-2.0
"""Rules of FakeQuantizationToInteger under their classic names: the compiler has one for every operator with an integer form; rules of
scripts take precedence."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.affine_type import TensorAffineType, TupleAffineType
from .expr import Expr, const
from .frontend.common import fold_constant, infer_shape
from .op.registrations import register_fake_quantization_to_integer, register_optional_fake_quantization_to_integer
from .op.registry import registered

def register_unary_identity(op_name: str) -> Any:
    """For an operator that computes the same on the quantised integers as on the real values."""
    return register_fake_quantization_to_integer(op_name, lambda expr, type_map: [expr, type_map[expr.args[0]]])


def register_unary_qnn(op_name: str, op: Any) -> Any:
    """op(x, scale, zero point, scale and zero point of the result); the result has the operand's quantisation."""
    def unary(expr: Any, type_map: Any) -> list[Any]:
        x = type_map[expr.args[0]]
        return [op(expr.args[0], x.scale, x.zero_point, x.scale, x.zero_point), x]
    return register_fake_quantization_to_integer(op_name, unary)


def _binary(op_name: str, make: Callable[[Any, Any, Any, Any, Any], Any]) -> Any:
    def binary(expr: Any, type_map: Any) -> list[Any]:
        left, right = expr.args
        x, y = type_map.get(left), type_map.get(right)
        known = x if x is not None else y
        return [make(expr, left, right, x if x is not None else known, y if y is not None else known), known]
    return register_fake_quantization_to_integer(op_name, binary)


def register_binary_qnn(op_name: str, op: Any) -> Any:
    """op(left, right, then scale and zero point of each and of the result); the result has the left operand's quantisation."""
    return _binary(op_name, lambda expr, left, right, x, y: op(left, right, x.scale, x.zero_point, y.scale, y.zero_point, x.scale, x.zero_point))


def register_binary_identity(op_name: str, op: Any) -> Any:
    """op(left, right) on integers, after requantising the right operand to the left one's scale."""
    from . import qnn

    def make(expr: Any, left: Any, right: Any, x: Any, y: Any) -> Any:
        return op(left, right if x == y else qnn.op.requantize(right, y.scale, y.zero_point, x.scale, x.zero_point, out_dtype=x.dtype))
    return _binary(op_name, make)


def get_zeros(scale: Any) -> Any:
    """Zero points of the same shape as the scales."""
    from . import op
    return fold_constant(op.cast(op.zeros_like(scale), "int32"))


def rules() -> Callable[..., Any] | None:
    """The rules registered by scripts, for the pass; None if there are none."""
    always, optional = registered("FTVMFakeQuantizationToInteger"), registered("FTVMOptionalFakeQuantizationToInteger")
    if not always and not optional:
        return None

    def ask(name: str, call: Any, operands: list[Any], late: bool) -> Any:
        rule = always.get(name) or (optional.get(name) if late else None)
        if rule is None:
            return None
        types = {x: TensorAffineType(scale, zero, dtype, axis) for x, scale, zero, dtype, axis in operands if scale is not None}
        made = rule(call, types)
        if len(made) != 2 or not isinstance(made[0], Expr) or not isinstance(made[1], TensorAffineType):
            raise TypeError(f"the rule of {name} gives [expression, TensorAffineType]")
        expr, affine = made
        if not expr._typed:
            raise TypeError(f"the rule of {name} gave a call whose type is not known: {name} does not take its integer operands")
        return expr, fold_constant(affine.scale), fold_constant(affine.zero_point), affine.dtype, affine.axis
    return ask


__all__ = ["TensorAffineType", "TupleAffineType", "const", "fold_constant", "get_zeros", "infer_shape", "register_binary_identity", "register_binary_qnn",
           "register_fake_quantization_to_integer", "register_optional_fake_quantization_to_integer", "register_unary_identity", "register_unary_qnn"]
