# SPDX-License-Identifier: Apache-2.0
"""Random cases of com.microsoft's operators that recent decoders and older exporters have, for beside_onnxruntime.py."""
import numpy as np

from cases_microsoft import Case, chance, dense_shape, integers, pick, quantized, real, scalar, size

TABLE = {}
ACTIVATIONS = ["relu", "gelu", "silu", "identity", "swiglu"]


def operator(*names):
    def note(make):
        for name in names:
            TABLE[name] = lambda r, name=name: make(r, name)
        return make
    return note


# --- what exporters wrote before ONNX had it

@operator("ExpandDims")
def expand_dims(r, op):
    x = real(r, *dense_shape(r))
    return Case(op, [x, scalar(size(r, 0, x.ndim), np.int32)], {}, constants=(1,))


@operator("Inverse")
def inverse(r, op):
    n, kind = size(r, 1, 6), pick(r, [np.float32, np.float64])
    return Case(op, [real(r, *[size(r, 1, 3) for _ in range(size(r, 0, 2))], n, n, dtype=kind) + (3 * np.eye(n)).astype(kind)], {}, tolerance=1e-4)


@operator("CDist")
def distances(r, op):
    n, kind = size(r, 1, 8), pick(r, [np.float32, np.float64])
    return Case(op, [real(r, size(r, 1, 7), n, dtype=kind), real(r, size(r, 1, 7), n, dtype=kind)], {"metric": pick(r, ["euclidean", "sqeuclidean"])}, tolerance=1e-4)


@operator("MatMulInteger16")
def integer16(r, op):
    n = size(r, 1, 9)
    small = lambda *shape: np.asarray(r.integers(-900, 900, shape), np.int16)
    return Case(op, [small(size(r, 1, 7), n), small(n, size(r, 1, 7))], {})


@operator("UnfoldTensor")
def unfold(r, op):
    x = real(r, *dense_shape(r))
    dim = size(r, 0, x.ndim - 1)
    return Case(op, [x], {"dim": dim, "size": size(r, 1, x.shape[dim]), "step": size(r, 1, 3)})


@operator("Unique")
def unique(r, op):
    return Case(op, [np.asarray(r.integers(0, 6, size(r, 1, 12)), np.float32)], {}, outputs=(0, 1, 2))


@operator("Trilu")
def triangle(r, op):
    x = real(r, *[size(r, 1, 3) for _ in range(size(r, 0, 2))], size(r, 1, 6), size(r, 1, 6), dtype=pick(r, [np.float32, np.float64]))
    return Case(op, [x, scalar(size(r, -3, 3), np.int64) if chance(r, 0.7) else None], {"upper": int(chance(r))}, constants=(1,))


@operator("GatherND")
def gather_nd(r, op):
    x, depth = real(r, *[size(r, 1, 5) for _ in range(3)]), size(r, 1, 3)
    index = np.stack([np.asarray(r.integers(0, d, (size(r, 3, 3), 2))) for d in x.shape[:depth]], -1)
    return Case(op, [x, index.astype(pick(r, [np.int32, np.int64]))], {})


@operator("GridSample")
def grid_sample(r, op):
    batch = size(r, 1, 2)
    grid = np.asarray(r.uniform(-1.2, 1.2, (batch, size(r, 1, 5), size(r, 1, 5), 2)), np.float32)
    attributes = {"mode": pick(r, ["bilinear", "nearest", "bicubic"]), "padding_mode": pick(r, ["zeros", "border", "reflection"]), "align_corners": int(chance(r))}
    return Case(op, [real(r, batch, size(r, 1, 3), size(r, 2, 7), size(r, 2, 7)), grid], attributes, tolerance=1e-4)


@operator("Pad")
def pad(r, op):
    x = real(r, *[size(r, 3, 6) for _ in range(size(r, 1, 4))])
    mode = pick(r, ["constant", "reflect", "edge"])
    widths = np.asarray([size(r, 0, 2) for _ in range(2 * x.ndim)], np.int64)
    return Case(op, [x, widths.reshape(1, -1) if chance(r) else widths, scalar(1.5) if mode == "constant" and chance(r) else None], {"mode": mode}, constants=(1, 2))


@operator("Range")
def range_(r, op):
    kind = pick(r, [np.int16, np.int32, np.int64, np.float32, np.float64])
    whole = lambda v: np.array([v] if chance(r) else v, kind)
    return Case(op, [whole(size(r, -3, 3)), whole(size(r, 5, 12)), whole(size(r, 1, 3)) if chance(r) else None], {}, constants=(0, 1, 2))


@operator("Affine", "ParametricSoftplus", "ScaledTanh")
def curve(r, op):
    return Case(op, [real(r, *dense_shape(r))], {"alpha": 0.75, "beta": 1.25}, domain="", opset=9)


@operator("Scale")
def scale(r, op):
    return Case(op, [real(r, *dense_shape(r))], {"scale": 1.5}, domain="", opset=9)


@operator("ImageScaler", "Crop")
def picture(r, op):
    x = real(r, size(r, 1, 2), size(r, 1, 4), size(r, 5, 9), size(r, 5, 9))
    if op == "ImageScaler":
        return Case(op, [x], {"scale": 0.5, "bias": [0.25 * i for i in range(x.shape[1])]}, domain="", opset=9)
    return Case(op, [x], {"border": [size(r, 0, 2) for _ in range(4)], **({"scale": [size(r, 1, 3), size(r, 1, 3)]} if chance(r) else {})}, domain="", opset=9)


# --- quantised

@operator("QEmbedLayerNormalization")
def quantized_embedding(r, op):
    b, s, h, segments, kind = size(r, 1, 3), size(r, 1, 6), size(r, 2, 17), chance(r), pick(r, [np.uint8, np.int8])
    ids = lambda most: np.asarray(r.integers(0, most, (b, s)), np.int32)
    mask = (np.arange(s)[None] < r.integers(1, s + 1, (b, 1))).astype(np.int32) if chance(r) else None
    tables = [quantized(r, kind, 11, h), quantized(r, kind, s + 2, h), quantized(r, kind, 2, h), quantized(r, kind, h), quantized(r, kind, h)]
    if not segments:
        tables[2] = [None] * 3
    values, scales, zeros = ([t[i] for t in tables] for i in range(3))
    return Case(op, [ids(11), ids(2) if segments else None, *values, mask, *scales, *zeros], {"epsilon": 1e-6}, outputs=(0, 1), constants=(2, 3, 4, 5, 6, *range(8, 18)), tolerance=1e-4)


@operator("DynamicQuantizeLSTM")
def quantized_lstm(r, op):
    steps, batch, width, hidden, sides, kind = size(r, 1, 5), size(r, 1, 3), size(r, 1, 9), size(r, 1, 9), size(r, 1, 2), pick(r, [np.uint8, np.int8])
    weights = [np.asarray(r.integers(-60, 60, (sides, n, 4 * hidden)) + (64 if kind is np.uint8 else 0), kind) for n in (width, hidden)]
    each = lambda: (sides, 4 * hidden) if columns else (sides,)
    columns = chance(r)
    scales = [np.abs(real(r, *each())) * np.float32(0.01) + np.float32(0.002) for _ in range(2)]
    zeros = [np.zeros(each(), kind) + kind(64 if kind is np.uint8 else 0) for _ in range(2)]
    state = [real(r, sides, batch, hidden) if chance(r) else None for _ in range(2)]
    direction = "bidirectional" if sides == 2 else pick(r, ["forward", "reverse"])
    # Of a sequence turned round onnxruntime leaves what is behind its end as the memory was, and quantises that, too.
    lengths = np.asarray(r.integers(1, steps + 1, batch), np.int32) if direction == "forward" and chance(r, 0.5) else None
    inputs = [real(r, steps, batch, width), *weights, real(r, sides, 8 * hidden) if chance(r, 0.7) else None,
              lengths, *state, real(r, sides, 3 * hidden) if chance(r, 0.3) else None, scales[0], zeros[0], scales[1], zeros[1]]
    return Case(op, inputs, {"hidden_size": hidden, "direction": direction}, outputs=(0, 1, 2), constants=(1, 2, 3, 7, 8, 9, 10, 11), tolerance=1e-2)


# --- mixtures of experts

def routed(r, op):
    experts, hidden, inner = size(r, 1, 5), 16 * size(r, 1, 2), 16 * size(r, 1, 2)
    kind = pick(r, ACTIVATIONS)
    shape = [size(r, 1, 5), hidden] if chance(r) else [size(r, 1, 2), size(r, 1, 3), hidden]
    attributes = {"k": size(r, 1, experts), "activation_type": kind, "normalize_routing_weights": int(chance(r))}
    if kind == "swiglu":
        attributes |= {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, **({"swiglu_limit": 1.5} if chance(r) else {})}
    rows = inner * (2 if kind == "swiglu" else 1)
    return experts, hidden, inner, rows, [real(r, *shape), real(r, int(np.prod(shape[:-1])), experts)], attributes


@operator("MoE")
def mixture(r, op):
    experts, hidden, inner, rows, operands, attributes = routed(r, op)
    bias = lambda n: real(r, experts, n) if chance(r) else None
    return Case(op, [*operands, real(r, experts, rows, hidden) / 4, bias(rows), real(r, experts, hidden, inner) / 4, bias(hidden)], attributes, constants=(2, 3, 4, 5) if chance(r) else (), tolerance=1e-4)


@operator("QMoE")
def quantized_mixture(r, op):
    experts, hidden, inner, rows, operands, attributes = routed(r, op)
    bits, block = pick(r, [4, 8]), pick(r, [0, 16])
    if bits == 8:
        block = 0  # with blocks, and weights that are initialisers, onnxruntime quantises the rows, too
    scales = lambda n, k: (np.abs(real(r, *((experts, n, k // block) if block else (experts, n)))) * 0.02 + 0.005).astype(np.float32)
    bias = lambda n: real(r, experts, n) if chance(r) else None
    stored = lambda n, k: [integers(r, np.uint8, experts, n, k * bits // 8), scales(n, k) / (1 if bits == 4 else 16), bias(n)]
    attributes |= {"expert_weight_bits": bits, **({"block_size": block} if block else {})}
    return Case(op, [*operands, *stored(rows, hidden), *stored(hidden, inner)], attributes, constants=(2, 3, 4, 5, 6, 7), tolerance=2e-3)


# --- decoders

@operator("MRotaryEmbedding")
def rotary_of_pictures(r, op):
    b, s, n, pairs = size(r, 1, 2), size(r, 1, 6), size(r, 1, 3), 2 * size(r, 2, 4)
    h, mixed = 2 * pairs, int(chance(r))
    side = size(r, 0, pairs // 3)
    attributes = {"interleaved": int(chance(r)), "mrope_layout": mixed, "mrope_section": [pairs - 2 * side, side, side]}
    x = real(r, b, s, n * h) if chance(r) else real(r, b, n, s, h)
    if x.ndim == 3:
        attributes |= {"num_heads": n, "rotary_embedding_dim": h}
    return Case(op, [x, np.asarray(r.integers(0, 12, (3, b, s)), np.int64), real(r, 12, pairs), real(r, 12, pairs)], attributes, constants=(2, 3))


@operator("LinearAttention")
def linear_attention(r, op):
    b, s, kv, d, wide = size(r, 1, 2), size(r, 1, 5), size(r, 1, 2), 4 * size(r, 1, 2), 4 * size(r, 1, 2)
    n, rule = kv * size(r, 1, 2), pick(r, ["linear", "gated", "delta", "gated_delta"])
    state = real(r, b, kv, d, wide) if chance(r) else None
    decay = -np.abs(real(r, b, s, kv * pick(r, [1, d]))) if "gated" in rule else None
    beta = np.asarray(r.random((b, s, kv)), np.float32) if "delta" in rule else None
    attributes = {"q_num_heads": n, "kv_num_heads": kv, "update_rule": rule}
    key = real(r, b, s, kv * d) * np.float32(0.3)
    return Case(op, [real(r, b, s, n * d), key, real(r, b, s, kv * wide), state, decay, beta], attributes, outputs=(0, 1), tolerance=1e-4)


@operator("CausalConvWithState")
def causal_conv(r, op):
    b, channels, steps, taps, apart, last = size(r, 1, 2), size(r, 1, 6), size(r, 1, 7), size(r, 2, 4), pick(r, [1, 1, 2]), int(chance(r, 0.4))
    layout = lambda t: [b, t, channels] if last else [b, channels, t]
    past = real(r, *layout((taps - 1) * apart)) if chance(r, 0.6) else None
    attributes = {"activation": pick(r, ["none", "silu"]), "dilation": apart, "channels_last": last}
    return Case(op, [real(r, *layout(steps)), real(r, channels, 1, taps), real(r, channels) if chance(r) else None, past], attributes, outputs=(0, 1))


@operator("LinearAttentionGate")
def attention_gate(r, op):
    b, s, h = size(r, 1, 2), size(r, 1, 5), size(r, 1, 6)
    return Case(op, [3 * real(r, b, s, h), real(r, h), -np.abs(real(r, h)), real(r, b, s, h)], {}, outputs=(0, 1))


@operator("GatedRMSNorm")
def gated_norm(r, op):
    c = size(r, 2, 9)
    x = real(r, *dense_shape(r)[:-1], c * size(r, 1, 3))
    return Case(op, [x, real(r, c), real(r, *x.shape)], {"activation": pick(r, ["silu", "swish", "sigmoid"]), "epsilon": 1e-5})


@operator("GatedAdd")
def gated_add(r, op):
    x = real(r, *dense_shape(r))
    return Case(op, [x, real(r, *x.shape), real(r, *x.shape[:-1], 1)], {})


@operator("ScaledSiLU")
def scaled_silu(r, op):
    return Case(op, [real(r, *dense_shape(r)), scalar(1.5) if chance(r) else None], {"alpha": 0.5})


@operator("EngramGate")
def engram(r, op):
    b, s, n, h = size(r, 1, 2), size(r, 1, 4), size(r, 1, 3), size(r, 2, 9)
    return Case(op, [real(r, b, s, n, h), real(r, b, s, n, h), real(r, b, s, h), real(r, n, h), real(r, n, h), real(r, n, h)], {}, outputs=(0, 1), tolerance=1e-4)


def streams(r):
    """Grouped (..., branches, size), or flat with the attribute."""
    n, h, flat = size(r, 1, 4), size(r, 1, 9), chance(r)
    lead = [size(r, 1, 3) for _ in range(size(r, 1, 2))]
    return lead, n, h, real(r, *lead, *([n * h] if flat else [n, h])), {"num_branches": n} if flat else {}


@operator("BranchwiseRMSNorm")
def branch_norm(r, op):
    lead, n, h, x, attributes = streams(r)
    return Case(op, [x, pick(r, [None, real(r, h), real(r, n, h), real(r, n * h)])], {"epsilon": 1e-5, **attributes})


@operator("HyperConnectionPreMix")
def connections_in(r, op):
    lead, n, h, x, attributes = streams(r)
    return Case(op, [x, real(r, *lead, *pick(r, [[n], [n, 1], [n, h]]))], {"reduction_scale": 0.5, **attributes})


@operator("HyperConnectionPostMix")
def connections_out(r, op):
    lead, n, h, x, attributes = streams(r)
    return Case(op, [x, real(r, *lead, h), real(r, *lead, *pick(r, [[n], [n, 1], [n, h]])), real(r, *lead, n, n) if chance(r) else None], attributes)


# --- attention over caches with room for keys to come

@operator("DecoderMaskedMultiHeadAttention")
def one_query(r, op):
    beams, n, h, room = size(r, 1, 3), size(r, 1, 3), 4 * size(r, 1, 3), size(r, 3, 9)
    batch, kind = beams * size(r, 1, 2), pick(r, ["cross", "plain", "masked", "free"])
    new = [real(r, batch, 1, n * h) for _ in range(3)]
    keys = size(r, 2, room)
    mask = np.asarray(r.integers(0, 2, (batch, keys)), np.int32) | (np.arange(keys) == 0).astype(np.int32)
    attributes = {"num_heads": n} | ({"scale": 0.3} if chance(r, 0.3) else {})
    if kind == "cross":
        given = [new[0], real(r, batch, n, keys, h), real(r, batch, n, keys, h), mask if chance(r) else None]
        return Case(op, given, attributes, tolerance=1e-4)
    attributes["past_present_share_buffer"] = 1
    scores = kind != "free" and chance(r)
    bias = real(r, 1, n, 1, keys) if kind == "masked" and (beams > 1 or chance(r)) else None
    given = [*new, mask if kind == "masked" else None, bias, real(r, batch, n, room, h), real(r, batch, n, room, h), np.array([keys - 1], np.int32)]
    if kind == "masked" and beams > 1:  # onnxruntime reads a mask and a bias wherever there are beams
        given += [np.array([beams], np.int32), np.asarray(r.integers(0, beams, (batch // beams, beams, room)), np.int32)]
    elif chance(r):
        given += [None, None, real(r, 3 * n * h)]
    outputs = (0, 1, 2, 3) if scores else (0, 1, 2)
    if scores:
        attributes["output_qk"] = 1
    return Case(op, given, attributes, outputs=outputs, constants=() if kind == "free" else (7,), types={3: 1}, tolerance=1e-4)


@operator("SparseAttention")
def sparse_attention(r, op):
    batch, kv, h, block, count = size(r, 1, 2), size(r, 1, 2), 16 * size(r, 1, 2), pick(r, [16, 32]), size(r, 2, 4)
    layouts = size(r, 1, 2)
    n, room, prompt = kv * layouts * size(r, 1, 2), block * count, chance(r)
    seen = np.tril(r.integers(0, 2, (layouts, count, count))) | np.eye(count, dtype=np.int64)
    columns = [np.nonzero(rows)[1] for rows in seen]
    most = max(map(len, columns))
    begins = np.asarray([[0, *np.cumsum(rows.sum(1))] for rows in seen], np.int32)
    columns = np.asarray([[*c, *[-1] * (most - len(c))] for c in columns], np.int32)
    total = size(r, 3, room)
    s = total if prompt else size(r, 1, 2)
    rotary, packed = chance(r), chance(r, 0.3)
    new = [real(r, batch, s, (n + 2 * kv) * h), None, None] if packed else [real(r, batch, s, w * h) for w in (n, kv, kv)]
    # Sequences are as long as the longest: onnxruntime's products of shorter ones read the scores of others.
    given = [*new, real(r, batch, kv, room, h), real(r, batch, kv, room, h), begins, columns, np.array([total], np.int32), np.full(batch, total, np.int32)]
    if rotary:
        given += [real(r, room, h // 2), real(r, room, h // 2)]
    attributes = {"num_heads": n, "kv_num_heads": kv, "sparse_block_size": block, "do_rotary": int(rotary), "rotary_interleaved": int(chance(r))}
    return Case(op, given, attributes, outputs=(0, 1, 2), constants=(5, 6, 7), types={0: 1, 1: 1, 2: 1}, shared={1: 3, 2: 4}, tolerance=1e-4)
