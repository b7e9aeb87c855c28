# SPDX-License-Identifier: Apache-2.0
"""Random valid ONNX models: nodes over values of known type, each checked by the format's own shape inference."""
import functools

import ml_dtypes  # noqa: F401  names float types to numpy
import numpy as np
import onnx
from maps import described
from onnx import TensorProto, checker, helper, numpy_helper, shape_inference

# Mostly one that every engine knows; the oldest has operators that were taken out since, the newest those that came last.
OPSETS = [21] * 8 + [13, 17, 18, 20, 23, 24, 25, 26, 26, 27, 9]
DOMAINS = {"com.microsoft": 1, "com.microsoft.nchwc": 1, "ai.onnx.ml": 3, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
FLOATS = ["float32", "float64", "float16", "bfloat16"]
SIGNED = ["int8", "int16", "int32", "int64"]
INTEGERS = SIGNED + ["uint8", "uint16", "uint32", "uint64"]
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + ["bool"]
# Formats to store numbers in: cast to and from, moved, and quantised with.
NARROW = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2"]
ELEMENT = {name: helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in ALL + NARROW} | {"string": TensorProto.STRING}
NAME = {v: k for k, v in ELEMENT.items()}
SCHEMA_NAME = {"float": "float32", "double": "float64", "float4e2m1": "float4_e2m1fn", "float8e8m0": "float8_e8m0fnu"} | {n.replace("_", ""): n for n in NARROW if n.startswith("float8")}
WORDS = ["", "a", "b", "cat", "Dog", "a b", "12", "-3", "naïve", "two words here"]


class Impossible(Exception):
    """This operator does not fit what there is; another one is tried."""


@functools.lru_cache(maxsize=None)
def allowed(op, version, domain=""):
    """Dtypes by type variable, of those above."""
    try:
        schema = onnx.defs.get_schema(op, version, domain)
    except onnx.defs.SchemaError as e:
        raise Impossible from e
    names = lambda c: [SCHEMA_NAME.get(t[7:-1], t[7:-1]) for t in c.allowed_type_strs if t.startswith("tensor(")]
    return {c.type_param_str: [n for n in names(c) if n in ELEMENT] for c in schema.type_constraints}


def dtype_name(array):
    return "string" if array.dtype.kind in "OUT" else str(array.dtype)


def captured(graph):
    """The names that a body of a control-flow node reads from outside."""
    made, out = {v.name for v in graph.input} | {t.name for t in graph.initializer}, []
    for node in graph.node:
        out += [i for i in reads(node) if i not in made]
        made |= set(node.output)
    return out + [o.name for o in graph.output if o.name not in made]


def reads(node):
    """What a node reads, its bodies included."""
    return [i for i in node.input if i] + [n for a in node.attribute if a.type == onnx.AttributeProto.GRAPH for n in captured(a.g)]


class Model:
    """A growing graph; values are (name, dtype, shape)."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.values = [], {}, {}, []
        self.unknown = []  # outputs whose sizes depend on data
        self.maps = []  # names of outputs that are no tensors
        self.count = 0
        self.opset = self.pick(OPSETS)
        self.versions = DOMAINS | {"ai.onnx.ml": self.pick([3, 3, 5])}

    # Choices.
    def chance(self, p):
        return self.random.random() < p

    def pick(self, options):
        options = list(options)
        if not options:
            raise Impossible
        return options[int(self.random.integers(len(options)))]

    def integer(self, low, high):
        return int(self.random.integers(low, high + 1))

    def size(self):
        return self.pick([1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 19, 33] + ([0] if self.chance(0.1) else []))

    def shape(self, rank=None, low=0, high=4):
        if rank is None:
            rank = self.integer(low, high if self.chance(0.9) else 6)
        out = [self.size() for _ in range(rank)]
        while np.prod(out, dtype=np.int64) > 6000:
            out[int(np.argmax(out))] = self.integer(1, 3)
        return out

    def types(self, op, variable="T"):
        """What the operator takes for a type variable in this model's operator set."""
        return allowed(op, self.opset).get(variable) or self.pick([])

    # Values.
    def data(self, dtype, shape, kind="any"):
        r = self.random
        if dtype == "string":
            return np.asarray([WORDS[i] for i in r.integers(len(WORDS), size=int(np.prod(shape, dtype=np.int64)))], object).reshape(shape)
        d = np.dtype(dtype)
        if dtype in NARROW:
            return np.asarray(r.integers(dtype == "float8_e8m0fnu", 2, shape)).astype(np.float32).astype(d)
        if dtype == "bool":
            return np.asarray(r.random(shape) < 0.5)
        if d.kind in "iu":
            low = {"any": 0 if d.kind == "u" else -9, "positive": 1, "count": 0}[kind]
            x = np.asarray(r.integers(low, 10, shape)).astype(d)
            if kind == "any" and d.itemsize == 8 and x.size and self.chance(0.2):
                x = x + d.type(2 ** 53)
            return np.asarray(x)
        x = r.standard_normal(shape)
        if self.chance(0.3):
            x = np.round(x * 2) / 2  # ties and zeros
        if kind == "positive":
            x = np.abs(x) + 0.25
        return np.asarray(x, d)

    def fresh(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, array):
        name = self.fresh("c")
        self.initializers[name] = np.asarray(array)
        return (name, dtype_name(self.initializers[name]), list(self.initializers[name].shape))

    def new(self, dtype, shape, kind="any", fixed=None):
        """A new graph input or initialiser."""
        if dtype in NARROW:  # engines take none of them from outside
            source = self.data("int32" if "int" in dtype else "float32", tuple(shape), "positive" if dtype == "float8_e8m0fnu" else "any")  # powers of two alone
            return self.add("Cast", [self.given(source, fixed)], to=ELEMENT[dtype])[0]
        return self.given(self.data(dtype, tuple(shape), kind), True if dtype == "string" else fixed)

    def map(self, value):
        """A map from outside."""
        name = self.fresh("x")
        self.inputs[name] = value
        return (name, "map", [])

    def given(self, array, fixed=None):
        if fixed or (fixed is None and self.chance(0.4)):
            return self.constant(array)
        name = self.fresh("x")
        self.inputs[name] = array
        self.values.append((name, dtype_name(array), list(array.shape)))
        return self.values[-1]

    def value(self, dtypes, rank=None, low=0, high=6, test=lambda shape: True, make=None):
        """One that is there (the last ones rather), or a new one."""
        dtypes = [dtypes] if isinstance(dtypes, str) else list(dtypes)
        fits = [v for v in self.values if v[1] in dtypes and (rank is None or len(v[2]) == rank) and low <= len(v[2]) <= high and test(v[2])]
        if fits and self.chance(0.85):
            return fits[-1 - min(int(self.random.exponential(2)), len(fits) - 1)]
        weights = [d for d in dtypes for _ in range(24 if d == "float32" else 4 if d in ALL else 1)]
        for _ in range(20):
            shape = make() if make else self.shape(rank, low, min(high, 4))
            if test(shape):
                return self.new(self.pick(weights), shape)
        raise Impossible

    def like(self, dtype, shape, kind="any"):
        """A value of exactly this type."""
        fits = [v for v in self.values if v[1] == dtype and v[2] == list(shape)]
        return self.pick(fits) if fits and kind == "any" and self.chance(0.6) else self.new(dtype, shape, kind)

    def broadcast(self, dtype, shape, kind="any"):
        """A value that broadcasts against the shape."""
        fits = [v for v in self.values if v[1] == dtype and can_broadcast(v[2], shape)]
        if fits and kind == "any" and self.chance(0.5):
            return self.pick(fits)
        other = [d if self.chance(0.7) else 1 for d in shape][self.integer(0, len(shape)):] if self.chance(0.5) else list(shape)
        return self.new(dtype, other, kind)

    # Nodes.
    def add(self, op, inputs, outputs=1, keep=True, types=None, **attributes):
        """Appends a node when shape inference says that it is valid; `types` are its outputs' where that does not know them."""
        names = [self.fresh() for _ in range(outputs)]
        node = helper.make_node(op, [i[0] if i else "" for i in inputs], names, **{k: v for k, v in attributes.items() if v is not None})
        return self.append([node], inputs, names, keep, types)

    def imports(self):
        return [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, v) for d, v in self.versions.items()]

    def alone(self, nodes, inputs, names):
        """The model of some nodes, and the values that it takes from outside."""
        given, constants, seen = [], [], set()
        for i in inputs:
            if not i or i[0] in seen:
                continue
            seen.add(i[0])
            if i[0] in self.initializers:
                constants.append(numpy_helper.from_array(self.initializers[i[0]], i[0]))
            else:
                given.append(i)
        graph = helper.make_graph(nodes, "alone", [described(n, self.inputs[n]) if d == "map" else helper.make_tensor_value_info(n, ELEMENT[d], s) for n, d, s in given],
                                  [onnx.ValueInfoProto(name=n) for n in names], constants)
        model = helper.make_model(graph, opset_imports=self.imports())
        model.ir_version = 10
        return model, given

    def append(self, nodes, inputs, names, keep=True, types=None):
        """Appends nodes (several where what is between them is no tensor) and their outputs of the given names."""
        model, _ = self.alone(nodes, inputs, names)
        try:
            for node in nodes:
                if any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
                    allowed(node.op_type, self.opset, node.domain)  # the check knows no names from outside of a body
                elif types is None or onnx.defs.has(node.op_type, node.domain):
                    checker.check_node(node, self.context())
            if types is None:
                model = shape_inference.infer_shapes(model, True, True, True)
        except Exception as e:
            raise Impossible from e
        made, sizes = [], True
        for o, known in zip(model.graph.output, types or [None] * len(names)):
            if known:
                made.append((o.name, *known))
                continue
            t = o.type.tensor_type
            if t.elem_type not in NAME or not t.HasField("shape"):
                raise Impossible
            shape = [d.dim_value if d.HasField("dim_value") else -1 for d in t.shape.dim]
            sizes = sizes and -1 not in shape
            made.append((o.name, NAME[t.elem_type], shape))
        if sizes and any(np.prod(s, dtype=np.int64) > 60000 for _, _, s in made):
            raise Impossible
        self.nodes.extend(nodes)
        (self.values if sizes and keep else self.unknown).extend(made)
        return made

    def context(self):
        out = checker.DEFAULT_CONTEXT.__class__()
        out.ir_version = 10
        out.opset_imports = {i.domain: i.version for i in self.imports()}
        return out

    def proto(self, extra=1):
        for v in [v for v in self.values if v[1] in NARROW and not any(v[0] in reads(n) for n in self.nodes)]:
            self.add("Cast", [v], to=TensorProto.FLOAT)  # no engine gives these
        for v in [v for v in self.unknown if v[1] in NARROW]:
            name = self.fresh()
            self.nodes.append(helper.make_node("Cast", [v[0]], [name], to=TensorProto.FLOAT))
            self.unknown[self.unknown.index(v)] = (name, "float32", v[2])
        used = {i for n in self.nodes for i in reads(n)}
        made = [v for v in self.values if v[0] not in self.inputs]
        outputs = [v for v in made if v[0] not in used]
        outputs += [v for v in made if v[0] in used and v[1] not in NARROW and self.chance(0.05 * extra)]
        outputs += self.unknown
        constants = {n: a for n, a in self.initializers.items() if n in used}
        as_nodes = [n for n in constants if self.chance(0.1)]
        nodes = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(constants[n], n)) for n in as_nodes]
        graph = helper.make_graph(
            nodes + self.nodes, "random", [described(n, a) for n, a in self.inputs.items() if n in used],
            [helper.make_tensor_value_info(n, ELEMENT[d], [x if x >= 0 else None for x in s]) for n, d, s in outputs] + [onnx.ValueInfoProto(name=n) for n in self.maps],
            [numpy_helper.from_array(a, n) for n, a in constants.items() if n not in as_nodes])
        domains = {n.domain for n in self.nodes} | {m.domain for n in self.nodes for a in n.attribute for m in a.g.node}
        model = helper.make_model(graph, opset_imports=[i for i in self.imports() if i.domain == "" or i.domain in domains], producer_name="random")
        model.ir_version = 10
        return model, {n: a for n, a in self.inputs.items() if n in used}


def can_broadcast(a, b):
    a, b = list(a), list(b)
    n = max(len(a), len(b))
    a, b = [1] * (n - len(a)) + a, [1] * (n - len(b)) + b
    if not all(x == y or x == 1 or y == 1 for x, y in zip(a, b)):
        return False
    return np.prod([0 if 0 in (x, y) else max(x, y) for x, y in zip(a, b)], dtype=np.int64) <= 20000


def attempt(m, build):
    """Whether the builder could add its nodes; nothing stays of one that could not."""
    before = (len(m.nodes), len(m.values), len(m.unknown), dict(m.inputs), dict(m.initializers), len(m.maps))
    try:
        build(m)
        return True
    except Impossible:
        del m.nodes[before[0]:], m.values[before[1]:], m.unknown[before[2]:], m.maps[before[5]:]
        m.inputs, m.initializers = before[3], before[4]
        return False


def random_model(seed, nodes=None):
    from tables import TABLE  # the tables need Model's names
    m = Model(seed)
    wanted = nodes or m.pick([1, 1, 2, 3, 4, 6, 8, 12, 20, 40])
    names = sorted(TABLE)
    focus = [m.pick(names) for _ in range(4)]
    tries = 0
    while len(m.nodes) < wanted and tries < 40 * wanted + 100:
        tries += 1
        attempt(m, TABLE[m.pick(focus if m.chance(0.3) else names)])
    return m.proto()
