# SPDX-License-Identifier: Apache-2.0
"""Operators of other domains than ONNX's own: com.microsoft and ai.onnx.ml from the cases of tests/conformance, and training."""
import pathlib
import sys

import numpy as np
import onnx
from generate import ALL, DOMAINS, ELEMENT, FLOATS, NUMBERS, Impossible, allowed, dtype_name
from onnx import helper
from onnx.reference import ReferenceEvaluator
from operators import operator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
import cases_decoder  # noqa: E402
import cases_microsoft  # noqa: E402
import cases_ml  # noqa: E402

# Several names of com.microsoft are ONNX's own, too.
CASES = {f"com.microsoft.{op}": make for op, make in (cases_microsoft.TABLE | cases_decoder.TABLE).items()} | cases_ml.TABLE
ONE_ANSWER = {"CastMap", "CategoryMapper", "DictVectorizer"}  # which the format's reference lacks


@operator(*CASES)
def foreign(m, op):
    """One with values of the model where they fit; what it gives is known from onnxruntime, since ONNX has no rules for it."""
    from runner import onnxruntime_outputs
    case = CASES[op](m.random)
    if case.domain not in ("", *DOMAINS) or (case.opset < 18 and m.opset > case.opset):
        raise Impossible
    ml = case.domain == "ai.onnx.ml"
    if ml:
        case.inputs = in_other_types(m, case)
    operands = []
    for k, a in enumerate(case.inputs):
        if a is None:
            operands.append(None)
        elif isinstance(a, dict):
            operands.append(m.map(a))
        elif k == 0 and not ml and a.dtype == np.float32 and k not in case.constants and m.chance(0.4):
            operands.append(m.like(str(a.dtype), a.shape))
        else:
            operands.append(m.constant(a) if k in case.constants else m.given(a, False))
    names = [m.fresh() if k in case.outputs else "" for k in range(max(case.outputs) + 1)]
    node = helper.make_node(case.op, [o[0] if o else "" for o in operands], names, domain=case.domain, **case.attributes)
    made = [n for n in names if n]
    if op == "ZipMap":  # its output is no tensor, and ends there
        m.append([node], operands, [], types=[])
        m.maps += made
        return
    model, given = m.alone([node], operands, made)
    data = {o[0]: m.inputs[o[0]] if o[0] in m.inputs else m.data(o[1], o[2]) for o in given}
    results = case.expected or onnxruntime_outputs(model, data)
    if results is None or any(not isinstance(r, np.ndarray) or dtype_name(r) not in [*ALL, "string"] for r in results):
        raise Impossible
    if ml and op not in ONE_ANSWER and not reference_agrees(model, data, results):
        raise Impossible
    m.append([node], operands, made, types=[(dtype_name(r), list(r.shape)) for r in results])


def in_other_types(m, case):
    """Operands of ai.onnx.ml's operators are numbers of several types; inputs of one type variable stay of one type."""
    version, made, out = m.versions[case.domain], {}, []
    by_variable = allowed(case.op, version, case.domain)  # leaves where the version has no such operator
    schema = onnx.defs.get_schema(case.op, version, case.domain)
    for i, a in enumerate(case.inputs):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        types = [d for d in by_variable.get(formal.type_str, []) if d in NUMBERS]
        if not isinstance(a, np.ndarray) or dtype_name(a) not in types or i in case.constants or case.expected:
            out.append(a)
            continue
        if formal.type_str not in made:
            made[formal.type_str] = m.pick(types) if m.chance(0.6) else dtype_name(a)
        out.append(a.astype(made[formal.type_str]))
    return out


def reference_agrees(model, data, results):
    """The text on ai.onnx.ml leaves much open (scores that no leaf votes for, say): only what has one answer."""
    try:
        others = ReferenceEvaluator(model).run(None, data)
        same = lambda a, b: np.array_equal(a, b) if dtype_name(a) == "string" else np.allclose(a, b, 1e-4, 1e-5, equal_nan=True)
        return all(a.shape == np.shape(b) and same(a, b) for a, b in zip(results, others))
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
    """By lists of one of three types, or by two tensors of any that its newer version takes."""
    lists, values = {"string": "strings", "int64": "int64s", "float32": "floats"}, {"string": ["", "cat", "Dog", "12"], "int64": [0, 1, 2, -3], "float32": [0.0, 1.0, 2.0, -3.0]}
    newer = m.versions["ai.onnx.ml"] >= 4
    types = allowed(op, m.versions["ai.onnx.ml"], "ai.onnx.ml")
    keys, results = m.pick([d for d in types["T1"] if newer or d in lists]), m.pick([d for d in types["T2"] if newer or d in lists])
    a, names = m.value(keys), [m.fresh()]
    content = lambda d: values.get(d) or np.asarray([0, 1, 2, -3], d).tolist()
    if newer and (m.chance(0.5) or not {keys, results} <= set(lists)):
        tensor = lambda d, v: helper.make_tensor("t", ELEMENT[d], [len(v)], [t.encode() for t in v] if d == "string" else v)
        extra = dict(keys_tensor=tensor(keys, content(keys)), values_tensor=tensor(results, content(results)), default_tensor=tensor(results, content(results)[3:]))
    else:
        extra = {f"keys_{lists[keys]}": content(keys), f"values_{lists[results]}": content(results), {"string": "default_string", "int64": "default_int64", "float32": "default_float"}[results]: content(results)[3]}
    node = helper.make_node(op, [a[0]], names, domain="ai.onnx.ml", **extra)
    m.append([node], [a], names, types=[(results, a[2])])


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


def channel_block():
    """How many channels onnxruntime puts into a block on this machine; None where it is not installed."""
    if not BLOCK:
        from runner import onnxruntime_outputs
        node = helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")
        graph = helper.make_graph([node], "one", [helper.make_tensor_value_info("x", ELEMENT["float32"], [1, 4, 1, 1])], [onnx.ValueInfoProto(name="y")])
        made = onnxruntime_outputs(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft.nchwc", 1)], ir_version=10), {"x": np.zeros((1, 4, 1, 1), np.float32)})
        BLOCK.append(None if made is None else made[0].shape[1])
    return BLOCK[0]


BLOCK = []


@operator("ReorderInput", "ReorderOutput")
def blocked(m, op):
    """From plain channels to blocks of them and back, with what onnxruntime's layout optimiser puts between."""
    from runner import onnxruntime_outputs
    block, domain = channel_block(), "com.microsoft.nchwc"
    x = m.value(["float32"], 4, test=lambda s: 0 not in s and s[1] % 4 == 0, make=lambda: [m.integer(1, 2), 4 * m.integer(1, 9), m.integer(3, 12), m.integer(3, 12)])
    if block is None:
        raise Impossible
    up = lambda channels: -(-channels // block) * block
    channels, nodes, operands, at = x[2][1], [], [x], x[0]

    def add(kind, inputs, **attributes):
        nodes.append(helper.make_node(kind, inputs, [m.fresh("b")], domain=domain, **attributes))
        return nodes[-1].output[0]
    if m.chance(0.5):  # the channels innermost in a plain tensor
        nodes.append(helper.make_node("Transpose", [at], [m.fresh("b")], perm=[0, 2, 3, 1]))
        at = add("ReorderInput", [nodes[-1].output[0]], channels_last=1)
    else:
        at = add("ReorderInput", [at])
    for _ in range(m.integer(0, 3)):
        kind = m.pick(["Conv", "Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Upsample"])
        if kind == "Conv":
            grouped = m.chance(0.3)
            out = channels if grouped else 4 * m.integer(1, 9)
            shape = [up(out), 1 if grouped else up(channels), *([k := m.pick([1, 3])] * 2)]
            weight, bias = m.new("float32", shape, fixed=True), m.new("float32", [up(out)], fixed=True)
            operands += [weight, bias]
            activation = m.pick([{}, {"activation": "Relu"}, {"activation": "LeakyRelu", "activation_params": [0.25]}, {"activation": "Sigmoid"}])
            at = add("Conv", [at, weight[0], bias[0]], kernel_shape=[k, k], pads=[k // 2] * 4, strides=[m.integer(1, 2)] * 2, group=up(out) if grouped else 1, **activation)
            channels = out
        elif kind == "Upsample":
            at = add(kind, [at], scales=[1, 1, m.integer(1, 2), m.integer(1, 2)], mode="nearest")
        elif kind.startswith("Global"):
            at = add(kind, [at])
        else:
            at = add(kind, [at], kernel_shape=[2, 2], pads=[0, 0, 1, 1], strides=[m.integer(1, 2)] * 2, **({"count_include_pad": m.integer(0, 1)} if kind == "AveragePool" else {}))
    last, name = m.chance(0.5), m.fresh()
    nodes.append(helper.make_node("ReorderOutput", [at], [name], domain=domain, channels=channels, channels_last=int(last)))
    model, given = m.alone(nodes, operands, [name])
    results = onnxruntime_outputs(model, {o[0]: m.data(o[1], o[2]) for o in given})
    if results is None:
        raise Impossible
    m.append(nodes, operands, [name], types=[("float32", list(results[0].shape))])


@operator("NhwcFusedConv")
def channels_last_conv(m, op):
    dtype = m.pick(["float32", "float16"])
    rows, columns, inputs, outputs, k, stride, pad = m.integer(3, 9), m.integer(3, 9), m.integer(1, 9), m.integer(1, 17), m.pick([1, 3]), m.integer(1, 2), m.integer(0, 1)
    size = [1 + (n + 2 * pad - k) // stride for n in (rows, columns)]
    operands = [m.like(dtype, [m.integer(1, 2), rows, columns, inputs]), m.new(dtype, [outputs, inputs, k, k], fixed=True)]
    shape = [operands[0][2][0], *size, outputs]
    operands.append(m.new(dtype, [outputs], fixed=True) if m.chance(0.6) else None)
    residual = m.chance(0.3)
    operands += [m.like(dtype, shape)] if residual else []
    activation = {"activation": "Relu"} if residual else m.pick([{}, {"activation": "Relu"}, {"activation": "LeakyRelu", "activation_params": [0.25]}])
    names = [m.fresh()]
    node = helper.make_node(op, [o[0] if o else "" for o in operands], names, domain="com.microsoft", kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, **activation)
    m.append([node], operands, names, types=[(dtype, shape)])


@operator("BiasSoftmax")
def bias_softmax(m, op):
    x = m.value(["float32", "float64", "float16"], low=2, high=4, test=lambda s: 0 not in s)
    rank = len(x[2])
    axis = m.integer(1, rank - 1)
    inner = rank < 3 or m.chance(0.5)
    first = m.integer(0, axis) if inner else 0
    shape = x[2][first:] if inner else [x[2][0], *([1] * (axis - 1)), *x[2][axis:]]
    bias, names = m.new(x[1], shape), [m.fresh()]
    node = helper.make_node(op, [x[0], bias[0]], names, domain="com.microsoft", axis=axis, is_inner_broadcast=int(inner))
    m.append([node], [x, bias], names, types=[x[1:]])


@operator("Gradient")
def gradient(m, op):
    """Of a sum that some smooth nodes lead to."""
    x = m.new(m.pick(["float32", "float64"]), m.shape(None, 1, 3), fixed=False)
    y = x
    for _ in range(m.integer(1, 4)):
        kind = m.pick(["Tanh", "Sigmoid", "Mul", "Add", "Sub", "MatMul", "ReduceMean", "Transpose", "Softplus", "Exp", "Neg"])
        if kind in ("Mul", "Add", "Sub"):
            y = m.add(kind, [y, m.broadcast(y[1], y[2])])[0]
        elif kind == "MatMul":
            y = m.add(kind, [y, m.new(y[1], [y[2][-1], m.integer(1, 5)])])[0]
        elif kind == "ReduceMean":
            y = m.add(kind, [y], keepdims=1)[0]
        else:
            y = m.add(kind, [y])[0]
        if 0 in y[2]:
            raise Impossible
    y = m.add("ReduceSum", [y], keepdims=0)[0]
    names = [m.fresh()]
    node = helper.make_node(op, [x[0]], names, domain="ai.onnx.preview.training", xs=[x[0]], y=y[0])
    m.append([node], [x, y], names, types=[x[1:]])
