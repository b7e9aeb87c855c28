# SPDX-License-Identifier: Apache-2.0
"""Containers, attributes, modules, functions by name, arrays, devices, errors, instruments: tvm.ir and tvm.runtime."""
import json
import os
import pickle
import tempfile

import numpy as np
import tvm
import tvm.testing
from harness import program, raises
from tvm import relay, te


@program
def arrays_of_objects():
    a = tvm.runtime.convert([1, 2, 3])
    assert len(a) == 3 and a[-1].value == 3 and [int(x) for x in a] == [1, 2, 3]
    assert [int(x) for x in a[0:2]] == [1, 2] and [int(x) for x in a[-3:-1]] == [1, 2]
    raises(IndexError, lambda: a[4])
    assert isinstance(a, tvm.ir.Array)
    loaded = tvm.ir.load_json(tvm.ir.save_json(a))
    assert [int(x) for x in loaded] == [1, 2, 3]
    assert isinstance(tvm.runtime.convert((1, 2)), tvm.ir.Array)
    assert len(tvm.runtime.convert([])) == 0
    assert tvm.ir.structural_equal(a, tvm.runtime.convert([1, 2, 3]))
    assert not tvm.ir.structural_equal(a, tvm.runtime.convert([1, 2, 4]))


@program
def maps_of_objects():
    a, b = te.var("a"), te.var("b")
    m = tvm.runtime.convert({a: 2, b: 3})
    assert a in m and len(m) == 2 and m[a].value == 2 and {x: int(v) for x, v in m.items()} == {a: 2, b: 3}
    assert a not in tvm.runtime.convert({b: 1})
    named = tvm.runtime.convert({"a": 2, "b": 3})
    assert "a" in named and named["a"].value == 2 and isinstance(named, tvm.ir.Map)
    raises(KeyError, lambda: named["c"])
    assert named.get("c", 1) == 1 or named.get("c") is None
    back = tvm.ir.load_json(tvm.ir.save_json(named))
    assert back["b"].value == 3
    assert sorted(str(k) for k in named.keys()) == ["a", "b"] and sorted(int(v) for v in named.values()) == [2, 3]


@program
def strings_and_tuples_of_sizes():
    s = tvm.runtime.container.String("abc")
    assert s == "abc" and s.startswith("a") and s + "d" == "abcd" and isinstance(s, str)
    t = tvm.runtime.ShapeTuple([1, 2, 3])
    assert len(t) == 3 and t[0] == 1 and t[-1] == 3 and t == [1, 2, 3] and t[0:2] == [1, 2]
    raises(IndexError, lambda: t[5])
    assert tvm.runtime.container.getitem_helper(t, lambda obj, i: obj[i], 3, 1) == 2
    assert pickle.loads(pickle.dumps(tvm.runtime.container.String("x"))) == "x"


@program
def data_types():
    for text in ("int8", "uint8", "float32", "float32x4", "bool", "handle", "float16", "bfloat16", "int64"):
        assert str(tvm.runtime.DataType(text)) == text
    d = tvm.runtime.DataType("float32x4")
    assert (d.bits, d.lanes, d.type_code) == (32, 4, 2)
    assert tvm.DataType("int32") == "int32" and tvm.DataType("int32") != "int64"
    raises(Exception, tvm.DataType, "nonsense")


@program
def attributes():
    a = tvm.ir.make_node("DictAttrs", x=1, y=10, name="xyz", padding=(0, 0))
    assert a.x.value == 1 and a["name"] == "xyz" and a.padding[1].value == 0 and "x" in a and set(a.keys()) == {"x", "y", "name", "padding"}
    assert tvm.ir.structural_equal(a, tvm.ir.load_json(tvm.ir.save_json(a)))
    raises(Exception, lambda: a["missing"])


@program
def nodes_by_name():
    x = tvm.ir.make_node("IntImm", dtype="int32", value=10, span=None)
    assert x.value == 10 and x.dtype == "int32"
    raises(Exception, tvm.ir.make_node, "NoSuchNode")


@program
def json_of_expressions():
    x = te.var("x")
    y = x + 1
    back = tvm.ir.load_json(tvm.ir.save_json(y))
    assert isinstance(back, tvm.tir.Add) and back.a.name == "x"
    both = tvm.ir.load_json(tvm.ir.save_json([x, x]))
    assert both[0].same_as(both[1])
    z = tvm.tir.const(5.5, "float32")
    assert tvm.ir.load_json(tvm.ir.save_json(z)).value == 5.5
    raises(Exception, tvm.ir.load_json, "{")
    raises(Exception, tvm.ir.load_json, "nonsense")


@program
def pickles():
    x = relay.var("x", shape=(2, 3))
    f = relay.Function([x], relay.nn.relu(x))
    assert tvm.ir.structural_equal(pickle.loads(pickle.dumps(f)), f)
    mod = tvm.IRModule.from_expr(f)
    assert tvm.ir.structural_equal(pickle.loads(pickle.dumps(mod)), mod)
    v = te.var("v")
    assert pickle.loads(pickle.dumps(v)).name == "v"


@program
def equal_and_hash():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    f, g = relay.Function([x], x + x), relay.Function([y], y + y)
    assert tvm.ir.structural_equal(f, g) and tvm.ir.structural_hash(f) == tvm.ir.structural_hash(g)
    assert not tvm.ir.structural_equal(x, y) and tvm.ir.structural_equal(x, y, map_free_vars=True)
    tvm.ir.assert_structural_equal(f, g)
    error = raises(ValueError, tvm.ir.assert_structural_equal, f, relay.Function([y], y * y))
    assert "StructuralEqual" in str(error) or len(str(error)) > 10
    a, b = te.var("a"), te.var("b")
    assert tvm.ir.structural_equal(a + 1, a + 1) and tvm.ir.structural_hash(a + 1) == tvm.ir.structural_hash(a + 1)
    assert not tvm.ir.structural_equal(a + 1, b + 1) and tvm.ir.structural_equal(a + 1, b + 1, map_free_vars=True)
    assert not tvm.ir.structural_equal(a + 1, a + 2)
    assert tvm.ir.structural_equal(tvm.ir.Range(0, 3), tvm.ir.Range(0, 3)) and not tvm.ir.structural_equal(tvm.ir.Range(0, 3), tvm.ir.Range(0, 4))
    assert tvm.ir.structural_equal(relay.TensorType((1, 2)), relay.TensorType((1, 2))) and not tvm.ir.structural_equal(relay.TensorType((1, 2)), relay.TensorType((2, 1)))


@program
def module_methods():
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule()
    name = relay.GlobalVar("f")
    mod[name] = relay.Function([x], x + x)
    assert name in mod and "f" in mod and len(mod) == 1 and mod["f"].params[0].name_hint == "x" and mod.get_global_var("f") == name
    assert [v.name_hint for v in mod.get_global_vars()] == ["f"]
    other = tvm.IRModule.from_expr(relay.Function([x], x * x))
    mod.update(other)
    assert "main" in mod
    mod["main"] = relay.Function([x], x)
    mod = relay.transform.InferType()(mod)
    assert mod["main"].checked_type.ret_type == relay.TensorType((2,))
    raises(Exception, mod.get_global_var, "zz")
    raises(Exception, lambda: mod["zz"])
    copied = tvm.IRModule(mod.functions)
    assert tvm.ir.structural_equal(copied, mod)
    assert mod.with_attr("a", 1).attrs["a"] == 1
    for gv, func in mod.functions.items():
        assert isinstance(gv, tvm.ir.GlobalVar) and isinstance(func, relay.Function)
    raises(Exception, tvm.IRModule, {"f": 3})
    mod.update_func(name, relay.Function([x], x))
    assert mod["f"].body == mod["f"].params[0]


@program
def functions_by_name():
    name = "programs.objects.double"

    @tvm.register_func(name, override=True)
    def double(x):
        return 2 * x
    f = tvm.get_global_func(name)
    assert isinstance(f, tvm.runtime.PackedFunc) and f(10) == 20 and f(1.5) == 3.0
    assert name in tvm._ffi.registry.list_global_func_names()
    raises((ValueError, tvm.TVMError), tvm.register_func, name, double)
    assert tvm.get_global_func("programs.objects.none", allow_missing=True) is None
    error = raises(ValueError, tvm.get_global_func, "programs.objects.none")
    assert "programs.objects.none" in str(error)
    tvm._ffi.registry.remove_global_func(name)
    assert tvm.get_global_func(name, True) is None


@program
def functions_of_functions():
    def add(x):
        return tvm.runtime.convert(lambda y: tvm.runtime.convert(x + y))
    f = tvm.runtime.convert(add)
    assert isinstance(f, tvm.runtime.PackedFunc)
    assert f(3)(4) == 7
    seen = []
    g = tvm.runtime.convert(lambda *args: seen.extend(args))
    g(1, 2.5, "a", None, np.float32(3))
    assert seen[:3] == [1, 2.5, "a"] and seen[3] is None
    assert tvm.runtime.convert(lambda d: str(d))(tvm.cpu(0)) in ("cpu(0)", "llvm(0)") and tvm.runtime.convert(lambda: None)() is None
    assert tvm.runtime.convert(lambda x: list(x.shape))(tvm.nd.array(np.zeros((2, 3)))) == [2, 3]
    assert tvm.runtime.convert(lambda b: bytes(b))(bytearray(b"ab")) in (b"ab", bytearray(b"ab"))


class Custom(Exception):
    pass


@program((ValueError, "bad value"), (TypeError, "bad type"), (KeyError, "key"), (RuntimeError, "broken"), (AttributeError, "no attribute"), (NotImplementedError, "later"), (IndexError, "far"))
def errors_through_functions(kind, text):
    def fail():
        raise kind(text)
    f = tvm.runtime.convert(fail)
    assert text in str(raises((kind, tvm.TVMError), f))


@program
def error_kinds():
    assert issubclass(tvm.error.InternalError, tvm.error.TVMError) and issubclass(tvm.error.OpNotImplemented, NotImplementedError) and issubclass(tvm.error.OpAttributeInvalid, AttributeError)
    assert issubclass(tvm.error.OpError, tvm.TVMError) and issubclass(tvm.error.OpAttributeRequired, AttributeError)
    assert issubclass(tvm.error.RPCError, tvm.TVMError) and issubclass(tvm.error.RPCSessionTimeoutError, tvm.error.RPCError) and issubclass(tvm.error.DiagnosticError, tvm.TVMError)
    assert issubclass(tvm.TVMError, RuntimeError) or issubclass(tvm.TVMError, Exception)


@program(("float32",), ("int32",), ("int8",), ("uint8",), ("float16",), ("float64",), ("bool",), ("int64",), ("uint16",))
def numpy_arrays(dtype):
    x = np.random.RandomState(1).randint(0, 2, (3, 4)).astype(dtype)
    a = tvm.nd.array(x, tvm.cpu(0))
    assert a.dtype == dtype and a.shape == (3, 4) and (a.numpy() == x).all() and (a.asnumpy() == x).all() and a.device == tvm.cpu(0)
    b = tvm.nd.empty((3, 4), dtype)
    a.copyto(b)
    assert (b.numpy() == x).all()
    c = a.copyto(tvm.cpu(0))
    assert (c.numpy() == x).all() and not c.same_as(a)
    b[:] = 1 if dtype != "bool" else True
    assert (b.numpy() == np.ones((3, 4), dtype)).all()
    raises(ValueError, lambda: b.__setitem__(slice(0, 1), x))
    d = tvm.nd.from_dlpack(a.to_dlpack())
    assert (d.numpy() == x).all()
    assert pickle.loads(pickle.dumps(a)).numpy().tolist() == x.tolist()


@program
def array_details():
    a = tvm.nd.array(np.zeros((2, 3), "float32"))
    assert str(a).startswith("<tvm.nd.NDArray shape=(2, 3), cpu(0)>")
    raises(Exception, tvm.nd.array, "text")
    raises(Exception, a.copyfrom, np.zeros((3, 3)))
    raises(Exception, tvm.nd.empty, (2,), "nonsense")
    raises(Exception, a.copyto, tvm.nd.empty((3, 3)))
    assert tvm.nd.array([1, 2, 3]).dtype == "int64" or tvm.nd.array([1, 2, 3]).dtype == "float32"
    assert tvm.nd.empty(()).shape == ()
    assert tvm.nd.array(np.zeros((0, 3))).shape == (0, 3)
    assert hash(a) is not None and a == a


@program
def devices():
    d = tvm.device("cpu", 0)
    assert d == tvm.cpu() and d.device_type == 1 and d.device_id == 0 and d.exist and str(d) == "cpu(0)" and d != tvm.cpu(1)
    assert tvm.device("llvm").device_type == 1 and tvm.device("cuda", 2).device_id == 2 and tvm.cuda(0).device_type == 2 and not tvm.cuda(0).exist
    assert tvm.device("opencl").device_type == 4 and tvm.device("vulkan").device_type == 7 and tvm.device("metal").device_type == 8 and tvm.rocm(1).device_type == 10
    assert tvm.device(1, 3) == tvm.cpu(3) and hash(tvm.cpu(0)) == hash(tvm.cpu(0))
    raises(ValueError, tvm.device, "unknown")
    d.sync()
    assert tvm.runtime.Device(1, 0) == tvm.cpu()
    assert tvm.runtime.enabled("cpu") and tvm.runtime.enabled("llvm") and not tvm.runtime.enabled("cuda")
    assert d.device_name is None or isinstance(d.device_name, str)


@program
def parameters_as_bytes():
    p = {"a": tvm.nd.array(np.arange(4, dtype="float32")), "b": tvm.nd.array(np.ones((2, 2), "int8"))}
    data = tvm.runtime.save_param_dict(p)
    back = tvm.runtime.load_param_dict(data)
    assert isinstance(data, (bytes, bytearray)) and sorted(back) == ["a", "b"] and (back["a"].numpy() == np.arange(4)).all() and back["b"].dtype == "int8"
    assert relay.load_param_dict(relay.save_param_dict(p))["b"].shape == (2, 2)
    raises(Exception, tvm.runtime.load_param_dict, b"nonsense")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p")
        tvm.runtime.save_param_dict_to_file(p, path)
        assert tvm.runtime.load_param_dict_from_file(path)["a"].shape == (4,)


@program
def contexts_and_passes():
    assert tvm.transform.PassContext.current().opt_level == 2
    with tvm.transform.PassContext(opt_level=3, required_pass=["FastMath"], disabled_pass=["FoldConstant"], config={"relay.backend.use_auto_scheduler": False}) as ctx:
        assert ctx.opt_level == 3 and "FastMath" in list(ctx.required_pass) and "FoldConstant" in list(ctx.disabled_pass) and tvm.transform.PassContext.current().same_as(ctx)
        assert "relay.backend.use_auto_scheduler" in ctx.config
    assert tvm.transform.PassContext.current().opt_level == 2
    raises(Exception, lambda: tvm.transform.PassContext(config={"no.such.key": 1}).__enter__())
    seq = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.FoldConstant()], opt_level=1, name="mine")
    assert seq.info.name == "mine" and seq.info.opt_level == 1 and len(seq.passes) == 2
    assert "relay.FuseOps.max_depth" in tvm.transform.PassContext.list_configs()

    @tvm.transform.module_pass(opt_level=2, name="Mine")
    def change(mod, ctx):
        return mod
    assert change.info.name == "Mine"
    mod = tvm.IRModule.from_expr(relay.Function([], relay.const(1)))
    assert tvm.ir.structural_equal(change(mod), mod)
    raises(Exception, change, 3)


@program
def instruments():
    seen = []

    @tvm.instrument.pass_instrument
    class Watch:
        def enter_pass_ctx(self):
            seen.append("enter")

        def exit_pass_ctx(self):
            seen.append("exit")

        def should_run(self, mod, info):
            return info.name != "FoldConstant"

        def run_before_pass(self, mod, info):
            seen.append(info.name)

        def run_after_pass(self, mod, info):
            seen.append(f"after {info.name}")
    timing = tvm.ir.instrument.PassTimingInstrument()
    mod = tvm.IRModule.from_expr(relay.Function([], relay.const(1)))
    with tvm.transform.PassContext(opt_level=3, instruments=[Watch(), timing]):
        relay.transform.InferType()(mod)
        relay.transform.FoldConstant()(mod)
        text = timing.render()
    assert seen[0] == "enter" and seen[-1] == "exit" and "InferType" in seen and "after InferType" in seen and "FoldConstant" not in seen
    assert "InferType" in text
    with tvm.transform.PassContext(instruments=[timing]):
        pass


@program
def printed_passes():
    import io
    import contextlib
    out = io.StringIO()
    with contextlib.redirect_stdout(out), tvm.transform.PassContext(opt_level=3, instruments=[tvm.ir.instrument.PrintAfterAll(), tvm.ir.instrument.PrintBeforeAll()]):
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([], relay.const(1))))
    assert "InferType" in out.getvalue()


@program
def spans_and_sources():
    span = tvm.ir.Span(tvm.ir.SourceName("file.rly"), 1, 2, 3, 4)
    assert span.source_name.name == "file.rly" and (span.line, span.end_line, span.column, span.end_column) == (1, 2, 3, 4)
    assert tvm.ir.structural_equal(span, tvm.ir.Span(tvm.ir.SourceName("file.rly"), 1, 2, 3, 4))
    assert "main" in tvm.parser.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(1), float32]) { %x }')


@program
def operators_by_name():
    op = tvm.ir.Op.get("nn.relu")
    assert op.name == "nn.relu" and op.num_inputs == 1 and op.get_attr("TOpPattern") == 0 and "relu" in str(op)
    assert op.get_attr("NoSuchAttribute") is None
    raises(Exception, tvm.ir.Op.get, "no.such.op")
    tvm.ir.register_op_attr("nn.relu", "ProgramsAttribute", 7)
    assert op.get_attr("ProgramsAttribute") == 7
    op.reset_attr("ProgramsAttribute")
    assert op.get_attr("ProgramsAttribute") is None


@program
def types():
    t = tvm.ir.TupleType([relay.TensorType((1,)), relay.TensorType((2,))])
    assert len(t.fields) == 2 and t == tvm.ir.TupleType([relay.TensorType((1,)), relay.TensorType((2,))])
    f = tvm.ir.FuncType([t], relay.TensorType((3,)))
    assert f.ret_type.shape[0] == 3 and len(f.arg_types) == 1 and f.type_params == [] or len(f.type_params) == 0
    v = tvm.ir.TypeVar("a", tvm.ir.TypeKind.ShapeVar if hasattr(tvm.ir.TypeKind, "ShapeVar") else tvm.ir.TypeKind.Type)
    assert v.kind != 99
    assert tvm.ir.PrimType("int32").dtype == "int32" and tvm.ir.PointerType(tvm.ir.PrimType("int8")).element_type.dtype == "int8"
    assert tvm.ir.RelayRefType(t).value == t
    g = tvm.ir.GlobalTypeVar("List")
    assert g.name_hint == "List"
    assert tvm.ir.TypeCall(g, [t]).func == g
    r = tvm.ir.Range(2, 10)
    assert r.min == 2 and r.extent == 8 and tvm.ir.Range(5).extent == 5 and tvm.ir.Range.from_min_extent(1, 4).extent == 4


@program
def modules_of_the_runtime():
    n = 4
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    lib = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="plus")
    assert lib.type_key in ("llvm", "library") and lib.entry_name and not lib.imported_modules
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lib.so")
        lib.export_library(path)
        again = tvm.runtime.load_module(path)
        out = tvm.nd.array(np.zeros(n, "float32"))
        again["plus"](tvm.nd.array(np.arange(n, dtype="float32")), out)
        assert (out.numpy() == np.arange(n) + 1).all()
        assert again.get_function("plus") is not None
        raises(AttributeError, lambda: again["minus"])
        raises(Exception, tvm.runtime.load_module, os.path.join(folder, "none.so"))
    ev = lib.time_evaluator("plus", tvm.cpu(0), number=2, repeat=3)
    result = ev(tvm.nd.array(np.zeros(n, "float32")), out)
    assert len(result.results) == 3 and result.mean > 0 and result.min <= result.median <= result.max and result.std >= 0
    raises(Exception, lib, tvm.nd.array(np.zeros(n + 1, "float32")), out)
    raises(Exception, lib, tvm.nd.array(np.zeros(n, "int32")), out)
    raises(Exception, lib, out)


@program
def prefixes_and_versions():
    assert isinstance(tvm.__version__, str)
    assert "LLVM_VERSION" in tvm.support.libinfo()
    from tvm.contrib import utils
    folder = utils.tempdir()
    with open(folder.relpath("a.txt"), "w") as f:
        f.write("x")
    assert "a.txt" in folder.listdir() and os.path.isdir(folder.path)
    folder.remove()
    with utils.FileLock(os.path.join(tempfile.gettempdir(), "programs.lock")) as lock:
        assert lock is not None
    json.dumps({})
