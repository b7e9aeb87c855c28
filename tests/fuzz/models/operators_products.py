# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, of numbers and of quantised ones, and the layers that recur on them."""
import numpy as np
from generate import ALL, ELEMENT, FLOATS, NARROW
from operators import operator, picture, window


@operator("Gemm")
def gemm(m, op):
    a = m.value(m.types(op), 2)
    ta, tb = m.integer(0, 1), m.integer(0, 1)
    k, rows, n = a[2][0 if ta else 1], a[2][1 if ta else 0], m.size()
    b = m.new(a[1], [n, k] if tb else [k, n], fixed=m.chance(0.7))
    c = [m.broadcast(a[1], [rows, n])] if m.chance(0.6) else []
    if c and not (len(c[0][2]) <= 2 and all(x in (1, y) for x, y in zip(c[0][2][::-1], [n, rows]))):
        c = []
    scale = dict(alpha=m.pick([1.0, 0.5]), beta=m.pick([1.0, 2.0]))
    m.add(op, [a, b] + c, transA=ta, transB=tb, **(scale if a[1] in FLOATS else {}))


@operator("MatMul")
def matmul(m, op):
    a = m.value(m.types(op), low=1, high=4)
    if len(a[2]) == 1:
        b = m.new(a[1], m.pick([[a[2][0]], [a[2][0], m.size()], [2, a[2][0], m.size()]]))
    else:
        batch = [d if m.chance(0.6) else 1 for d in a[2][:-2]] if m.chance(0.7) else []
        b = m.new(a[1], m.pick([batch + [a[2][-1], m.size()], [a[2][-1]]]))
    m.add(op, [a, b])


@operator("MatMulInteger", "ConvInteger")
def integer_product(m, op):
    if op == "MatMulInteger":
        a = m.value(["int8", "uint8"], low=2, high=3)
        b = m.new(m.pick(["int8", "uint8"]), [a[2][-1], m.size()])
        extra = {}
    else:
        a = picture(m, ["uint8", "int8"], 2)
        extra = window(m, a[2][2:])
        b = m.new(a[1], [m.integer(1, 9), a[2][1]] + extra["kernel_shape"])
    zeros = [m.constant(m.data(a[1], ())), m.constant(m.data(b[1], ()))] if m.chance(0.5) else []
    m.add(op, [a, b] + zeros, **extra)


@operator("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
def quantize(m, op):
    if op == "DynamicQuantizeLinear":
        m.add(op, [m.value(["float32"], low=1, test=lambda s: 0 not in s)], 3)
        return
    quantizes = op == "QuantizeLinear"
    stored = m.types(op, ("T3" if m.opset >= 23 else "T2") if quantizes else "T1" if m.opset >= 19 else "T")
    real = m.pick(m.types(op, "T1" if quantizes and m.opset < 23 else "T2")) if m.opset >= 19 and m.chance(0.4) else "float32"
    powers = real == "float8_e8m0fnu"  # scales alone are of this type
    x = m.value(["float32" if powers else real] if quantizes else stored)
    axis = m.integer(0, len(x[2]) - 1) if x[2] and m.opset >= 13 and m.chance(0.4) else None
    block = m.pick([None, 2, 3]) if axis is not None and m.opset >= 21 and x[2][axis] > 0 else None
    shape = () if axis is None else (x[2][axis],) if block is None else [-(-d // block) if k == axis else d for k, d in enumerate(x[2])]
    zero = m.pick(stored) if quantizes else x[1]
    scale = m.constant(m.data(real, shape, "positive") if real == "int32" else np.asarray(m.data(real, shape, "positive").astype(np.float32) * np.float32(0.125), np.dtype(real)))
    none = zero == "int32" or zero.startswith("float") or (not quantizes and m.chance(0.2))
    point = np.zeros(shape, np.dtype(zero)) if none else m.data(zero, shape) if zero in ALL else np.ones(shape, np.dtype(zero))
    m.add(op, [x, scale, m.constant(point)], axis=axis, block_size=block, output_dtype=ELEMENT["float32"] if powers and not quantizes else None)


@operator("QLinearMatMul", "QLinearConv")
def quantized_product(m, op):
    kind = m.pick(m.types(op, "TS")) if op == "QLinearMatMul" and m.opset >= 21 else "float32"
    scale = lambda: m.constant(np.asarray(m.data("float32", (), "positive") * np.float32(0.05), np.dtype(kind)))
    zero = lambda d: m.constant(np.zeros((), np.dtype(d)) if d in NARROW else m.data(d, ()))
    out = m.pick(["int8", "uint8"])
    if op == "QLinearMatMul":
        a = m.value(m.types(op, "T1"), low=2, high=3)
        b = m.new(a[1], [a[2][-1], m.size()])
        m.add(op, [a, scale(), zero(a[1]), b, scale(), zero(b[1]), scale(), zero(a[1])])
    else:
        a = picture(m, ["uint8", "int8"], 2)
        extra = window(m, a[2][2:])
        b = m.new(a[1], [m.integer(1, 9), a[2][1]] + extra["kernel_shape"], fixed=True)
        bias = [m.constant(m.random.integers(-300, 300, b[2][0]).astype(np.int32))] if m.chance(0.5) else []
        m.add(op, [a, scale(), zero(a[1]), b, scale(), zero(b[1]), scale(), zero(out if out == a[1] else a[1])] + bias, **extra)


@operator("Einsum")
def einsum(m, op):
    a = m.value(m.types(op), 3)
    i, j, k = a[2]
    text, shapes = m.pick([("ijk,ikl->ijl", [[i, k, 3]]), ("ijk->kji", []), ("ijk,k->ij", [[k]]), ("ijk,ljk->il", [[4, j, k]]), ("ijk->", []), ("ijk,ijk->jk", [[i, j, k]])])
    m.add(op, [a] + [m.new(a[1], s) for s in shapes], equation=text)


@operator("RNN", "GRU", "LSTM")
def recurrent(m, op):
    x = m.value(m.types(op) if m.chance(0.3) else ["float32"], 3, test=lambda s: 0 not in s and s[0] < 10)
    steps, batch, size = x[2]
    hidden, gates = m.integer(1, 9), {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    direction = m.pick(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    fixed = m.chance(0.9)
    operands = [x, m.new(x[1], [d, gates * hidden, size], fixed=fixed), m.new(x[1], [d, gates * hidden, hidden], fixed=fixed)]
    if m.chance(0.6):
        operands.append(m.new(x[1], [d, 2 * gates * hidden], fixed=fixed))
        if m.chance(0.3):
            operands.append(m.given(m.random.integers(1, steps + 1, batch).astype(np.int32)))
    m.add(op, operands, 3 if op == "LSTM" else 2, hidden_size=hidden, direction=direction, **(dict(linear_before_reset=m.integer(0, 1)) if op == "GRU" else {}))
