# SPDX-License-Identifier: Apache-2.0
"""Models of one ONNX operator at sizes that occur: what bench/operators.py measures."""
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = ("small", "cache", "memory")
USUAL = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool")
OPSET = 20
# Elements of a picture, of rows, of a sequence, for each size: a few KiB, about a core's second cache, beyond all caches.
FLAT = {"small": (64, 64), "cache": (384, 512), "memory": (4096, 1024)}
ROWS = {"small": (16, 197), "cache": (12, 197, 197), "memory": (128, 30000)}
PICTURE = {"small": (1, 16, 14, 14), "cache": (1, 64, 56, 56), "memory": (4, 64, 112, 112)}
TOKENS = {"small": (1, 16, 64), "cache": (1, 197, 768), "memory": (8, 512, 768)}


class Case:
    """One model and how its inputs are made. `inputs`: name -> (shape, dtype, kind); `constants`: name -> array."""

    def __init__(self, operator, name, dtype, size, inputs, attributes=None, constants=None, outputs=1, opset=OPSET,
                 domain="", order=None, random=False):
        self.operator, self.name, self.dtype, self.size = operator, name, dtype, size
        self.inputs, self.attributes, self.constants = inputs, attributes or {}, constants or {}
        self.outputs, self.opset, self.domain, self.random = outputs, opset, domain, random
        self.order = order or list(inputs) + list(self.constants)

    @property
    def key(self):
        return self.operator, self.name, self.dtype, self.size

    def write(self, path):
        """Writes the model; returns its inputs."""
        seed = zlib.crc32(f"{self.operator} {self.name} {self.dtype} {self.size}".encode())
        feeds = {name: values(np.random.default_rng([seed, i]), *spec) for i, (name, spec) in enumerate(self.inputs.items())}
        types = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in feeds.items()}
        node = helper.make_node(self.operator, self.order, [f"y{i}" for i in range(self.outputs)], domain=self.domain, **self.attributes)
        graph = helper.make_graph(
            [node], "operator", [helper.make_tensor_value_info(name, types[name], value.shape) for name, value in feeds.items()],
            [onnx.ValueInfoProto(name=f"y{i}") for i in range(self.outputs)],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in self.constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        onnx.save(model, str(path))
        return feeds


def values(random, shape, dtype, kind):
    """Seeded inputs; a number as `kind` is the bound of indices."""
    dtype = np.dtype(dtype)
    if isinstance(kind, int):
        return random.integers(0, kind, shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if kind == "sparse":
        return ((random.random(shape) < 0.1) * 3).astype(dtype)
    if kind == "divisor":
        return random.integers(1, 12, shape).astype(dtype) if dtype.kind in "iu" else (random.random(shape) + 0.5).astype(dtype)
    if kind == "exponent":  # powers of less than 100 that every type holds
        return random.integers(1, 5, shape).astype(dtype) if dtype.kind in "iu" else (random.random(shape) + 0.5).astype(dtype)
    if kind == "near_one":  # products of many neither vanish nor overflow
        return np.ones(shape, dtype) if dtype.kind in "iu" else random.uniform(0.998, 1.002, shape).astype(dtype)
    if kind == "shift":
        return random.integers(0, 7, shape).astype(dtype)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" or kind == "positive" else -100
        return random.integers(low, 100, shape).astype(dtype)
    if kind == "unit":
        return random.uniform(-0.99, 0.99, shape).astype(dtype)
    if kind == "positive":
        return random.uniform(0.05, 8, shape).astype(dtype)
    if kind == "above_one":
        return random.uniform(1.0, 50, shape).astype(dtype)
    if kind == "wide":
        return (random.standard_normal(shape) * 20).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
NUMBERS = FLOATS + INTEGERS
ANY = NUMBERS + ("bool",)

# operator: (kind of the input, dtypes, attributes)
UNARY = {
    "Abs": ("", NUMBERS, {}), "Acos": ("unit", FLOATS, {}), "Acosh": ("above_one", FLOATS, {}), "Asin": ("unit", FLOATS, {}),
    "Asinh": ("", FLOATS, {}), "Atan": ("", FLOATS, {}), "Atanh": ("unit", FLOATS, {}), "Ceil": ("wide", FLOATS, {}),
    "Celu": ("", FLOATS, {"alpha": 0.7}), "Cos": ("wide", FLOATS, {}), "Cosh": ("", FLOATS, {}), "Elu": ("", FLOATS, {}),
    "Erf": ("", FLOATS, {}), "Exp": ("", FLOATS, {}), "Floor": ("wide", FLOATS, {}), "Gelu": ("", FLOATS, {}),
    "HardSigmoid": ("", FLOATS, {}), "HardSwish": ("", FLOATS, {}), "Identity": ("", ANY, {}), "IsInf": ("", FLOATS, {}),
    "IsNaN": ("", FLOATS, {}), "LeakyRelu": ("", FLOATS, {}), "Log": ("positive", FLOATS, {}), "Mish": ("", FLOATS, {}),
    "Neg": ("", NUMBERS, {}), "Not": ("", ("bool",), {}), "Reciprocal": ("positive", FLOATS, {}), "Relu": ("", NUMBERS, {}),
    "Round": ("wide", FLOATS, {}), "Selu": ("", FLOATS, {}), "Shrink": ("", NUMBERS, {}), "Sigmoid": ("", FLOATS, {}),
    "Sign": ("", NUMBERS, {}), "Sin": ("wide", FLOATS, {}), "Sinh": ("", FLOATS, {}), "Softplus": ("", FLOATS, {}),
    "Softsign": ("", FLOATS, {}), "Sqrt": ("positive", FLOATS, {}), "Tan": ("unit", FLOATS, {}), "Tanh": ("", FLOATS, {}),
    "ThresholdedRelu": ("", FLOATS, {}), "BitwiseNot": ("", INTEGERS, {}),
}
# operator: (kind of the second operand, dtypes, attributes)
BINARY = {
    "Add": ("", NUMBERS, {}), "Sub": ("", NUMBERS, {}), "Mul": ("", NUMBERS, {}), "Div": ("divisor", NUMBERS, {}),
    "Pow": ("exponent", FLOATS + ("int32", "int64"), {}), "Min": ("", NUMBERS, {}), "Max": ("", NUMBERS, {}),
    "Mean": ("", FLOATS, {}), "Sum": ("", FLOATS, {}), "PRelu": ("", NUMBERS, {}), "Equal": ("", ANY, {}),
    "Greater": ("", NUMBERS, {}), "GreaterOrEqual": ("", NUMBERS, {}), "Less": ("", NUMBERS, {}),
    "LessOrEqual": ("", NUMBERS, {}), "And": ("", ("bool",), {}), "Or": ("", ("bool",), {}), "Xor": ("", ("bool",), {}),
    "BitwiseAnd": ("", INTEGERS, {}), "BitwiseOr": ("", INTEGERS, {}), "BitwiseXor": ("", INTEGERS, {}),
    "BitShift": ("shift", ("uint8", "uint32", "uint64"), {"direction": "LEFT"}),
}
REDUCTIONS = {"ReduceSum": ("", NUMBERS), "ReduceMean": ("", NUMBERS), "ReduceMax": ("", NUMBERS), "ReduceMin": ("", NUMBERS),
              "ReduceProd": ("near_one", FLOATS + ("int32", "int64")), "ReduceL1": ("", FLOATS + ("int32",)), "ReduceL2": ("", FLOATS + ("int32",)),
              "ReduceLogSum": ("positive", FLOATS), "ReduceLogSumExp": ("", FLOATS), "ReduceSumSquare": ("", FLOATS + ("int32",))}


def pointwise(size):
    shape, row = FLAT[size], FLAT[size][-1:]
    for operator, (kind, dtypes, attributes) in UNARY.items():
        for dtype in dtypes:
            yield Case(operator, "flat", dtype, size, {"x": (shape, dtype, kind)}, attributes)
    for operator, (kind, dtypes, attributes) in BINARY.items():
        for dtype in dtypes:
            shapes = {"same": shape, "row": row, "column": (shape[0], 1), "scalar": ()}
            for name, other in shapes.items():
                if name == "same" or dtype in ("float32", "int64", "bool"):
                    yield Case(operator, name, dtype, size, {"a": (shape, dtype, "positive" if operator == "Pow" else ""), "b": (other, dtype, kind)}, attributes)
    for dtype in FLOATS + ("int32",):
        yield Case("Mod", "fmod0" if dtype == "int32" else "fmod1", dtype, size, {"a": (shape, dtype, ""), "b": (shape, dtype, "divisor")}, {"fmod": int(dtype != "int32")})
    for dtype in NUMBERS:
        yield Case("Clip", "both", dtype, size, {"x": (shape, dtype, "")}, constants={"low": np.array(1, dtype), "high": np.array(50, dtype)})
    for dtype in ANY:
        yield Case("Where", "same", dtype, size, {"c": (shape, "bool", ""), "a": (shape, dtype, ""), "b": (shape, dtype, "")})
        yield Case("Where", "row_mask", dtype, size, {"c": ((shape[0], 1), "bool", ""), "a": (shape, dtype, ""), "b": ((), dtype, "")})
        for to in ANY:
            if to != dtype:
                yield Case("Cast", f"to_{to}", dtype, size, {"x": (shape, dtype, "positive")}, {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))})


def reductions(size):
    for operator, (kind, dtypes) in REDUCTIONS.items():
        for dtype in dtypes:
            places = {"last": [-1], "channels": [1], "pixels": [2, 3], "all": None}
            for name, axes in places.items():
                if name == "pixels" or dtype in ("float32", "int32"):
                    newer = operator == "ReduceSum" or OPSET >= 18
                    constants = {} if axes is None or not newer else {"axes": np.array(axes, np.int64)}
                    yield Case(operator, name, dtype, size, {"x": (PICTURE[size], dtype, kind)}, {"keepdims": 1}, constants)
    for dtype in ("float32", "float64", "float16", "int32", "int8", "uint8", "int64"):
        for operator in ("ArgMax", "ArgMin"):
            for axis, name in ((1, "channels"), (-1, "last"), (2, "rows")):
                yield Case(operator, name, dtype, size, {"x": (PICTURE[size], dtype, "")}, {"axis": axis})
            yield Case(operator, "classes", dtype, size, {"x": (ROWS[size], dtype, "")}, {"axis": -1})
    for dtype in FLOATS:
        for operator in ("Softmax", "LogSoftmax", "Hardmax"):
            yield Case(operator, "rows", dtype, size, {"x": (ROWS[size], dtype, "")}, {"axis": -1})
            yield Case(operator, "channels", dtype, size, {"x": (PICTURE[size], dtype, "")}, {"axis": 1})
    for dtype in ("float32", "float64", "int32", "int64"):
        for axis in (1, 2, 3):
            yield Case("CumSum", f"axis{axis}", dtype, size, {"x": (PICTURE[size], dtype, "")}, constants={"axis": np.array(axis, np.int64)})
    for dtype in ("float32", "float64", "float16", "int32", "int64"):
        for k in (1, 5, 100):
            if k <= ROWS[size][-1]:
                yield Case("TopK", f"k{k}", dtype, size, {"x": (ROWS[size], dtype, "")}, constants={"k": np.array([k], np.int64)}, outputs=2)


def moves(size):
    picture, tokens, flat = PICTURE[size], TOKENS[size], FLAT[size]
    for dtype in ANY:
        usual = dtype in ("float32", "int64", "uint8", "float16")
        one = {"x": (picture, dtype, "")}
        yield Case("Concat", "last", dtype, size, {"a": (picture, dtype, ""), "b": (picture, dtype, "")}, {"axis": -1})
        yield Case("Tile", "last", dtype, size, one, constants={"n": np.array([1, 1, 1, 3], np.int64)})
        yield Case("Transpose", "channels_last", dtype, size, one, {"perm": [0, 2, 3, 1]})
        yield Case("Pad", "constant", dtype, size, one, constants={"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)}, order=["x", "pads"])
        yield Case("Gather", "rows", dtype, size, {"x": (flat, dtype, ""), "i": ((flat[0],), "int64", flat[0])})
        yield Case("Slice", "middle", dtype, size, one, constants={k: np.array(v, np.int64) for k, v in (("s", [1, 1]), ("e", [-1, -1]), ("a", [2, 3]))})
        if not usual:
            continue
        yield Case("Concat", "channels", dtype, size, {"a": (picture, dtype, ""), "b": (picture, dtype, "")}, {"axis": 1})
        yield Case("Concat", "short", dtype, size, {"a": ((*flat, 3), dtype, ""), "b": ((*flat, 5), dtype, "")}, {"axis": -1})
        yield Case("Tile", "rows", dtype, size, one, constants={"n": np.array([1, 1, 2, 1], np.int64)})
        yield Case("Expand", "row", dtype, size, {"x": (flat[-1:], dtype, "")}, constants={"s": np.array(flat, np.int64)})
        yield Case("Expand", "column", dtype, size, {"x": ((flat[0], 1), dtype, "")}, constants={"s": np.array(flat, np.int64)})
        yield Case("Transpose", "matrix", dtype, size, {"x": (flat, dtype, "")}, {"perm": [1, 0]})
        yield Case("Transpose", "heads", dtype, size, {"x": ((*tokens[:2], tokens[2] // 16, 16), dtype, "")}, {"perm": [0, 2, 1, 3]})
        yield Case("Transpose", "channels_first", dtype, size, {"x": ((picture[0], *picture[2:], picture[1]), dtype, "")}, {"perm": [0, 3, 1, 2]})
        for mode in ("reflect", "edge"):
            yield Case("Pad", mode, dtype, size, one, {"mode": mode}, {"pads": np.array([0, 0, 3, 3, 0, 0, 3, 3], np.int64)})
        yield Case("Split", "channels", dtype, size, one, {"axis": 1, "num_outputs": 2}, outputs=2)
        yield Case("Split", "last", dtype, size, one, {"axis": 3, "num_outputs": 2}, outputs=2)
        yield Case("Slice", "strided", dtype, size, one, constants={k: np.array(v, np.int64) for k, v in (("s", [0, 0]), ("e", [999, 999]), ("a", [2, 3]), ("t", [2, 2]))})
        yield Case("Gather", "columns", dtype, size, {"x": (flat, dtype, ""), "i": ((flat[1] // 2,), "int64", flat[1])}, {"axis": 1})
        yield Case("GatherElements", "columns", dtype, size, {"x": (flat, dtype, ""), "i": (flat, "int64", flat[1])}, {"axis": 1})
        yield Case("GatherElements", "rows", dtype, size, {"x": (flat, dtype, ""), "i": (flat, "int64", flat[0])}, {"axis": 0})
        yield Case("GatherND", "rows", dtype, size, {"x": (flat, dtype, ""), "i": ((flat[0], 1), "int64", flat[0])})
        yield Case("GatherND", "points", dtype, size, {"x": (flat, dtype, ""), "i": ((flat[0] * 8, 2), "int64", flat[0] if flat[0] < flat[1] else flat[1])})
        yield Case("ScatterElements", "columns", dtype, size, {"x": (flat, dtype, ""), "i": (flat, "int64", flat[1]), "u": (flat, dtype, "")}, {"axis": 1}, random=True)
        yield Case("ScatterND", "rows", dtype, size, {"x": (flat, dtype, ""), "i": ((flat[0] // 2, 1), "int64", flat[0]), "u": ((flat[0] // 2, flat[1]), dtype, "")}, random=True)
        yield Case("DepthToSpace", "dcr", dtype, size, one, {"blocksize": 2})
        yield Case("DepthToSpace", "crd", dtype, size, one, {"blocksize": 2, "mode": "CRD"})
        yield Case("SpaceToDepth", "two", dtype, size, one, {"blocksize": 2})
        yield Case("Reshape", "flat", dtype, size, one, constants={"s": np.array([picture[0], -1], np.int64)})
        yield Case("Flatten", "one", dtype, size, one)
        yield Case("Squeeze", "first", dtype, size, {"x": ((1, *flat), dtype, "")}, constants={"a": np.array([0], np.int64)})
        yield Case("Unsqueeze", "first", dtype, size, {"x": (flat, dtype, "")}, constants={"a": np.array([0], np.int64)})
        yield Case("ReverseSequence", "time", dtype, size, {"x": (tokens, dtype, ""), "n": ((tokens[0],), "int64", tokens[1])}, {"batch_axis": 0, "time_axis": 1})
        yield Case("Trilu", "upper", dtype, size, {"x": (flat, dtype, "")}, {"upper": 1})
        yield Case("EyeLike", "square", dtype, size, {"x": (flat, dtype, "")})
        yield Case("NonZero", "sparse", dtype, size, {"x": (flat, dtype, "sparse")})
        yield Case("NonZero", "dense", dtype, size, {"x": (flat, dtype, "")})
        yield Case("Compress", "rows", dtype, size, {"x": (flat, dtype, ""), "c": ((flat[0],), "bool", "")}, {"axis": 0})
        yield Case("Unique", "flat", dtype, size, {"x": ((flat[0] * 16,), dtype, "")})
        yield Case("OneHot", "last", dtype, size, {"i": ((flat[0],), "int64", flat[1])}, constants={"depth": np.array(flat[1], np.int64), "v": np.array([0, 1], dtype)})
        yield Case("Size", "flat", dtype, size, one)
        yield Case("Shape", "flat", dtype, size, one)
    yield Case("CenterCropPad", "crop", "float32", size, {"x": (picture, "float32", "")}, {"axes": [2, 3]}, {"s": np.array([picture[2] - 3, picture[3] - 4], np.int64)})


def windows(size):
    picture = PICTURE[size]
    channels = picture[1]
    for dtype in FLOATS + ("int8", "uint8"):
        one = {"x": (picture, dtype, "")}
        for name, attributes in {"3x3s2": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, "2x2s2": {"kernel_shape": [2, 2], "strides": [2, 2]},
                                 "3x3s1": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, "5x5s1": {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}}.items():
            yield Case("MaxPool", name, dtype, size, one, attributes)
            if dtype in FLOATS:
                yield Case("AveragePool", name, dtype, size, one, attributes)
        if dtype not in FLOATS:
            continue
        yield Case("MaxPool", "indices", dtype, size, one, {"kernel_shape": [2, 2], "strides": [2, 2]}, outputs=2)
        for operator, attributes in {"GlobalAveragePool": {}, "GlobalMaxPool": {}, "LpPool": {"kernel_shape": [3, 3], "strides": [2, 2]}, "GlobalLpPool": {},
                                     "LRN": {"size": 5}, "MeanVarianceNormalization": {}, "LpNormalization": {}}.items():
            yield Case(operator, "picture", dtype, size, one, attributes)
        line = {"x": ((picture[0], channels, picture[2] * picture[3]), dtype, "")}
        yield Case("MaxPool", "1d", dtype, size, line, {"kernel_shape": [3], "strides": [2]})
        yield Case("AveragePool", "1d", dtype, size, line, {"kernel_shape": [3], "strides": [2]})
        for mode, transform in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("cubic", "half_pixel"), ("linear", "align_corners")):
            for scale in (2.0, 0.5, 1.5):
                yield Case("Resize", f"{mode}_{transform}_x{scale}", dtype, size, one, {"mode": mode, "coordinate_transformation_mode": transform},
                           {"scales": np.array([1, 1, scale, scale], np.float32)}, order=["x", "", "scales"])
        for mode in ("linear", "nearest", "cubic"):
            for padding in ("zeros", "border", "reflection"):
                if padding == "zeros" or mode == "linear":
                    yield Case("GridSample", f"{mode}_{padding}", dtype, size, {**one, "g": ((picture[0], *picture[2:], 2), dtype, "unit")}, {"mode": mode, "padding_mode": padding})
        for operator in ("BatchNormalization", "InstanceNormalization"):
            weights = {n: (np.random.default_rng(i).random(channels) + 0.5).astype(dtype) for i, n in enumerate(("s", "b", "m", "v")[: 4 if operator[0] == "B" else 2])}
            yield Case(operator, "picture", dtype, size, one, constants=weights)
        yield Case("GroupNormalization", "picture", dtype, size, one, {"num_groups": 8}, {n: np.ones(channels, dtype) for n in "sb"}, opset=21)
        tokens = TOKENS[size]
        yield Case("LayerNormalization", "tokens", dtype, size, {"x": (tokens, dtype, "")}, {"axis": -1}, {n: np.ones(tokens[-1], dtype) for n in "sb"})


def products(size):
    n = {"small": 32, "cache": 192, "memory": 768}[size]
    heads, length, width = {"small": (2, 16, 32), "cache": (12, 128, 64), "memory": (12, 512, 64)}[size]
    channels, pixels = {"small": (16, 14), "cache": (64, 28), "memory": (64, 112)}[size]
    for dtype in ("float32", "float64", "float16", "int32"):
        yield Case("MatMul", "square", dtype, size, {"a": ((n, n), dtype, ""), "b": ((n, n), dtype, "")})
        yield Case("MatMul", "vector", dtype, size, {"a": ((1, n), dtype, ""), "b": ((n, n), dtype, "")})
        yield Case("Gemm", "bias", dtype, size, {"a": ((n, n), dtype, "")}, {"transB": 1}, {"b": np.ones((n, n), dtype), "c": np.ones(n, dtype)})
    for dtype in FLOATS:
        q = {"a": ((1, heads, length, width), dtype, ""), "b": ((1, heads, length, width), dtype, "")}
        yield Case("Einsum", "scores", dtype, size, q, {"equation": "bhid,bhjd->bhij"})
        yield Case("Einsum", "values", dtype, size, {"a": ((1, heads, length, length), dtype, ""), "b": ((1, heads, length, width), dtype, "")}, {"equation": "bhij,bhjd->bhid"})
        yield Case("Einsum", "scores_last", dtype, size, {"a": ((1, length, heads, width), dtype, ""), "b": ((1, length, heads, width), dtype, "")}, {"equation": "bihd,bjhd->bhij"})
        yield Case("Einsum", "outer", dtype, size, {"a": ((n,), dtype, ""), "b": ((n,), dtype, "")}, {"equation": "i,j->ij"})
        yield Case("Einsum", "diagonal", dtype, size, {"a": ((heads, n, n), dtype, "")}, {"equation": "bii->bi"})
        one = {"x": ((1, channels, pixels, pixels), dtype, "")}
        for name, kernel, attributes in (("1x1", (channels, channels, 1, 1), {}), ("3x3", (channels, channels, 3, 3), {"pads": [1, 1, 1, 1]}),
                                         ("depthwise", (channels, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": channels})):
            yield Case("Conv", name, dtype, size, one, attributes, {"w": (np.random.default_rng(1).standard_normal(kernel) * 0.1).astype(dtype)})
        yield Case("ConvTranspose", "2x2s2", dtype, size, one, {"strides": [2, 2]}, {"w": (np.random.default_rng(1).standard_normal((channels, channels // 2, 2, 2)) * 0.1).astype(dtype)})
    for operator, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        hidden = {"small": 16, "cache": 128, "memory": 512}[size]
        random = np.random.default_rng(2)
        yield Case(operator, "forward", "float32", size, {"x": ((length // 4, 1, width), "float32", "")}, {"hidden_size": hidden},
                   {"w": (random.standard_normal((1, gates * hidden, width)) * 0.1).astype(np.float32),
                    # Small enough that roundings die away from step to step.
                    "r": (random.standard_normal((1, gates * hidden, hidden)) * 0.5 / hidden ** 0.5).astype(np.float32)}, outputs=2)
    yield Case("Det", "matrices", "float32", size, {"x": ((n, 4, 4), "float32", "")})
    yield Case("DFT", "rows", "float32", size, {"x": ((heads, length, 1), "float32", "")}, {"onesided": 1})


def quantised(size):
    flat = FLAT[size]
    for dtype in ("uint8", "int8"):
        yield Case("QuantizeLinear", "tensor", dtype, size, {"x": (flat, "float32", "")}, constants={"s": np.array(0.02, np.float32), "z": np.array(3, dtype)})
        yield Case("DequantizeLinear", "tensor", dtype, size, {"x": (flat, dtype, "")}, constants={"s": np.array(0.02, np.float32), "z": np.array(3, dtype)})
    yield Case("DynamicQuantizeLinear", "tensor", "float32", size, {"x": (flat, "float32", "")}, outputs=3)


def detection(size):
    boxes, picture = {"small": 64, "cache": 1000, "memory": 6000}[size], PICTURE[size]
    yield Case("NonMaxSuppression", "boxes", "float32", size, {"b": ((1, boxes, 4), "float32", "positive"), "s": ((1, 1, boxes), "float32", "positive")},
               constants={"n": np.array([100], np.int64), "t": np.array([0.5], np.float32)})
    regions = np.abs(np.random.default_rng(3).random((16, 4)) * 6).astype(np.float32)
    regions[:, 2:] += regions[:, :2] + 2
    yield Case("RoiAlign", "average", "float32", size, {"x": (picture, "float32", "")}, {"output_height": 7, "output_width": 7, "sampling_ratio": 2},
               {"r": regions, "i": np.zeros(16, np.int64)})
    yield Case("MaxRoiPool", "seven", "float32", size, {"x": (picture, "float32", "")}, {"pooled_shape": [7, 7]},
               {"r": np.concatenate([np.zeros((16, 1), np.float32), regions], 1)})


FAMILIES = (pointwise, reductions, moves, windows, products, quantised, detection)


def all_cases(dtypes, sizes):
    for size in sizes:
        for family in FAMILIES:
            for case in family(size):
                if dtypes is None or case.dtype in dtypes:
                    yield case


def uncovered():
    """The standard's operators that no case has: they hold no numbers, only control, or never stand alone."""
    have = {case.operator for family in FAMILIES for case in family("small")}
    return sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == "" and not schema.deprecated} - have)
