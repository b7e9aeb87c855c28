# SPDX-License-Identifier: Apache-2.0
"""Objects of the runtime: reflection, containers, arrays, functions, modules, instruments, profiles, devices."""
import json
import pickle

import numpy as np
import tvm
from harness import numbers, program, raises, refusing, same
from tvm import nd, relay, te, tir
from tvm.contrib import graph_executor, utils
from tvm.ir.instrument import PassTimingInstrument, pass_instrument


# ---- reflection
@program
def constants_keep_their_type_in_json():
    x = tir.const(1, "int32")
    y = tvm.ir.load_json(tvm.ir.save_json(x))
    assert y.value == 1 and y.dtype == "int32"
    for value, dtype in ((True, "bool"), (7, "uint8"), (1.5, "float32"), (1.5, "float64")):
        back = tvm.ir.load_json(tvm.ir.save_json(tir.const(value, dtype)))
        assert back.value == value and str(back.dtype) == dtype
    json_text = json.loads(tvm.ir.save_json(x))
    assert json_text["nodes"][json_text["root"]]["type_key"] == "IntImm" and json_text["attrs"]["tvm_version"]


def _same_after_json(node):
    again = tvm.ir.load_json(tvm.ir.save_json(node))
    tvm.ir.assert_structural_equal(again, node, map_free_vars=True)


@program
def infinities_in_json():
    _same_after_json(tir.const(float("inf"), "float32"))
    _same_after_json(tir.const(float("-inf"), "float32"))
    again = tvm.ir.load_json(tvm.ir.save_json(tir.const(float("nan"), "float32")))
    assert np.isnan(again.value)


@program
def sums_in_json():
    x = te.var("x")
    y = x + 1
    again = tvm.ir.load_json(tvm.ir.save_json({"y": y, "x": x}))
    assert again["y"].a.same_as(again["x"])
    _same_after_json(tvm.runtime.convert([tir.const(1, "int32"), tir.const(2, "int32")]))


@program
def attributes_made_by_hand():
    x = tvm.ir.make_node("DictAttrs", axis=1, name="xx")
    assert x.name == "xx" and x.axis == 1
    dattr = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    assert dattr.x.value == 1 and dattr.y == 10 and dattr.name == "xyz" and [int(v) for v in dattr.padding] == [0, 0]
    dattr = tvm.ir.load_json(tvm.ir.save_json(dattr))
    assert dattr.name == "xyz" and dattr.x == 1
    with refusing(AttributeError):
        dattr.zzz


@program("x = 0 / axis", "wrong type", "unknown field")
def attributes_that_do_not_fit(what):
    make = tvm.ir.make_node
    if what == "x = 0 / axis":
        conv = relay.nn.conv2d(relay.var("d", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3)), padding=(1, 1)).attrs
        assert tuple(int(p) for p in conv.padding) == (1, 1, 1, 1) and conv.data_layout == "NCHW" and conv.keys()
    elif what == "wrong type":
        with refusing((tvm.TVMError, TypeError, AttributeError, ValueError)):
            make("relay.attrs.SoftmaxAttrs", axis="one")
    else:
        with refusing((AttributeError, tvm.TVMError, TypeError)):
            make("relay.attrs.SoftmaxAttrs", axes=1)


@program
def environment_functions():
    @tvm.register_func("tilewright_test.env_func", override=True)
    def test(x):
        return x + 1
    f = tvm.get_global_func("tilewright_test.env_func") and tvm.ir.EnvFunc.get("tilewright_test.env_func")
    y = tvm.ir.load_json(tvm.ir.save_json(f))
    assert y.name == f.name and y(1) == 2 and str(f.func) and test(2) == 3


@program
def strings_are_objects():
    s = tvm.runtime.String("this is a string")
    assert isinstance(s, str) and s == "this is a string" and s + "!" == "this is a string!" and s.startswith("this")
    assert tvm.ir.load_json(tvm.ir.save_json(s)) == s
    back = pickle.loads(pickle.dumps(s))
    assert back == s
    echo = tvm.testing.echo
    assert echo(s) == s and isinstance(echo(s), str)
    data = {"k": 1}
    assert tvm.runtime.convert(data)["k"] == 1


@program
def pickled_nodes():
    x = te.var("x")
    n = pickle.loads(pickle.dumps(x))
    assert n.name == "x"
    f = relay.Function([relay.var("a", shape=(2,))], relay.const(1.0))
    same(pickle.loads(pickle.dumps(f)), f)
    t = relay.TensorType((1, 2), "int8")
    assert pickle.loads(pickle.dumps(t)) == t
    target = tvm.target.Target("llvm -mcpu=core-avx2")
    assert pickle.loads(pickle.dumps(target)) == target


@program
def arrays_in_json():
    v = np.random.RandomState(0).rand(2, 3).astype("float32")
    again = tvm.ir.load_json(tvm.ir.save_json(nd.array(v)))
    np.testing.assert_array_equal(again.numpy(), v)
    array = tvm.runtime.convert([nd.array(v), nd.array(v * 2)])
    text = tvm.ir.save_json(array)
    np.testing.assert_array_equal(tvm.ir.load_json(text)[1].numpy(), v * 2)


@program
def expressions_of_modules_in_json():
    x = relay.var("x", shape=(4, 4))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(np.eye(4, dtype="float32"))))))
    same(tvm.ir.load_json(tvm.ir.save_json(mod)), mod)
    mod = relay.transform.InferType()(mod)
    same(tvm.ir.load_json(tvm.ir.save_json(mod)), mod)


# ---- containers
@program
def arrays_as_sequences():
    a = tvm.runtime.convert([1, 2, 3])
    assert len(a) == 3 and a[-1] == 3 and [int(v) for v in a[0:-1]] == [1, 2] and [int(v) for v in a] == [1, 2, 3]
    assert isinstance(a, tvm.ir.Array)
    with refusing(IndexError):
        a[4]
    with refusing(IndexError):
        a[-5]
    assert isinstance(tvm.ir.load_json(tvm.ir.save_json(a)), type(a))


@program
def maps_of_all_kinds():
    a = te.var("a")
    b = te.var("b")
    amap = tvm.runtime.convert({a: 2, b: 3})
    assert a in amap and len(amap) == 2 and amap[a] == 2 and dict(amap.items())[a] == 2
    assert a in dict(amap) and amap.get(te.var("q")) is None and amap.get(b, 4) == 3
    smap = tvm.runtime.convert({"a": 2, "b": 3})
    assert "b" in smap and sorted(smap.keys()) == ["a", "b"] and sorted(int(v) for v in smap.values()) == [2, 3]
    with refusing(KeyError):
        smap["c"]
    assert tvm.ir.load_json(tvm.ir.save_json(smap))["a"] == 2
    assert isinstance(smap, tvm.ir.Map)


@program
def adt_values():
    a = nd.array(np.array([1, 2, 3]))
    b = nd.array(np.array([4]))
    y = tvm.runtime.container.tuple_object([a, b])
    assert len(y) == 2 and y.tag == 0
    np.testing.assert_array_equal(y[0].numpy(), [1, 2, 3])
    assert y[-1].numpy()[0] == 4
    with refusing(IndexError):
        y[2]
    z = tvm.runtime.container.ADT(3, [a])
    assert z.tag == 3 and len(z) == 1


@program
def tuples_of_sizes():
    shape = tvm.runtime.ShapeTuple([1, 2, 3])
    assert len(shape) == 3 and shape[0] == 1 and shape[-1] == 3 and shape == [1, 2, 3] and shape == tvm.runtime.ShapeTuple([1, 2, 3])
    assert shape != [1, 2] and list(shape) == [1, 2, 3]
    with refusing(IndexError):
        shape[5]
    assert tvm.testing.echo(shape) == shape


# ---- numbers and arrays
@program("float32", "int8", "uint16", "float16", "int64", "bool", "float64")
def arrays_there_and_back(dtype):
    x = np.random.RandomState(1).randint(0, 2, (3, 4, 5)).astype(dtype)
    y = nd.array(x)
    assert y.shape == x.shape and y.dtype == x.dtype.name and y.device == tvm.cpu(0)
    np.testing.assert_array_equal(y.numpy(), x)
    np.testing.assert_array_equal(y.asnumpy(), x)
    z = y.copyto(tvm.cpu(0))
    np.testing.assert_array_equal(z.numpy(), x)
    w = nd.empty((3, 4, 5), dtype)
    y.copyto(w)
    np.testing.assert_array_equal(w.numpy(), x)
    assert str(y).startswith("<tvm.nd.NDArray shape=(3, 4, 5), cpu(0)>")


@program
def arrays_are_written():
    y = nd.array(np.zeros((2, 3), "float32"))
    y[:] = 1
    assert (y.numpy() == 1).all()
    y[:] = np.full((2, 3), 4, "float32")
    assert (y.numpy() == 4).all()
    with refusing(ValueError):
        y.copyfrom(np.zeros((3, 2), "float32"))
    with refusing((TypeError, ValueError)):
        y.copyfrom("text")
    assert y.same_as(y) and not y.same_as(nd.array(np.zeros((2, 3), "float32")))


@program
def shapes_by_scope():
    y = nd.empty((2, 2), "float32", tvm.cpu(), mem_scope=None)
    assert y.shape == (2, 2)
    y = nd.empty((2, 2), "float32", tvm.cpu(), mem_scope="global")
    y.copyfrom(np.ones((2, 2), "float32"))
    assert y.numpy().sum() == 4


@program
def casts_between_kinds():
    x = nd.array(np.array([1, 2, 3], "int32"))
    y = nd.empty((3,), "float32")
    y.copyfrom(x.numpy())
    np.testing.assert_array_equal(y.numpy(), [1, 2, 3])
    x = nd.array([1.5, 2.5])
    assert x.dtype in ("float32", "float64")
    assert nd.array(np.float32(3)).shape == ()


@program
def dlpack_exchange():
    x = nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    y = nd.from_dlpack(x.to_dlpack())
    np.testing.assert_array_equal(y.numpy(), x.numpy())
    y[:] = 0
    assert (x.numpy() == 0).all()


# ---- functions
@program
def functions_by_name():
    targs = (10, 10.0, "hello")

    @tvm.register_func("tilewright_test.packed", override=True)
    def my_packed(*args):
        assert tuple(args) == targs
        return 10
    f = tvm.get_global_func("tilewright_test.packed")
    assert isinstance(f, tvm.runtime.PackedFunc) and f(*targs) == 10
    assert tvm.get_global_func("tilewright_test.nothing", allow_missing=True) is None
    with refusing(ValueError):
        tvm.get_global_func("tilewright_test.nothing")
    with refusing((ValueError, tvm.TVMError)):
        tvm.register_func("tilewright_test.packed", my_packed)
    assert "tilewright_test.packed" in tvm._ffi.registry.list_global_func_names()
    tvm._ffi.registry.remove_global_func("tilewright_test.packed")
    assert tvm.get_global_func("tilewright_test.packed", True) is None


@program
def functions_give_functions():
    def outer(y):
        def inner(x):
            return x + y
        return inner
    f = tvm.runtime.convert(outer)
    add = f(10)
    assert add(3) == 13 and isinstance(add, tvm.runtime.PackedFunc)
    f = tvm.runtime.convert(lambda g: g(5))
    assert f(lambda v: v * 2) == 10
    assert tvm.runtime.convert(lambda: None)() is None


@program
def values_of_functions():
    check = tvm.runtime.convert(lambda x: x)
    assert check(None) is None and check("text") == "text" and check(3) == 3 and check(1.5) == 1.5
    assert check(tvm.cpu(2)).device_id == 2 and check(True) == 1
    array = nd.array(np.ones(3, "float32"))
    np.testing.assert_array_equal(check(array).numpy(), array.numpy())
    assert bytes(check(bytearray(b"abc"))) == b"abc"


@program
def devices_as_arguments():
    def seen(device):
        assert device.device_type == tvm.device("opencl").device_type and device.device_id == 3
        return device
    got = tvm.runtime.convert(seen)(tvm.opencl(3))
    assert got == tvm.opencl(3) and hash(got) == hash(tvm.opencl(3))
    assert tvm.cpu(0) == tvm.device("cpu", 0) and tvm.device("llvm") == tvm.cpu(0) and tvm.device(1, 2) == tvm.cpu(2)
    with refusing(ValueError):
        tvm.device("no such device")


@program
def counted_and_copied():
    calls = []
    f = tvm.runtime.convert(lambda *a: calls.append(len(a)))
    f()
    f(1, 2, 3)
    assert calls == [0, 3]
    f = tvm.runtime.convert(lambda x: len(x))
    assert f([1, 2, 3]) == 3 and f({"a": 1}) == 1


@program
def numpy_scalars():
    @tvm.register_func("tilewright_test.scalar", override=True)
    def my(x):
        return x
    f = tvm.get_global_func("tilewright_test.scalar")
    for dtype in ("int32", "int64", "uint8"):
        assert f(np.dtype(dtype).type(1)) == 1
    assert abs(f(np.float32(0.1)) - 0.1) < 1e-6 and my(1) == 1


# ---- modules
@program
def modules_of_a_build():
    x = relay.var("x", shape=(4,))
    lib = relay.build(relay.Function([x], x + x), "llvm").get_lib()
    assert isinstance(lib.type_key, str) and len(lib.imported_modules) >= 0
    with refusing((AttributeError, tvm.TVMError)):
        lib.get_function("no such function")
    with refusing((AttributeError, tvm.TVMError)):
        lib["no such function"]
    assert tvm.runtime.enabled("llvm")


@program
def metadata_of_exports():
    x = relay.var("x", shape=(4,))
    factory = relay.build(relay.Function([x], x + x), "llvm")
    folder = utils.tempdir()
    path = folder.relpath("lib.so")
    factory.export_library(path)
    loaded = tvm.runtime.load_module(path)
    run = graph_executor.GraphModule(loaded["default"](tvm.cpu()))
    run.run(x=np.ones(4, "float32"))
    assert run.get_output(0).numpy().sum() == 8
    assert folder.listdir() == ["lib.so"]
    with refusing((tvm.TVMError, ValueError, OSError)):
        tvm.runtime.load_module(folder.relpath("not_there.so"))


@program
def system_modules():
    assert tvm.runtime.system_lib() is not None


@program
def evaluators_of_modules():
    x = relay.var("x", shape=(4,))
    m = graph_executor.GraphModule(relay.build(relay.Function([x], x + x), "llvm")["default"](tvm.cpu()))
    m.set_input("x", np.ones(4, "float32"))
    f = m.module.time_evaluator("run", tvm.cpu(0), number=1, repeat=2)
    r = f()
    assert len(r.results) == 2 and r.mean >= 0 and "mean" in str(r)
    with refusing((AttributeError, tvm.TVMError)):
        m.module["nothing"]


# ---- profiling
@program
def reports():
    x = relay.var("x", shape=(4, 4))
    f = relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(np.eye(4, dtype="float32")))))
    exe = relay.vm.compile(tvm.IRModule.from_expr(f), "llvm")
    vm = tvm.runtime.profiler_vm.VirtualMachineProfiler(exe, tvm.cpu())
    report = vm.profile(numbers(4, 4), func_name="main")
    table = report.table()
    assert isinstance(table, str) and "Duration" in table and "Count" in str(report)
    assert json.loads(report.json())["calls"] and len(report.csv().strip().split("\n")) >= 2
    assert report.device_metrics is not None
    again = tvm.runtime.profiling.Report.from_json(report.json())
    assert len(again.calls) == len(report.calls)


# ---- instruments
@program
def timings():
    x = relay.var("x", shape=(2, 2))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x + x)))
    timing = PassTimingInstrument()
    with tvm.transform.PassContext(instruments=[timing]):
        mod = relay.transform.InferType()(mod)
        mod = relay.transform.FoldConstant()(mod)
        shown = timing.render()
    assert "InferType: " in shown and "FoldConstant: " in shown and "us" in shown
    assert isinstance(timing.render(), str)


@program
def instruments_are_called():
    events = []

    @pass_instrument
    class Watcher:
        def enter_pass_ctx(self):
            events.append("enter")

        def exit_pass_ctx(self):
            events.append("exit")

        def should_run(self, mod, info):
            return info.name != "FoldConstant"

        def run_before_pass(self, mod, info):
            events.append("before " + info.name)

        def run_after_pass(self, mod, info):
            events.append("after " + info.name)
    x = relay.var("x", shape=(2, 2))
    mod = tvm.IRModule.from_expr(relay.Function([x], x))
    with tvm.transform.PassContext(instruments=[Watcher()]):
        mod = relay.transform.FoldConstant()(mod)
        mod = relay.transform.InferType()(mod)
    assert events[0] == "enter" and events[-1] == "exit" and "before InferType" in events and "after InferType" in events
    assert not any("FoldConstant" in e for e in events)


@program
def several_instruments():
    order = []

    def make(name):
        @pass_instrument
        class One:
            def run_before_pass(self, mod, info):
                order.append(name + info.name)
        return One()
    mod = tvm.IRModule.from_expr(relay.const(1))
    with tvm.transform.PassContext(instruments=[make("a "), make("b ")]):
        relay.transform.InferType()(mod)
    assert order[:2] == ["a InferType", "b InferType"]


@program
def instruments_may_be_replaced():
    log = []

    @pass_instrument
    class Plain:
        def __init__(self, name):
            self.name = name

        def enter_pass_ctx(self):
            log.append("+" + self.name)

        def exit_pass_ctx(self):
            log.append("-" + self.name)
    context = tvm.transform.PassContext(instruments=[Plain("1")])
    with context:
        context.override_instruments([Plain("2")])
    assert log == ["+1", "-1", "+2", "-2"]


@program("enter_pass_ctx", "exit_pass_ctx", "run_before_pass", "run_after_pass")
def instruments_that_fail(where):
    def fail(self, *args):
        raise RuntimeError("on purpose: " + where)
    kind = pass_instrument(type("Bad", (), {where: fail}))
    mod = tvm.IRModule.from_expr(relay.const(1))

    def run():
        with tvm.transform.PassContext(instruments=[kind()]):
            relay.transform.InferType()(mod)
    error = raises(tvm.error.TVMError, run)
    assert "on purpose: " + where in str(error)
    assert len(tvm.transform.PassContext.current().instruments or []) == 0


@program
def printing_instrument():
    seen = []

    @pass_instrument
    class Print:
        def run_before_pass(self, mod, info):
            seen.append(str(info))
    with tvm.transform.PassContext(instruments=[Print()]):
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.const(1)))
    assert "InferType" in seen[0] and "opt_level" in seen[0], seen[0]


# ---- errors
@program
def errors_by_kind():
    @tvm.register_func("tilewright_test.fails", override=True)
    def fail(kind):
        raise {"v": ValueError, "t": TypeError, "r": RuntimeError, "a": AttributeError}[kind]("said")
    f = tvm.get_global_func("tilewright_test.fails")
    with refusing(ValueError, "said"):
        f("v")
    with refusing(TypeError, "said"):
        f("t")
    with refusing((RuntimeError, tvm.TVMError), "said"):
        f("r")
    assert issubclass(tvm.error.OpNotImplemented, (tvm.error.OpError, NotImplementedError)) and issubclass(tvm.TVMError, RuntimeError)
    assert fail is not None and issubclass(tvm.error.InternalError, tvm.TVMError)


@program
def types_of_loops():
    assert tvm.ir.PrimType("int32") == tvm.ir.PrimType("int32") and str(tvm.ir.PrimType("int32")) == "int32"
    p = tvm.ir.PointerType(tvm.ir.PrimType("float32"))
    assert p.element_type == tvm.ir.PrimType("float32") and tvm.ir.load_json(tvm.ir.save_json(p)) == p


@program("int32", "float16", "uint8", "bool", "handle", "int8x4", "bfloat16", "float32x8")
def data_types(text):
    d = tvm.runtime.DataType(text)
    assert str(d) == text and d == text and d == tvm.runtime.DataType(text) and d != "int7"
    assert (d.lanes, d.bits) == {"int32": (1, 32), "float16": (1, 16), "uint8": (1, 8), "bool": (1, 1), "handle": (1, 64), "int8x4": (4, 8), "bfloat16": (1, 16), "float32x8": (8, 32)}[text]
    assert hash(d) == hash(tvm.runtime.DataType(text))


@program
def bad_data_types():
    for text in ("foo", "int3q", "float32xx4", "?"):
        with refusing(ValueError):
            tvm.runtime.DataType(text)


@program
def loaded_and_saved_parameters():
    params = {"x": nd.array(np.array([1, 2, 3], "float32")), "y": nd.array(np.array([[1]], "int8"))}
    blob = tvm.runtime.save_param_dict(params)
    again = tvm.runtime.load_param_dict(blob)
    assert set(again) == {"x", "y"} and again["y"].dtype == "int8"
    np.testing.assert_array_equal(again["x"].numpy(), [1, 2, 3])
    assert relay.save_param_dict({}) is not None and len(relay.load_param_dict(relay.save_param_dict({}))) == 0
    with refusing((tvm.TVMError, ValueError)):
        tvm.runtime.load_param_dict(b"no parameters")


@program
def libraries_say_what_they_are():
    info = tvm.support.libinfo()
    assert isinstance(info, dict) and "LLVM_VERSION" in info and "USE_LLVM" in info
    assert tvm.__version__ and isinstance(tvm.__version__, str)


@program
def numbers_with_prefixes():
    from tvm.autotvm.utils import format_si_prefix
    assert format_si_prefix(1024, "k") == 1.024 and format_si_prefix(1e6, "M") == 1 and format_si_prefix(0.5, "") == 0.5
    with refusing((LookupError, ValueError, KeyError)):
        format_si_prefix(1, "?")
