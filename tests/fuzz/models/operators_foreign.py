# SPDX-License-Identifier: Apache-2.0
"""Operators of other domains than ONNX's own: com.microsoft and ai.onnx.ml from the cases of tests/conformance, and training."""
import pathlib
import sys

import numpy as np
from generate import ALL, DOMAINS, ELEMENT, FLOATS, Impossible, dtype_name
from onnx import helper
from onnx.reference import ReferenceEvaluator
from operators import operator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
import cases_microsoft  # noqa: E402
import cases_ml  # noqa: E402

CASES = cases_microsoft.TABLE | cases_ml.TABLE


@operator(*CASES)
def foreign(m, op):
    """One with values of the model where they fit; what it gives is known from onnxruntime, since ONNX has no rules for it."""
    from runner import onnxruntime_outputs
    case = CASES[op](m.random)
    if case.domain not in ("", *DOMAINS) or any(
            a is not None and (not isinstance(a, np.ndarray) or dtype_name(a) == "string") for a in case.inputs):  # maps, texts
        raise Impossible
    ml = case.domain == "ai.onnx.ml"
    operands = [None if a is None else m.constant(a) if k in case.constants else m.like(str(a.dtype), a.shape) if a.dtype == np.float32 and k == 0 and not ml and m.chance(0.4) else m.given(a, False)
                for k, a in enumerate(case.inputs)]
    names = [m.fresh() if k in case.outputs else "" for k in range(max(case.outputs) + 1)]
    node = helper.make_node(case.op, [o[0] if o else "" for o in operands], names, domain=case.domain, **case.attributes)
    made = [n for n in names if n]
    model, given = m.alone([node], operands, made)
    data = {o[0]: m.inputs[o[0]] if o[0] in m.inputs else m.data(o[1], o[2]) for o in given}
    results = onnxruntime_outputs(model, data)
    if results is None or any(not isinstance(r, np.ndarray) or str(r.dtype) not in ALL for r in results):
        raise Impossible
    if ml and not reference_agrees(model, data, results):
        raise Impossible
    m.append([node], operands, made, types=[(str(r.dtype), list(r.shape)) for r in results])


def reference_agrees(model, data, results):
    """The text on ai.onnx.ml leaves much open (scores that no leaf votes for, say): only what has one answer."""
    try:
        others = ReferenceEvaluator(model).run(None, data)
        return all(a.shape == np.shape(b) and np.allclose(a, b, 1e-4, 1e-5, equal_nan=True) for a, b in zip(results, others))
    except Exception:  # what the reference lacks; its errors have no common type
        return False


@operator("Adagrad", "Adam", "Momentum")
def training(m, op):
    dtype, shape = m.pick(["float32", "float32", "float64"]), m.shape(None, 0, 3)
    state = {"Adagrad": 1, "Adam": 2, "Momentum": 1}[op]
    operands = [m.constant(np.asarray(0.1, dtype)), m.constant(np.asarray(m.integer(0, 3), np.int64)), m.like(dtype, shape), m.like(dtype, shape)]
    operands += [m.new(dtype, shape, "positive") for _ in range(state)]
    extra = {"Adagrad": dict(decay_factor=0.1, epsilon=1e-3), "Adam": dict(alpha=0.9, beta=0.99, epsilon=1e-3), "Momentum": dict(alpha=0.9, beta=0.5, mode=m.pick(["standard", "nesterov"]))}[op]
    extra["norm_coefficient"] = m.pick([0.0, 0.001])
    names = [m.fresh() for _ in range(1 + state)]
    node = helper.make_node(op, [o[0] for o in operands], names, domain="ai.onnx.preview.training", **extra)
    m.append([node], operands, names, types=[(dtype, shape)] * len(names))


@operator("LabelEncoder")
def label_encoder(m, op):
    a = m.value("int64")
    names = [m.fresh()]
    node = helper.make_node(op, [a[0]], names, domain="ai.onnx.ml", keys_int64s=[0, 1, 2, 5, -3], values_floats=[0.5, 1.0, -2.0, 8.0, 0.0], default_float=-1.5)
    m.append([node], [a], names, types=[("float32", a[2])])


@operator("FlexAttention")
def flex_attention(m, op):
    dtype, groups, heads, batch, depth, wide = m.pick(FLOATS), m.integer(1, 2), m.integer(1, 2), m.integer(1, 2), m.pick([2, 4]), m.pick([2, 3])
    rows, steps = m.integer(1, 6), m.integer(1, 6)
    operands = [m.like(dtype, [batch, n, length, d]) for n, length, d in ((heads * groups, rows, depth), (heads, steps, depth), (heads, steps, wide))]
    bodies = {}
    for name in ("score_mod", "prob_mod"):
        if m.chance(0.4):
            value = lambda n: helper.make_tensor_value_info(n, ELEMENT[dtype], [batch, heads * groups, rows, steps])
            bodies[name] = helper.make_graph([helper.make_node(m.pick(["Tanh", "Sigmoid"]), ["score"], ["changed"])], name, [value("score")], [value("changed")])
    names = [m.fresh()]
    node = helper.make_node(op, [o[0] for o in operands], names, domain="ai.onnx.preview", scale=m.pick([0.5, 1.0]), **bodies)
    m.append([node], operands, names, types=[(dtype, [batch, heads * groups, rows, wide])])


@operator("QLinearReduceMean")
def quantised_mean(m, op):
    a = m.value(["int8", "uint8"], low=1, test=lambda s: 0 not in s)
    axis, keep = m.integer(0, len(a[2]) - 1), m.integer(0, 1)
    scale = lambda: m.constant(np.asarray(0.02 * m.integer(1, 9), np.float32))
    zero = lambda: m.constant(np.asarray(m.integer(0, 9), a[1]))
    names = [m.fresh()]
    operands = [a, scale(), zero(), scale(), zero()]
    node = helper.make_node(op, [o[0] for o in operands], names, domain="com.microsoft", axes=[axis], keepdims=keep)
    m.append([node], operands, names, types=[(a[1], [1 if k == axis else d for k, d in enumerate(a[2]) if keep or k != axis])])
