# SPDX-License-Identifier: Apache-2.0
"""Nodes with bodies, and values that are no tensors: sequences and optional values."""
import numpy as np
import onnx
from generate import ALL, ELEMENT, FLOATS, NARROW, NUMBERS, Impossible, attempt, reads
from onnx import helper
from operators import TABLE, operator

STORED = [*ALL, *NARROW, "string"]
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
    made = [v for v in m.values[first:] if v[0] not in m.inputs and (v[1] in ALL or v[1] == start[1])]
    del m.values[first - 1]
    return made[-1] if made else start


def same_type(m, value, dtype, shape):
    """The value, if it has the type; otherwise another that has."""
    return value if value[1] == dtype and value[2] == list(shape) else None


@operator("If")
def branches(m, op):
    if m.chance(0.3):
        structured_branches(m, op)
        return
    a = m.value([d for d in m.types(op, "V") if d in STORED])
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
    if m.chance(0.3):
        structured_loop(m, op)
        return
    dtypes = [d for d in m.types(op, "V") if d in STORED]
    state = m.value([d for d in dtypes if d in FLOATS] if m.chance(0.6) else dtypes, high=4)
    steps = np.asarray(m.integer(0, 4), np.int64)
    trips = m.given(steps, m.chance(0.5))
    condition = m.given(np.asarray(m.chance(0.8)), m.chance(0.5)) if m.chance(0.3) else None
    carried, number, going = (m.fresh("s"), state[1], state[2]), (m.fresh("s"), "int64", []), (m.fresh("s"), "bool", [])

    def body():
        out = some_nodes(m, carried, 2)
        if state[1] not in FLOATS:
            return [m.add("Identity", [v])[0] for v in (going, carried, out)]
        weight = m.add("Cast", [number], to=ELEMENT[state[1]])[0]
        scan = m.add("Add", [out, weight])[0]
        again = out if same_type(m, out, *state[1:]) and out[0] != carried[0] else m.add("Tanh", [carried])[0]
        return [m.add("Identity", [going])[0], again, scan]
    nodes, (go, again, scan), outer = taken_out(m, body)
    graph = helper.make_graph(nodes, "body", [info(v[0], v) for v in (number, going, carried)], [info(v[0], v) for v in (go, again, scan)])
    names = [m.fresh(), m.fresh()]
    node = helper.make_node(op, [trips[0], condition[0] if condition else "", state[0]], names, body=graph)
    fixed = trips[0] in m.initializers and (not condition or condition[0] in m.initializers)
    shape = [int(steps) * (not condition or bool(m.initializers[condition[0]])) if fixed else -1] + scan[2]
    made = [(names[0], *again[1:]), (names[1], scan[1], shape)]
    m.append([node], [trips, condition, state] + [o for o in outer if o[0] != carried[0]], names, keep=fixed, types=[v[1:] for v in made])


@operator("Scan")
def scan_rows(m, op):
    dtypes = [d for d in m.types(op, "V") if d in STORED]
    x = m.value([d for d in dtypes if d in FLOATS] if m.chance(0.6) else dtypes, low=1, high=4, test=lambda s: 0 < s[0] < 6)
    state = m.like(x[1], x[2][1:])
    carried, row = (m.fresh("s"), x[1], x[2][1:]), (m.fresh("s"), x[1], x[2][1:])

    def body():
        if x[1] not in FLOATS:
            return m.add("Identity", [row])[0], m.add("Identity", [some_nodes(m, carried, 2)])[0]
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
    m.append(as_nodes(steps), inputs, names, **keywords)


@operator("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength", "ConcatFromSequence", "SplitToSequence", "SequenceMap")
def sequence(m, op):
    a = m.value([d for d in m.types(op if op == "SplitToSequence" else "SequenceConstruct") if d in STORED], low=1)
    dtype, shape = a[1:]
    first, last, out = m.fresh("q"), m.fresh("q"), m.fresh()
    parts = [a] + [m.like(dtype, shape) for _ in range(m.integer(0, 2))]
    position = m.constant(np.asarray(m.integer(0, len(parts) - 1), m.pick([np.int64, np.int32])))
    inputs, count = parts + [position], len(parts)
    steps = [("SequenceConstruct", [p[0] for p in parts], first, {})]
    if op == "SplitToSequence":
        if 0 in shape:
            raise Impossible
        steps, count, inputs = [(op, [a[0]], first, dict(axis=0, keepdims=1))], shape[0], [a, position]
        piece = 1
        if m.chance(0.5):
            piece = m.pick([d for d in range(1, shape[0] + 1) if shape[0] % d == 0])
            pieces = m.constant(np.asarray(piece if m.chance(0.5) else [piece] * (shape[0] // piece), m.pick([np.int32, np.int64])))
            steps, count, inputs = [(op, [a[0], pieces[0]], first, dict(axis=0))], shape[0] // piece, [a, pieces, position]
        shape = [piece] + shape[1:]
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
        item, made, more = m.fresh("s"), m.fresh("s"), []
        value = lambda n, v: helper.make_tensor_value_info(n, ELEMENT[v[1]], [None] * len(v[2]))
        if m.chance(0.6):  # another operand: a tensor for all, or a sequence of as many
            other = m.value([d for d in m.types("SequenceConstruct") if d in STORED])
            more, inputs = [(other[0], other)], inputs + [other]
            if m.chance(0.5):
                steps.append(("SequenceConstruct", [other[0]] * count, m.fresh("q"), {}))
                more = [(steps[-1][2], other)]
        body = helper.make_graph([helper.make_node("Add" if dtype in NUMBERS else "Identity", [item, item] if dtype in NUMBERS else [item], [made])], "each",
                                 [value(item, a), *(value(m.fresh("s"), v) for _, v in more)], [value(made, a)])
        steps.append((op, [first, *(name for name, _ in more)], last, dict(body=body)))
        first = last
    if op == "SequenceLength":
        steps.append((op, [first], out, {}))
        chain(m, steps, inputs, [out])
    elif op == "ConcatFromSequence" or m.chance(0.3):
        new_axis = m.integer(0, 1)
        axis = m.integer(0, len(shape) - 1)
        steps.append(("ConcatFromSequence", [first], out, dict(axis=axis, new_axis=new_axis)))
        whole = shape[:axis] + [count] + shape[axis:] if new_axis else shape[:axis] + [shape[axis] * count] + shape[axis + 1:]
        chain(m, steps, inputs, [out], types=[(dtype, whole)])
    else:
        at = m.constant(np.asarray(m.integer(-count, count - 1), m.pick([np.int64, np.int32])))
        steps.append(("SequenceAt", [first, at[0]], out, {}))
        chain(m, steps, inputs + [at], [out], types=[(dtype, shape)])


# Values that are no tensors. A kind is the wrappers around a tensor: "seq", "optional" or "optional seq".
KINDS = ["seq", "optional", "optional seq"]


def wrapped(m, kind, parts):
    """Steps that put values of one type into a structure, and its name."""
    steps, name = [], parts[0][0]
    if "seq" in kind:
        steps.append(("SequenceConstruct", [p[0] for p in parts], m.fresh("q"), {}))
        name = steps[-1][2]
    if "optional" in kind:
        steps.append(("Optional", [name], m.fresh("q"), {}))
    return steps, steps[-1][2]


def unwrapped(m, kind, name, at):
    """Steps that take the value at a place out again, and its name."""
    steps = []
    if "optional" in kind:
        steps.append(("OptionalGetElement", [name], m.fresh(), {}))
        name = steps[-1][2]
    if "seq" in kind:
        steps.append(("SequenceAt", [name, at[0]], m.fresh(), {}))
    return steps, steps[-1][2]


def structure(kind, name, value):
    """The structure's type with a name."""
    inner = helper.make_tensor_type_proto(ELEMENT[value[1]], value[2])
    for wrapper in reversed(kind.split()):
        inner = helper.make_sequence_type_proto(inner) if wrapper == "seq" else helper.make_optional_type_proto(inner)
    return helper.make_value_info(name, inner)


def structured(m):
    """What a structured case is made of: kind, the values in it, and the place of the one that is taken out."""
    kind = m.pick(KINDS)
    a = m.value([d for d in m.types("Optional" if "optional" in kind else "SequenceConstruct", "V" if "optional" in kind else "T") if d in STORED])
    parts = [a] + [m.like(*a[1:]) for _ in range(m.integer(0, 2) if "seq" in kind else 0)]
    return kind, parts, m.constant(np.asarray(m.integer(0, len(parts) - 1), m.pick([np.int64, np.int32])))


def as_nodes(steps):
    return [helper.make_node(op, i, [o] if isinstance(o, str) else o, **a) for op, i, o, a in steps]


def structured_branches(m, op):
    kind, parts, at = structured(m)
    condition, held = m.given(np.asarray(m.chance(0.5)), m.chance(0.5)), m.fresh("q")
    graphs = []
    for order, name in ((parts, "then"), (parts[::-1], "else")):
        steps, made = wrapped(m, kind, order)
        graphs.append(helper.make_graph(as_nodes(steps), name, [], [structure(kind, made, parts[0])]))
    back, out = unwrapped(m, kind, held, at)
    nodes = [helper.make_node(op, [condition[0]], [held], then_branch=graphs[0], else_branch=graphs[1]), *as_nodes(back)]
    m.append(nodes, [condition, at, *parts], [out], types=[parts[0][1:]])


def structured_loop(m, op):
    kind, parts, at = structured(m)
    trips, held = m.given(np.asarray(m.integer(0, 3), np.int64), m.chance(0.5)), m.fresh("q")
    steps, start = wrapped(m, kind, parts)
    number, going, state, again, on = (m.fresh("s") for _ in range(5))
    body = helper.make_graph([helper.make_node("Identity", [state], [again]), helper.make_node("Identity", [going], [on])], "body",
                             [info(number, (number, "int64", [])), info(going, (going, "bool", [])), structure(kind, state, parts[0])],
                             [info(on, (on, "bool", [])), structure(kind, again, parts[0])])
    back, out = unwrapped(m, kind, held, at)
    nodes = [*as_nodes(steps), helper.make_node(op, [trips[0], "", start], [held], body=body), *as_nodes(back)]
    m.append(nodes, [trips, at, *parts], [out], types=[parts[0][1:]])


PLAIN_IDENTITY = TABLE["Identity"]


@operator("Identity")
def identity(m, op):
    if m.chance(0.6):
        PLAIN_IDENTITY(m)
        return
    kind, parts, at = structured(m)
    steps, name = wrapped(m, kind, parts)
    held = m.fresh("q")
    back, out = unwrapped(m, kind, held, at)
    chain(m, [*steps, (op, [name], held, {}), *back], [at, *parts], [out], types=[parts[0][1:]])


@operator("Optional", "OptionalGetElement", "OptionalHasElement")
def optional(m, op):
    if op != "Optional" and m.chance(0.3):  # a tensor is its own element
        a, out = m.value([d for d in m.types("Optional", "V") if d in STORED]), m.fresh()
        chain(m, [(op, [a[0]], out, {})], [a], [out], types=[a[1:] if op == "OptionalGetElement" else ("bool", [])])
        return
    kind, parts, at = structured(m)
    if "optional" not in kind and op == "Optional":
        raise Impossible
    steps, name = wrapped(m, kind, parts)
    if op == "OptionalHasElement":
        name = parts[0][0] if m.chance(0.3) else name
        chain(m, [*steps, (op, [name], out := m.fresh(), {})], parts, [out], types=[("bool", [])])
        return
    if "optional" not in kind:  # of what is none it is the value itself
        steps.append((op, [name], m.fresh("q"), {}))
        name = steps[-1][2]
    back, out = unwrapped(m, kind, name, at)
    chain(m, [*steps, *back], [at, *parts], [out], types=[parts[0][1:]])
