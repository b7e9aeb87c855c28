# SPDX-License-Identifier: Apache-2.0
"""Bit-serial operators, expressed by integer products: operands count by their lowest bits only.

A unipolar weight is one whose bits mean -1 and +1: sum_j 2^j (2 w_j - 1) = 2 w - (2^bits - 1)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..expr import Call, _like, const


def _sizes(x: Any, why: str) -> list[Any]:
    try:
        return list(_like(x).checked_type.shape)
    except ValueError as error:
        raise ValueError(f"{why} needs the shape of its operand, which is not known: {error}") from None


def _low_bits(x: Any, bits: int) -> Call:
    return Call("bitwise_and", [Call("cast", [x], {"dtype": "int32"}), const((1 << bits) - 1, "int32")])


def _weights(weight: Any, bits: int, unipolar: bool) -> Any:
    low = _low_bits(weight, bits)
    return Call("subtract", [Call("multiply", [low, const(2, "int32")]), const((1 << bits) - 1, "int32")]) if unipolar else low


def bitpack(data: Any, bits: int = 1, pack_axis: int = 1, bit_axis: int = 2, pack_type: str = "uint32", name: str = "BitPack") -> Call:
    """Packs the lowest `bits` bits of the elements along pack_axis into words; a new axis of `bits` elements holds one word for each bit. The first
    element is a word's highest bit."""
    shape = _sizes(data, "nn.bitpack")
    width = int(np.dtype(pack_type).itemsize) * 8
    if int(shape[pack_axis]) % width:
        raise ValueError(f"{shape[pack_axis]} elements along axis {pack_axis} do not fill words of {width} bits")
    grouped = Call("reshape", [Call("cast", [data], {"dtype": "int64"})], {"newshape": [int(d) for d in [*shape[:pack_axis], int(shape[pack_axis]) // width, width, *shape[pack_axis + 1:]]]})
    places = np.array([1 << (width - 1 - k) for k in range(width)], "uint64").astype("int64").reshape([width] + [1] * (len(shape) - pack_axis - 1))

    def word(bit: int) -> Call:
        one = Call("bitwise_and", [Call("right_shift", [grouped, const(bit, "int64")]), const(1, "int64")])
        packed = Call("cast", [Call("sum", [Call("multiply", [one, const(places)])], {"axis": [pack_axis + 1]})], {"dtype": pack_type})
        return Call("expand_dims", [packed], {"axis": bit_axis})
    from . import concatenate
    return word(0) if bits == 1 else concatenate([word(b) for b in range(bits)], axis=bit_axis)


def bitserial_conv2d(data: Any, weight: Any, strides: Any = (1, 1), padding: Any = (0, 0), channels: int | None = None, kernel_size: Any = (3, 3), activation_bits: int = 1,
                     weight_bits: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", pack_dtype: str = "uint32", out_dtype: str = "int16", unipolar: bool = True) -> Call:
    """A convolution of the lowest bits; weights are not packed."""
    from . import nn
    made = nn.conv2d(_low_bits(data, activation_bits), _weights(weight, weight_bits, unipolar), strides=strides, padding=padding, channels=channels, kernel_size=kernel_size,
                     data_layout=data_layout, kernel_layout=kernel_layout, out_dtype="int32")
    return Call("cast", [made], {"dtype": out_dtype})


def bitserial_dense(data: Any, weight: Any, units: int | None = None, data_bits: int = 1, weight_bits: int = 1, pack_dtype: str = "uint32", out_dtype: str = "int16",
                    unipolar: bool = True) -> Call:
    """A product of the lowest bits with weights (units, in), or (in, units) where only that fits `units`."""
    shape: Sequence[Any] = _sizes(weight, "nn.bitserial_dense")
    if len(shape) != 2:
        raise ValueError(f"the weight has {len(shape)} axes; packed weights are not read")
    across = units is not None and str(shape[0]) != str(units) and str(shape[1]) == str(units)
    made = Call("nn.matmul", [_low_bits(data, data_bits), _weights(weight, weight_bits, unipolar)], {"transpose_b": not across, "out_dtype": "int32"})
    return Call("cast", [made], {"dtype": out_dtype})


TABLE: dict[str, Any] = {f"nn.{f.__name__}": f for f in (bitpack, bitserial_conv2d, bitserial_dense)}
