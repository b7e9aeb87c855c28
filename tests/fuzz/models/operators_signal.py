# SPDX-License-Identifier: Apache-2.0
"""Operators of later sets and of special uses: signals, losses, detection, attention, random numbers, text."""
import re
import struct

import numpy as np
from generate import ALL, ELEMENT, NUMBERS, Impossible
from operators import operator, picture, window


@operator("BitCast")
def bit_cast(m, op):
    width = lambda d: 8 if d == "bool" or d.startswith("float8") else int(re.search("[0-9]+", d)[0])
    a = m.value([d for d in m.types(op, "T1")])
    same = [d for d in m.types(op, "T2") if width(d) == width(a[1]) and d != "bool"]  # a bool has only two values
    m.add(op, [a], to=ELEMENT[m.pick(same)])


@operator("BlackmanWindow", "HammingWindow", "HannWindow")
def window_of_samples(m, op):
    m.add(op, [m.constant(np.asarray(m.integer(3, 20), m.pick(m.types(op, "T1"))))], periodic=m.integer(0, 1),
          output_datatype=ELEMENT[m.pick(m.types(op, "T2"))] if m.chance(0.5) else None)


@operator("DFT")
def fourier(m, op):
    parts = m.integer(1, 2)
    a = m.value(m.types(op, "T1"), low=2, high=4, test=lambda s: s[-1] == parts and 0 not in s, make=lambda: m.shape(m.integer(1, 3)) + [parts])
    axis = m.integer(0, len(a[2]) - 2)
    inverse = m.integer(0, 1)
    length = m.constant(np.asarray(m.integer(1, a[2][axis] + 2), np.int64)) if m.chance(0.3) else None
    onesided = m.integer(0, 1) if parts == 1 and not inverse else 0
    if length and m.chance(0.5):
        length = m.constant(m.initializers[length[0]].astype(np.int32))
    if m.opset >= 20:
        m.add(op, [a, length, m.constant(np.asarray(axis, np.int64))], inverse=inverse, onesided=onesided)
    else:
        m.add(op, [a, length] if length else [a], axis=axis, inverse=inverse, onesided=onesided)


@operator("STFT")
def short_fourier(m, op):
    a = m.value([d for d in m.types(op, "T1")], 3, test=lambda s: s[2] == 1 and s[0] > 0 and s[1] >= 4, make=lambda: [m.integer(1, 2), m.integer(8, 60), 1])
    frame = m.integer(2, min(16, a[2][1]))
    windowed = m.chance(0.6)
    whole = m.pick(m.types(op, "T2"))
    m.add(op, [a, m.constant(np.asarray(m.integer(1, 5), whole)), m.new(a[1], [frame]) if windowed else None] +
          ([m.constant(np.asarray(frame, whole))] if not windowed or m.chance(0.5) else []), onesided=m.integer(0, 1))


@operator("MelWeightMatrix")
def mel(m, op):
    length = m.pick([8, 16, 33])
    whole, real = m.pick(m.types(op, "T1")), m.pick(m.types(op, "T2"))
    m.add(op, [m.constant(np.asarray(v, d)) for v, d in ((m.integer(1, 6), whole), (length, whole), (m.pick([8000, 16000]), whole), (20.0, real), (3500.0, real))],
          output_datatype=ELEMENT[m.pick(m.types(op, "T3"))] if m.chance(0.6) else None)


@operator("Col2Im")
def columns_to_image(m, op):
    block = [m.integer(1, 3) for _ in range(m.pick([1, 2, 2, 3]))]
    image = [m.integer(k, 8) for k in block]
    strides, pads = [m.integer(1, 2) for _ in block], [m.integer(0, k - 1) for k in block] * 2
    places = [(d + 2 * p - k) // s + 1 for d, k, s, p in zip(image, block, strides, pads)]
    a = m.new(m.pick([d for d in m.types(op) if d in NUMBERS]), [m.integer(1, 2), m.integer(1, 4) * int(np.prod(block)), int(np.prod(places))])
    m.add(op, [a, m.constant(np.asarray(image, np.int64)), m.constant(np.asarray(block, np.int64))], strides=strides, pads=pads)


@operator("DeformConv")
def deform(m, op):
    x = picture(m, m.types(op), 2)
    w = window(m, x[2][2:])
    places = [(d + b + e - (k - 1) * l - 1) // s + 1 for d, b, e, k, l, s in
              zip(x[2][2:], w["pads"], w["pads"][2:], w["kernel_shape"], w["dilations"], w["strides"])]
    groups = m.pick([g for g in (1, 2) if x[2][1] % g == 0])
    taps = int(np.prod(w["kernel_shape"]))
    offset = m.new(x[1], [x[2][0], 2 * taps] + places)
    more = [m.new(x[1], [groups * 2]) if m.chance(0.5) else None, m.new(x[1], [x[2][0], taps] + places) if m.chance(0.5) else None]
    m.add(op, [x, m.new(x[1], [groups * 2, x[2][1] // groups] + w["kernel_shape"]), offset] + more, group=groups, **w)


@operator("MaxUnpool")
def unpool(m, op):
    x = picture(m, [d for d in m.types(op, "T1")], 2)
    k = [m.pick([n for n in (1, 2, 3) if d % n == 0]) for d in x[2][2:]]  # otherwise the places are of another size than the output
    pooled, places = m.add("MaxPool", [x], 2, kernel_shape=k, strides=k)
    m.add(op, [pooled, places], kernel_shape=k, strides=k, types=[x[1:]])


@operator("MaxRoiPool", "RoiAlign")
def regions(m, op):
    x = picture(m, [d for d in m.types(op, "T" if op == "MaxRoiPool" else "T1")], 2)
    n = m.integer(1, 4)
    corner = m.random.uniform(0, 6, (n, 2))
    boxes = np.concatenate([corner, corner + m.random.uniform(1, 6, (n, 2))], 1)
    places = m.random.integers(0, x[2][0], n)
    if op == "MaxRoiPool":
        m.add(op, [x, m.constant(np.concatenate([places[:, None], np.round(boxes)], 1).astype(x[1]))], pooled_shape=[m.integer(1, 3), m.integer(1, 3)], spatial_scale=m.pick([1.0, 0.5]))
    else:
        half = dict(coordinate_transformation_mode=m.pick(["half_pixel", "output_half_pixel"])) if m.opset >= 16 else {}
        m.add(op, [x, m.constant(boxes.astype(x[1])), m.constant(places.astype(np.int64))], mode=m.pick(["avg", "max"]), output_height=m.integer(1, 4), output_width=m.integer(1, 4),
              sampling_ratio=m.integer(0, 3), spatial_scale=m.pick([1.0, 0.5]), **half)


@operator("NonMaxSuppression")
def suppression(m, op):
    n, classes, batch = m.integer(1, 12), m.integer(1, 3), m.integer(1, 2)
    corner = m.random.uniform(0, 6, (batch, n, 2))
    boxes = np.concatenate([corner, corner + m.random.uniform(1, 4, (batch, n, 2))], 2).astype(np.float32)
    scores = m.random.permutation(batch * classes * n).reshape(batch, classes, n).astype(np.float32) / 50  # no two equal
    limits = [m.constant(np.asarray([m.integer(0, 4)], np.int64)), m.constant(np.asarray([m.pick([0.3, 0.5])], np.float32)), m.constant(np.asarray([0.1], np.float32))]
    m.add(op, [m.given(boxes), m.given(scores)] + limits[:m.integer(1, 3)], keep=False, center_point_box=m.integer(0, 1))


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(m, op):
    x = m.value(m.types(op), low=2, high=5, test=lambda s: 0 not in s)
    classes = x[2][1]
    labels = m.random.integers(0, classes, [x[2][0]] + x[2][2:]).astype(m.pick(m.types(op, "Tind")))
    weights = [m.new(x[1], [classes], "positive")] if m.chance(0.4) else []
    outputs = 2 if op == "SoftmaxCrossEntropyLoss" and m.chance(0.4) else 1
    m.add(op, [x, m.given(labels)] + weights, outputs, reduction=m.pick(["none", "mean", "sum"]), ignore_index=m.pick([None, 0]) if classes > 1 else None)


@operator("AffineGrid")
def affine_grid(m, op):
    axes, batch, corners = m.integer(2, 3), m.integer(1, 2), m.integer(0, 1)
    sizes = [m.integer(1 + corners, 6) for _ in range(axes)]  # the one place between two corners is another for every engine
    m.add(op, [m.new(m.pick(m.types(op, "T1")), [batch, axes, axes + 1]), m.constant(np.asarray([batch, 3] + sizes, np.int64))], align_corners=corners)


@operator("Attention")
def attention(m, op):
    dtype = m.pick([d for d in m.types(op, "T1")] + ["float32"] * 4)
    batch, groups, heads = m.integer(1, 2), m.integer(1, 3), m.integer(1, 2)
    rows, steps, depth, wide = m.integer(1, 9), m.integer(1, 9), m.pick([2, 4, 8]), m.pick([2, 4, 5])
    flat = m.chance(0.4)
    shape = lambda n, length, d: [batch, length, n * d] if flat else [batch, n, length, d]
    q, k, v = m.like(dtype, shape(heads * groups, rows, depth)), m.like(dtype, shape(heads, steps, depth)), m.like(dtype, shape(heads, steps, wide))
    past = m.integer(1, 4) if m.chance(0.3) else 0
    mask = m.new(m.pick(["bool", dtype, m.pick(m.types(op, "U"))]), [rows, steps + past]) if m.chance(0.4) else None
    if mask and mask[1] == "bool" and m.chance(0.8):  # not a row without anything to attend to
        keep = np.asarray(m.random.random((rows, steps + past)) < 0.6)
        keep[:, 0] = True
        mask = m.constant(keep)
    cache = [m.new(dtype, [batch, heads, past, d]) for d in (depth, wide)] if past else []
    operands = [q, k, v] + ([mask] if mask or cache else []) + cache
    # Fewer new rows than keys behind a cache: the format's reference and onnxruntime let them see different keys.
    causal = m.integer(0, 1) if not cache or rows == steps else 0
    m.add(op, operands, 3 if cache else 1, is_causal=causal, softcap=m.pick([None, None, 2.0]), scale=m.pick([None, 0.5]),
          **(dict(q_num_heads=heads * groups, kv_num_heads=heads) if flat else {}))


@operator("RotaryEmbedding")
def rotary(m, op):
    batch, heads, steps, depth = m.integer(1, 2), m.integer(1, 3), m.integer(1, 6), m.pick([2, 4, 8])
    flat, ids, part = m.chance(0.4), m.chance(0.6), m.pick([0, depth // 2 // 2 * 2])
    x = m.like(m.pick(m.types(op)), [batch, steps, heads * depth] if flat else [batch, heads, steps, depth])
    shape = [7, (part or depth) // 2] if ids else [batch, steps, (part or depth) // 2]
    operands = [x, m.new(x[1], shape), m.new(x[1], shape)] + ([m.constant(m.random.integers(0, 7, (batch, steps)).astype(np.int64))] if ids else [])
    m.add(op, operands, interleaved=m.integer(0, 1), rotary_embedding_dim=part, num_heads=heads if flat or part else None)


@operator("TensorScatter")
def tensor_scatter(m, op):
    a = m.value(m.types(op), 4, test=lambda s: 0 not in s)
    steps = m.integer(1, a[2][2])
    circular = m.chance(0.4)
    index = m.constant(m.random.integers(0, a[2][2] - (0 if circular else steps - 1), a[2][0]).astype(np.int64)) if m.chance(0.7) else None
    m.add(op, [a, m.new(a[1], a[2][:2] + [steps, a[2][3]])] + ([index] if index else []), mode="circular" if circular else "linear")


@operator("CausalConvWithState")
def causal(m, op):
    x = m.value(m.types(op), 3, test=lambda s: 0 not in s)
    taps = m.integer(1, 4)
    more = [m.new(x[1], [x[2][1]]) if m.chance(0.5) else None, m.new(x[1], x[2][:2] + [taps - 1]) if taps > 1 and m.chance(0.5) else None]
    m.add(op, [x, m.new(x[1], [x[2][1], 1, taps])] + more, 2, activation=m.pick([None, "none", "silu"]))


@operator("LinearAttention")
def linear_attention(m, op):
    dtype = m.pick(m.types(op))
    batch, steps, heads, depth, wide = m.integer(1, 2), m.integer(1, 5), m.integer(1, 2), m.pick([2, 4]), m.pick([2, 3])
    rule = m.pick(["linear", "gated", "delta", "gated_delta"])
    decay = m.new(dtype, [batch, steps, heads]) if rule.startswith("gated") else None
    beta = m.new(dtype, [batch, steps, heads]) if "delta" in rule else None
    q, k, v = (m.new(dtype, [batch, steps, heads * d]) for d in (depth, depth, wide))
    m.add(op, [q, k, v, m.new(dtype, [batch, heads, depth, wide]) if m.chance(0.5) else None, decay, beta], 2, q_num_heads=heads, kv_num_heads=heads, update_rule=rule)


@operator("Upsample")
def upsample(m, op):
    x = picture(m, m.types(op), 2)
    m.add(op, [x, m.constant(np.asarray([1, 1, m.pick([1, 2, 3]), m.pick([1, 2])], np.float32))], mode=m.pick(["nearest", "linear"]))


@operator("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")
def random_numbers(m, op):
    seed = float(m.integer(0, 99)) if m.chance(0.7) else None
    if op in ("RandomNormal", "RandomUniform"):
        m.add(op, [], shape=m.shape(None, 1, 3), seed=seed, dtype=ELEMENT[m.pick(m.types(op))])
    elif op == "Multinomial":
        m.add(op, [m.new(m.pick(m.types(op, "T1")), [m.integer(1, 3), m.integer(2, 5)])], seed=seed, sample_size=m.integer(1, 4), dtype=ELEMENT[m.pick(["int32", "int64"])])
    elif op == "Bernoulli":
        m.add(op, [m.add("Sigmoid", [m.value(m.types(op, "T1"))])[0]], seed=seed, dtype=ELEMENT[m.pick(m.types(op, "T2"))] if m.chance(0.6) else None)
    else:
        m.add(op, [m.value(m.types(op, "T1"))], seed=seed, dtype=ELEMENT[m.pick(m.types(op, "T2"))])


@operator("ImageDecoder")
def image(m, op):
    wide, high = m.integer(1, 5), m.integer(1, 5)
    rows = [m.random.integers(0, 256, 3 * wide, np.uint8).tobytes() + bytes(-3 * wide % 4) for _ in range(high)]
    pixels = b"".join(rows)  # a bitmap of 24 bits, without compression
    whole = b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, wide, high, 1, 24, 0, len(pixels), 2835, 2835, 0, 0) + pixels
    m.add(op, [m.given(np.frombuffer(whole, np.uint8))], keep=False, pixel_format=m.pick(["RGB", "BGR", "Grayscale"]))


# Text.
@operator("StringConcat")
def string_concat(m, op):
    a = m.value("string")
    m.add(op, [a, m.broadcast("string", a[2])])


@operator("StringNormalizer")
def string_normalizer(m, op):
    a = m.value("string", 1, test=lambda s: s[0] > 0)
    m.add(op, [a], keep=False, case_change_action=m.pick(["NONE", "LOWER", "UPPER"]), is_case_sensitive=m.integer(0, 1), stopwords=m.pick([None, ["cat", "12"]]))


@operator("StringSplit")
def string_split(m, op):
    m.add(op, [m.value("string", high=2, test=lambda s: 0 not in s)], 2, keep=False, delimiter=m.pick([None, " ", "a"]), maxsplit=m.pick([None, 1]))


@operator("RegexFullMatch")
def regex(m, op):
    m.add(op, [m.value("string")], pattern=m.pick(["[a-z]+", "-?[0-9]+", ".*o.*", ""]))


@operator("TfIdfVectorizer")
def counts_of_words(m, op):
    a = m.value(m.types(op), low=1, high=2, test=lambda s: 0 not in s)
    pool = dict(pool_strings=["", "a", "cat", "12", "a", "cat", "cat", "12"]) if a[1] == "string" else dict(pool_int64s=[0, 1, 2, 3, 1, 2, 2, 3])
    m.add(op, [a], mode=m.pick(["TF", "IDF", "TFIDF"]), min_gram_length=m.integer(1, 2), max_gram_length=2, max_skip_count=m.integer(0, 2), **pool, ngram_counts=[0, 4],
          ngram_indexes=[0, 1, 2, 3, 4, 5], weights=m.pick([None, [0.5, 1.0, 2.0, 1.0, 1.5, 0.25]]))
    if len(a[2]) > 2:
        raise Impossible
