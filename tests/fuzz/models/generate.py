# SPDX-License-Identifier: Apache-2.0
"""Random valid ONNX models: nodes over values of known type, each checked by the format's own shape inference."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSET = 21
FLOATS = ["float32", "float64", "float16"]
SIGNED = ["int8", "int16", "int32", "int64"]
INTEGERS = SIGNED + ["uint8", "uint16", "uint32", "uint64"]
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + ["bool"]
ELEMENT = {name: helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in ALL}
NAME = {v: k for k, v in ELEMENT.items()}


class Impossible(Exception):
    """This operator does not fit what there is; another one is tried."""


def allowed(op, version=OPSET):
    """Dtypes by type variable, of those that numpy has."""
    schema = onnx.defs.get_schema(op, version, "")
    out = {}
    for c in schema.type_constraints:
        out[c.type_param_str] = [t[7:-1].replace("float)", "float32)").replace("double", "float64") for t in c.allowed_type_strs if t.startswith("tensor(")]
        out[c.type_param_str] = [{"float": "float32"}.get(t, t) for t in out[c.type_param_str]]
        out[c.type_param_str] = [t for t in out[c.type_param_str] if t in ELEMENT]
    return out


class Model:
    """A growing graph; values are (name, dtype, shape)."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.values = [], {}, {}, []
        self.unknown = []  # outputs whose sizes depend on data
        self.count = 0

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

    # Values.
    def data(self, dtype, shape, kind="any"):
        r, d = self.random, np.dtype(dtype)
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
        return (name, str(self.initializers[name].dtype), list(self.initializers[name].shape))

    def new(self, dtype, shape, kind="any", fixed=None):
        """A new graph input or initialiser."""
        array = self.data(dtype, tuple(shape), kind)
        if fixed or (fixed is None and self.chance(0.4)):
            return self.constant(array)
        name = self.fresh("x")
        self.inputs[name] = array
        self.values.append((name, str(array.dtype), list(array.shape)))
        return self.values[-1]

    def value(self, dtypes, rank=None, low=0, high=6, test=lambda shape: True, make=None):
        """One that is there (the last ones rather), or a new one."""
        dtypes = [dtypes] if isinstance(dtypes, str) else list(dtypes)
        fits = [v for v in self.values if v[1] in dtypes and (rank is None or len(v[2]) == rank) and low <= len(v[2]) <= high and test(v[2])]
        if fits and self.chance(0.85):
            return fits[-1 - min(int(self.random.exponential(2)), len(fits) - 1)]
        weights = [d for d in dtypes for _ in range(6 if d == "float32" else 1)]
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
    def add(self, op, inputs, outputs=1, keep=True, **attributes):
        """Appends a node when shape inference says that it is valid."""
        names = [self.fresh() for _ in range(outputs)]
        node = helper.make_node(op, [i[0] if i else "" for i in inputs], names, **{k: v for k, v in attributes.items() if v is not None})
        given, constants, seen = [], [], set()
        for i in inputs:
            if not i or i[0] in seen:
                continue
            seen.add(i[0])
            if i[0] in self.initializers:
                constants.append(numpy_helper.from_array(self.initializers[i[0]], i[0]))
            else:
                given.append(helper.make_tensor_value_info(i[0], ELEMENT[i[1]], i[2]))
        graph = helper.make_graph([node], "one", given, [onnx.ValueInfoProto(name=n) for n in names], constants)
        try:
            inferred = shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)]), True, True, True)
        except Exception as e:
            raise Impossible from e
        made, sizes = [], True
        for o in inferred.graph.output:
            t = o.type.tensor_type
            if t.elem_type not in NAME or not t.HasField("shape"):
                raise Impossible
            shape = [d.dim_value if d.HasField("dim_value") else -1 for d in t.shape.dim]
            sizes = sizes and -1 not in shape
            if sizes and np.prod(shape, dtype=np.int64) > 60000:
                raise Impossible
            made.append((o.name, NAME[t.elem_type], shape))
        self.nodes.append(node)
        (self.values if sizes and keep else self.unknown).extend(made)
        return made

    def proto(self, extra=1):
        used = {i for n in self.nodes for i in n.input}
        made = [v for v in self.values if v[0] not in self.inputs]
        outputs = [v for v in made if v[0] not in used]
        outputs += [v for v in made if v[0] in used and self.chance(0.05 * extra)]
        outputs += self.unknown
        graph = helper.make_graph(
            self.nodes, "random", [helper.make_tensor_value_info(n, ELEMENT[str(a.dtype)], a.shape) for n, a in self.inputs.items() if n in used],
            [helper.make_tensor_value_info(n, ELEMENT[d], [x if x >= 0 else None for x in s]) for n, d, s in outputs],
            [numpy_helper.from_array(a, n) for n, a in self.initializers.items() if n in used])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="random")
        model.ir_version = 10
        return model, {n: a for n, a in self.inputs.items() if n in used}


def can_broadcast(a, b):
    a, b = list(a), list(b)
    n = max(len(a), len(b))
    a, b = [1] * (n - len(a)) + a, [1] * (n - len(b)) + b
    if not all(x == y or x == 1 or y == 1 for x, y in zip(a, b)):
        return False
    return np.prod([0 if 0 in (x, y) else max(x, y) for x, y in zip(a, b)], dtype=np.int64) <= 20000


def random_model(seed, nodes=None):
    from operators import TABLE  # the table needs Model's names
    m = Model(seed)
    wanted = nodes or m.pick([1, 1, 2, 3, 4, 6, 8, 12, 20, 40])
    names = sorted(TABLE)
    focus = [m.pick(names) for _ in range(4)]
    tries = 0
    while len(m.nodes) < wanted and tries < 40 * wanted + 100:
        tries += 1
        before = (len(m.nodes), len(m.values), len(m.unknown), dict(m.inputs), dict(m.initializers))
        try:
            TABLE[m.pick(focus if m.chance(0.3) else names)](m)
        except Impossible:
            del m.nodes[before[0]:], m.values[before[1]:], m.unknown[before[2]:]
            m.inputs, m.initializers = before[3], before[4]
    return m.proto()
