# SPDX-License-Identifier: Apache-2.0
"""What vendors' libraries run, as their public documentation says: chains of operators, and single operators with the dtypes and layouts that
they take. For partitioning; the libraries themselves are not here."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...dataflow_pattern import is_constant, is_op, is_tuple_get_item, wildcard

Check = Callable[[Any], bool]
Table = list[tuple[Any, ...]]
_FLOATS = ("float32", "float16")


def _type(value: Any) -> tuple[str, tuple[int, ...] | None]:
    """The dtype, and the sizes if all are known."""
    found = value.checked_type
    sizes = [int(d) if isinstance(d, int) or hasattr(d, "value") else None for d in getattr(found, "shape", [None])]
    return getattr(found, "dtype", ""), None if None in sizes else tuple(d for d in sizes if d is not None)


def _is(value: Any, dtypes: Sequence[str], rank: int | None = None) -> bool:
    dtype, shape = _type(value)
    return dtype in dtypes and shape is not None and (rank is None or len(shape) == rank)


def _nearest(call: Any, names: Sequence[str]) -> Any:
    """The call of one of these operators that is nearest to the end of a match, or None."""
    level = [call]
    while level:
        for value in level:
            if getattr(getattr(value, "op", None), "name", "") in names:
                return value
        level = [part for value in level for part in ([value.tuple_value] if hasattr(value, "tuple_value") else getattr(value, "args", []))]
    return None


def _of(name: str, check: Check) -> Check:
    """The check of a chain: that of its operator with this name."""
    def run(call: Any) -> bool:
        found = _nearest(call, (name,))
        return found is not None and check(found)
    return run


def _tensors(dtypes: Sequence[str], rank: int | None = None) -> Check:
    return lambda call: _is(call, dtypes) and all(_is(a, dtypes) for a in call.args) and (rank is None or _is(call.args[0], dtypes, rank))


def _conv2d(dtypes: Sequence[str], layouts: Sequence[tuple[str, str]], grouped: bool = True, batch: int | None = None) -> Check:
    def check(call: Any) -> bool:
        a = call.attrs
        shape = _type(call.args[0])[1]
        return (all(_is(x, dtypes, 4) for x in call.args[:2]) and (a["data_layout"], a["kernel_layout"]) in layouts and a["out_layout"] in ("", a["data_layout"])
                and (grouped or int(a["groups"]) == 1) and (batch is None or shape is not None and shape[0] == batch))
    return check


def _pool(dtypes: Sequence[str], layout: str) -> Check:
    return lambda call: _is(call, dtypes, 4) and call.attrs["layout"] == layout


def _product(dtypes: Sequence[str], rank: int = 2) -> Check:
    return lambda call: all(_is(x, dtypes, rank) for x in (call, *call.args[:2]))


def _conv(name: str = "nn.conv2d", padded: bool = False) -> Any:
    data = is_op("nn.pad")(wildcard(), wildcard()) | wildcard() if padded else wildcard()
    return is_op(name)(data, is_constant())


def _biased(pattern: Any) -> Any:
    return is_op("nn.bias_add")(pattern, is_constant()) | is_op("add")(pattern, is_constant())


def _biased_or_not(pattern: Any) -> Any:
    return pattern.optional(lambda p: is_op("nn.bias_add")(p, is_constant()))


def _four(op: str, pattern: Any) -> Any:
    """With scales and zero points."""
    return is_op(op)(pattern, is_constant(), is_constant(), is_constant(), is_constant())


def _quantized(op: str, padded: bool = False) -> Any:
    """A quantised convolution or product with its bias, in the output's scale."""
    data = is_op("nn.pad")(wildcard(), wildcard()) | wildcard() if padded else wildcard()
    out = is_op(op)(data, is_constant(), is_constant(), is_constant(), is_constant(), is_constant())
    return _four("qnn.requantize", _biased_or_not(out))


def _binary_quantized(op: str) -> Any:
    return is_op(op)(wildcard(), wildcard(), *(is_constant() for _ in range(6)))


def _between(inner: Any) -> Any:
    """dequantize, an operator on floats, quantize."""
    return is_op("qnn.quantize")(inner(is_op("qnn.dequantize")(wildcard(), is_constant(), is_constant())), is_constant(), is_constant())


def _gelu(pattern: Any, dtype: str = "float32") -> Any:
    half = is_op("multiply")(pattern, is_constant())
    if dtype == "float16":
        half = is_op("cast")(half)
    erf = is_op("erf")(half)
    if dtype == "float16":
        erf = is_op("cast")(erf)
    return is_op("multiply")(pattern, is_op("add")(is_constant(), is_op("multiply")(erf, is_constant())) | is_op("add")(is_op("multiply")(erf, is_constant()), is_constant()))


def _arm_compute_lib() -> tuple[Table, dict[str, Check]]:
    one = [("NHWC", "OHWI"), ("NHWC", "HWIO"), ("NHWC", "HWOI")]

    def depthwise_or_whole(call: Any) -> bool:
        shape, groups = _type(call.args[0])[1], int(call.attrs["groups"])
        return groups == 1 or shape is not None and groups == shape[3] and call.attrs["kernel_layout"] == "HWOI"
    floats, bytes_ = _conv2d(("float32",), one, batch=1), _conv2d(("uint8", "int8"), one, batch=1)

    def averaged(call: Any) -> bool:
        return _is(call, ("uint8",)) and _pool(("int32",), "NHWC")(call.args[0])
    table: Table = [
        ("arm_compute_lib.conv2d", _biased_or_not(_conv(padded=True)).optional(lambda p: is_op("nn.relu")(p)), _of("nn.conv2d", lambda c: floats(c) and depthwise_or_whole(c))),
        ("arm_compute_lib.qnn_conv2d", _quantized("qnn.conv2d", padded=True), _of("qnn.conv2d", lambda c: bytes_(c) and depthwise_or_whole(c))),
        ("arm_compute_lib.dense", _biased_or_not(_conv("nn.dense")), _of("nn.dense", _product(("float32",)))),
        ("arm_compute_lib.qnn_dense", _quantized("qnn.dense"), _of("qnn.dense", lambda c: all(_is(x, ("uint8", "int8"), 2) for x in c.args[:2]))),
        ("arm_compute_lib.avg_pool2d", is_op("cast")(is_op("nn.avg_pool2d")(is_op("cast")(wildcard()))), averaged),
        ("arm_compute_lib.l2_pool2d", is_op("sqrt")(is_op("nn.avg_pool2d")(is_op("power")(wildcard(), is_constant()))), _of("nn.avg_pool2d", _pool(("float32",), "NHWC"))),
    ]
    either = ("float32", "uint8")
    rules: dict[str, Check] = {"reshape": lambda c: _is(c, either), "maximum": lambda c: _is(c.args[0], ("float32",)) and _type(c.args[0]) == _type(c.args[1]),
                               "add": lambda c: all(_is(a, ("float32",)) for a in c.args), "qnn.add": lambda c: all(_is(a, ("uint8", "int8")) for a in c.args[:2])}
    rules.update({f"nn.{kind}_pool2d": _pool(either if "max" in kind else ("float32",), "NHWC") for kind in ("max", "avg", "global_max", "global_avg")})
    return table, rules


def _bnns() -> tuple[Table, dict[str, Check]]:
    conv, dense = _of("nn.conv2d", _conv2d(("float32",), [("NCHW", "OIHW")], batch=1)), _of("nn.dense", _product(("float32",)))
    relu = lambda p: is_op("nn.relu")(p)  # noqa: E731
    table: Table = [("bnns.conv2d_bias_relu", relu(_biased(_conv())), conv), ("bnns.conv2d_relu", relu(_conv()), conv), ("bnns.conv2d_bias", _biased(_conv()), conv), ("bnns.conv2d", _conv(), conv),
                    ("bnns.dense_bias_gelu", _gelu(_biased(_conv("nn.dense"))), dense), ("bnns.dense_gelu", _gelu(_conv("nn.dense")), dense),
                    ("bnns.dense_bias", _biased(_conv("nn.dense")), dense), ("bnns.dense", _conv("nn.dense"), dense)]
    rules = {"nn.batch_matmul": _product(("float32",), 3), **{f"nn.{k}_pool2d": _pool(("float32",), "NCHW") for k in ("max", "avg", "global_max", "global_avg")}}
    return table, rules


def _clml() -> tuple[Table, dict[str, Check]]:
    conv = _biased_or_not(_conv(padded=True)).optional(lambda p: is_op("add")(p, is_constant()))
    conv = conv.optional(lambda p: is_tuple_get_item(is_op("nn.batch_norm")(p, *(is_constant() for _ in range(4))), 0))
    conv = conv.optional(lambda p: is_op("nn.relu")(p)).optional(lambda p: is_op("clip")(p))
    table: Table = [("clml.conv2d", conv, _of("nn.conv2d", _conv2d(_FLOATS, [("NCHW", "OIHW")]))), ("clml.dense", _conv("nn.dense").optional(lambda p: is_op("add")(p, is_constant())), _of("nn.dense", _product(_FLOATS))),
                    ("clml.pad", is_op("nn.pad")(wildcard(), is_constant()), lambda c: _is(c, _FLOATS, 4) and c.attrs["pad_mode"] == "constant")]
    rules: dict[str, Check] = {name: _tensors(_FLOATS) for name in ("add", "subtract", "multiply", "minimum", "maximum", "nn.relu", "clip", "nn.softmax", "reshape", "nn.batch_flatten")}
    rules.update({f"nn.{k}_pool2d": _pool(_FLOATS, "NCHW") for k in ("max", "avg", "global_max", "global_avg")})
    return table, rules


def _cmsisnn() -> tuple[Table, dict[str, Check]]:
    clipped = lambda p: p.optional(lambda q: is_op("clip")(q))  # noqa: E731

    def pool(call: Any) -> bool:
        found = _nearest(call, ("nn.avg_pool2d", "nn.max_pool2d"))
        return _is(call, ("int8",)) and found.attrs["layout"] == "NHWC" and (_type(found.args[0])[1] or (0,))[0] == 1

    def both(call: Any) -> bool:
        return all(_is(a, ("int8",)) for a in _nearest(call, ("qnn.add", "qnn.mul")).args[:2])

    def softmax(call: Any) -> bool:
        return _is(call, ("int8",)) and _of("qnn.dequantize", lambda c: _is(c.args[0], ("int8",)))(call)
    conv = _of("qnn.conv2d", lambda c: c.attrs["data_layout"] == "NHWC" and c.attrs["kernel_layout"] in ("HWIO", "HWOI") and all(_is(x, ("int8",), 4) for x in c.args[:2]))
    table: Table = [("cmsis-nn.qnn_softmax", _between(is_op("nn.softmax")), softmax), ("cmsis-nn.qnn_conv2d", clipped(_quantized("qnn.conv2d", padded=True)), conv),
                    ("cmsis-nn.qnn_fully_connected", clipped(_quantized("qnn.dense")), _of("qnn.dense", lambda c: all(_is(x, ("int8",), 2) for x in c.args[:2]))),
                    ("cmsis-nn.qnn_avg_pool2d", clipped(is_op("cast")(is_op("nn.avg_pool2d")(is_op("cast")(wildcard())))), pool),
                    ("cmsis-nn.qnn_max_pool2d", clipped(is_op("nn.max_pool2d")(wildcard())), pool)]
    table += [(f"cmsis-nn.qnn_{name}", clipped(_binary_quantized(f"qnn.{name}")), both) for name in ("add", "mul")]
    return table, {}


def _cublas() -> tuple[Table, dict[str, Check]]:
    kinds = ("float16", "float32", "float64")
    return [(f"cublas.{name}", is_op(f"nn.{name}")(wildcard(), wildcard()), _product(kinds, 3 if name == "batch_matmul" else 2)) for name in ("matmul", "batch_matmul", "dense")], {}


def _cudnn() -> tuple[Table, dict[str, Check]]:
    conv = _conv2d(_FLOATS, [("NCHW", "OIHW")])
    plain = is_op("nn.conv2d")(wildcard(), wildcard())
    table: Table = [(f"cudnn.{name}", is_op(f"nn.{name}")(wildcard()), _tensors((*_FLOATS, "float64"))) for name in ("softmax", "log_softmax")]
    return [*table, ("cudnn.conv2d_bias_act", is_op("nn.relu")(is_op("nn.bias_add")(plain, wildcard())), _of("nn.conv2d", conv)), ("cudnn.conv2d", plain, conv)], {}


def _cutlass() -> tuple[Table, dict[str, Check]]:
    dense = is_op("nn.dense")(wildcard(), wildcard())
    biased = is_op("add")(dense, wildcard()) | is_op("nn.bias_add")(dense, wildcard())
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    with_bias = is_op("add")(conv, wildcard()) | is_op("nn.bias_add")(conv, wildcard())
    product = _of("nn.dense", lambda c: all(_is(x, _FLOATS, 2) for x in c.args[:2]))
    images = _of("nn.conv2d", _conv2d(_FLOATS, [("NHWC", "OHWI")], grouped=False))
    swish = is_op("multiply")(with_bias, is_op("divide")(is_op("clip")(is_op("add")(with_bias, is_constant())), is_constant()))
    added = is_op("add")(with_bias, wildcard())
    return [("cutlass.dense_bias_gelu_fp16", _gelu(biased, "float16"), product), ("cutlass.dense_bias_gelu_fp32", _gelu(biased), product), ("cutlass.dense_bias_relu", is_op("nn.relu")(biased), product),
            ("cutlass.dense_bias", biased, product), ("cutlass.dense", dense, product), ("cutlass.batch_matmul", is_op("nn.batch_matmul")(wildcard(), wildcard()), lambda c: all(_is(x, _FLOATS, 3) for x in c.args)),
            ("cutlass.conv2d_bias_hardswish", swish, images), ("cutlass.conv2d_bias_silu", is_op("multiply")(with_bias, is_op("sigmoid")(with_bias)), images),
            ("cutlass.conv2d_bias_residual_relu", is_op("nn.relu")(added), images), ("cutlass.conv2d_bias_residual", added, images), ("cutlass.conv2d_bias_relu", is_op("nn.relu")(with_bias), images),
            ("cutlass.conv2d_bias_sigmoid", is_op("sigmoid")(with_bias), images), ("cutlass.conv2d_bias", with_bias, images), ("cutlass.conv2d", conv, images)], {}


def _ethosn() -> tuple[Table, dict[str, Check]]:
    bytes_ = ("uint8", "int8")
    whole: Check = lambda call: _is(call, bytes_)  # noqa: E731
    conv = _of("qnn.conv2d", lambda c: c.attrs["data_layout"] == "NHWC" and all(_is(x, bytes_, 4) for x in c.args[:2]))
    table: Table = [("ethos-n.qnn_conv2d", _quantized("qnn.conv2d", padded=True), conv), ("ethos-n.qnn_fc", _quantized("qnn.dense"), _of("qnn.dense", lambda c: all(_is(x, bytes_, 2) for x in c.args[:2]))),
                    ("ethos-n.qnn_avg_pool2d", is_op("cast")(is_op("nn.avg_pool2d")(is_op("cast")(wildcard()))), lambda c: whole(c) and c.args[0].attrs["layout"] == "NHWC"),
                    *((f"ethos-n.qnn_{n}", _between(is_op(op)), whole) for n, op in (("sigmoid", "sigmoid"), ("tanh", "tanh"), ("leaky_relu", "nn.leaky_relu"))),
                    ("ethos-n.qnn_mean", _four("qnn.requantize", is_op("mean")(is_op("cast")(wildcard()))), whole)]
    rules: dict[str, Check] = {"nn.max_pool2d": _pool(bytes_, "NHWC"), "nn.depth_to_space": whole, "reshape": whole, "clip": whole, "qnn.add": lambda c: all(_is(a, bytes_) for a in c.args[:2]), "qnn.concatenate": whole}
    return table, rules


def _small(values: Any, low: int, high: int) -> bool:
    return all(low <= int(v) <= high for v in values)


def _ethosu() -> tuple[Table, dict[str, Check]]:
    """Of batch 1, at most four dimensions of 65536, strides up to 3 and dilations up to 2."""
    bytes_ = ("uint8", "int8")
    clipped = lambda p: p.optional(lambda q: is_op("clip")(q))  # noqa: E731
    requantized = lambda p: p.optional(lambda q: _four("qnn.requantize", q))  # noqa: E731

    def fits(value: Any, dtypes: Sequence[str] = bytes_) -> bool:
        shape = _type(value)[1]
        return _is(value, dtypes) and shape is not None and len(shape) <= 4 and all(d <= 65536 for d in shape)

    def first(*names: str, dtypes: Sequence[str] = bytes_) -> Check:
        return lambda call: fits(call, dtypes) and (found := _nearest(call, names)) is not None and fits(found.args[0], dtypes)

    def padding(call: Any, data: Any) -> list[int] | None:
        """With that of a padding before it, of the convolution's zero point; None: another."""
        own = [int(p) for p in call.attrs["padding"]]
        if data is call.args[0]:
            return own
        wide = [[int(n) for n in pair] for pair in call.args[0].attrs["pad_width"]]
        if len(wide) != 4 or wide[0] != [0, 0] or wide[3] != [0, 0] or int(call.args[0].args[1].data.numpy()) != int(call.args[2].data.numpy()):
            return None
        return [own[0] + wide[1][0], own[1] + wide[2][0], own[2] + wide[1][1], own[3] + wide[2][1]]

    def convolution(layout: str) -> Check:
        def check(call: Any) -> bool:
            a, weight = call.attrs, call.args[1]
            if a["data_layout"] != "NHWC" or a["kernel_layout"] != layout or not _is(weight, bytes_, 4):
                return False
            data = call.args[0].args[0] if getattr(getattr(call.args[0], "op", None), "name", "") == "nn.pad" else call.args[0]
            pads, shape, sizes = padding(call, data), _type(data)[1], _type(weight)[1] or ()
            if pads is None or shape is None or shape[0] != 1 or not fits(data) or any(p > most for p, most in zip(pads, (31, 31, 32, 32))):
                return False
            high, wide = ((int(n) - 1) * int(d) + 1 for n, d in zip(sizes[:2], a["dilation"]))
            depthwise = layout == "HWOI"
            if not (_small(a["strides"], 1, 3) and _small(a["dilation"], 1, 2) and high <= 64 and high * wide <= 4096 and int(a["groups"]) == (sizes[2] if depthwise else 1)):
                return False
            return not depthwise or sizes[3] == 1
        return check

    def transposed(call: Any) -> bool:
        """By two in each direction: to exactly twice the size, or without padding."""
        a, data, kernel, out = call.attrs, *((_type(x)[1] or (0,) * 4) for x in (call.args[0], call.args[1], call))
        more = [0 if any(map(int, a["padding"])) else max(k - 2, 0) for k in kernel[2:]]
        return (a["data_layout"] == "NHWC" and a["kernel_layout"] == "IOHW" and all(_is(x, bytes_, 4) for x in call.args[:2]) and data[0] == 1 and int(a["groups"]) == 1
                and _small(a["strides"], 2, 2) and _small(a["dilation"], 1, 1) and [2 * n + m for n, m in zip(data[1:3], more)] == list(out[1:3]))

    def pooled(kind: str) -> Check:
        def check(call: Any) -> bool:
            found = _nearest(call, (f"nn.{kind}_pool2d",))
            a, size = found.attrs, [int(n) for n in found.attrs["pool_size"]]
            bounds = (127, 127, 128, 128) if kind == "max" else (3, 3, 4, 4)
            if not fits(call) or a["layout"] != "NHWC" or (_type(call)[1] or (0,))[0] != 1 or any(int(p) > most for p, most in zip(a["padding"], bounds)):
                return False
            return _small(a["strides"], 1, 3) and size[1] <= 256 and size[0] * size[1] <= 65536
        return check

    def both(*names: str, dtypes: Sequence[str] = bytes_) -> Check:
        def check(call: Any) -> bool:
            a, b = _nearest(call, names).args[:2]
            shapes = [_type(x)[1] or () for x in (a, b)]
            alike = len(shapes[0]) == len(shapes[1]) and all(m == n or 1 in (m, n) for m, n in zip(*shapes))
            return fits(call, dtypes) and fits(a, dtypes) and fits(b, dtypes) and _type(a)[0] == _type(b)[0] and (alike or () in shapes)
        return check

    def averaged(call: Any) -> bool:
        found = _nearest(call, ("mean",))
        axis, shape = [int(i) for i in found.attrs["axis"]], _type(found.args[0])[1] or ()
        spatial = {4: ([1, 2], [1], [2]), 3: ([0, 1], [0], [1]), 2: ([0, 1], [0], [1])}.get(len(shape), ())
        return fits(call) and axis in spatial and (len(shape) != 4 or shape[0] == 1)

    def resized(call: Any) -> bool:
        found = _nearest(call, ("image.resize2d",))
        a, shape = found.attrs, _type(found.args[0])[1] or (0, 0, 0, 0)
        scale = [int(n) / m for n, m in zip(a["size"], shape[1:3])]
        return a["layout"] == "NHWC" and a["method"] in ("nearest_neighbor", "linear") and a["coordinate_transformation_mode"] in ("asymmetric", "align_corners") and scale in ([2.0, 2.0], [1.0, 1.0])
    conv = lambda layout: _of("qnn.conv2d", convolution(layout))  # noqa: E731
    data = is_op("nn.pad")(wildcard(), is_constant()) | wildcard()
    whole = is_op("qnn.conv2d")(data, *(is_constant() for _ in range(5)))
    biased = clipped(_four("qnn.requantize", is_op("nn.bias_add")(whole, is_constant())))
    dense = is_op("qnn.dense")(wildcard(), *(is_constant() for _ in range(5)))
    wide = ("uint8", "int8", "int32")
    swish = is_op("qnn.dequantize")(wildcard(), is_constant(), is_constant())
    swish = is_op("multiply")(is_op("multiply")(swish, is_op("clip")(is_op("add")(swish, is_constant()))), is_constant())
    table: Table = [
        ("ethos-u.qnn_conv2d", biased, conv("HWIO")), ("ethos-u.qnn_depthwise_conv2d", biased, conv("HWOI")),
        ("ethos-u.qnn_conv2d_transpose", _four("qnn.requantize", _biased_or_not(is_op("qnn.conv2d_transpose")(wildcard(), *(is_constant() for _ in range(5))))), _of("qnn.conv2d_transpose", transposed)),
        ("ethos-u.qnn_fc", clipped(_four("qnn.requantize", _biased_or_not(dense))), _of("qnn.dense", lambda c: all(_is(x, bytes_, 2) for x in c.args[:2]) and (_type(c.args[0])[1] or (0,))[0] == 1)),
        ("ethos-u.max_pool2d", clipped(is_op("nn.max_pool2d")(wildcard())), pooled("max")),
        ("ethos-u.avg_pool2d", clipped(is_op("cast")(is_op("nn.avg_pool2d")(is_op("cast")(wildcard())))), pooled("avg")),
        ("ethos-u.add", clipped(_binary_quantized("qnn.add")), both("qnn.add", dtypes=wide)), ("ethos-u.subtract", clipped(_binary_quantized("qnn.subtract")), both("qnn.subtract", dtypes=wide)),
        ("ethos-u.mul", clipped(_binary_quantized("qnn.mul")), both("qnn.mul", dtypes=wide)),
        ("ethos-u.min", clipped(requantized(is_op("minimum")(wildcard(), wildcard()))), both("minimum")), ("ethos-u.max", clipped(requantized(is_op("maximum")(wildcard(), wildcard()))), both("maximum")),
        ("ethos-u.shl", is_op("left_shift")(wildcard(), wildcard()), both("left_shift", dtypes=("int32",))), ("ethos-u.abs", _between(is_op("abs")), first("qnn.dequantize")),
        ("ethos-u.mean", _four("qnn.requantize", is_op("mean")(is_op("cast")(wildcard()))), averaged), ("ethos-u.concat", is_op("qnn.concatenate")(*(wildcard() for _ in range(5))), lambda c: fits(c)),
        *((f"ethos-u.{n}", _between(is_op(op)), first("qnn.dequantize")) for n, op in (("tanh", "tanh"), ("sigmoid", "sigmoid"), ("leaky_relu", "nn.leaky_relu"), ("softmax", "nn.softmax"))),
        ("ethos-u.hard_swish", is_op("qnn.quantize")(swish, is_constant(), is_constant()), lambda c: fits(c, ("int8",))),
        ("ethos-u.resize2d", _between(is_op("image.resize2d")), resized),
        ("ethos-u.split", is_op("split")(wildcard()), lambda c: fits(c.args[0])), ("ethos-u.requantize", _four("qnn.requantize", wildcard()), first("qnn.requantize")),
        *((f"ethos-u.{name}", is_op(name)(wildcard()), first(name)) for name in ("expand_dims", "squeeze", "reshape", "strided_slice")),
    ]
    return table, {}


# By the number of operands; the rest of their attributes is taken as it is.
_TENSORRT = {1: "abs atan ceil clip cos erf exp expand_dims floor image.resize2d log max mean min negative nn.adaptive_avg_pool2d nn.adaptive_max_pool2d nn.avg_pool2d nn.avg_pool3d nn.batch_flatten "
                "nn.global_avg_pool2d nn.global_max_pool2d nn.leaky_relu nn.max_pool2d nn.max_pool3d nn.relu nn.softmax nn.upsampling prod reshape sigmoid sin sqrt squeeze strided_slice sum tan tanh transpose",
             2: "add divide maximum minimum multiply nn.batch_matmul nn.bias_add nn.conv1d nn.conv2d nn.conv2d_transpose nn.conv3d nn.conv3d_transpose nn.dense nn.pad power subtract"}
_CHANNELS_FIRST = ("NCW", "NCHW", "NCDHW", "OIW", "OIHW", "OIDHW", "IOHW", "IODHW", "")


def _tensorrt() -> tuple[Table, dict[str, Check]]:
    def takes(call: Any) -> bool:
        layouts = [str(call.attrs[k]) for k in ("data_layout", "kernel_layout", "out_layout", "layout") if call.attrs is not None and k in call.attrs.keys()]
        operands = call.args[:1] if call.op.name == "nn.pad" else call.args
        return all(_is(x, ("float32",)) for x in (call, *operands)) and all(at in _CHANNELS_FIRST for at in layouts)
    table: Table = [(f"tensorrt.{name}", is_op(name)(*(wildcard() for _ in range(count))), takes) for count, names in _TENSORRT.items() for name in names.split()]
    norm = is_tuple_get_item(is_op("nn.batch_norm")(*(wildcard() for _ in range(5))), 0)
    table.append(("tensorrt.nn.batch_norm", norm, lambda c: _is(c.tuple_value.args[0], ("float32",)) and int(c.tuple_value.attrs["axis"]) in (1, 3)))
    table.append(("tensorrt.nn.layer_norm", is_op("nn.layer_norm")(wildcard(), wildcard(), wildcard()), _tensors(("float32",))))
    table.append(("tensorrt.concatenate", is_op("concatenate")(wildcard()), lambda c: _is(c, ("float32",))))
    return table, {}


# By the compiler's name: from nothing to its patterns, longest first, and its rules for single operators.
TABLES: dict[str, Callable[[], tuple[Table, dict[str, Check]]]] = {
    "arm_compute_lib": _arm_compute_lib, "bnns": _bnns, "clml": _clml, "cmsis-nn": _cmsisnn, "cublas": _cublas, "cudnn": _cudnn, "cutlass": _cutlass, "ethos-n": _ethosn, "ethos-u": _ethosu, "tensorrt": _tensorrt}

__all__ = ["TABLES"]
