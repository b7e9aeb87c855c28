# SPDX-License-Identifier: Apache-2.0
"""IR nodes, containers, reflection, exact texts, graph executors and interpreters as scripts use them."""
import json
import re
import numpy as np
import tvm
import tvm.testing
from harness import program, raises, numbers
from tvm import relay, te, tir
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor
from tvm.ir import IRModule
from tvm.ir.attrs import DictAttrs
from tvm.relay import expr as _expr, transform
from tvm.relay.backend import Executor, Runtime
from tvm.relay.op import op as _op
from tvm.relay.testing import run_infer_type, run_opt_pass
from tvm.relay.scope_builder import ScopeBuilder
from tvm.relay.prelude import Prelude

SEMVER = '#[version = "0.0.5"]\n'
eq = tvm.ir.assert_structural_equal


# ---- reflection
@program
def sums_kept_in_json():
    x, y = tir.const(1, "int32"), tir.const(10, "int32")
    z = tir.Add(x, y)
    z = tir.Add(z, z)
    zz = tvm.ir.load_json(tvm.ir.save_json(z))
    eq(zz, z, map_free_vars=True)


@program(*[(d, v) for d in ("float16", "float32", "float64") for v in (np.inf, -np.inf, np.nan)])
def unusual_numbers(dtype, value):
    x = tir.const(value, dtype)
    back = tvm.ir.load_json(tvm.ir.save_json(x))
    eq(x, back) if not np.isnan(value) else None
    assert back.dtype == dtype and (back.value == value or np.isnan(back.value))


@program("int8", "uint8", "int32", "int64", "float16", "float32", "bfloat16")
def limits(dtype):
    if dtype == "bfloat16":
        return
    for make in (te.min_value, te.max_value):
        v = make(dtype)
        eq(tvm.ir.load_json(tvm.ir.save_json(v)), v)


@program
def maps_of_nodes():
    x, y = tir.const(1, "int32"), tir.const(10, "int32")
    z = tir.Add(x, y)
    smap = tvm.runtime.convert({"z": z, "x": x})
    arr = tvm.ir.load_json(tvm.ir.save_json(tvm.runtime.convert([smap])))
    assert len(arr) == 1 and arr[0]["z"].a == arr[0]["x"]
    eq(arr, [smap], map_free_vars=True)


@program
def functions_as_nodes():
    @tvm.register_func("trial.env_func", override=True)
    def one_more(x):
        return x + 1
    f = tvm.ir.EnvFunc.get("trial.env_func")
    assert f.name == "trial.env_func" and f(1) == 2
    back = tvm.ir.load_json(tvm.ir.save_json([f]))
    assert back[0].name == f.name and back[0](1) == 2
    x = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4), func=f)
    x = tvm.ir.load_json(tvm.ir.save_json(x))
    assert isinstance(x.func, tvm.ir.EnvFunc) and x.func(10) == 11
    assert x.name == "xx" and x.padding[0].value == 3


@program
def strings_as_nodes():
    s = tvm.runtime.String("xy\x01z")
    assert tvm.ir.load_json(tvm.ir.save_json(s)) == s
    back = tvm.ir.load_json(tvm.ir.save_json([s]))
    assert back[0] == s and isinstance(back[0], str)


@program
def configurations_as_nodes():
    cfg = tvm.transform.PassContext(opt_level=1, config={"tir.UnrollLoop": {"auto_max_step": 10}})
    assert cfg.opt_level == 1 and cfg.config["tir.UnrollLoop"].auto_max_step == 10
    assert cfg.config["tir.UnrollLoop"].explicit_unroll == True  # noqa: E712
    raises(AttributeError, lambda: tvm.transform.PassContext(config={"tir.UnrollLoop": {"invalid": 1}}))
    raises(AttributeError, lambda: tvm.transform.PassContext(config={"inavlid-opt": True}))


@program
def arrays_of_numbers_as_nodes():
    a = tvm.nd.array(np.random.rand(4).astype("float32"))
    b = tvm.ir.load_json(tvm.ir.save_json(a))
    eq(a, b)
    np.testing.assert_array_equal(a.numpy(), b.numpy())
    m = {"a": a, "b": tvm.nd.array(np.arange(3))}
    back = tvm.ir.load_json(tvm.ir.save_json(m))
    eq(m, back)
    assert isinstance(back["a"], tvm.nd.NDArray)
    assert not tvm.ir.structural_equal(a, tvm.nd.array(np.zeros(4, "float32")))


@program
def directories_of_objects():
    x = tir.const(1, "int32")
    assert set(dir(x.__class__)) <= set(dir(x))
    a = tvm.runtime.convert([1, 2, 3])
    assert dir(a)
    assert getattr(a, "type_key") == "Array"
    assert not hasattr(a, "nothing_of_this_name")


# ---- containers
@program
def containers_in_python():
    a = tvm.runtime.convert(["a", "b", "c"])
    assert "a" in a
    assert [str(x) for x in a[1:]] == ["b", "c"]
    amap = tvm.runtime.convert({te.var("a"): 2})
    assert len(amap) == 1 and "a" not in amap
    smap = tvm.runtime.convert({"a": 2, "b": 3})
    assert "a" in smap and smap["a"].value == 2 and len(smap) == 2 and sorted(smap.keys()) == ["a", "b"] and smap.get("c", 5) == 5
    back = tvm.ir.load_json(tvm.ir.save_json(smap))
    assert back["b"].value == 3
    x = np.array([1, 2, 3], "float32")
    arr = tvm.runtime.convert([tvm.nd.array(x), tvm.nd.array(x)])
    assert isinstance(arr[1], tvm.nd.NDArray)
    assert (a + ["d"]) is not None


@program
def adts_of_the_runtime():
    from tvm.runtime import container as _container
    a = tvm.nd.array([0, 2, 1])
    b = tvm.nd.array([1.0])
    fields = [a, b]
    adt = _container.ADT(0, [fields[0], fields[1]])
    assert len(adt) == 2 and adt[-1] is not None and adt[0:2][-1] is not None and adt.tag == 0
    np.testing.assert_equal(adt[0].numpy(), [0, 2, 1])
    raises(IndexError, lambda: adt[2])
    t = _container.tuple_object([a, b])
    assert t.tag == 0 and len(t) == 2
    np.testing.assert_equal(t[-1].numpy(), [1.0])
    s = tvm.runtime.container.ShapeTuple([2, 3])
    assert tuple(s) == (2, 3)
    text = _container.String("hello")
    assert text.startswith("he") and "ll" in text and text + "!" == "hello!" and hash(text) == hash("hello") and text == "hello" and isinstance(text, str) and text[0] == "h" and len(text) == 5


# ---- types of ir
@program
def ir_types():
    p = tvm.ir.PrimType("int32")
    assert isinstance(p, tvm.ir.PrimType) and p.dtype == "int32"
    raises(Exception, lambda: tvm.ir.TensorType("xx", "xx"))
    t = tvm.ir.TensorType(tvm.runtime.convert([1, 2, 3]), "float32")
    assert t.dtype == "float32" and [int(d) for d in t.shape] == [1, 2, 3] and t.span is None
    assert list(t.concrete_shape) == [1, 2, 3]
    str(t)
    v = tvm.ir.TypeVar("name", tvm.ir.TypeKind.Type)
    assert v.kind == tvm.ir.TypeKind.Type
    params, args = tvm.runtime.convert([]), tvm.runtime.convert([])
    f = tvm.ir.FuncType(args, None, params, tvm.runtime.convert([]))
    assert len(f.type_params) == 0 and len(f.type_constraints) == 0
    tp = tvm.ir.TypeVar("tp")
    tf = tvm.ir.FuncType(tvm.runtime.convert([]), tvm.ir.TupleType([]), tvm.runtime.convert([]), tvm.runtime.convert([]))
    tt = tvm.ir.TensorType(tvm.runtime.convert([1, 2, 3]), "float32")
    tup = tvm.ir.TupleType([tp, tf, tt])
    assert len(tup.fields) == 3 and tup.fields[0] == tp and tup.fields[2] == tt
    func = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")
    attrs = tvm.ir.make_node("attrs.TestAttrs", name="attr", padding=(3, 4))
    tr = tvm.ir.TypeRelation(func, tvm.runtime.convert([tp, tf, tt, tup]), 2, attrs)
    assert list(tr.args) == [tp, tf, tt, tup] and tr.num_inputs == 2
    str(tr)


@program
def equal_relations():
    bcast, ident = (tvm.ir.EnvFunc.get(f"tvm.relay.type_relation.{n}") for n in ("Broadcast", "Identity"))
    t1, t2, t3 = (relay.TypeVar(n) for n in ("v1", "v2", "v3"))
    attr = tvm.ir.make_node("attrs.TestAttrs", name="attr", padding=(3, 4))
    attr_same = tvm.ir.make_node("attrs.TestAttrs", name="attr", padding=(3, 4))
    attr_diff = tvm.ir.make_node("attrs.TestAttrs", name="attr", padding=(3, 4, 3, 4))
    tr = relay.TypeRelation(bcast, [t1, t2], 1, attr)
    se = tvm.ir.structural_equal
    assert se(tr, relay.TypeRelation(bcast, [t1, t2], 1, attr)) and se(tr, relay.TypeRelation(bcast, [t1, t2], 1, attr_same))
    assert not se(tr, relay.TypeRelation(ident, [t1, t2], 1, attr)) and not se(tr, relay.TypeRelation(bcast, [t1, t3], 1, attr))
    assert not se(tr, relay.TypeRelation(bcast, [t1, t2], 2, attr)) and not se(tr, relay.TypeRelation(bcast, [t1, t2], 1, attr_diff))
    f = relay.FuncType([t1], t2, [t1, t2], [tr])
    assert se(f, relay.FuncType([t1], t2, [t1, t2], [tr])) and not se(f, relay.FuncType([t1], t2, [t1, t2], []))


# ---- own operators
def _own(name, relation="Identity", function=None, inputs=1):
    _op.register(name, "an operator of a script")
    _op.get(name).set_num_inputs(inputs)
    for i in range(inputs):
        _op.get(name).add_argument(f"data_{i}", "Tensor", "an operand")
    _op.get(name).add_type_rel(relation, function) if function else _op.get(name).add_type_rel(relation)
    _op.get(name).set_support_level(1)
    _op.register_pattern(name, _op.OpPattern.ELEMWISE)
    _op.register_stateful(name, False)
    return lambda *args: relay.Call(_op.get(name), list(args))


@program
def own_operator_with_a_known_relation():
    log = _own("trial.log1")
    assert _op.get("trial.log1").num_inputs == 1 and _op.get("trial.log1").get_attr("TOpPattern") == _op.OpPattern.ELEMWISE and _op.get("trial.log1").get_attr("TOpIsStateful") is False or not _op.get("trial.log1").get_attr("TOpIsStateful")
    tp = relay.TensorType((10, 10), "float32")
    x = relay.var("x", tp)
    sb = ScopeBuilder()
    t1 = sb.let("t1", log(x))
    t2 = sb.let("t2", relay.add(t1, x))
    sb.ret(t2)
    f = run_infer_type(relay.Function([x], sb.get()))
    assert f.checked_type == relay.FuncType([tp], tp)
    assert "trial.log1(%x)" in f.astext()


@program
def own_operator_that_broadcasts():
    add = _own("trial.add1", "Broadcast", inputs=2)
    x, y = relay.var("x", shape=(10, 4)), relay.var("y", shape=(5, 10, 1))
    assert run_infer_type(relay.Function([x, y], add(x, y))).ret_type == relay.TensorType((5, 10, 4))


@program
def own_operator_with_its_own_relation():
    def relation(arg_types, attrs):
        assert len(arg_types) == 1, "type relation arg number mismatch!"
        if attrs:
            assert isinstance(attrs, DictAttrs)
        return relay.TensorType(arg_types[0].shape, arg_types[0].dtype)
    log = _own("trial.log2", "trial.log2", relation)
    x = relay.var("x", shape=(3,))
    assert run_infer_type(relay.Function([x], log(x))).ret_type == relay.TensorType((3,))


@program
def own_relation_that_fails():
    def relation(arg_types, attrs):
        assert len(arg_types) == 2, "type relation arg number mismatch!"
        return None
    log = _own("trial.log3", "trial.log3", relation)
    x = relay.var("x", shape=(3,))
    e = raises(AssertionError, lambda: run_infer_type(relay.Function([x], log(x))))
    assert "arg number mismatch" in str(e)


@program
def operators_registered_once():
    _own("trial.log4")
    raises(tvm.error.TVMError, lambda: _op.register("trial.log4", "again"))
    raises(tvm.error.TVMError, lambda: _op.register("nn.relu", "again"))


# ---- exact texts
def astext(p):
    return p.astext()


@program
def order_of_calls_in_text():
    x, y = relay.var("x"), relay.var("y")
    prog = relay.Call(relay.Function([x], x), [relay.Call(relay.Function([y], y), [relay.const(1)])])
    assert astext(prog) == SEMVER + "%0 = fn (%y) {\n  %y\n};\n%1 = %0(1);\n%2 = fn (%x) {\n  %x\n};\n%2(%1)", astext(prog)


@program
def attributes_in_text():
    x = relay.var("x", shape=(2, 3, 4))
    assert "axis=2" in relay.nn.softmax(x, axis=2).astext()
    assert "softmax(%x)" in relay.nn.softmax(x).astext()
    z = relay.expand_dims(x, axis=2)
    assert "axis=2" in z.astext()
    x = relay.var("x")
    assert "softmax(%x, axis=2)" in relay.nn.softmax(x, axis=2).astext(), relay.nn.softmax(x, axis=2).astext()


@program
def constants_of_metadata():
    n = te.size_var("n")
    x, w = relay.var("x", shape=(n, 10, 224, 224)), relay.var("w")
    z = relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), channels=2)
    f = relay.Function([x, w], z)
    text, plain = f.astext(), f.astext(show_meta_data=False)
    assert "channels=2" in text and "channels=2" in plain
    text = relay.const([1, 2, 3]).astext()
    assert "meta[relay.Constant][0]" in text and "#[metadata]" in text


@program
def operators_of_no_operands_in_text():
    assert "zeros(" in relay.op.zeros([], "float32").astext()
    f = run_infer_type(relay.Function([relay.var("x", shape=(3,))], relay.zeros((2,), "int8")))
    assert 'dtype="int8"' in f.astext() and "shape=[2]" in f.astext()


@program
def modules_in_text():
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    z = relay.add(x, y)
    z = relay.add(z, z)
    mod = IRModule()
    mod["myf"] = relay.Function([x, y], z)
    text = mod.astext()
    assert "def @myf" in text and "def @myf" in str(mod) and "add(%0, %0)" in text and "add(%0, %0)" in str(mod)
    assert "/* ty=float32 */" in transform.InferType()(mod).astext()


@program
def if_in_a_let_in_text():
    x, y, cond = relay.var("x", "float32"), relay.var("y", "float32"), relay.var("cond", "bool")
    sb = ScopeBuilder()
    with sb.if_scope(cond):
        v1 = sb.let("v", relay.const(1, "float32"))
        v2 = sb.let("v", x)
        sb.ret(relay.subtract(v1, v2))
    with sb.else_scope():
        v3 = relay.var("v")
        let2 = relay.Let(v3, y, v3)
        sb.ret(relay.add(let2, let2))
    result = sb.get()
    f = relay.Function([x, y, cond], result)
    text = f.astext()
    assert text.count("{") >= 3 and "%cond: bool" in text, text


# ---- executors
@program
def reshapes_that_share():
    x = relay.var("x", shape=(7, 16))
    w = relay.var("w", shape=(7, 16))
    z = relay.reshape(relay.add(x, w), (16, 7))
    lib = relay.build(IRModule.from_expr(relay.Function([x, w], z)), "llvm")
    g = json.loads(lib.get_graph_json())
    gmod = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    a, b = numbers(7, 16), numbers(7, 16, seed=3)
    gmod.set_input("x", a)
    gmod.set_input("w", b)
    gmod.run()
    np.testing.assert_allclose(gmod.get_output(0).numpy(), (a + b).reshape(16, 7), rtol=1e-6)


@program
def nested_tuples_of_a_graph():
    x, y, z = (relay.var(n, shape=(2, 3)) for n in "xyz")
    out = relay.Tuple([x, relay.Tuple([y, z])])
    f = relay.Function([x, y, z], out)
    r = relay.create_executor("graph").evaluate(f)(*[numbers(2, 3, seed=i) for i in range(3)])
    assert len(r) == 2 and len(r[1]) == 2 and r[1][0].numpy().shape == (2, 3)
    f = relay.Function([x, y], relay.TupleGetItem(relay.Tuple([relay.Tuple([x, y]), x]), 0))
    r = relay.create_executor("graph").evaluate(f)(numbers(2, 3), numbers(2, 3, seed=9))
    assert len(r) == 2
    r = relay.create_executor("graph").evaluate(relay.Function([x], relay.Tuple([])))(numbers(2, 3))
    assert len(r) == 0


@program
def graph_executor_interface():
    dname_0, dname_1 = "data_0", "data_1"
    a, b = relay.var(dname_0, shape=(1, 1)), relay.var(dname_1, shape=(1, 1))
    lib = relay.build(IRModule.from_expr(relay.Function([a, b], relay.add(a, b))), "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    assert m.get_input_index(dname_1) == 1 and m.get_input_index(dname_0) == 0 and m.get_input_index("Invalid") == -1
    shape_dict, dtype_dict = m.get_input_info()
    assert isinstance(shape_dict, tvm.container.Map) and tuple(shape_dict["data_0"]) == (1, 1) and dtype_dict["data_1"] == "float32"
    assert m.get_output_index("x") == -1
    assert m.module is not None and m["get_num_outputs"]() == 1
    m.set_input(0, np.ones((1, 1), "float32"))
    m.set_input(1, np.ones((1, 1), "float32"))
    m.run()
    assert m.get_output(0).numpy() == 2
    r = m.benchmark(tvm.cpu(), number=3, repeat=2)
    assert r.mean > 0 and r.std >= 0 and r.min <= r.median <= r.max and len(r.results) == 2 and "mean" in str(r)
    r = m.benchmark(tvm.cpu(), number=1, repeat=1, end_to_end=True, data_0=np.ones((1, 1), "float32"), data_1=np.ones((1, 1), "float32"))
    assert r.mean > 0
    t = m.module.time_evaluator("run", tvm.cpu(), number=2, repeat=3)()
    assert len(t.results) == 3 and t.mean > 0
    y = tvm.nd.empty((1, 1))
    m.get_output(0, y)


@program
def recurrent_cells():
    def gru(x, w):
        zx = relay.nn.dense(x, w)
        zr = relay.split(zx, 2, axis=1)
        return relay.sigmoid(zr[0]) * relay.tanh(zr[1])
    x, w = relay.var("x", shape=(1, 8)), relay.var("w", shape=(16, 8))
    f = relay.Function([x, w], gru(x, w))
    a, b = numbers(1, 8), numbers(16, 8)
    for opt in (0, 2):
        with tvm.transform.PassContext(opt_level=opt):
            lib = relay.build(IRModule.from_expr(f), "llvm")
        m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        m.set_input(x=a, w=b)
        m.run()
        z = a @ b.T
        np.testing.assert_allclose(m.get_output(0).numpy(), 1 / (1 + np.exp(-z[:, :8])) * np.tanh(z[:, 8:]), rtol=1e-5, atol=1e-6)


@program
def devices_as_keys():
    x, w = relay.var("x", shape=(10, 5)), relay.var("w", shape=(1, 5))
    f = relay.Function([x, w], relay.add(x, w))
    params = {"w": tvm.nd.array(numbers(1, 5))}
    lib = relay.build(IRModule.from_expr(f), {tvm.tir.IntImm("int32", tvm.cpu().device_type): "llvm"}, params=params)
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    a = numbers(10, 5)
    m.set_input("x", a)
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), a + params["w"].numpy(), rtol=1e-6)
    m.load_params(relay.save_param_dict(params))
    lib = relay.build(f, target="llvm", params=params, executor=Executor("graph", {"link-params": True}), runtime=Runtime("cpp"))
    assert lib.get_params() is not None


@program
def evaluated_directly():
    ev = lambda e, *a, **k: relay.create_executor(device=tvm.cpu(), target="llvm").evaluate(e)(*a, **k)
    assert relay.create_executor().evaluate(relay.const(1)).numpy() == 1
    assert relay.create_executor().evaluate(relay.Tuple([relay.const(1), relay.const((1, 2, 3)), relay.const([1, 2])]))[1].numpy().tolist() == [1, 2, 3]
    x, y = relay.var("x", "int32"), relay.var("y", "int32")
    assert ev(relay.Function([x, y], x - y), y=np.array(2, "int32"), x=np.array(5, "int32")).numpy() == 3
    raises(Exception, lambda: ev(relay.Function([x, y], x - y), np.array(1, "int32")))
    raises(Exception, lambda: ev(relay.Function([x, y], x - y), np.array(1, "int32"), x=np.array(1, "int32")))
    e = relay.create_executor("debug").evaluate(relay.add(x, relay.const(1)), {x: np.array(4, "int32")})
    assert e.numpy() == 5
    f = relay.Function([x], relay.const(3) * x)
    mod = IRModule.from_expr(f)
    assert relay.create_executor("debug", mod=mod).evaluate()(4).numpy() == 12
    assert relay.create_executor("debug", mod=mod).evaluate(mod.get_global_var("main"))(np.array(2, "int32")).numpy() == 6
    t = relay.var("t", relay.TupleType([relay.TensorType((), "int32"), relay.TensorType((), "int32")]))
    tf = relay.Function([t], relay.TupleGetItem(t, 0))
    for args in ((1, 2), (tvm.nd.array(np.array(1, "int32")), np.array(2, "int32"))):
        assert relay.create_executor("debug").evaluate(tf)(tuple(args)).numpy() == 1
    assert relay.create_executor("debug").evaluate(tf)(tvm.runtime.container.tuple_object([tvm.nd.array(np.array(8, "int32")), tvm.nd.array(np.array(9, "int32"))])).numpy() == 8
    with_mod = relay.create_executor("graph", mod=IRModule.from_expr(relay.Function([x], x)))
    assert with_mod.evaluate()(np.array(7, "int32")).numpy() == 7


@program
def loops_evaluated():
    mod = IRModule({})
    sum_up = relay.GlobalVar("sum_up")
    i, acc = relay.var("i", shape=[], dtype="int32"), relay.var("accum", shape=[], dtype="int32")
    sb = ScopeBuilder()
    with sb.if_scope(relay.equal(i, relay.const(0, "int32"))):
        sb.ret(acc)
    with sb.else_scope():
        sb.ret(relay.Call(sum_up, [relay.subtract(i, relay.const(1, "int32")), relay.add(acc, i)]))
    mod[sum_up] = relay.Function([i, acc], sb.get())
    mod = transform.InferType()(mod)
    for kind in ("debug", "vm"):
        assert relay.create_executor(kind, mod=mod).evaluate(sum_up)(np.array(10, "int32"), np.array(0, "int32")).numpy() == 55
    assert mod["sum_up"].checked_type.ret_type == relay.scalar_type("int32")
