# SPDX-License-Identifier: Apache-2.0
"""Convolutions in arbitrary layouts."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import te
from ...te.tensor import Tensor
from ...tir import op as tir_op
from ..nn_utils import sides
from .basic import pad

_AXES = {"N": "nn", "C": "ff", "D": "zz", "H": "yy", "W": "xx"}
_REDUCED = {"D": "rz", "H": "ry", "W": "rx"}


def spread(value: Any, count: int) -> list[int]:
    """A number repeated for `count` axes, or a list with one for each."""
    return [int(value)] * count if isinstance(value, int) else [int(v) for v in value] * (count if len(value) == 1 else 1)


def extent(size: Any, before: Any, after: Any, kernel: Any, dilation: int, stride: int) -> Any:
    """The number of windows."""
    return tir_op.floordiv(size + (before + after) - (kernel - 1) * dilation - 1, stride) + 1


def windows_of(data: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, out_dtype: str | None, layout: str, kernel_layout: str, name: str) -> Tensor:
    """A convolution of data in layout `layout` ("NHWC") with weights in `kernel_layout` ("HWIO")."""
    out_dtype = out_dtype or data.dtype
    letters = [a for a in layout if a in "DHW"]
    count = len(letters)
    if data.ndim != len(layout) or weight.ndim != len(kernel_layout):
        raise ValueError(f"{name} takes data {layout} and weights {kernel_layout}, not {data.ndim} and {weight.ndim} dimensions")
    strides, dilations = spread(stride, count), spread(dilation, count)
    kernel = [weight.shape[kernel_layout.index(a)] for a in letters]
    pads = sides(padding, [(k - 1) * d + 1 for k, d in zip(kernel, dilations)], count)
    before, after = dict(zip(letters, pads[:count])), dict(zip(letters, pads[count:]))
    padded = pad(data, [before.get(a, 0) for a in layout], [after.get(a, 0) for a in layout], name="pad_temp")
    share = weight.shape[kernel_layout.index("I")]
    outputs = weight.shape[kernel_layout.index("O")]
    if all(isinstance(v, int) for v in (share, data.shape[layout.index("C")])) and int(share) * groups != int(data.shape[layout.index("C")]):
        raise ValueError(f"{name}: weights for {share} channels in {groups} groups, data of {data.shape[layout.index('C')]} channels")
    rc = te.reduce_axis((0, share), "rc")
    over = {a: te.reduce_axis((0, k), _REDUCED[a]) for a, k in zip(letters, kernel)}
    sizes = {"N": data.shape[layout.index("N")], "C": outputs}
    for n, a in enumerate(letters):
        sizes[a] = extent(data.shape[layout.index(a)], before[a], after[a], kernel[n], dilations[n], strides[n])

    def element(*at: Any) -> Any:
        where = dict(zip(layout, at))
        read = dict(where)
        for n, a in enumerate(letters):
            read[a] = where[a] * strides[n] + over[a] * dilations[n]
        read["C"] = rc if groups == 1 else tir_op.floordiv(where["C"], tir_op.floordiv(outputs, groups)) * share + rc
        weights = {"O": where["C"], "I": rc, **over}
        product = padded(*[read[a] for a in layout]).astype(out_dtype) * weight(*[weights[a] for a in kernel_layout]).astype(out_dtype)
        return te.sum(product, axis=[rc, *over.values()] if layout.index("C") == 1 else [*over.values(), rc])
    return te.compute([sizes[a] for a in layout], element, name=name, tag=name, varargs_names=[_AXES[a] for a in layout])


def _named(name: str, layout: str, kernel_layout: str) -> Any:
    def convolution(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: Any = None, *_: Any, **__: Any) -> Tensor:
        return windows_of(Input, Filter, stride, padding, dilation, 1, out_dtype, layout, kernel_layout, name)
    convolution.__name__ = convolution.__qualname__ = name
    convolution.__doc__ = f"A convolution of {layout} by {kernel_layout}."
    return convolution


def _grouped(name: str, layout: str, kernel_layout: str) -> Any:
    def convolution(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, out_dtype: str | None = None, *_: Any, **__: Any) -> Tensor:
        return windows_of(Input, Filter, stride, padding, dilation, groups, out_dtype, layout, kernel_layout, name)
    convolution.__name__ = convolution.__qualname__ = name
    convolution.__doc__ = f"A convolution of {layout} by {kernel_layout}, channels in groups."
    return convolution


conv1d_ncw, conv1d_nwc = _named("conv1d_ncw", "NCW", "OIW"), _named("conv1d_nwc", "NWC", "WIO")
conv2d_nchw, conv2d_nhwc, conv2d_hwcn = _named("conv2d_nchw", "NCHW", "OIHW"), _named("conv2d_nhwc", "NHWC", "HWIO"), _named("conv2d_hwcn", "HWCN", "HWIO")
conv3d_ncdhw, conv3d_ndhwc = _grouped("conv3d_ncdhw", "NCDHW", "OIDHW"), _grouped("conv3d_ndhwc", "NDHWC", "DHWIO")
group_conv1d_ncw, group_conv1d_nwc = _grouped("group_conv1d_ncw", "NCW", "OIW"), _grouped("group_conv1d_nwc", "NWC", "WIO")
group_conv2d_nchw, group_conv2d_nhwc = _grouped("group_conv2d_nchw", "NCHW", "OIHW"), _grouped("group_conv2d_nhwc", "NHWC", "HWIO")
_KERNELS = {"NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


def _conv(rank: int) -> Any:
    def convolution(inp: Tensor, filt: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, data_layout: str = "", kernel_layout: str = "", out_dtype: str | None = None) -> Tensor:
        layout = data_layout or {1: "NCW", 2: "NCHW", 3: "NCDHW"}[rank]
        if layout not in _KERNELS or len(layout) != rank + 2:
            raise ValueError(f"not support this layout {layout} yet")
        return windows_of(inp, filt, strides, padding, dilation, 1, out_dtype, layout, kernel_layout or _KERNELS[layout], f"conv{rank}d_{layout.lower()}")
    convolution.__name__ = convolution.__qualname__ = f"conv{rank}d"
    convolution.__doc__ = f"A convolution over {rank} dimensions by its layout."
    return convolution


conv1d, conv2d, conv3d = (_conv(n) for n in (1, 2, 3))


def conv2d_NCHWc(data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilation: Any, layout: str, out_layout: str, out_dtype: str | None = "float32") -> Tensor:  # noqa: N802
    """A convolution with blocked channels: data (N, C, H, W, c), weights (O, I, H, W, i, o)."""
    (sh, sw), (dh, dw) = spread(stride, 2), spread(dilation, 2)
    batch, blocks, height, width, block = data.shape
    outer, inner_blocks, kh, kw, _, out_block = kernel.shape
    top, left, bottom, right = sides(padding, [(kh - 1) * dh + 1, (kw - 1) * dw + 1], 2)
    padded = pad(data, [0, 0, top, left, 0], [0, 0, bottom, right, 0], name="data_pad")
    ic, ry, rx = te.reduce_axis((0, blocks * block), "ic"), te.reduce_axis((0, kh), "kh"), te.reduce_axis((0, kw), "kw")
    out_dtype = out_dtype or data.dtype
    return te.compute((batch, outer, extent(height, top, bottom, kh, dh, sh), extent(width, left, right, kw, dw, sw), out_block), lambda n, o, y, x, b: te.sum(
        padded[n, tir_op.floordiv(ic, block), y * sh + ry * dh, x * sw + rx * dw, tir_op.floormod(ic, block)].astype(out_dtype) *
        kernel[o, tir_op.floordiv(ic, block), ry, rx, tir_op.floormod(ic, block), b].astype(out_dtype), axis=[ic, ry, rx]), name="conv2d_NCHWc", tag="conv2d_NCHWc")


def _depthwise(name: str, layout: str) -> Any:
    def convolution(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None, *_: Any, **__: Any) -> Tensor:
        out_dtype = out_dtype or Input.dtype
        first = layout == "NCHW"
        if first:
            (batch, channels, height, width), (_, multiplier, kh, kw) = Input.shape, Filter.shape
        else:
            (batch, height, width, channels), (kh, kw, _, multiplier) = Input.shape, Filter.shape
        (sh, sw), (dh, dw) = spread(stride, 2), spread(dilation, 2)
        top, left, bottom, right = sides(padding, [(kh - 1) * dh + 1, (kw - 1) * dw + 1], 2)
        padded = pad(Input, [0, 0, top, left] if first else [0, top, left, 0], [0, 0, bottom, right] if first else [0, bottom, right, 0], name="PaddedInput")
        di, dj = te.reduce_axis((0, kh), "di"), te.reduce_axis((0, kw), "dj")
        rows, columns = extent(height, top, bottom, kh, dh, sh), extent(width, left, right, kw, dw, sw)

        def element(b: Any, c: Any, i: Any, j: Any) -> Any:
            if not first:
                c, i, j = j, c, i
            channel, number = tir_op.floordiv(c, multiplier), tir_op.floormod(c, multiplier)
            y, x = i * sh + di * dh, j * sw + dj * dw
            value = padded[b, channel, y, x] if first else padded[b, y, x, channel]
            by = Filter[channel, number, di, dj] if first else Filter[di, dj, channel, number]
            return te.sum(value.astype(out_dtype) * by.astype(out_dtype), axis=[di, dj])
        return te.compute((batch, channels * multiplier, rows, columns) if first else (batch, rows, columns, channels * multiplier), element, name="DepthwiseConv2d", tag=name,
                          varargs_names=["b", "c", "i", "j"] if first else ["b", "i", "j", "c"])
    convolution.__name__ = convolution.__qualname__ = name
    convolution.__doc__ = f"Each channel of {layout} by filters of its own."
    return convolution


depthwise_conv2d_nchw, depthwise_conv2d_nhwc = _depthwise("depthwise_conv2d_nchw", "NCHW"), _depthwise("depthwise_conv2d_nhwc", "NHWC")


def _transposed(data: Tensor, weight: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any, groups: int, name: str) -> Tensor:
    """The gradient of a convolution with respect to its data; data (N, C, ...), weights (I, O, ...)."""
    from .places import dilate
    count = data.ndim - 2
    steps, more = spread(strides, count), spread(output_padding, count)
    if any(m >= s for m, s in zip(more, steps)):
        raise ValueError(f"{name}: the output padding {tuple(more)} is not less than the strides {tuple(steps)}")
    out_dtype = out_dtype or data.dtype
    kernel = list(weight.shape[2:])
    pads = sides(padding, kernel, count)
    before = [k - 1 - p for k, p in zip(kernel, pads[:count])]
    after = [k - 1 - p + m for k, p, m in zip(kernel, pads[count:], more)]
    apart = pad(dilate(data, [1, 1, *steps], name="data_dilate"), [0, 0, *before], [0, 0, *after], name="data_pad")
    share_in, share_out = tir_op.floordiv(weight.shape[0], groups), weight.shape[1]
    dc = te.reduce_axis((0, share_in), "dc")
    over = [te.reduce_axis((0, k), f"d{a}") for k, a in zip(kernel, "dhw"[3 - count:])]

    def element(b: Any, c: Any, *at: Any) -> Any:
        channel = dc if groups == 1 else tir_op.floordiv(c, share_out) * share_in + dc
        flipped = [k - 1 - r for k, r in zip(kernel, over)]
        value = apart(b, channel, *[i + r for i, r in zip(at, over)]).astype(out_dtype)
        return te.sum(value * weight(channel, c if groups == 1 else tir_op.floormod(c, share_out), *flipped).astype(out_dtype), axis=[dc, *over])
    shape = (data.shape[0], share_out * groups, *[size - k + 1 for size, k in zip(apart.shape[2:], kernel)])
    return te.compute(shape, element, name=name, tag=name, varargs_names=["b", "c", *"dhw"[3 - count:]])


def conv1d_transpose_ncw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str | None, output_padding: Any = (0,)) -> Tensor:
    return _transposed(data, kernel, stride, padding, out_dtype, output_padding, 1, "conv1d_transpose_ncw")


def conv2d_transpose_nchw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any = (0, 0)) -> Tensor:
    return _transposed(Input, Filter, strides, padding, out_dtype, output_padding, 1, "conv2d_transpose_nchw")


def group_conv2d_transpose_nchw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str | None, output_padding: Any, groups: int) -> Tensor:
    return _transposed(data, kernel, stride, padding, out_dtype, output_padding, groups, "group_conv2d_transpose_nchw")


def conv3d_transpose_ncdhw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any = (0, 0, 0)) -> Tensor:
    return _transposed(Input, Filter, strides, padding, out_dtype, output_padding, 1, "conv3d_transpose_ncdhw")


_TRANSPOSED: Sequence[str] = ("conv1d_transpose_ncw", "conv2d_transpose_nchw", "conv3d_transpose_ncdhw", "group_conv2d_transpose_nchw")
__all__ = ["conv1d", "conv1d_ncw", "conv1d_nwc", "conv2d", "conv2d_NCHWc", "conv2d_hwcn", "conv2d_nchw", "conv2d_nhwc", "conv3d", "conv3d_ncdhw", "conv3d_ndhwc", "depthwise_conv2d_nchw",
           "depthwise_conv2d_nhwc", "group_conv1d_ncw", "group_conv1d_nwc", "group_conv2d_nchw", "group_conv2d_nhwc", *_TRANSPOSED]
