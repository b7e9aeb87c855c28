# SPDX-License-Identifier: Apache-2.0
"""FakeQuantizationToInteger's rules under their classic names. The compiler has a rule for every operator that has an integer form."""
from __future__ import annotations

from typing import Any

from ..ir.affine_type import TensorAffineType, TupleAffineType
from .expr import const
from .frontend.common import fold_constant, infer_shape


def _no_rules(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("the compiler has the rules of FakeQuantizationToInteger; an operator of a script's own is rewritten with relay.dataflow_pattern before the pass")


register_fake_quantization_to_integer = register_optional_fake_quantization_to_integer = _no_rules
register_unary_qnn = register_binary_qnn = register_unary_identity = register_binary_identity = _no_rules


def get_zeros(scale: Any) -> Any:
    """Zero points of the shape of the scales."""
    from . import op
    return fold_constant(op.cast(op.zeros_like(scale), "int32"))


__all__ = ["TensorAffineType", "TupleAffineType", "const", "fold_constant", "get_zeros", "infer_shape", "register_binary_identity", "register_binary_qnn",
           "register_fake_quantization_to_integer", "register_optional_fake_quantization_to_integer", "register_unary_identity", "register_unary_qnn"]
