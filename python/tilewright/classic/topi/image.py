# SPDX-License-Identifier: Apache-2.0
"""Image operators: resizing, cropping, dilation."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import te
from ..te.tensor import Tensor
from ..tir import op as tir_op
from .elemwise import INJECTIVE


def _coordinate(x: Any, size: Any, out: Any, mode: str) -> Any:
    """The source coordinate of an output element."""
    number, n, m = x.astype("float32"), float(int(size)), float(int(out))
    scale = tir_op.const(n / m, "float32")
    half = tir_op.const(0.5, "float32")
    if mode == "half_pixel":
        return (number + half) * scale - half
    if mode == "align_corners":
        return number * tir_op.const((n - 1) / (m - 1) if m > 1 else 0.0, "float32")
    if mode == "asymmetric":
        return number * scale
    if mode == "pytorch_half_pixel":
        return (number + half) * scale - half if m > 1 else tir_op.const(0.0, "float32")
    if mode == "tf_half_pixel_for_nn":
        return (number + half) * scale
    raise ValueError(f"there is no coordinate_transformation_mode '{mode}'; there are half_pixel, align_corners, asymmetric, pytorch_half_pixel and tf_half_pixel_for_nn")


def _nearest(x: Any, rounding: str, mode: str) -> Any:
    small = tir_op.const(1e-5, "float32")
    rounding = rounding or ("round" if mode == "align_corners" else "floor")
    half = tir_op.const(0.5, "float32")
    made = {"floor": lambda: tir_op.floor(x + small), "ceil": lambda: tir_op.ceil(x - small), "round": lambda: tir_op.round(x), "round_prefer_floor": lambda: tir_op.ceil(x - half),
            "round_prefer_ceil": lambda: tir_op.floor(x + half)}
    if rounding not in made:
        raise ValueError(f"there is no rounding_method '{rounding}'; there are {', '.join(made)}")
    return made[rounding]().astype("int32")


def _taps(x: Any, size: Any, out: Any, method: str, mode: str, rounding: str, alpha: float) -> list[tuple[Any, Any]]:
    """(index, weight) of the elements that contribute to an output element along an axis; without a weight, a single element."""
    at = _coordinate(x, size, out, mode)

    def inside(place: Any) -> Any:
        return te.max(te.min(place, size - 1), 0)
    if method == "nearest_neighbor":
        return [(inside(_nearest(at, rounding, mode)), None)]
    low = tir_op.floor(at)
    part, first, one = at - low, low.astype("int32"), tir_op.const(1.0, "float32")
    if method == "linear":
        return [(inside(first), one - part), (inside(first + 1), part)]
    if method != "cubic":
        raise ValueError(f"{method} method is not supported.")
    a = tir_op.const(alpha, "float32")

    def near(d: Any) -> Any:
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0

    def far(d: Any) -> Any:
        return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    return [(inside(first - 1), far(part + 1.0)), (inside(first), near(part)), (inside(first + 1), near(one - part)), (inside(first + 2), far(one - part + 1.0))]


def _resize(data: Tensor, size: Sequence[int], layout: str, letters: str, method: str, mode: str, rounding: str, alpha: float, out_dtype: str | None) -> Tensor:
    places = [layout.index(a) for a in letters]
    shape = list(data.shape)
    for d, n in zip(places, size):
        shape[d] = int(n)
    dtype = out_dtype or data.dtype

    def element(*i: Any) -> Any:
        def along(at: list[Any], todo: list[int]) -> Any:
            if not todo:
                return data(*at) if method == "nearest_neighbor" else data(*at).astype("float32")
            d = todo[0]
            total: Any = None
            for place, weight in _taps(i[d], data.shape[d], shape[d], method, mode, rounding, alpha):
                value = along([place if n == d else x for n, x in enumerate(at)], todo[1:])
                value = value if weight is None else value * weight
                total = value if total is None else total + value
            return total
        out = along(list(i), places)
        if method != "nearest_neighbor" and "int" in dtype:
            out = tir_op.round(out)
        return out if str(out.dtype) == dtype else out.astype(dtype)
    return te.compute(shape, element, name="resize", tag=INJECTIVE)


def resize1d(data: Tensor, roi: Any, size: Any, layout: str = "NCW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None, output_shape: Any = None) -> Tensor:
    return _resize(data, size if isinstance(size, (list, tuple)) else [size], layout, "W", method, coordinate_transformation_mode, rounding_method, bicubic_alpha, out_dtype)


def resize2d(data: Tensor, roi: Any, size: Any, layout: str = "NCHW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", bicubic_alpha: float = -0.5,
             bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None, output_shape: Any = None) -> Tensor:
    """Resizes images by nearest neighbour or interpolation. ValueError: bicubic_exclude."""
    if bicubic_exclude:
        raise ValueError("resize2d here takes all four elements of a cubic; give bicubic_exclude=0")
    return _resize(data, size, layout, "HW", method, coordinate_transformation_mode, rounding_method, bicubic_alpha, out_dtype)


def resize3d(data: Tensor, roi: Any, size: Any, layout: str = "NCDHW", method: str = "nearest_neighbor", coordinate_transformation_mode: str = "align_corners", rounding_method: str = "",
             bicubic_alpha: float = -0.5, bicubic_exclude: int = 0, extrapolation_value: float = 0.0, out_dtype: str | None = None, output_shape: Any = None) -> Tensor:
    return _resize(data, size, layout, "DHW", method, coordinate_transformation_mode, rounding_method, bicubic_alpha, out_dtype)


def crop_and_resize(data: Tensor, boxes: Tensor, box_indices: Tensor, crop_size: Any, layout: str = "NCHW", method: str = "bilinear", extrapolation_value: float = 0, out_dtype: str | None = None) -> Tensor:
    """Crops of images, with corners (y1, x1, y2, x2) from 0 to 1, resized."""
    first = layout == "NCHW"
    channels, height, width = data.shape[1 if first else 3], data.shape[2 if first else 1], data.shape[3 if first else 2]
    rows, columns = int(crop_size[0]), int(crop_size[1])
    dtype = out_dtype or data.dtype
    beyond = tir_op.const(extrapolation_value, dtype)

    def element(*i: Any) -> Any:
        n, c, y, x = i if first else (i[0], i[3], i[1], i[2])
        picture = box_indices(n)

        def at(place: Any, low: Any, high: Any, count: int, size: Any) -> Any:
            last = tir_op.const(float(int(size) - 1), "float32")
            if count == 1:
                return (low + high) * tir_op.const(0.5, "float32") * last
            return low * last + place.astype("float32") * (high - low) * last / tir_op.const(float(count - 1), "float32")
        in_y, in_x = at(y, boxes(n, 0), boxes(n, 2), rows, height), at(x, boxes(n, 1), boxes(n, 3), columns, width)

        def pixel(row: Any, column: Any) -> Any:
            row, column = te.max(te.min(row.astype("int32"), height - 1), 0), te.max(te.min(column.astype("int32"), width - 1), 0)
            return (data(picture, c, row, column) if first else data(picture, row, column, c)).astype("float32")
        if method == "nearest_neighbor":
            value = pixel(tir_op.round(in_y), tir_op.round(in_x))
        else:
            top, left = tir_op.floor(in_y), tir_op.floor(in_x)
            dy, dx = in_y - top, in_x - left
            upper = pixel(top, left) + (pixel(top, left + 1.0) - pixel(top, left)) * dx
            lower = pixel(top + 1.0, left) + (pixel(top + 1.0, left + 1.0) - pixel(top + 1.0, left)) * dx
            value = upper + (lower - upper) * dy
        inside = tir_op.all(in_y >= 0.0, in_y <= float(int(height) - 1), in_x >= 0.0, in_x <= float(int(width) - 1))
        return tir_op.if_then_else(inside, value.astype(dtype) if dtype != "float32" else value, beyond)
    count = boxes.shape[0]
    return te.compute((count, channels, rows, columns) if first else (count, rows, columns, channels), element, name="crop_and_resize", tag=INJECTIVE)


def _dilation2d(data: Tensor, weight: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: str | None, first: bool) -> Tensor:
    from .nn.basic import pad
    from .nn.windows import extent, spread
    from .nn_utils import sides
    (sh, sw), (dh, dw) = spread(stride, 2), spread(dilations, 2)
    kh, kw = weight.shape[1:] if first else weight.shape[:2]
    top, left, bottom, right = sides(padding, [(kh - 1) * dh + 1, (kw - 1) * dw + 1], 2)
    height, width = data.shape[2:] if first else data.shape[1:3]
    padded = pad(data, [0, 0, top, left] if first else [0, top, left, 0], [0, 0, bottom, right] if first else [0, bottom, right, 0], tir_op.min_value(data.dtype), name="pad_temp")
    ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    rows, columns, dtype = extent(height, top, bottom, kh, dh, sh), extent(width, left, right, kw, dw, sw), out_dtype or data.dtype

    def element(*i: Any) -> Any:
        n, c, y, x = i if first else (i[0], i[3], i[1], i[2])
        y, x = y * sh + ry * dh, x * sw + rx * dw
        value = padded(n, c, y, x) + weight(c, ry, rx) if first else padded(n, y, x, c) + weight(ry, rx, c)
        return te.max(value.astype(dtype), axis=[ry, rx])
    shape = (data.shape[0], data.shape[1], rows, columns) if first else (data.shape[0], rows, columns, data.shape[3])
    return te.compute(shape, element, tag="dilation2d_nchw" if first else "dilation2d_nhcw")


def dilation2d_nchw(input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: str | None = None) -> Tensor:  # noqa: A002
    """Morphological dilation: the maximum over a window of data plus filter (channel, height, width)."""
    return _dilation2d(input, filter, stride, padding, dilations, out_dtype, True)


def dilation2d_nhwc(input: Tensor, filter: Tensor, stride: Any, padding: Any, dilations: Any, out_dtype: str | None = None) -> Tensor:  # noqa: A002
    return _dilation2d(input, filter, stride, padding, dilations, out_dtype, False)


__all__ = ["crop_and_resize", "dilation2d_nchw", "dilation2d_nhwc", "resize1d", "resize2d", "resize3d"]
