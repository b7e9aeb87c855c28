# SPDX-License-Identifier: Apache-2.0
"""How to add one node of each ONNX operator to a random model."""
import numpy as np
from generate import ALL, ELEMENT, FLOATS, INTEGERS, NARROW, NUMBERS, Impossible, allowed

TABLE = {}


def operator(*names):
    def keep(function):
        for name in names:
            TABLE[name] = lambda m, name=name: function(m, name)
        return function
    return keep


def setting(m, since, name, values):
    """What became an input in some operator set: (inputs, attributes)."""
    values = np.asarray(values, np.int64)
    return ([m.constant(values)], {}) if m.opset >= since else ([], {name: values.tolist()})


@operator("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid",
          "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "Not", "BitwiseNot", "Identity", "HardSwish", "Mish", "Selu", "Swish", "Shape", "Size", "IsNaN")
def unary(m, op):
    types = allowed(op, m.opset)
    a = m.value(types.get("T") or types.get("T1") or types.get("V") or [])
    low, high = {"Acos": (-1, 1), "Asin": (-1, 1), "Acosh": (1, None), "Atanh": (-0.99, 0.99), "Log": (1e-3, None), "Sqrt": (0, None), "Exp": (None, 9), "Sinh": (-9, 9), "Cosh": (-9, 9)}.get(op, (None, None))
    if (low, high) != (None, None) and m.chance(0.95):  # numbers that are none spread over everything behind
        a = m.add("Clip", [a, None if low is None else m.constant(np.asarray(low, a[1])), None if high is None else m.constant(np.asarray(high, a[1]))])[0]
    m.add(op, [a])


@operator("Elu", "Celu", "LeakyRelu", "ThresholdedRelu")
def with_alpha(m, op):
    m.add(op, [m.value(m.types(op))], alpha=m.pick([0.1, 0.5, 1.0, 2.0]))


@operator("HardSigmoid", "Shrink", "Gelu", "IsInf")
def with_options(m, op):
    extra = {"HardSigmoid": dict(alpha=0.3, beta=0.4), "Shrink": dict(lambd=0.5, bias=m.pick([0.0, 0.25])), "Gelu": dict(approximate=m.pick(["none", "tanh"])),
             "IsInf": dict(detect_negative=m.integer(0, 1))}[op]
    m.add(op, [m.value(m.types(op, "T1" if op == "IsInf" else "T"))], **extra)


@operator("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Mean", "Sum", "PRelu", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater",
          "GreaterOrEqual", "Less", "LessOrEqual", "BitShift")
def binary(m, op):
    a = m.value(m.types(op))
    kind = "positive" if op in ("Div", "Mod") and a[1] not in FLOATS else "count" if op in ("Pow", "BitShift") and a[1] not in FLOATS else "any"
    b = m.broadcast(a[1], a[2], kind)
    if op == "Pow" and (a[1] not in FLOATS or (m.opset >= 12 and m.chance(0.3))):
        b = m.constant(np.asarray(m.integer(0, 3), m.pick(m.types(op, "T1")) if m.opset >= 12 else b[1]))
    if op == "PRelu":
        b = m.new(a[1], [d if m.chance(0.7) else 1 for d in a[2]][m.integer(0, len(a[2])):])
    more = [m.broadcast(a[1], a[2]) for _ in range(m.integer(0, 2))] if op in ("Max", "Min", "Mean", "Sum") else []
    extra = {"Mod": dict(fmod=1 if a[1] in FLOATS else m.integer(0, 1)), "BitShift": dict(direction=m.pick(["LEFT", "RIGHT"]))}.get(op, {})
    operands = [b, a] if kind == "any" and op not in ("PRelu", "Pow") and m.chance(0.3) else [a, b]
    m.add(op, operands + more, **extra)


@operator("Where")
def where(m, op):
    a = m.value(m.types(op))
    m.add(op, [m.broadcast("bool", a[2]), a, m.broadcast(a[1], a[2])])


@operator("Clip")
def clip(m, op):
    a = m.value(m.types(op))
    if m.opset < 11:
        m.add(op, [a], min=m.pick([None, -0.5]), max=m.pick([None, 2.0]))
        return
    low = m.constant(m.data(a[1], (), "any")) if m.chance(0.7) else None
    high = m.constant(np.asarray(m.random.integers(2, 100), a[1])) if m.chance(0.7) else None
    m.add(op, [a, low, high])


@operator("Cast")
def cast(m, op):
    a, to = castable(m, m.value(m.types(op, "T1")), m.pick(m.types(op, "T2")))
    m.add(op, [a], to=ELEMENT[to])


@operator("CastLike")
def cast_like(m, op):
    a, to = castable(m, m.value(m.types(op, "T1")), m.pick(m.types(op, "T2")))
    m.add(op, [a, m.value(to)])


def castable(m, a, to):
    """A value and a type that it has one answer in."""
    if a[1] == "string" or to == "string":  # how a float is written has no rule
        a, to = (m.new("int64", m.shape()), "string") if to == "string" or m.chance(0.5) else (m.constant(np.asarray(m.random.integers(-9, 9, m.shape()).astype(str), object)), "int64")
    small = to in ("int4", "uint4", "int2", "uint2")
    if a[1] in NARROW and to in INTEGERS + ["int4", "uint4", "int2", "uint2"]:
        a = m.add("Cast", [m.new("bool", a[2])], to=ELEMENT[a[1]])[0]  # likewise
    elif small:  # what does not fit has no meaning
        a = m.add("And", [m.add("Cast", [a], to=ELEMENT["bool"])[0], m.broadcast("bool", a[2])])[0]
    if a[1] in FLOATS and to in INTEGERS:
        a = m.add("Where", [m.add("IsNaN", [a])[0], m.constant(np.asarray(0, a[1])), a])[0]
        a = m.add("Clip", [a, m.constant(np.asarray(0 if to[0] == "u" else -100, a[1])), m.constant(np.asarray(100, a[1]))])[0]
    return a, to


@operator("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def reduction(m, op):
    a = m.value(m.types(op))
    if op == "ReduceLogSum" and a[1] not in FLOATS:  # a whole number of what is none has no meaning
        a = m.new(a[1], m.shape(), "positive")
        if 0 in a[2]:
            raise Impossible
    rank = len(a[2])
    axes = [int(k) - (rank if m.chance(0.3) else 0) for k in np.flatnonzero(m.random.random(rank) < 0.5)]
    since = 13 if op == "ReduceSum" else 18
    more, extra = setting(m, since, "axes", axes) if axes or (m.opset >= since and m.chance(0.3)) else ([], {})
    if 0 in a[2] and op in ("ReduceMax", "ReduceMin", "ReduceMean"):
        raise Impossible
    m.add(op, [a] + more, keepdims=m.integer(0, 1), noop_with_empty_axes=m.integer(0, 1) if m.opset >= since else None, **extra)


@operator("ArgMax", "ArgMin")
def arg(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    m.add(op, [a], axis=m.integer(-len(a[2]), len(a[2]) - 1), keepdims=m.integer(0, 1), select_last_index=m.integer(0, 1) if m.opset >= 12 else None)


@operator("CumSum", "CumProd")
def cumulative(m, op):
    a = m.value(m.types(op), low=1)
    m.add(op, [a, m.constant(np.asarray(m.integer(-len(a[2]), len(a[2]) - 1), m.pick([np.int64, np.int32])))], exclusive=m.integer(0, 1), reverse=m.integer(0, 1))


@operator("TopK")
def top(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    axis = m.integer(-len(a[2]), len(a[2]) - 1)
    m.add(op, [a, m.constant(np.asarray([m.integer(1, a[2][axis])], np.int64))], 2, axis=axis, largest=m.integer(0, 1))


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(m, op):
    a = m.value(m.types(op), low=1)
    m.add(op, [a], axis=m.integer(-len(a[2]), len(a[2]) - 1))


@operator("Reshape")
def reshape(m, op):
    a = m.value(m.types(op))
    n, to = int(np.prod(a[2], dtype=np.int64)), []
    if n == 0:
        to = [0 if m.chance(0.5) else d for d in m.random.permutation(a[2]).tolist()]
        m.add(op, [a, m.constant(np.asarray(m.random.permutation(a[2]), np.int64))], allowzero=1)
        return
    rest = n
    while rest > 1 and len(to) < 5:
        d = m.pick([k for k in range(1, rest + 1) if rest % k == 0])
        to.append(d)
        rest //= d
    if rest > 1 or m.chance(0.2):
        to.append(rest)
    if to and m.chance(0.4):
        to[m.integer(0, len(to) - 1)] = -1
    m.add(op, [a, m.constant(np.asarray(to, np.int64))])


@operator("Transpose")
def transpose(m, op):
    a = m.value(m.types(op))
    m.add(op, [a], perm=[int(k) for k in m.random.permutation(len(a[2]))] if a[2] else None)


@operator("Squeeze")
def squeeze(m, op):
    a = m.value(m.types(op))
    axes = [k for k, d in enumerate(a[2]) if d == 1 and m.chance(0.7)]
    more, extra = setting(m, 13, "axes", axes) if axes else ([], {})
    m.add(op, [a] + more, **extra)


@operator("Unsqueeze")
def unsqueeze(m, op):
    a = m.value(m.types(op), high=5)
    more, extra = setting(m, 13, "axes", sorted(set(m.integer(0, len(a[2])) for _ in range(m.integer(1, 2)))))
    m.add(op, [a] + more, **extra)


@operator("Flatten")
def flatten(m, op):
    a = m.value(m.types(op))
    m.add(op, [a], axis=m.integer(-len(a[2]), len(a[2])))


@operator("Concat")
def concat(m, op):
    a = m.value(m.types(op), low=1)
    axis = m.integer(-len(a[2]), len(a[2]) - 1)
    parts = [a]
    for _ in range(m.integer(1, 3)):
        shape = list(a[2])
        shape[axis] = m.size()
        fits = [v for v in m.values if v[1] == a[1] and len(v[2]) == len(a[2]) and all(x == y for k, (x, y) in enumerate(zip(v[2], a[2])) if k != axis % len(a[2]))]
        parts.append(m.pick(fits) if m.chance(0.6) else m.new(a[1], shape))
    m.add(op, parts, axis=axis)


@operator("Split")
def split(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: max(s) > 1)
    axis = m.pick([k for k, d in enumerate(a[2]) if d > 1])
    cut = m.integer(1, a[2][axis] - 1)
    if m.chance(0.5):
        more, extra = setting(m, 13, "split", [cut, a[2][axis] - cut])
        m.add(op, [a] + more, 2, axis=axis, **extra)
    else:
        if m.opset < 18 and a[2][axis] % 2:
            raise Impossible
        m.add(op, [a], 2, axis=axis, num_outputs=2 if m.opset >= 18 else None)


@operator("Slice")
def slice_(m, op):
    a = m.value(m.types(op), low=1)
    axes = [k for k in range(len(a[2])) if m.chance(0.6)] or [0]
    starts, ends, steps = [], [], []
    for k in axes:
        d = a[2][k]
        step = m.pick([1, 1, 1, 2, 3, -1, -2])
        starts.append(m.integer(-d - 1, d + 1)), ends.append(m.pick([m.integer(-d - 1, d + 1), 2 ** 31 if step > 0 else -2 ** 31])), steps.append(step)
    kind = m.pick([np.int64, np.int32])
    ends = [max(-2 ** 31, min(2 ** 31 - 1, e)) for e in ends]
    m.add(op, [a] + [m.constant(np.asarray(v, kind)) for v in (starts, ends, axes, steps)])


@operator("Pad")
def pad(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    mode = m.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if m.opset >= 19 else []))
    widths = [m.integer(-1 if mode == "constant" else 0, min(3, d - 1) if mode in ("reflect", "wrap") else 3) if m.chance(0.6) else 0 for d in a[2] * 2]
    if any(d + b + e < 1 for d, b, e in zip(a[2], widths, widths[len(a[2]):])):
        raise Impossible
    if m.opset < 11:
        m.add(op, [a], pads=widths, mode=mode)
        return
    filler = m.constant(m.data(a[1], ())) if mode == "constant" and m.chance(0.5) else None
    axes, known, rank = [], None, len(a[2])
    if m.opset >= 18 and m.chance(0.3):
        chosen, whole = [k for k in range(rank) if m.chance(0.7)] or [0], m.pick([np.int32, np.int64])
        # The format's shape inference takes axes for int64.
        known = [(a[1], [d + (widths[k] + widths[k + rank] if k in chosen else 0) for k, d in enumerate(a[2])])] if whole is np.int32 else None
        widths = [widths[k] for k in chosen] + [widths[k + rank] for k in chosen]
        axes = [m.constant(np.asarray(chosen, whole))]
    m.add(op, [a, m.constant(np.asarray(widths, np.int64))] + ([filler] if filler or axes else []) + axes, types=known, mode=mode)


@operator("Tile")
def tile(m, op):
    a = m.value(m.types(op), low=1)
    m.add(op, [a, m.constant(np.asarray([m.integer(1, 3) for _ in a[2]], np.int64))])


@operator("Expand")
def expand(m, op):
    a = m.value(m.types(op))
    to = [m.size() if d == 1 else d if m.chance(0.7) else 1 for d in a[2]]
    m.add(op, [a, m.constant(np.asarray(([m.integer(1, 3)] if m.chance(0.3) else []) + to, np.int64))])


@operator("Gather")
def gather(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    axis = m.integer(-len(a[2]), len(a[2]) - 1)
    index = m.random.integers(-a[2][axis] if m.opset >= 11 else 0, a[2][axis], m.shape(None, 0, 2))
    m.add(op, [a, m.constant(np.asarray(index, m.pick([np.int64, np.int32])))], axis=axis)


@operator("GatherElements")
def gather_elements(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    axis = m.integer(-len(a[2]), len(a[2]) - 1)
    shape = [m.integer(1, d) for d in a[2]]
    m.add(op, [a, m.constant(np.asarray(m.random.integers(-a[2][axis], a[2][axis], shape), m.pick([np.int64, np.int32])))], axis=axis)


@operator("GatherND")
def gather_nd(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    depth = m.integer(1, len(a[2]))
    outer = m.shape(None, 0, 2)
    m.add(op, [a, m.constant(np.stack([m.random.integers(-d, d, outer) for d in a[2][:depth]], -1).astype(np.int64))])


def reductions(m, since):
    """How scattered values meet what is there, by operator set."""
    return [None] + (["none", "add", "mul"] if m.opset >= since else []) + (["max", "min"] if m.opset >= 18 else [])


@operator("ScatterElements", "Scatter")
def scatter_elements(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    axis = m.integer(0, len(a[2]) - 1)
    shape = [m.integer(1, d) for d in a[2]]
    index = np.argsort(m.random.random([a[2][axis] if k == axis else d for k, d in enumerate(shape)]), axis).take(np.arange(shape[axis]), axis)
    reduction = m.pick(reductions(m, 16)) if a[1] in NUMBERS else None
    m.add(op, [a, m.constant(index.astype(m.pick([np.int64, np.int32]))), m.new(a[1], shape)], axis=axis, reduction=reduction)


@operator("ScatterND")
def scatter_nd(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    rows = m.integer(1, a[2][0])
    index = m.random.permutation(a[2][0])[:rows].reshape(-1, 1)
    m.add(op, [a, m.constant(index.astype(np.int64)), m.new(a[1], [rows] + a[2][1:])], reduction=m.pick(reductions(m, 16)) if a[1] in NUMBERS else None)


@operator("DepthToSpace", "SpaceToDepth")
def blocks(m, op):
    b = m.pick([2, 3])
    test = (lambda s: s[1] > 0 and s[1] % (b * b) == 0) if op == "DepthToSpace" else (lambda s: s[2] % b == 0 and s[3] % b == 0)
    make = lambda: [m.integer(1, 2), b * b * m.integer(1, 3), m.integer(1, 5), m.integer(1, 5)] if op == "DepthToSpace" else [1, m.integer(1, 20), b * m.integer(1, 4), b * m.integer(1, 4)]
    a = m.value(m.types(op), 4, test=test, make=make)
    m.add(op, [a], blocksize=b, **(dict(mode=m.pick(["DCR", "CRD"])) if op == "DepthToSpace" else {}))


@operator("ReverseSequence")
def reverse_sequence(m, op):
    a = m.value(m.types(op), low=2, test=lambda s: 0 not in s[:2])
    t, b = m.pick([(0, 1), (1, 0)])
    m.add(op, [a, m.constant(m.random.integers(1, a[2][t] + 1, a[2][b]).astype(np.int64))], time_axis=t, batch_axis=b)


@operator("ConstantOfShape")
def constant_of_shape(m, op):
    from onnx import numpy_helper
    m.add(op, [m.constant(np.asarray(m.shape(None, 0, 3), np.int64))], value=numpy_helper.from_array(m.data(m.pick(m.types(op, "T2")), (1,))))


@operator("Range")
def range_(m, op):
    d = m.pick(m.types(op))
    m.add(op, [m.constant(np.asarray(v, d)) for v in (m.integer(-3, 3), m.integer(4, 12), m.integer(1, 3))])


@operator("OneHot")
def one_hot(m, op):
    kind = m.pick(m.types(op, "T1"))  # a place that is no number has no meaning
    index = m.value(kind, high=3) if kind in INTEGERS else m.constant(m.random.integers(-4, 7, m.shape(None, 0, 3)).astype(kind))
    d = m.pick(m.types(op, "T3"))
    m.add(op, [index, m.constant(np.asarray(m.integer(1, 6), m.pick([d for d in m.types(op, "T2") if d in NUMBERS]))), m.constant(m.data(d, (2,)))], axis=m.integer(-len(index[2]) - 1, len(index[2])))


@operator("EyeLike")
def eye(m, op):
    m.add(op, [m.value(m.types(op, "T1"), 2)], k=m.integer(-2, 2), dtype=ELEMENT[m.pick(m.types(op, "T2"))] if m.chance(0.4) else None)


@operator("Trilu")
def trilu(m, op):
    a = m.value(m.types(op), low=2)
    m.add(op, [a] + ([m.constant(np.asarray(m.integer(-3, 3), np.int64))] if m.chance(0.6) else []), upper=m.integer(0, 1))


@operator("CenterCropPad")
def center_crop_pad(m, op):
    a = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    m.add(op, [a, m.constant(np.asarray([m.integer(1, 9) for _ in a[2]], m.pick([np.int64, np.int32])))])


@operator("NonZero", "Unique", "Compress")
def unknown_sizes(m, op):
    a = m.value(m.types(op), low=1)
    if op == "Compress":
        m.add(op, [a, m.like("bool", [a[2][0]])], axis=0, keep=False)
    elif op == "Unique":
        m.add(op, [a], m.integer(1, 4), keep=False, sorted=m.integer(0, 1), **(dict(axis=m.integer(0, len(a[2]) - 1)) if m.chance(0.3) else {}))
    else:
        m.add(op, [a], keep=False)


def picture(m, types, spatial=None):
    n = spatial or m.pick([1, 2, 2, 2, 3])
    return m.value(types, n + 2, test=lambda s: 0 not in s and max(s[2:]) < 40, make=lambda: [m.integer(1, 2), m.pick([1, 2, 3, 4, 7, 8, 13, 16, 17, 32])] + [m.integer(1, 14 if n < 3 else 7) for _ in range(n)])


def window(m, sizes, dilate=True):
    kernel = [m.integer(1, min(5, d + 1)) for d in sizes]
    dilations = [m.integer(1, 2) if dilate and m.chance(0.2) else 1 for _ in sizes]
    pads = [m.integer(0, min(2, k - 1)) if m.chance(0.6) else 0 for k in kernel * 2]
    if any(d + b + e < (k - 1) * l + 1 for d, b, e, k, l in zip(sizes, pads, pads[len(sizes):], kernel, dilations)):
        raise Impossible
    return dict(kernel_shape=kernel, strides=[m.integer(1, 3) for _ in sizes], dilations=dilations, pads=pads)


@operator("Conv")
def conv(m, op):
    x = picture(m, m.types(op))
    w = window(m, x[2][2:])
    groups = m.pick([g for g in (1, 1, x[2][1], 2, 3, 4) if x[2][1] % g == 0])
    out = groups * m.pick([1, 1, 2, 3, 5, 8, 16] if groups < 8 else [1, 2])
    operands = [x, m.new(x[1], [out, x[2][1] // groups] + w["kernel_shape"], fixed=m.chance(0.8))] + ([m.new(x[1], [out])] if m.chance(0.5) else [])
    if m.chance(0.15):
        w.pop("pads")
        w["auto_pad"] = m.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    m.add(op, operands, group=groups, **w)


@operator("ConvTranspose")
def conv_transpose(m, op):
    x = picture(m, m.types(op))
    w = window(m, [9 for _ in x[2][2:]])
    groups = m.pick([g for g in (1, 1, x[2][1], 2) if x[2][1] % g == 0])
    out = m.pick([1, 1, 2, 3, 8, 16] if groups < 8 else [1, 2])
    if any((d - 1) * s + (k - 1) * l + 1 - b - e < 1 for d, s, k, l, b, e in zip(x[2][2:], w["strides"], w["kernel_shape"], w["dilations"], w["pads"], w["pads"][len(x[2]) - 2:])):
        raise Impossible
    extra = [m.integer(0, s - 1) if m.chance(0.3) else 0 for s in w["strides"]]
    m.add(op, [x, m.new(x[1], [x[2][1], out] + w["kernel_shape"], fixed=m.chance(0.8))] + ([m.new(x[1], [out * groups])] if m.chance(0.5) else []), group=groups, output_padding=extra, **w)


@operator("MaxPool", "AveragePool", "LpPool")
def pool(m, op):
    x = picture(m, m.types(op))
    w = window(m, x[2][2:])
    extra = dict(ceil_mode=m.integer(0, 1))
    if op == "AveragePool":
        extra["count_include_pad"] = m.integer(0, 1)
    if op == "LpPool":
        extra["p"] = m.integer(1, 3)
    m.add(op, [x], 2 if op == "MaxPool" and m.chance(0.2) else 1, **extra, **w)


@operator("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def global_pool(m, op):
    m.add(op, [picture(m, m.types(op))], **(dict(p=m.integer(1, 3)) if op == "GlobalLpPool" else {}))


@operator("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN", "MeanVarianceNormalization")
def normalization(m, op):
    x = picture(m, m.types(op))
    c = x[2][1]
    if op == "BatchNormalization":
        m.add(op, [x] + [m.new(x[1], [c], k, True) for k in ("any", "any", "any", "positive")])
    elif op == "InstanceNormalization":
        m.add(op, [x, m.new(x[1], [c]), m.new(x[1], [c])])
    elif op == "GroupNormalization":
        m.add(op, [x, m.new(x[1], [c]), m.new(x[1], [c])], num_groups=m.pick([g for g in (1, 2, 4, c) if c % g == 0]), types=[x[1:]])
    elif op == "LRN":
        m.add(op, [x], size=m.pick([1, 3, 5]))
    else:
        if x[2][0] * int(np.prod(x[2][2:])) < 8:
            raise Impossible  # the variance of next to nothing is all rounding
        m.add(op, [x], axes=[0] + list(range(2, len(x[2]))), types=[x[1:]])  # its definition by others knows float32 alone


@operator("LayerNormalization", "RMSNormalization")
def layer_normalization(m, op):
    x = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    axis = m.integer(0, len(x[2]) - 1)
    stash = dict(stash_type=ELEMENT[m.pick(m.types(op, "U"))]) if op == "LayerNormalization" and m.chance(0.3) else {}
    m.add(op, [x, m.new(x[1], x[2][axis:])] + ([m.new(x[1], x[2][axis:])] if op == "LayerNormalization" and m.chance(0.6) else []), 3 if stash else 1,
          axis=axis - (len(x[2]) if m.chance(0.5) else 0), **stash)


@operator("LpNormalization")
def lp(m, op):
    x = m.value(m.types(op), low=1, test=lambda s: 0 not in s)
    m.add(op, [x], axis=m.integer(-len(x[2]), len(x[2]) - 1), p=m.integer(1, 2))


@operator("Resize")
def resize(m, op):
    x = picture(m, [d for d in m.types(op, "T1") if d in NUMBERS] if m.chance(0.3) else ["float32"], m.pick([1, 2, 2]))
    mode = m.pick(["nearest", "linear", "cubic"]) if len(x[2]) == 4 else m.pick(["nearest", "linear"])
    if x[1] in INTEGERS:
        mode = "nearest"  # truncating a sum that is nearly whole has no one answer
    n = len(x[2]) - 2
    extra = dict(mode=mode, coordinate_transformation_mode=m.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]))
    if mode == "nearest":
        extra["nearest_mode"] = m.pick(["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"])
    # Where a scale gives no whole size, the format says by which length corners are aligned, and onnxruntime takes another.
    roi = m.constant(np.asarray([0] * len(x[2]) + [1] * len(x[2]), m.pick(m.types(op, "T2")))) if m.chance(0.3) else None  # of everything
    if roi and m.chance(0.5):
        extra["coordinate_transformation_mode"] = "tf_crop_and_resize"
    if m.chance(0.5) and extra["coordinate_transformation_mode"] != "align_corners":
        m.add(op, [x, roi, m.constant(np.asarray([1, 1] + [m.pick([0.5, 1, 1.5, 2, 3]) for _ in range(n)], np.float32))], **extra)
    else:
        m.add(op, [x, roi, None, m.constant(np.asarray(x[2][:2] + [m.integer(1, 17) for _ in range(n)], np.int64))], **extra)


@operator("GridSample")
def grid_sample(m, op):
    x = picture(m, [d for d in m.types(op, "T1") if d in ALL], 2)
    grid = m.constant(m.random.uniform(-1.2, 1.2, [x[2][0], m.integer(1, 6), m.integer(1, 6), 2]).astype(m.pick([x[1] if x[1] in FLOATS else "float32", "float32"])))
    m.add(op, [x, grid], mode=m.pick(["linear", "nearest", "cubic"] if m.opset >= 20 else ["bilinear", "nearest", "bicubic"]), padding_mode=m.pick(["zeros", "border", "reflection"]), align_corners=m.integer(0, 1))


@operator("Dropout")
def dropout(m, op):
    a = m.value(m.types(op))
    more = [m.constant(np.asarray(0.5, np.dtype(m.pick(m.types(op, "T1")))))] if m.opset >= 12 and m.chance(0.7) else []
    m.add(op, [a] + more + ([m.constant(np.asarray(False))] if more and m.chance(0.5) else []))


@operator("Constant")
def constant_node(m, op):
    from onnx import numpy_helper
    m.add(op, [], value=numpy_helper.from_array(m.data(m.pick(m.types(op)), tuple(m.shape()))))


@operator("Det")
def det(m, op):
    n = m.integer(1, 4)
    m.add(op, [m.value(m.types(op), low=2, high=4, test=lambda s: s[-1] == s[-2] and 0 < s[-1] < 5, make=lambda: m.shape(None, 0, 2)[:2] + [n, n])])
