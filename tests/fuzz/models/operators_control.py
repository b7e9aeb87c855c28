# SPDX-License-Identifier: Apache-2.0
"""Nodes with bodies, and values that are no tensors: sequences and optional values."""
import numpy as np
import onnx
from generate import ALL, ELEMENT, FLOATS, Impossible, attempt, reads
from onnx import helper
from operators import TABLE, operator

INSIDE = ["Abs", "Add", "Concat", "Gather", "MatMul", "Mul", "ReduceSum", "Relu", "Reshape", "Sigmoid", "Slice", "Softmax", "Transpose", "Where"]


def info(name, value):
    return helper.make_tensor_value_info(name, ELEMENT[value[1]], value[2])


def taken_out(m, build):
    """The nodes that a builder adds, for a body: nodes, what they give, and the values that they read from outside."""
    before = (len(m.nodes), len(m.values), len(m.unknown))
    result = build()
    nodes = m.nodes[before[0]:]
    inside = {o for n in nodes for o in n.output}
    inputs = m.values[before[1]:]
    del m.nodes[before[0]:], m.unknown[before[2]:]
    m.values[before[1]:] = [v for v in inputs if v[0] in m.inputs]  # new inputs of the model stay
    outer = list(dict.fromkeys(i for n in nodes for i in reads(n) if i not in inside))
    known = {v[0]: v for v in m.values} | {n: (n, "", list(a.shape)) for n, a in m.initializers.items()}
    return nodes, result, [known[i] for i in outer if i in known]


def some_nodes(m, start, count):
    """Grows a few nodes behind a value; the last value of them that has known sizes."""
    m.values.append(start)
    first = len(m.values)
    for _ in range(6):
        if len(m.values) - first >= count:
            break
        attempt(m, TABLE[m.pick(INSIDE)])
    made = [v for v in m.values[first:] if v[0] not in m.inputs and v[1] in ALL]
    del m.values[first - 1]
    return made[-1] if made else start


def same_type(m, value, dtype, shape):
    """The value, if it has the type; otherwise another that has."""
    return value if value[1] == dtype and value[2] == list(shape) else None


@operator("If")
def branches(m, op):
    a = m.value([d for d in m.types(op, "V") if d in ALL])
    condition = m.constant(np.asarray(m.chance(0.5))) if m.chance(0.2) else m.given(np.asarray(m.chance(0.5)), False)
    then_nodes, out, outer = taken_out(m, lambda: some_nodes(m, a, 2))
    if not then_nodes:
        raise Impossible

    def otherwise():
        other = m.like(out[1], out[2])
        return m.add("Identity", [other])[0]
    else_nodes, other, more = taken_out(m, otherwise)
    graph = lambda nodes, v, name: helper.make_graph(nodes, name, [], [info(v[0], v)])
    name = m.fresh()
    inside = out if any(out[0] in n.output for n in then_nodes) else None
    if inside is None:
        raise Impossible
    node = helper.make_node(op, [condition[0]], [name], then_branch=graph(then_nodes, out, "then"), else_branch=graph(else_nodes, other, "else"))
    m.append([node], [condition, a] + outer + more, [name], types=[(out[1], out[2])])


@operator("Loop")
def loop(m, op):
    state = m.value([d for d in m.types(op, "V") if d in FLOATS and d in ALL], high=4)
    steps = np.asarray(m.integer(0, 4), np.int64)
    trips = m.given(steps, m.chance(0.5))
    carried, number, going = (m.fresh("s"), state[1], state[2]), (m.fresh("s"), "int64", []), (m.fresh("s"), "bool", [])

    def body():
        out = some_nodes(m, carried, 2)
        weight = m.add("Cast", [number], to=ELEMENT[state[1]])[0]
        scan = m.add("Add", [out, weight])[0]
        again = out if same_type(m, out, *state[1:]) and out[0] != carried[0] else m.add("Tanh", [carried])[0]
        return [m.add("Identity", [going])[0], again, scan]
    nodes, (go, again, scan), outer = taken_out(m, body)
    graph = helper.make_graph(nodes, "body", [info(v[0], v) for v in (number, going, carried)], [info(v[0], v) for v in (go, again, scan)])
    names = [m.fresh(), m.fresh()]
    node = helper.make_node(op, [trips[0], "", state[0]], names, body=graph)
    fixed = trips[0] in m.initializers
    shape = [int(steps) if fixed else -1] + scan[2]
    made = [(names[0], *again[1:]), (names[1], scan[1], shape)]
    m.append([node], [trips, state] + [o for o in outer if o[0] != carried[0]], names, keep=fixed, types=[v[1:] for v in made])


@operator("Scan")
def scan_rows(m, op):
    x = m.value([d for d in m.types(op, "V") if d in FLOATS], low=1, high=4, test=lambda s: 0 < s[0] < 6)
    state = m.like(x[1], x[2][1:])
    carried, row = (m.fresh("s"), x[1], x[2][1:]), (m.fresh("s"), x[1], x[2][1:])

    def body():
        total = m.add("Add", [carried, row])[0]
        out = some_nodes(m, total, 2)
        return m.add("Tanh", [total])[0], m.add("Identity", [out])[0]
    nodes, (again, out), outer = taken_out(m, body)
    graph = helper.make_graph(nodes, "body", [info(v[0], v) for v in (carried, row)], [info(v[0], v) for v in (again, out)])
    names = [m.fresh(), m.fresh()]
    node = helper.make_node(op, [state[0], x[0]], names, body=graph, num_scan_inputs=1, scan_input_directions=m.pick([None, [1]]))
    m.append([node], [state, x] + outer, names, types=[again[1:], (out[1], [x[2][0]] + out[2])])


def chain(m, steps, inputs, names, **keywords):
    """Several nodes as one step: [(operator, inputs, output, attributes)]."""
    m.append([helper.make_node(op, i, [o] if isinstance(o, str) else o, **a) for op, i, o, a in steps], inputs, names, **keywords)


@operator("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength", "ConcatFromSequence", "SplitToSequence", "SequenceMap")
def sequence(m, op):
    a = m.value([d for d in m.types("SequenceConstruct") if d in ALL], low=1)
    dtype, shape = a[1:]
    first, last, out = m.fresh("q"), m.fresh("q"), m.fresh()
    parts = [a] + [m.like(dtype, shape) for _ in range(m.integer(0, 2))]
    position = m.constant(np.asarray(m.integer(0, len(parts) - 1), np.int64))
    inputs, count = parts + [position], len(parts)
    steps = [("SequenceConstruct", [p[0] for p in parts], first, {})]
    if op == "SplitToSequence":
        if 0 in shape:
            raise Impossible
        steps, count = [(op, [a[0]], first, dict(axis=0, keepdims=1))], shape[0]
        shape, inputs = [1] + shape[1:], [a, position]
    if op == "SequenceEmpty":
        steps = [(op, [], m.fresh("q"), dict(dtype=ELEMENT[dtype]))]
        steps.append(("SequenceInsert", [steps[0][2], a[0]], first, {}))
        inputs, count = [a], 1
    if op == "SequenceInsert":
        steps.append((op, [first, a[0]] + ([position[0]] if m.chance(0.5) else []), last, {}))
        count, first = count + 1, last
    elif op == "SequenceErase" and count > 1:
        steps.append((op, [first] + ([position[0]] if m.chance(0.5) else []), last, {}))
        count, first = count - 1, last
    elif op == "SequenceMap":
        item, made = m.fresh("s"), m.fresh("s")
        kind = [dtype, [None] * len(shape)]
        value = lambda n: helper.make_tensor_value_info(n, ELEMENT[kind[0]], kind[1])
        body = helper.make_graph([helper.make_node("Identity" if dtype == "bool" else "Add", [item] if dtype == "bool" else [item, item], [made])], "each", [value(item)], [value(made)])
        steps.append((op, [first], last, dict(body=body)))
        first = last
    if op == "SequenceLength":
        steps.append((op, [first], out, {}))
        chain(m, steps, inputs, [out])
    elif op == "ConcatFromSequence" or m.chance(0.3):
        new_axis = m.integer(0, 1)
        axis = m.integer(0, len(shape) - 1)
        steps.append(("ConcatFromSequence", [first], out, dict(axis=axis, new_axis=new_axis)))
        whole = shape[:axis] + [count] + shape[axis:] if new_axis else shape[:axis] + [shape[axis] * count] + shape[axis + 1:]
        if op == "SplitToSequence" and not new_axis and axis == 0:
            whole = [count] + shape[1:]
        chain(m, steps, inputs, [out], types=[(dtype, whole)])
    else:
        at = m.constant(np.asarray(m.integer(-count, count - 1), np.int64))
        steps.append(("SequenceAt", [first, at[0]], out, {}))
        chain(m, steps, inputs + [at], [out], types=[(dtype, shape)])


@operator("Optional", "OptionalGetElement", "OptionalHasElement")
def optional(m, op):
    a = m.value([d for d in ALL if d != "bfloat16"])
    held, out = m.fresh("q"), m.fresh()
    last = ("OptionalHasElement", [held], out, {}) if op == "OptionalHasElement" else ("OptionalGetElement", [held], out, {})
    types = [("bool", [])] if op == "OptionalHasElement" else [a[1:]]
    chain(m, [("Optional", [a[0]], held, {}), last], [a], [out], types=types)
