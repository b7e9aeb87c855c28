# SPDX-License-Identifier: Apache-2.0
"""Random cases of com.microsoft's operators for beside_onnxruntime.py: TABLE[operator](random) is a Case."""
import dataclasses

import numpy as np

F4 = [0, 0.00520833333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25]


@dataclasses.dataclass
class Case:
    op: str
    inputs: list  # arrays, or None where an optional one is left out
    attributes: dict
    outputs: tuple = (0,)
    constants: tuple = ()  # inputs that are initialisers
    tolerance: float = 2e-5  # of the largest value; of integers, in units
    domain: str = "com.microsoft"
    version: int = 3  # of ai.onnx.ml's operators
    opset: int = 18
    types: dict = dataclasses.field(default_factory=dict)  # of outputs whose type follows from no input
    shared: dict = dataclasses.field(default_factory=dict)  # outputs that onnxruntime wants in the memory of inputs
    expected: list | None = None  # where onnxruntime's Python package cannot be given the inputs


TABLE = {}


def operator(name):
    def note(make):
        TABLE[name] = lambda random: make(random)
        return make
    return note


def real(r, *shape, dtype=np.float32):
    return np.asarray(r.standard_normal(shape), dtype)


def size(r, low, high):
    return int(r.integers(low, high + 1))


def chance(r, p=0.5):
    return r.random() < p


def pick(r, options):
    return options[int(r.integers(len(options)))]


def integers(r, dtype, *shape):
    info = np.iinfo(dtype)
    return np.asarray(r.integers(info.min, info.max + 1, shape), dtype)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


# --- products and convolutions

def activation(r, listed):
    name = pick(r, ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
    values = {"LeakyRelu": [0.2], "Clip": [-0.5, 0.75], "HardSigmoid": [0.3, 0.4]}.get(name, [])
    if listed:
        return {"activation": name, **({"activation_params": values} if values else {})}
    return {"activation": name, **dict(zip(("activation_alpha", "activation_beta"), values))}


@operator("FusedConv")
def fused_conv(r):
    axes, groups = size(r, 1, 3), pick(r, [1, 1, 2])
    inputs, outputs = groups * size(r, 1, 5), groups * size(r, 1, 9)
    kernel, stride = [size(r, 1, 3) for _ in range(axes)], size(r, 1, 2)
    x = real(r, size(r, 1, 2), inputs, *[size(r, 4, 9) for _ in range(axes)])
    w, b = real(r, outputs, inputs // groups, *kernel), real(r, outputs) if chance(r, 0.7) else None
    places = [(s - k) // stride + 1 for s, k in zip(x.shape[2:], kernel)]
    z = real(r, x.shape[0], outputs, *places) if axes == 2 and chance(r) else None
    attributes = {"kernel_shape": kernel, "strides": [stride] * axes, "group": groups, **activation(r, True)}
    if z is not None:
        attributes["activation"] = "Relu"
        attributes.pop("activation_params", None)
    return Case("FusedConv", [x, w, b, z], attributes, constants=(1, 2) if chance(r) else ())


@operator("FusedGemm")
def fused_gemm(r):
    m, n, k = size(r, 1, 9), size(r, 1, 17), size(r, 1, 9)
    a, b = int(chance(r)), int(chance(r))
    attributes = {"transA": a, "transB": b, "alpha": 0.5, "beta": 2.0, **activation(r, False)}
    if attributes["activation"] == "Clip":
        attributes = {"activation": "Relu"} | {key: attributes[key] for key in ("transA", "transB", "alpha", "beta")}
    return Case("FusedGemm", [real(r, *((k, m) if a else (m, k))), real(r, *((n, k) if b else (k, n))), real(r, n) if chance(r) else None], attributes, constants=(1,))


@operator("FusedMatMul")
def fused_matmul(r):
    batch, m, n, k = [size(r, 1, 3) for _ in range(size(r, 0, 2))], size(r, 1, 6), size(r, 1, 6), size(r, 1, 6)
    attributes, operands = {"alpha": float(pick(r, [1.0, 0.125]))}, []
    for letter, rows, columns in (("A", m, k), ("B", k, n)):
        trans, trans_batch = chance(r), bool(batch) and chance(r)
        rows, columns = (columns, rows) if trans else (rows, columns)
        operands.append(real(r, *([rows, *batch, columns] if trans_batch else [*batch, rows, columns])))
        attributes |= {f"trans{letter}": int(trans), f"transBatch{letter}": int(trans_batch)}
    return Case("FusedMatMul", operands, attributes)


@operator("TransposeMatMul")
def transpose_matmul(r):
    m, n, k, a, b = size(r, 1, 6), size(r, 1, 6), size(r, 1, 6), int(chance(r)), int(chance(r))
    return Case("TransposeMatMul", [real(r, 2, *((k, m) if a else (m, k))), real(r, 2, *((n, k) if b else (k, n)))], {"transA": a, "transB": b})


def blocks(r, bits):
    n, k, block = size(r, 1, 40), size(r, 1, 140), pick(r, [16, 32, 64, 128])
    count = -(-k // block)
    weights, scales = integers(r, np.uint8, n, count, block * bits // 8), np.abs(real(r, n * count)) + np.float32(0.1)
    zero = integers(r, np.uint8, n * -(-count * bits // 8)) if chance(r) else None
    x = real(r, *[size(r, 1, 3) for _ in range(size(r, 1, 2))], k)
    return Case("MatMulNBits", [x, weights, scales, zero, None, real(r, n) if chance(r) else None], {"N": n, "K": k, "block_size": block, "bits": bits}, constants=(1, 2, 3, 5), tolerance=1e-4)


TABLE["MatMulNBits"] = lambda r: blocks(r, pick(r, [4, 4, 8]))


@operator("MatMulBnb4")
def bnb4(r):
    n, k, block = size(r, 1, 9), 16 * size(r, 1, 4), 16
    weights, largest = integers(r, np.uint8, n * k // 2), np.abs(real(r, n * k // block)) + np.float32(0.1)
    return Case("MatMulBnb4", [real(r, size(r, 1, 3), k), weights, largest], {"N": n, "K": k, "block_size": block, "quant_type": size(r, 0, 1)}, constants=(1, 2), tolerance=1e-4)


@operator("GatherBlockQuantized")
def gather_blocks(r):
    rows, columns, block = size(r, 2, 9), 32 * size(r, 1, 2), 16
    scales = np.abs(real(r, rows, columns // block)) + np.float32(0.1)
    data = integers(r, np.uint8, rows, columns // 2)
    zero = integers(r, np.uint8, rows, columns // block // 2) if chance(r) else None
    index = np.asarray(r.integers(0, rows, [size(r, 1, 4) for _ in range(size(r, 1, 2))]), np.int64)
    return Case("GatherBlockQuantized", [data, index, scales, zero], {"bits": 4, "block_size": block, "gather_axis": 0, "quantize_axis": 1}, constants=(0, 2, 3))


# --- activations and normalisations

def dense_shape(r):
    return [size(r, 1, 7) for _ in range(size(r, 1, 3))] + [size(r, 1, 33)]


for name in ("Gelu", "QuickGelu"):
    TABLE[name] = lambda r, op=name: Case(op, [real(r, *dense_shape(r))], {"alpha": float(pick(r, [1.0, 1.702]))} if op == "QuickGelu" else {})


@operator("BiasGelu")
def bias_gelu(r):
    x = real(r, *dense_shape(r))
    return Case("BiasGelu", [x, real(r, x.shape[-1])], {})


@operator("FastGelu")
def fast_gelu(r):
    x = real(r, *dense_shape(r))
    return Case("FastGelu", [x, real(r, x.shape[-1]) if chance(r) else None], {})


@operator("SkipLayerNormalization")
def skip_layer_norm(r):
    b, s, h = size(r, 1, 3), size(r, 1, 5), size(r, 2, 33)
    skip = real(r, *pick(r, [(b, s, h), (1, s, h), (s, h)]))
    return Case("SkipLayerNormalization", [real(r, b, s, h), skip, real(r, h), real(r, h) if chance(r) else None, real(r, h) if chance(r) else None], {"epsilon": 1e-5}, outputs=(0, 3) if chance(r) else (0,))


@operator("SkipSimplifiedLayerNormalization")
def skip_rms(r):
    b, s, h = size(r, 1, 3), size(r, 1, 5), size(r, 2, 33)
    return Case("SkipSimplifiedLayerNormalization", [real(r, b, s, h), real(r, b, s, h), real(r, h), real(r, h) if chance(r) else None], {"epsilon": 1e-5}, outputs=(0, 3) if chance(r) else (0,))


@operator("SimplifiedLayerNormalization")
def rms(r):
    x = real(r, *dense_shape(r))
    return Case("SimplifiedLayerNormalization", [x, real(r, x.shape[-1])], {"axis": -1, "epsilon": 1e-5}, domain="", outputs=(0, 1) if chance(r) else (0,))


@operator("EmbedLayerNormalization")
def embed(r):
    b, s, h, segments = size(r, 1, 3), size(r, 1, 6), size(r, 2, 17), chance(r)
    ids = lambda most: np.asarray(r.integers(0, most, (b, s)), np.int32)
    mask = (np.arange(s)[None] < r.integers(1, s + 1, (b, 1))).astype(np.int32) if chance(r) else None
    inputs = [ids(11), ids(2) if segments else None, real(r, 11, h), real(r, s + 2, h), real(r, 2, h) if segments else None, real(r, h), real(r, h), mask]
    if chance(r):
        inputs += [np.asarray(r.integers(0, s + 2, (b, s)), np.int32)]
    return Case("EmbedLayerNormalization", inputs, {"epsilon": 1e-12}, outputs=(0, 1), constants=(2, 3, 4, 5, 6))


# --- attention

def masked(r, batch, keys, queries):
    kind = size(r, 0, 3)
    if kind == 1:
        return np.asarray(r.integers(1, keys + 1, (batch,)), np.int32)
    if kind == 2:
        mask = np.asarray(r.integers(0, 2, (batch, keys)), np.int32)
        mask[:, 0] = 1
        return mask
    if kind == 3:
        mask = np.asarray(r.integers(0, 2, (batch, queries, keys)), np.int32)
        mask[:, :, 0] = 1
        return mask
    return None


@operator("Attention")
def attention(r):
    b, s, n, h, past = size(r, 1, 2), size(r, 1, 6), size(r, 1, 3), 4 * size(r, 1, 3), size(r, 0, 4)
    width, v = n * h, n * 4 * size(r, 1, 3) if not past and chance(r) else n * h
    total = s + past
    before = real(r, 2, b, n, past, h) if past else None
    bias = real(r, b, n, s, total) if not past and chance(r) else None
    attributes = {"num_heads": n, "unidirectional": int(chance(r))}
    if v != width:
        attributes["qkv_hidden_sizes"] = [width, width, v]
    if chance(r, 0.3):
        attributes["scale"] = 0.3
    return Case("Attention", [real(r, b, s, width), real(r, width, 2 * width + v) / 3, real(r, 2 * width + v), masked(r, b, total, s), before, bias], attributes, outputs=(0, 1) if past else (0,), constants=(1, 2))


@operator("MultiHeadAttention")
def multi_head(r):
    b, s, keys, n, h, past = size(r, 1, 2), size(r, 1, 6), size(r, 1, 7), size(r, 1, 3), 4 * size(r, 1, 3), size(r, 0, 4)
    causal = int(chance(r, 0.3))
    if causal or past:
        keys = s
    v = n * h
    total = keys + past
    bias = real(r, 3 * n * h) if chance(r) else None
    before = [real(r, b, n, past, h), real(r, b, n, past, h)] if past else [None, None]
    mask = masked(r, b, total, s)
    if mask is not None and mask.ndim == 1 and past:
        mask = None
    inputs = [real(r, b, s, n * h), real(r, b, keys, n * h), real(r, b, keys, v), bias, mask, real(r, pick(r, [1, b]), n, s, total) if chance(r) else None, *before]
    return Case("MultiHeadAttention", inputs, {"num_heads": n, "unidirectional": causal}, outputs=(0, 1, 2) if past else (0,))


@operator("GroupQueryAttention")
def group_query(r):
    b, kv, h = size(r, 1, 2), size(r, 1, 2), 16 * size(r, 1, 2)
    n, room, prompt, rotary, packed = kv * size(r, 1, 3), size(r, 8, 12), chance(r), chance(r, 0.6), chance(r, 0.3)
    s = size(r, 2, 6) if prompt or (b == 1 and chance(r, 0.3)) else 1
    seen = np.asarray([s] * b if prompt else r.integers(s, room + 1, (b,)))  # keys of each batch
    total = int(seen.max())
    past = [real(r, b, kv, room, h), real(r, b, kv, room, h)]
    if prompt and chance(r):
        past = [None, None]
    if not prompt and total == s:
        seen[:], total = s + 1, s + 1
    qkv = [real(r, b, s, (n + 2 * kv) * h), None, None] if packed else [real(r, b, s, n * h), real(r, b, s, kv * h), real(r, b, s, kv * h)]
    caches = [real(r, 16, h // 2), real(r, 16, h // 2)] if rotary else [None, None]
    inputs = [*qkv, *past, np.asarray(seen - 1, np.int32), np.array(total, np.int32), *caches]
    attributes = {"num_heads": n, "kv_num_heads": kv, "do_rotary": int(rotary), "rotary_interleaved": int(chance(r)), "local_window_size": pick(r, [-1, -1, 3]), "softcap": pick(r, [0.0, 0.0, 2.0])}
    kind = size(r, 0, 3)
    if kind == 1:
        attributes["smooth_softmax"] = 1
    if kind == 2:
        inputs += [None, None, real(r, n)]
    return Case("GroupQueryAttention", inputs, attributes, outputs=(0, 1, 2), constants=(6, 7, 8))


@operator("RotaryEmbedding")
def rotary(r):
    b, s, n, h = size(r, 1, 2), size(r, 1, 6), size(r, 1, 3), 4 * size(r, 1, 4)
    part = h // 2 if chance(r, 0.3) and h % 4 == 0 else 0
    positions = np.asarray([size(r, 0, 4)], np.int64) if chance(r) else np.asarray(r.integers(0, 12, (b, s)), np.int64)
    table = (12, (part or h) // 2)
    attributes = {"interleaved": int(chance(r))}
    if part:
        attributes |= {"rotary_embedding_dim": part, "num_heads": n}
    x = real(r, b, s, n * h) if chance(r) else real(r, b, n, s, h)
    return Case("RotaryEmbedding", [x, positions, real(r, *table), real(r, *table)], attributes, constants=(2, 3))


@operator("QAttention")
def quantized_attention(r):
    b, s, n, h = size(r, 1, 2), size(r, 1, 6), size(r, 1, 3), 4 * size(r, 1, 3)
    width, kind = n * h, pick(r, [np.int8, np.uint8])
    weight_scale = np.abs(real(r, 3 * width)) * np.float32(0.002) + np.float32(0.001) if chance(r) else scalar(0.002)
    zeros = [scalar(120, np.uint8), np.zeros(weight_scale.shape, kind) + kind(3 if weight_scale.ndim == 0 else 0)]
    inputs = [integers(r, np.uint8, b, s, width), integers(r, kind, width, 3 * width), real(r, 3 * width), scalar(0.02), weight_scale, masked(r, b, s, s), *zeros]
    if inputs[5] is not None and inputs[5].ndim == 3:
        inputs[5] = None
    return Case("QAttention", inputs, {"num_heads": n, "unidirectional": int(chance(r))}, constants=(1, 2, 3, 4, 6, 7))


# --- quantised

def zero_point(r, dtype):
    return scalar(size(r, 0, 20) if dtype is np.int8 else size(r, 100, 140), dtype)


def quantized(r, dtype, *shape):
    return [integers(r, dtype, *shape), scalar(pick(r, [0.02, 0.05])), zero_point(r, dtype)]


BYTES = [np.uint8, np.int8]


def binary(op):
    def make(r):
        kind, shape = pick(r, BYTES), dense_shape(r)
        return Case(op, [*quantized(r, kind, *shape), *quantized(r, kind, *pick(r, [shape, shape[-1:]])), scalar(0.06), zero_point(r, kind)], {}, constants=(1, 2, 4, 5, 6, 7), tolerance=1)
    return make


def unary(op, attributes=lambda r, shape: {}, least=1):
    def make(r):
        kind, shape = pick(r, BYTES), dense_shape(r)
        return Case(op, [*quantized(r, kind, *shape), scalar(0.02), zero_point(r, kind)], attributes(r, shape), constants=(1, 2, 3, 4), tolerance=1)
    return make


TABLE |= {
    "QLinearAdd": binary("QLinearAdd"), "QLinearMul": binary("QLinearMul"), "QLinearSigmoid": unary("QLinearSigmoid"),
    "QLinearLeakyRelu": unary("QLinearLeakyRelu", lambda r, shape: {"alpha": 0.2}),
    "QLinearSoftmax": unary("QLinearSoftmax", lambda r, shape: {"axis": size(r, 0, len(shape) - 1), "opset": pick(r, [12, 13])}),
}


@operator("QLinearConcat")
def concat(r):
    kind, rank = pick(r, BYTES), size(r, 1, 4)
    shape, axis = [size(r, 1, 5) for _ in range(rank)], size(r, 0, rank - 1)
    inputs = [scalar(0.06), zero_point(r, kind)]
    for _ in range(size(r, 1, 3)):
        inputs += quantized(r, kind, *shape)
        shape[axis] = size(r, 1, 5)
    return Case("QLinearConcat", inputs, {"axis": axis}, constants=tuple(i for i in range(len(inputs)) if i < 2 or i % 3 != 2), tolerance=1)


@operator("QLinearWhere")
def where(r):
    kind, shape = pick(r, BYTES), dense_shape(r)
    return Case("QLinearWhere", [np.asarray(r.random(shape) < 0.5), *quantized(r, kind, *shape), *quantized(r, kind, *shape), scalar(0.06), zero_point(r, kind)], {}, constants=(2, 3, 5, 6, 7, 8), tolerance=1)


def image(r, last, channels):
    d = [size(r, 1, 2), channels, size(r, 3, 9), size(r, 3, 9)]
    return [d[0], *d[2:], d[1]] if last else d


@operator("QLinearGlobalAveragePool")
def global_pool(r):
    last, kind = int(chance(r)), pick(r, BYTES)
    return Case("QLinearGlobalAveragePool", [*quantized(r, kind, *image(r, last, size(r, 1, 9))), scalar(0.03), zero_point(r, kind)], {"channels_last": last}, constants=(1, 2, 3, 4), tolerance=1)


@operator("QLinearAveragePool")
def average_pool(r):
    last, kind = int(chance(r)), np.uint8
    attributes = {"channels_last": last, "kernel_shape": [2, 3], "strides": [size(r, 1, 2)] * 2, "pads": [size(r, 0, 1)] * 4, "count_include_pad": int(chance(r))}
    return Case("QLinearAveragePool", [*quantized(r, kind, *image(r, last, size(r, 1, 9))), scalar(0.03), zero_point(r, kind)], attributes, constants=(1, 2, 3, 4), tolerance=1)


@operator("NhwcMaxPool")
def nhwc_max_pool(r):
    return Case("NhwcMaxPool", [integers(r, pick(r, BYTES), *image(r, True, size(r, 1, 9)))], {"kernel_shape": [2, 3], "strides": [size(r, 1, 2)] * 2, "pads": [size(r, 0, 1)] * 4})


@operator("QLinearConv")
def quantized_conv(r):
    last, groups = int(chance(r)), pick(r, [1, 1, 2])
    inputs, outputs = groups * size(r, 1, 5), groups * size(r, 1, 5)
    x = quantized(r, np.uint8, *image(r, last, inputs))
    scale = np.abs(real(r, outputs)) * np.float32(0.01) + np.float32(0.001) if chance(r) else scalar(0.01)
    weight = [integers(r, np.int8, outputs, inputs // groups, 3, 3), scale, np.zeros(scale.shape, np.int8)]
    bias = np.asarray(r.integers(-900, 900, outputs), np.int32) if chance(r) else None
    return Case("QLinearConv", [*x, *weight, scalar(0.1), zero_point(r, np.uint8), bias], {"channels_last": last, "group": groups, "pads": [1, 1, 1, 1], "strides": [size(r, 1, 2)] * 2}, constants=(1, 2, 3, 4, 5, 6, 7, 8), tolerance=1)


@operator("QGemm")
def qgemm(r):
    m, n, k, a, b = size(r, 1, 6), size(r, 1, 9), size(r, 1, 9), int(chance(r)), int(chance(r))
    scale = np.abs(real(r, n)) * np.float32(0.01) + np.float32(0.001) if chance(r) else scalar(0.01)
    out = [scalar(0.1), zero_point(r, np.uint8)] if chance(r) else []
    inputs = [*quantized(r, np.uint8, *((k, m) if a else (m, k))), integers(r, np.int8, *((n, k) if b else (k, n))), scale, np.zeros(scale.shape, np.int8), np.asarray(r.integers(-900, 900, n), np.int32) if chance(r) else None, *out]
    return Case("QGemm", inputs, {"transA": a, "transB": b, "alpha": 0.5}, constants=(1, 2, 3, 4, 5, 6, 7, 8), tolerance=1 if out else 2e-5)


@operator("MatMulIntegerToFloat")
def integer_to_float(r):
    m, n, k = size(r, 1, 6), size(r, 1, 9), size(r, 1, 9)
    x, s, z = quantized(r, np.uint8, m, k)
    columns = chance(r)
    scale = np.abs(real(r, n)) * np.float32(0.01) if columns else scalar(0.01)
    return Case("MatMulIntegerToFloat", [x, integers(r, np.int8, k, n), s, scale, z, np.zeros(scale.shape, np.int8), real(r, n) if chance(r) else None], {}, constants=(1, 2, 3, 4, 5, 6))


@operator("DynamicQuantizeMatMul")
def dynamic_matmul(r):
    n, k = size(r, 1, 9), size(r, 1, 9)
    return Case("DynamicQuantizeMatMul", [real(r, size(r, 1, 6), k), integers(r, np.int8, k, n), scalar(0.01), scalar(0, np.int8), real(r, n) if chance(r) else None], {}, constants=(1, 2, 3, 4), tolerance=1e-2)


for name in ("QuantizeLinear", "DequantizeLinear"):
    def make(r, op=name):
        kind, shape = pick(r, [np.uint8, np.int8, np.uint16, np.int16]), dense_shape(r)
        x = real(r, *shape) if op == "QuantizeLinear" else integers(r, kind, *shape)
        return Case(op, [x, scalar(0.02), scalar(7, kind)], {}, constants=(1, 2))
    TABLE[name] = make
