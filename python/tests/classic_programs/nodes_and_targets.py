# SPDX-License-Identifier: Apache-2.0
"""Nodes, containers, attributes and modules; targets, devices and what the runtime offers."""
import json
import pickle

import numpy as np
import tvm
import tvm.testing
from tvm import relay, te, tir, nd, runtime, topi
from tvm.contrib import cc, utils
from tvm.ir import Op
from tvm.ir.instrument import PassTimingInstrument, pass_instrument
from tvm.target import Target

from harness import program, raises, numbers


# ---- containers
@program
def arrays_behave_like_lists():
    a = tvm.runtime.convert([1, 2, 3])
    assert len(a) == 3 and a[-1].value == 3 and [v.value for v in a[1:]] == [2, 3] and str(a) == "[1, 2, 3]"
    raises(IndexError, lambda: a[3])
    b = tvm.ir.load_json(tvm.ir.save_json(a))
    assert b[1].value == 2 and isinstance(a, tvm.ir.Array)
    assert [x.value for x in tvm.runtime.convert([1, 2]) + tvm.runtime.convert([3])] == [1, 2, 3]
    back = pickle.loads(pickle.dumps(a))
    assert back[2].value == 3 and dir(a)


@program
def maps_keep_their_items():
    a, b = te.var("a"), te.var("b")
    m = tvm.runtime.convert({a: 2, b: 3})
    assert a in m and len(m) == 2 and m[a].value == 2 and str(dict(m.items())[b]) == "3"
    s = tvm.runtime.convert({"x": 1, "y": "z"})
    assert "x" in s and s["x"].value == 1 and isinstance(s["y"], str) and sorted(s.keys()) == ["x", "y"] and "w" not in s and s.get("w", 5) == 5
    again = tvm.ir.load_json(tvm.ir.save_json(s))
    assert again["y"] == "z" and isinstance(again, tvm.container.Map if hasattr(tvm, "container") else tvm.ir.Map)


@program
def arrays_in_arrays_and_none():
    a = tvm.runtime.convert([[1, 2], ["a", te.var("q")]])
    assert a[0][1].value == 2 and a[1][0] == "a" and a[1][1].name == "q"
    x = tvm.runtime.convert([None, 1])
    assert x[0] is None and x[1].value == 1


@program
def shape_tuples_and_adts():
    s = runtime.ShapeTuple([1, 2, 3])
    assert s == (1, 2, 3) or list(s) == [1, 2, 3]
    assert s[1] == 2 and len(s) == 3 and runtime.ShapeTuple([1, 2]) == runtime.ShapeTuple([1, 2]) and s != runtime.ShapeTuple([1])
    c = tvm.runtime.container.tuple_object([nd.array(np.zeros(2)), nd.array(np.ones(3))])
    assert c.tag == 0 and len(c) == 2 and c[-1].shape == (3,)
    raises(IndexError, lambda: c[2])
    assert str(tvm.runtime.String("x")) == "x" and tvm.runtime.String("a") == "a"


@program
def strings_are_strings():
    s = tvm.runtime.String("xyz")
    assert isinstance(s, tvm.runtime.String) and isinstance(s, str) and s.startswith("xy") and s + "1" == "xyz1"
    f = tvm.testing.echo
    t = f(s)
    assert s == t and pickle.loads(pickle.dumps(s)) == "xyz"
    z = tvm.runtime.convert([s])
    assert z[0] == "xyz" and tvm.ir.load_json(tvm.ir.save_json(s)) == "xyz"


# ---- nodes
@program
def constants_saved_in_json():
    x = tvm.tir.const(1, "int32")
    assert x.dtype == "int32" and isinstance(x, tir.IntImm)
    y = tvm.ir.load_json(tvm.ir.save_json(x))
    assert y.value == 1 and tvm.ir.structural_equal(x, y)
    v = te.var("x", dtype="int32")
    e = v + 1
    back = tvm.ir.load_json(tvm.ir.save_json(e))
    assert isinstance(back, tir.Add) and back.a.name == "x"


@program
def made_by_type_key():
    x = tvm.ir.make_node("IntImm", dtype="int32", value=10, span=None)
    assert isinstance(x, tir.IntImm) and x.value == 10
    raises(AttributeError, lambda: x.nothing)
    d = tvm.ir.make_node("DictAttrs", name="xyz", value=1)
    assert d["name"] == "xyz" and d.value == 1 and "name" in d.keys()


@program
def test_attributes_have_defaults():
    x = tvm.ir.make_node("attrs.TestAttrs", axis=1, name="xx", padding=(3, 4))
    assert x.name == "xx" and x.padding[0].value == 3 and x.padding[1].value == 4 and x.axis == 1
    raises((tvm.TVMError, AttributeError), lambda: tvm.ir.make_node("attrs.TestAttrs", axis=100, name="xx"))
    raises((tvm.TVMError, AttributeError), lambda: tvm.ir.make_node("attrs.TestAttrs", axis=-1, name="xx", xyz=1))


@program
def dict_attrs_of_functions():
    x = relay.var("x")
    f = relay.Function([x], x).with_attr({"hello": 1, "list": ["a", "b"]})
    assert f.attrs["hello"] == 1 and f.attrs["list"][1] == "b" and "hello" in f.attrs.keys() and len(f.attrs) == 2
    g = f.without_attr("hello")
    assert "hello" not in g.attrs and f.attrs["hello"] == 1
    d = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    dmap = {k: v for k, v in d.items()}
    assert dmap["x"].value == 1 if hasattr(dmap["x"], "value") else dmap["x"] == 1
    assert d.padding[1] == 0 and str(d)


@program
def env_functions_by_name():
    @tvm.register_func("suite14.env", override=True)
    def test(x):
        return x + 1
    f = tvm.ir.EnvFunc.get("suite14.env")
    x = tvm.ir.load_json(tvm.ir.save_json(f))
    assert isinstance(x, tvm.ir.EnvFunc) and x.name == "suite14.env" and x(1) == 2 and x.func(10) == 11
    y = tvm.ir.make_node("attrs.TestAttrs", name="xx", padding=(3, 4), func=x)
    assert y.name == "xx" and y.func(10) == 11


@program
def relay_nodes_by_fields():
    x = relay.Var("x", relay.TensorType((1,)))
    e = relay.Call(relay.op.get("add"), [x, x])
    assert e.op.name == "add" and e.args[0] == x and e.span is None and isinstance(e.op, Op)
    back = tvm.ir.load_json(tvm.ir.save_json(relay.Function([x], e)))
    tvm.ir.assert_structural_equal(back, relay.Function([x], e))
    t = relay.Tuple([x])
    raises(IndexError, lambda: t[1])
    assert "op" in dir(e) and "args" in dir(e)
    w = relay.TupleWrapper(t, 1)
    assert w[0].index == 0 and len(w) == 1


@program
def types_of_every_kind():
    tt = relay.TensorType((1, 2, 3), "float32")
    assert tt.dtype == "float32" and tt.shape[2] == 3 and tt.span is None and str(tt)
    tp = relay.TypeVar("tp", relay.TypeKind.Type)
    assert tp.kind == relay.TypeKind.Type and relay.TypeVar("sh", relay.TypeKind.ShapeVar) != tp
    ft = relay.FuncType([tt, tp], tt, [tp], [])
    assert ft.type_params[0] == tp and ft.arg_types[0] == tt and len(ft.type_constraints) == 0
    rt = relay.RefType(tt)
    assert rt.value == tt
    g = relay.GlobalTypeVar("List")
    c = relay.TypeCall(g, [tt])
    assert c.func == g and c.args[0] == tt and g.kind == relay.TypeKind.AdtHandle
    assert relay.TupleType([tt]).fields[0] == tt


@program
def modules_update_and_types():
    mod = tvm.IRModule()
    x = relay.var("x", shape=())
    mod["main"] = relay.Function([x], x)
    other = tvm.IRModule({"main": relay.Function([x], x + x), "second": relay.Function([x], x)})
    mod.update(other)
    assert len(mod.functions) == 2 and isinstance(mod["main"].body, relay.Call)
    raises((tvm.error.TVMError, ValueError, KeyError), lambda: mod["third"])
    raises(Exception, lambda: mod.get_global_var("none"))
    assert mod.get_attr("x") is None and mod.with_attr("x", 1).get_attr("x") == 1
    a = tvm.IRModule(mod.functions, mod.type_definitions)
    assert tvm.ir.structural_equal(a, mod)
    clone = mod.functions
    assert {v.name_hint for v in clone} == {"main", "second"}


@program
def old_json_is_raised_to_now():
    nodes = [{"type_key": ""}, {"type_key": "relay.TensorType", "attrs": {"dtype": "int32", "shape": "2", "span": "0"}}, {"type_key": "Array", "data": [3, 3]}, {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "4"}}]
    data = {"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}
    t = tvm.ir.load_json(json.dumps(data))
    assert isinstance(t, relay.TensorType) and t.dtype == "int32" and t.shape[0] == 4
    nodes = [{"type_key": ""}, {"type_key": "relay.GlobalVar", "attrs": {"_checked_type_": "0", "name_hint": "x", "span": "0"}}]
    g = tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "attrs": {"tvm_version": "0.6.0"}, "b64ndarrays": []}))
    assert isinstance(g, tvm.ir.GlobalVar) and g.name_hint == "x"


@program
def operators_and_their_attributes():
    op = relay.op.op.get("add")
    assert op.num_inputs == 2 and op.support_level == 1 and op.name == "add" and [a.name for a in op.arguments] == ["lhs", "rhs"]
    assert op.get_attr("TOpPattern") == 1 or op.get_attr("TOpPattern") == 0
    names = Op.list_op_names()
    assert "nn.conv2d" in names and len(names) > 250
    from tvm.ir import register_op_attr
    register_op_attr("nn.relu", "suite14.flag", 7)
    assert relay.op.get("nn.relu").get_attr("suite14.flag") == 7
    raises((tvm.TVMError, AttributeError, ValueError), lambda: relay.op.get("no.such"))


@program
def spans_and_sources():
    s = tvm.ir.Span(tvm.ir.SourceName("f.py"), 1, 2, 3, 4)
    assert s.line == 1 and s.end_line == 2 and s.column == 3 and s.end_column == 4 and s.source_name.name == "f.py"
    x = relay.var("x", span=s)
    assert x.span.line == 1
    again = tvm.ir.load_json(tvm.ir.save_json(s))
    assert again.source_name.name == "f.py" and tvm.ir.structural_equal(s, again)


# ---- targets
@program
def target_strings_and_keys():
    t = Target("llvm -mcpu=skylake-avx512 -keys=cpu,avx")
    assert t.kind.name == "llvm" and list(t.keys) == ["cpu", "avx"] and t.mcpu == "skylake-avx512" and "-mcpu=skylake-avx512" in str(t)
    assert tvm.target.cuda().kind.name == "cuda" and "gpu" in tvm.target.cuda(options="-max_num_threads=512").keys and tvm.target.cuda(options="-max_num_threads=512").max_num_threads == 512
    assert list(tvm.target.mali().keys) == ["mali", "opencl", "gpu"] and tvm.target.intel_graphics().device_name == "intel_graphics"
    raises((ValueError, TypeError, tvm.TVMError), lambda: Target("llvm -xyz=1"))
    raises((ValueError, TypeError, tvm.TVMError), lambda: Target("no_such_kind"))


@program
def targets_from_dictionaries():
    config = {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "device": "arm_cpu", "libs": ["cblas"], "mcpu": "cortex-a53", "mattr": ["+neon", "+fma"], "mfloat-abi": "hard", "mabi": "lp64"}
    t = Target(config)
    assert t.kind.name == "llvm" and all(k in t.keys for k in ["arm_cpu", "cpu"]) and t.device_name == "arm_cpu" and t.libs == ["cblas"] and t.attrs["mfloat-abi"] == "hard" and all(k in t.attrs["mattr"] for k in ["+neon", "+fma"])
    raises((ValueError, TypeError, tvm.TVMError), lambda: Target({"kind": "llvm", "mcpu": 3}))
    e = t.export()
    assert e["kind"] == "llvm" and e["mcpu"] == "cortex-a53"


@program
def hosts_of_targets():
    t = Target("cuda", host="llvm")
    assert t.kind.name == "cuda" and t.host.kind.name == "llvm"
    t2 = Target(Target("cuda"), "llvm -mtriple=x86_64-linux-gnu")
    assert t2.host.attrs["mtriple"] == "x86_64-linux-gnu"
    c = Target({"kind": "cuda", "host": {"kind": "llvm"}})
    assert c.host.kind.name == "llvm" and Target("llvm").host is None
    host_first, host_second = Target.canon_target_and_host("cuda", "llvm") if hasattr(Target, "canon_target_and_host") else Target.check_and_update_host_consist("cuda", "llvm")
    assert host_first.host.kind.name == "llvm" and host_second.kind.name == "llvm"


@program
def current_target_by_scope():
    with Target("llvm"):
        assert Target.current().kind.name == "llvm"
        with tvm.target.cuda():
            assert Target.current().kind.name == "cuda"
        assert Target.current().kind.name == "llvm"
    assert Target.current() is None
    raises(ValueError, lambda: Target.current(allow_none=False))


@program
def generic_functions_by_target():
    @tvm.target.generic_func
    def mygeneric(data):
        return data + 1

    @mygeneric.register(["cuda", "gpu"])
    def cuda_func(data):
        return data + 2

    @mygeneric.register("rocm")
    def rocm_func(data):
        return data + 3
    assert mygeneric(1) == 2
    with tvm.target.cuda():
        assert mygeneric(1) == 3
    with Target("rocm"):
        assert mygeneric(1) == 4
    assert cuda_func(0) == 2 and rocm_func(0) == 3


@program
def tags_and_attributes_of_targets():
    t = Target("nvidia/geforce-rtx-2080-ti")
    assert t.kind.name == "cuda" and t.arch == "sm_75" and t.thread_warp_size == 32 and t.attrs["registers_per_block"] == 65536
    tags = tvm.target.list_tags()
    assert "nvidia/nvidia-a100" in tags and isinstance(tags["nvidia/nvidia-a100"], Target)
    mine = tvm.target.register_tag("unit/my-cpu", {"kind": "llvm", "mcpu": "znver3"}, override=True)
    assert mine.mcpu == "znver3" and Target("unit/my-cpu").mcpu == "znver3"


@program
def llvm_features_and_versions():
    assert tvm.target.codegen.llvm_version_major() >= 10
    assert Target("llvm -num-cores=4").num_cores == 4 and Target("llvm").attrs.get("none", 3) == 3
    assert "llvm" in Target.list_kinds()
    from tvm.topi.x86.utils import get_simd_32bit_lanes
    with Target("llvm -mcpu=skylake-avx512"):
        assert get_simd_32bit_lanes() == 16
    with Target("llvm -mcpu=haswell"):
        assert get_simd_32bit_lanes() == 8


# ---- the runtime
@program
def packed_functions_take_everything():
    @tvm.register_func("suite14.types", override=True)
    def f(*args):
        return [type(a).__name__ for a in args][0]
    g = tvm.get_global_func("suite14.types")
    assert g(1) == "int" and g(1.5) == "float" and g("x") in ("str", "String") and g(None) == "NoneType" and g(tvm.cpu(0)) == "Device" and g(nd.array([1.0])) == "NDArray" and g(f) in ("PackedFunc", "Function", "function")
    assert tvm.get_global_func("no.such.name", True) is None
    raises(ValueError, lambda: tvm.get_global_func("no.such.name"))


@program
def errors_come_back_with_their_kind():
    def fail(x):
        raise IndexError("outside")
    f = tvm.runtime.convert(fail)
    raises((tvm.TVMError, IndexError), lambda: f(1))
    g = tvm.runtime.convert(lambda a, b: a + b)
    assert g(1, 2) == 3 and isinstance(g, tvm.runtime.PackedFunc)
    raises(Exception, lambda: g(1))
    h = tvm.runtime.convert(lambda: tvm.runtime.convert(lambda x: x * 2))
    assert h()(4) == 8


@program
def arrays_on_devices():
    a = nd.array(np.arange(6).reshape(2, 3).astype("int16"), tvm.cpu(0))
    assert a.shape == (2, 3) and a.dtype == "int16" and a.device == tvm.cpu(0) and a.device.device_type == 1
    b = nd.empty((2, 3), "int16").copyfrom(a)
    np.testing.assert_array_equal(b.numpy(), a.numpy())
    assert b.copyto(tvm.cpu(0)).shape == (2, 3)
    raises(ValueError, lambda: b.copyfrom(np.zeros((3, 2), "int16")))
    b[:] = np.ones((2, 3), "int16")
    assert b.numpy().sum() == 6 and a.same_as(a) and not a.same_as(b) and "NDArray" in repr(a)
    v = nd.array(np.zeros((4,), "float64")).asnumpy() if hasattr(a, "asnumpy") else None
    assert v is not None


@program
def arrays_through_dlpack_and_bytes():
    a = nd.array(numbers(3, 4))
    b = nd.from_dlpack(a.to_dlpack())
    np.testing.assert_array_equal(a.numpy(), b.numpy())
    temp = utils.tempdir()
    p = runtime.save_param_dict({"w": a, "q": numbers(2)})
    back = runtime.load_param_dict(p)
    assert sorted(back) == ["q", "w"] and back["w"].shape == (3, 4)
    relay.save_param_dict({"z": a}) and open(temp.relpath("p"), "wb").write(relay.save_param_dict({"z": a}))
    np.testing.assert_array_equal(relay.load_param_dict(open(temp.relpath("p"), "rb").read())["z"].numpy(), a.numpy())


@program
def devices_by_name():
    assert tvm.device("cpu").device_type == 1 and tvm.device("cuda", 2) == tvm.cuda(2) and tvm.device("llvm", 0) == tvm.cpu(0) and str(tvm.cpu(3)) == "cpu(3)" and tvm.opencl().device_type == 4
    assert tvm.cpu(0).exist and not tvm.cuda(0).exist and tvm.runtime.enabled("llvm") and not tvm.runtime.enabled("cuda")
    raises(ValueError, lambda: tvm.device("no_such"))
    assert {tvm.cpu(0): 1}[tvm.cpu(0)] == 1 and tvm.cpu(0) != tvm.cpu(1)
    tvm.cpu().sync()


@program
def modules_list_their_functions():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute(A.shape, lambda i: A[i] + 1.0, name="B")
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="addone")
    temp = utils.tempdir()
    f.save(temp.relpath("x.o"))
    f.save(temp.relpath("x.ll"))
    cc.create_shared(temp.relpath("x.so"), [temp.relpath("x.o")])
    m = runtime.load_module(temp.relpath("x.so"))
    a, b = nd.array(numbers(10)), nd.empty((10,))
    m["addone"](a, b)
    np.testing.assert_allclose(b.numpy(), a.numpy() + 1)
    assert m.type_key == "library" and "define" in f.get_source() and f.entry_name == "__tvm_main__" and f.implements_function("addone") and not f.implements_function("none")
    ev = m.time_evaluator("addone", tvm.cpu(), number=2, repeat=3)
    assert len(ev(a, b).results) == 3


@program
def data_types_compare():
    d = tvm.DataType("float32x4")
    assert d.bits == 32 and d.lanes == 4 and d.type_code == tvm.DataTypeCode.FLOAT and d == "float32x4" and str(tvm.DataType("bool")) == "bool" and tvm.DataType("int8") != tvm.DataType("uint8")
    assert tvm.DataType("handle").type_code == tvm.DataTypeCode.HANDLE and tvm.DataType("bfloat16").bits == 16


# ---- instruments
@program
def instruments_see_every_pass():
    seen = []

    @pass_instrument
    class Look:
        def __init__(self, tag):
            self.tag = tag

        def enter_pass_ctx(self):
            seen.append("enter")

        def exit_pass_ctx(self):
            seen.append("exit")

        def should_run(self, mod, info):
            return info.name != "FoldConstant"

        def run_before_pass(self, mod, info):
            seen.append(self.tag + info.name)

        def run_after_pass(self, mod, info):
            seen.append("after " + info.name)
    mod = tvm.IRModule.from_expr(relay.const(1) + relay.const(2))
    timing = PassTimingInstrument()
    with tvm.transform.PassContext(instruments=[Look("b "), timing]):
        mod = relay.transform.FoldConstant()(relay.transform.InferType()(mod))
        profile = timing.render()
    assert seen[0] == "enter" and seen[-1] == "exit" and "b InferType" in seen and "b FoldConstant" not in seen and "InferType" in profile


@program
def pass_contexts_and_own_passes():
    @tvm.transform.module_pass(opt_level=1, name="mine")
    def mine(mod, ctx):
        assert ctx.opt_level == 2
        return mod

    @relay.transform.function_pass(opt_level=1)
    class Rename:
        def __init__(self, expr):
            self.expr = expr

        def transform_function(self, func, mod, ctx):
            return relay.Function(func.params, self.expr, func.ret_type)
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], x))
    r = Rename(relay.const([1.0, 2.0]))
    assert mine.info.name == "mine" and mine.info.opt_level == 1 and r.info.name == "Rename" and isinstance(mine, tvm.transform.ModulePass) and isinstance(r, relay.transform.FunctionPass)
    seq = tvm.transform.Sequential([mine, r], opt_level=2, name="s", required=["mine"])
    with tvm.transform.PassContext(opt_level=2):
        assert isinstance(seq(mod)["main"].body, relay.Constant)
    with tvm.transform.PassContext(opt_level=3, config={"relay.FuseOps.max_depth": 3}) as c:
        assert c.config["relay.FuseOps.max_depth"] == 3 and tvm.transform.PassContext.current() == c
    raises(Exception, lambda: tvm.transform.PassContext(config={"no.such": 1}).__enter__())
    assert "relay.FuseOps.max_depth" in tvm.transform.PassContext.list_configs()


# ---- the testing helpers
@program
def numeric_gradients_and_parameters():
    tvm.testing.check_numerical_grads(lambda x: (x ** 2).sum(), [np.array([1.0, 2.0])], [np.array([2.0, 4.0])])
    raises(AssertionError, lambda: tvm.testing.check_numerical_grads(lambda x: (x ** 2).sum(), [np.array([1.0, 2.0])], [np.array([2.0, 5.0])]))
    raises(AssertionError, lambda: tvm.testing.assert_allclose(np.array([1.0]), np.array([1.1])))
    p = tvm.testing.parameter("a", "b", ids=["first", "second"])
    assert p is not None
    q, r = tvm.testing.parameters(("x", 1), ("y", 2))
    assert q is not None and r is not None
    assert "llvm" in [t for t, _ in tvm.testing.enabled_targets()]


@program
def testing_object_and_functions():
    assert tvm.testing.nop() is None and tvm.testing.echo(5) == 5 and tvm.testing.device_test(tvm.cpu(1), 1, 1) == tvm.cpu(1)
    from tvm.testing import test_wrap_callback, ErrorTest
    assert callable(test_wrap_callback) and callable(ErrorTest)


@program
def workloads_of_the_testing_package():
    for name, shape in (("mobilenet", (1, 3, 224, 224)), ("resnet", (1, 3, 224, 224)), ("dqn", (1, 4, 84, 84)), ("squeezenet", (1, 3, 224, 224))):
        mod, params = getattr(relay.testing, name).get_workload(batch_size=1)
        assert [int(v) for v in mod["main"].params[0].checked_type.shape] == list(shape) and params
    net, params = relay.testing.dcgan.get_workload(2)
    assert relay.testing.lstm.get_workload(iterations=2, num_hidden=4)[0]["main"].ret_type is not None and net and params
    x = relay.var("data", shape=(1, 3))
    mod, params = relay.testing.create_workload(relay.nn.dense(x, relay.var("w", shape=(2, 3))))
    assert list(params) == ["w"] and params["w"].shape == (2, 3)
