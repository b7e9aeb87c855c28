# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors of the prelude, natural numbers, and values of data types, on the virtual machine and the interpreter."""
import itertools
import numpy as np
import tvm
import tvm.testing
from harness import program, raises, numbers
from tvm import relay
from tvm.relay import testing, transform
from tvm.relay.backend.interpreter import ConstructorValue
from tvm.relay.prelude import Prelude, StaticTensorArrayOps, TensorArrayOps
from tvm.relay.testing import count as count_, make_nat_expr, make_nat_value, run_infer_type


def to_list(mod, o, dtype="float32"):
    _, tensor_nil, _, _, _, _, _, _, _ = mod.get_type(f"tensor_{dtype}_t")
    if isinstance(o, tvm.nd.NDArray):
        return [o.numpy().tolist()]
    if len(o) == 0:
        return [0] if tensor_nil.tag == o.tag else []
    return [v for f in o for v in to_list(mod, f, dtype)]


def check(mod, expected, *args, dtype="float32"):
    for kind in ("vm", "debug"):
        out = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*args)
        got = to_list(mod, out, dtype)
        assert len(got) == len(expected), (got, expected)
        for g, e in zip(got, expected):
            np.testing.assert_allclose(g, e)


def fresh():
    mod = tvm.IRModule()
    return mod, Prelude(mod)


@program("float32", "int32")
def arrays_of_nothing(dtype):
    mod, p = fresh()
    l = relay.var("l")
    mod["main"] = relay.Function([l], p.get_global_var("tensor_array", dtype)(l))
    check(mod, [0, 0, 0, 0, 0], 5, dtype=dtype)


@program("float32", "int32")
def read_nothing(dtype):
    mod, p = fresh()
    l, i = relay.var("l"), relay.var("i")
    mod["main"] = relay.Function([l, i], p.get_global_var("tensor_array_read", dtype)(p.get_global_var("tensor_array", dtype)(l), i))
    check(mod, [0], 1, 0, dtype=dtype)
    check(mod, [0], 5, 1, dtype=dtype)


@program("float32", "int32", "float64")
def written(dtype):
    mod, p = fresh()
    tensor_t = p.get_type("tensor_t", dtype)
    v1, v2 = relay.var("v1"), relay.var("v2")
    tensor_array = p.get_global_var("tensor_array", dtype)
    write = p.get_global_var("tensor_array_write", dtype)
    init = tensor_array(relay.const(2))
    a1 = write(init, relay.const(0), v1)
    a2 = write(a1, relay.const(1), v2)
    mod["main"] = relay.Function([v1, v2], a2)
    t1 = p.get_tensor_ctor("tensor1", dtype)
    x, y = relay.var("x", shape=(2,), dtype=dtype), relay.var("y", shape=(2,), dtype=dtype)
    mod["main"] = relay.Function([x, y], write(write(tensor_array(relay.const(2)), relay.const(0), t1(x)), relay.const(1), t1(y)))
    a, b = np.array([1, 2], dtype), np.array([3, 4], dtype)
    check(mod, [a, b], a, b, dtype=dtype)


@program("float32", "int32")
def unstacked(dtype):
    mod, p = fresh()
    unstack = p.get_global_var("tensor_array_unstack_tensor1", dtype)
    v = relay.var("v", shape=(relay.Any(),), dtype=dtype)
    mod["main"] = relay.Function([v], unstack(v))
    a = np.random.RandomState(1).randint(0, 9, (3,)).astype(dtype)
    check(mod, list(a), a, dtype=dtype)
    mod, p = fresh()
    unstack = p.get_global_var("tensor_array_unstack_tensor2", dtype)
    v = relay.var("v", shape=(relay.Any(), relay.Any()), dtype=dtype)
    mod["main"] = relay.Function([v], unstack(v))
    a = np.arange(6).reshape(2, 3).astype(dtype)
    check(mod, list(a), a, dtype=dtype)


@program("float32", "int32")
def taken(dtype):
    mod, p = fresh()
    take = p.get_global_var("tensor_take", dtype)
    t2 = p.get_tensor_ctor("tensor2", dtype)
    v, lower, upper = relay.var("v", shape=(relay.Any(), relay.Any()), dtype=dtype), relay.var("lower", "int32"), relay.var("upper", "int32")
    mod["main"] = relay.Function([v, lower, upper], take(t2(v), lower, upper))
    a = np.arange(20).reshape(10, 2).astype(dtype)
    check(mod, [a[2:5]], a, np.array(2, "int32"), np.array(5, "int32"), dtype=dtype)


@program("float32", "int32")
def concatenated_pairs(dtype):
    mod, p = fresh()
    concat = p.get_global_var("tensor_concatenate", dtype)
    t1 = p.get_tensor_ctor("tensor1", dtype)
    a, b = relay.var("a", shape=(relay.Any(),), dtype=dtype), relay.var("b", shape=(relay.Any(),), dtype=dtype)
    mod["main"] = relay.Function([a, b], concat(t1(a), t1(b)))
    x, y = np.array([1, 2], dtype), np.array([3], dtype)
    check(mod, [[1, 2, 3]], x, y, dtype=dtype)


@program("float32", "int32")
def expanded(dtype):
    mod, p = fresh()
    expand = p.get_global_var("tensor_expand_dims", dtype)
    t1 = p.get_tensor_ctor("tensor1", dtype)
    v = relay.var("v", shape=(relay.Any(),), dtype=dtype)
    mod["main"] = relay.Function([v], expand(t1(v)))
    a = np.array([1, 2], dtype)
    check(mod, [a[None]], a, dtype=dtype)


@program("float32", "int32")
def stacked(dtype):
    mod, p = fresh()
    tensor_array, write, stack, scatter, unstack = (p.get_global_var(n, dtype) for n in ("tensor_array", "tensor_array_write", "tensor_array_stack", "tensor_array_scatter", "tensor_array_unstack_tensor1"))
    v = relay.var("v", shape=(relay.Any(),), dtype=dtype)
    init = tensor_array(relay.const(3))
    scattered = scatter(init, relay.const([0, 1, 2]), unstack(v))
    mod["main"] = relay.Function([v], stack(scattered))
    a = np.array([5, 6, 7], dtype)
    check(mod, [[5, 6, 7]], a, dtype=dtype)


@program("float32", "int32")
def scattered(dtype):
    mod, p = fresh()
    tensor_array, scatter, write = (p.get_global_var(n, dtype) for n in ("tensor_array", "tensor_array_scatter", "tensor_array_write"))
    t1 = p.get_tensor_ctor("tensor1", dtype)
    v1, v2 = (relay.var(n, shape=(2,), dtype=dtype) for n in ("v1", "v2"))
    idx = relay.var("i", shape=(2,), dtype="int32")
    values = write(write(tensor_array(relay.const(2)), relay.const(0), t1(v1)), relay.const(1), t1(v2))
    mod["main"] = relay.Function([v1, v2, idx], scatter(tensor_array(relay.const(3)), idx, values))
    a, b = np.array([1, 2], dtype), np.array([3, 4], dtype)
    check(mod, [b, 0, a], a, b, np.array([2, 0], "int32"), dtype=dtype)


@program("float32", "int32")
def split_lists(dtype):
    mod, p = fresh()
    tensor_array, split = p.get_global_var("tensor_array", dtype), p.get_global_var("tensor_array_split", dtype)
    t2 = p.get_tensor_ctor("tensor2", dtype)
    v = relay.var("v", shape=(relay.Any(), relay.Any()), dtype=dtype)
    lengths = relay.var("n", shape=(2,), dtype="int32")
    mod["main"] = relay.Function([v, lengths], split(tensor_array(relay.const(2)), t2(v), lengths))
    a = np.arange(12).reshape(4, 3).astype(dtype)
    check(mod, [a[:1], a[1:]], a, np.array([1, 3], "int32"), dtype=dtype)


@program("float32", "int32")
def concatenated_lists(dtype):
    mod, p = fresh()
    tensor_array, write, concat = (p.get_global_var(n, dtype) for n in ("tensor_array", "tensor_array_write", "tensor_array_concat"))
    t1 = p.get_tensor_ctor("tensor1", dtype)
    v1, v2 = relay.var("v1", shape=(2,), dtype=dtype), relay.var("v2", shape=(3,), dtype=dtype)
    mod["main"] = relay.Function([v1, v2], concat(write(write(tensor_array(relay.const(2)), relay.const(0), t1(v1)), relay.const(1), t1(v2))))
    a, b = np.array([1, 2], dtype), np.array([3, 4, 5], dtype)
    check(mod, [[1, 2, 3, 4, 5]], a, b, dtype=dtype)


@program(("float32", (2, 3)), ("int32", (1,)), ("float32", ()))
def static_names(dtype, shape):
    mod, p = fresh()
    ops = StaticTensorArrayOps(p, dtype, shape)
    ops.register()
    for name in ("tensor_array", "tensor_array_read", "tensor_array_write", "tensor_concatenate" if shape else "tensor_array_read"):
        assert p.get_global_var_static(name, dtype, shape) == ops.get_global_var(name)
    ctor = p.get_tensor_ctor_static("tensor_constructor", dtype, shape)
    assert ctor == ops.get_ctor("tensor_constructor")
    assert p.get_type_static("tensor_t", dtype, shape) is not None


@program(("float32", (2, 3)), ("int32", (2,)))
def static_reads_and_writes(dtype, shape):
    mod, p = fresh()
    ops = StaticTensorArrayOps(p, dtype, shape)
    ops.register()
    make, write, read = (p.get_global_var_static(n, dtype, shape) for n in ("tensor_array", "tensor_array_write", "tensor_array_read"))
    ctor = p.get_tensor_ctor_static("tensor_constructor", dtype, shape)
    v = relay.var("v", shape=shape, dtype=dtype)
    ops.define_tensor_get_data(shape)
    get = p.get_global_var_static("tensor_get_data", dtype, shape)
    mod["main"] = relay.Function([v], get(read(write(make(relay.const(2)), relay.const(1), ctor(v)), relay.const(1))))
    a = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    for kind in ("vm", "debug"):
        np.testing.assert_array_equal(relay.create_executor(kind, mod=mod).evaluate()(a).numpy(), a)


@program("float32", "int32")
def static_scatter_gather(dtype):
    shape = (2,)
    mod, p = fresh()
    ops = StaticTensorArrayOps(p, dtype, shape)
    ops.register()
    make, write, gather = (p.get_global_var_static(n, dtype, shape) for n in ("tensor_array", "tensor_array_write", "tensor_array_gather"))
    ctor = p.get_tensor_ctor_static("tensor_constructor", dtype, shape)
    v1, v2 = (relay.var(n, shape=shape, dtype=dtype) for n in ("v1", "v2"))
    i = relay.var("i", shape=(relay.Any(),), dtype="int32")
    mod["main"] = relay.Function([v1, v2, i], gather(write(write(make(relay.const(2)), relay.const(0), ctor(v1)), relay.const(1), ctor(v2)), i))
    mod = transform.InferType()(mod)
    a, b = np.array([1, 2], dtype), np.array([3, 4], dtype)
    out = relay.create_executor("vm", mod=mod).evaluate()(a, b, np.array([1, 0, 1], "int32"))
    np.testing.assert_array_equal(out[0].numpy(), [[3, 4], [1, 2], [3, 4]])


# ---- natural numbers and lists
class World:
    def __init__(self):
        self.mod = tvm.IRModule()
        self.p = Prelude(self.mod)
        testing.nat.add_nat_definitions(self.p)
        self.nat, self.z, self.s = self.mod.get_type("nat")
        self.l, self.cons, self.nil = self.mod.get_type("List")
        self.opt, self.some, self.none = self.mod.get_type("Option")
        self.tree, self.rose = self.mod.get_type("Tree")

    def g(self, name):
        return self.mod.get_global_var(name)

    def eval(self, e):
        return relay.create_executor(device=tvm.cpu(), target="llvm", mod=self.mod).evaluate(e)

    def count(self, e):
        return count_(self.p, e)

    def list(self, v):
        out = []
        while v.constructor.name_hint == "Cons":
            out.append(v.fields[0])
            v = v.fields[1]
        return out

    def of(self, *values):
        r = self.nil()
        for v in reversed(values):
            r = self.cons(v, r)
        return r


@program
def nat_values():
    w = World()
    assert w.count(make_nat_value(w.p, 10)) == 10
    assert w.count(w.eval(w.s(w.s(w.z())))) == 2
    assert w.count(w.eval(make_nat_expr(w.p, 4))) == 4
    assert isinstance(make_nat_value(w.p, 2), ConstructorValue)


@program
def nat_functions():
    w = World()
    assert w.count(w.eval(w.g("nat_double")(make_nat_expr(w.p, 3)))) == 6
    assert w.count(w.eval(w.g("nat_add")(make_nat_expr(w.p, 3), make_nat_expr(w.p, 10)))) == 13
    f = w.mod[w.g("nat_iterate")]
    assert f.ret_type is not None
    res = w.eval(w.g("nat_iterate")(w.g("nat_double"), make_nat_expr(w.p, 3))(make_nat_expr(w.p, 2)))
    assert w.count(res) == 16


@program
def list_constructors_typed():
    w = World()
    test = relay.GlobalVar("test_consz")
    w.mod[test] = relay.Function([], w.cons(w.z(), w.nil()))
    w.mod = transform.InferType()(w.mod)
    assert w.mod["test_consz"].checked_type.ret_type == w.l(w.nat())
    assert w.mod["test_consz"].body.checked_type == w.l(w.nat())


@program
def lists_of_nats():
    w = World()
    n = lambda k: make_nat_expr(w.p, k)
    l = w.of(n(1), n(2), n(3))
    assert w.count(w.eval(w.g("hd")(l))) == 1 and [w.count(v) for v in w.list(w.eval(w.g("tl")(l)))] == [2, 3]
    assert w.count(w.eval(w.g("nth")(l, relay.const(2)))) == 3
    assert w.eval(w.g("length")(l)).numpy() == 3
    x, y = relay.var("x", w.nat()), relay.var("y", w.nat())
    double = relay.Function([x], w.s(x))
    assert [w.count(v) for v in w.list(w.eval(w.g("map")(double, l)))] == [2, 3, 4]
    add = relay.Function([x, y], w.g("nat_add")(x, y))
    assert w.count(w.eval(w.g("foldl")(add, n(0), l))) == 6
    assert w.count(w.eval(w.g("foldr1")(add, l))) == 6
    w1 = w.eval(w.g("rev")(l))
    assert [w.count(v) for v in w.list(w1)] == [3, 2, 1]


@program
def unfolds():
    w = World()
    x = relay.var("x", "int32")
    body = relay.If(relay.greater(x, relay.const(0)), w.some(relay.Tuple([relay.subtract(x, relay.const(1)), x])), w.none())
    step = relay.Function([x], body)
    assert [int(v.numpy()) for v in w.list(w.eval(w.g("unfoldr")(step, relay.const(3))))] == [3, 2, 1]
    body = relay.If(relay.greater(x, relay.const(0)), w.some(relay.Tuple([relay.subtract(x, relay.const(1)), x])), w.none())
    step = relay.Function([x], body)
    assert [int(v.numpy()) for v in w.list(w.eval(w.g("unfoldl")(step, relay.const(3))))] == [1, 2, 3]


@program
def trees_mapped():
    w = World()
    x = relay.var("x", "int32")
    t = w.rose(relay.const(1), w.of(w.rose(relay.const(2), w.nil()), w.rose(relay.const(3), w.nil())))
    r = w.eval(w.g("tmap")(relay.Function([x], x + relay.const(1)), t))
    assert int(r.fields[0].numpy()) == 2 and [int(c.fields[0].numpy()) for c in w.list(r.fields[1])] == [3, 4]
    assert w.eval(w.g("size")(t)).numpy() == 3


@program
def optional_matching():
    w = World()
    x, y, v = relay.Var("x"), relay.Var("y"), relay.Var("v")
    condense = relay.Function([x, y], relay.Match(x, [relay.Clause(relay.PatternConstructor(w.some, [relay.PatternVar(v)]), w.cons(v, y)), relay.Clause(relay.PatternConstructor(w.none), y)]))
    res = w.eval(w.g("foldr")(condense, w.nil(), w.of(w.some(make_nat_expr(w.p, 3)), w.none(), w.some(make_nat_expr(w.p, 1)))))
    assert [w.count(k) for k in w.list(res)] == [3, 1]


@program
def wildcards_and_order():
    w = World()
    x, v = relay.Var("x", w.l(w.nat())), relay.Var("v")
    wild = relay.Function([x], relay.Match(x, [relay.Clause(relay.PatternWildcard(), w.cons(w.z(), w.nil())), relay.Clause(relay.PatternConstructor(w.cons, [relay.PatternWildcard(), relay.PatternWildcard()]), w.nil()), relay.Clause(relay.PatternConstructor(w.nil), w.nil())]))
    assert len(w.list(w.eval(wild(w.of(make_nat_expr(w.p, 3)))))) == 1
    var = relay.Function([v], relay.Match(v, [relay.Clause(relay.PatternVar(relay.Var("n")), relay.const(1))]))
    assert w.eval(var(w.z())).numpy() == 1


@program
def nested_matches():
    w = World()
    a = relay.TypeVar("a")
    x = relay.Var("x")
    y, u, v, k = relay.Var("y"), relay.Var("w"), relay.Var("v"), relay.Var("k")
    flatten = relay.GlobalVar("flatten")
    inner = relay.Match(y, [relay.Clause(relay.PatternConstructor(w.nil), flatten(v)), relay.Clause(relay.PatternConstructor(w.cons, [relay.PatternVar(u), relay.PatternVar(k)]), w.cons(u, flatten(w.cons(k, v))))])
    w.mod[flatten] = relay.Function([x], relay.Match(x, [relay.Clause(relay.PatternConstructor(w.nil), w.nil()), relay.Clause(relay.PatternConstructor(w.cons, [relay.PatternVar(y), relay.PatternVar(v)]), inner)]), w.l(a), [a])
    first, second = w.of(*(make_nat_expr(w.p, n) for n in (1, 2))), w.of(make_nat_expr(w.p, 3))
    assert [w.count(n) for n in w.list(w.eval(flatten(w.of(first, second))))] == [1, 2, 3]


@program
def ids_and_composition():
    w = World()
    n = relay.Var("n")
    inc = relay.Function([n], w.s(n))
    assert w.count(w.eval(w.g("compose")(inc, w.g("nat_double"))(make_nat_expr(w.p, 2)))) == 5
    assert w.count(w.eval(w.g("iterate")(inc, relay.const(4))(make_nat_expr(w.p, 2)))) == 6
    assert w.count(w.eval(w.g("id")(make_nat_expr(w.p, 2)))) == 2


@program("List", "Option", "Tree")
def types_of_the_prelude(name):
    mod, p = fresh()
    got = mod.get_type(name)
    assert got[0].name_hint == name and all(isinstance(c, relay.Constructor) for c in got[1:])
    assert mod.get_global_type_var(name) == got[0]
    assert [c.name_hint for c in mod[got[0]].constructors] == [c.name_hint for c in got[1:]]
    assert [c.tag & 0xFF for c in got[1:]] == list(range(len(got) - 1))
