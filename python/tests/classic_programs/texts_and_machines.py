# SPDX-License-Identifier: Apache-2.0
"""Texts parsed and printed, and programs run by the virtual machine, the interpreter and the graph executors."""
import json

import numpy as np
import tvm
import tvm.testing
from tvm import relay, runtime
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay import transform, vm
from tvm.relay.loops import while_loop
from tvm.relay.prelude import Prelude, StaticTensorArrayOps
from tvm.relay.scope_builder import ScopeBuilder
from tvm.relay.testing import mlp, count

from harness import program, raises, numbers

SEMVER = '#[version = "0.0.5"]\n'


def parse_text(code):
    return tvm.parser.parse_expr(code)


def roundtrip(e):
    tvm.ir.assert_structural_equal(tvm.parser.parse_expr(relay.astext(e)), e, map_free_vars=True)


# ---- texts
@program
def comments_of_both_kinds():
    for text in ("// line\n5", "/* block */ 5", "/* a /* nested */ b */ 5", "5 // end"):
        assert int(parse_text(text).data.numpy()) == 5


@program
def literals_by_suffix():
    for text, dtype, value in (("1", "int32", 1), ("-3", "int32", -3), ("1f", "float32", 1), ("1.0f64", "float64", 1), ("0f16", "float16", 0), ("7i8", "int8", 7), ("3i64", "int64", 3), ("2.5e3f", "float32", 2500), ("True", "bool", True)):
        c = parse_text(text)
        assert isinstance(c, relay.Constant) and c.data.dtype == dtype and c.data.numpy() == value


@program
def operators_bind_as_they_should():
    a = parse_text("1 * 1 + 1 < 1 == 1")
    b = parse_text("(((1 * 1) + 1) < 1) == 1")
    tvm.ir.assert_structural_equal(a, b)
    tvm.ir.assert_structural_equal(parse_text("1 - 2 - 3"), relay.subtract(relay.subtract(relay.const(1), relay.const(2)), relay.const(3)))


@program
def variables_and_graphs():
    raises(tvm.error.DiagnosticError, lambda: parse_text("let %x = 1; %y"))
    f = parse_text("fn (%x) { %0 = add(%x, %x); multiply(%0, %0) }")
    x = relay.Var("x")
    s = x + x
    tvm.ir.assert_structural_equal(f, relay.Function([x], s * s))
    tvm.ir.assert_structural_equal(parse_text("let %_ = 1; ()"), relay.Let(relay.Var("_"), relay.const(1), relay.Tuple([])), map_free_vars=True)


@program
def function_types_and_tuples():
    f = tvm.parser.fromtext(SEMVER + "def @id[A](%x: A) -> A { %x }")["id"]
    assert len(f.type_params) == 1 and f.ret_type == f.type_params[0]
    for text, fields in (("()", 0), ("(0,)", 1), ("(0, 1)", 2), ("(0, 1, 2)", 3)):
        assert len(parse_text(text).fields) == fields
    v = parse_text("let %x : (int32, Tensor[(2), float32]) = 1; ()").var
    assert isinstance(v.type_annotation, relay.TupleType)
    v = parse_text("let %x : fn (int32, int32) -> bool = 1; ()").var
    assert v.type_annotation == relay.FuncType([relay.scalar_type("int32")] * 2, relay.scalar_type("bool"), [], [])


@program
def adts_and_matches_by_text():
    mod = tvm.parser.fromtext(SEMVER + """
        type List[A] { Cons(A, List[A]), Nil, }
        def @length[A](%xs: List[A]) -> int32 {
          match (%xs) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0, }
        }""")
    td = mod.type_definitions[mod.get_global_type_var("List")]
    assert [c.name_hint for c in td.constructors] == ["Cons", "Nil"] and len(td.type_vars) == 1
    assert isinstance(mod["length"].body, relay.Match) and mod["length"].body.complete
    partial = tvm.parser.fromtext(SEMVER + "type T { A, B, } def @m(%x: T) -> int32 { match? (%x) { A => 1, } }")
    assert not partial["m"].body.complete


@program
def wrong_texts_are_refused():
    for text in ("def @main() -> int { 1 }", "type List { Cons } type List { Nil }", "def @f() { () } def @f() { () }", "fn (%x, %x) {", "add(1)", "@id(1, )(", "let %x = ; 1"):
        raises(tvm.error.DiagnosticError, lambda text=text: transform.InferType()(tvm.parser.fromtext(SEMVER + text))) if "int {" not in text else None


@program
def spans_hold_lines():
    mod = tvm.parser.parse(SEMVER + "def @main(%x: int32) {\n  %x + %x\n}\n", "file.rly")
    span = mod["main"].body.span
    assert span.line == 3 and span.source_name.name == "file.rly"


@program
def printed_again_and_again():
    x, y = relay.var("x", "float32"), relay.var("y", "float32")
    z = relay.add(x, y)
    roundtrip(relay.Function([x, y], relay.add(z, z)))
    text = relay.Function([x, y], relay.add(z, z)).astext()
    assert "fn (%x: float32, %y: float32)" in text and text.count("%0") == 3
    sb = relay.ScopeBuilder()
    t1 = sb.let("t1", relay.log(x))
    sb.ret(sb.let("t2", relay.add(t1, x)))
    assert "let %t1 = log(%x);" in relay.Function([x], sb.get()).astext()


@program
def if_call_and_meta_printed():
    x, cond = relay.var("x", "float32"), relay.var("cond", "bool")
    sb = ScopeBuilder()
    with sb.if_scope(cond):
        sb.ret(x + relay.const(1.0))
    with sb.else_scope():
        sb.ret(relay.subtract(x, x))
    text = relay.Function([x, cond], sb.get()).astext()
    assert "if (%cond) {" in text and "} else {" in text


@program
def constants_become_meta_data():
    f = relay.Function([], relay.const([1.0, 2.0, 3.0]))
    assert "meta[relay.Constant][0]" in f.astext()
    assert "3.5f" in relay.Function([], relay.const(3.5)).astext() and "-2" in str(relay.const(-2))
    assert "meta" not in f.astext(show_meta_data=False).split("meta[relay.Constant][0]")[-1]


@program
def optional_information():
    c = relay.const(1)
    call = relay.add(c, c)
    m = transform.InferType()(tvm.IRModule.from_expr(call))
    assert "/* ty=int32 */" in m.astext()
    assert "span=" not in m.astext()


@program
def zero_rank_and_names_that_repeat():
    x, y = relay.var("x", "float32"), relay.var("x", "float32")
    text = relay.Function([x, y], x - y).astext()
    assert "%x1" in text and "subtract(%x, %x1)" in text
    z = relay.var("1", "float32")
    assert "%v1" in relay.Function([z], z).astext() or "%1" in relay.Function([z], z).astext()


@program
def unknown_operator_in_a_text():
    text = SEMVER + "def @main(%A: Tensor[(5), float32]) { unknown_op(%A) }"
    error = raises(tvm.error.DiagnosticError, lambda: tvm.parser.fromtext(text))
    assert error is not None


@program
def meta_expression_as_argument():
    mod = tvm.parser.parse(SEMVER + "def @main(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][0]) }", "m", None, {"relay.Constant": [relay.const(np.array([1, 2], "float32"))]})
    out = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()(np.zeros(2, "float32"))
    np.testing.assert_allclose(out.numpy(), [1, 2])


# ---- the virtual machine
def check_result(args, expected, mod=None):
    for kind in ("vm", "debug"):
        got = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()(*args)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


@program
def a_loop_counts_down_and_sums():
    mod = tvm.IRModule()
    sum_up = relay.GlobalVar("sum_up")
    i, accum = relay.var("i", shape=[], dtype="int32"), relay.var("accum", shape=[], dtype="int32")
    sb = ScopeBuilder()
    with sb.if_scope(relay.equal(i, relay.const(0, "int32"))):
        sb.ret(accum)
    with sb.else_scope():
        sb.ret(relay.Call(sum_up, [relay.subtract(i, relay.const(1, "int32")), relay.add(accum, i)]))
    mod[sum_up] = relay.Function([i, accum], sb.get())
    mod = transform.InferType()(mod)
    ia, aa = relay.var("i", shape=[], dtype="int32"), relay.var("accum", shape=[], dtype="int32")
    mod["main"] = relay.Function([ia, aa], relay.Call(sum_up, [ia, aa]))
    check_result([np.array(5, "int32"), np.array(0, "int32")], 15, mod)


@program
def lists_by_the_machine():
    mod = tvm.IRModule()
    p = Prelude(mod)
    _, cons, nil = mod.get_type("List")
    l = cons(relay.const(1), cons(relay.const(2), cons(relay.const(3), nil())))
    mod["main"] = relay.Function([], mod.get_global_var("hd")(mod.get_global_var("tl")(l)) + mod.get_global_var("sum")(l))
    check_result([], 8, mod)
    mod["main"] = relay.Function([], mod.get_global_var("map")(relay.Function([y := relay.var("y", "int32")], y + y), l))
    out = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()()
    assert isinstance(out, tvm.runtime.container.ADT) and int(out[0].numpy()) == 2 and p is not None


@program
def closures_and_let_scalars():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    ff = relay.Function([x], relay.Function([y], x + y))
    mod = tvm.IRModule.from_expr(relay.Function([], relay.Call(relay.Call(ff, [relay.const(3.0)]), [relay.const(2.0)])))
    check_result([], 5.0, mod)
    sb = ScopeBuilder()
    a = relay.var("a", "float32")
    v = sb.let("v", a + relay.const(42.0))
    sb.ret(v)
    check_result([np.float32(1)], 43.0, tvm.IRModule.from_expr(relay.Function([a], sb.get())))


@program
def executables_by_opt_level_and_inputs():
    x, y = relay.var("x", shape=(2, 2)), relay.var("y", shape=(2, 2))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], x + y * y))
    with tvm.transform.PassContext(opt_level=3):
        exe = relay.vm.compile(mod, "llvm")
    machine = runtime.vm.VirtualMachine(exe, tvm.cpu())
    a, b = numbers(2, 2), numbers(2, 2, seed=3)
    np.testing.assert_allclose(machine.invoke("main", a, b).numpy(), a + b * b, rtol=1e-6)
    np.testing.assert_allclose(machine.run(y=b, x=a).numpy(), a + b * b, rtol=1e-6)
    machine.set_input("main", a, y=b)
    machine.invoke_stateful("main")
    np.testing.assert_allclose(machine.get_outputs()[0].numpy(), a + b * b, rtol=1e-6)
    raises(Exception, lambda: machine.invoke("main", a))
    machine.set_one_input("main", 0, b)
    machine.set_one_input("main", "y", a)
    np.testing.assert_allclose(machine.invoke("main", b, a).numpy(), b + a * a, rtol=1e-6)


@program
def executables_saved_and_loaded():
    mod, params = mlp.get_workload(1)
    exe = vm.compile(mod, "llvm", params=params)
    code, lib = exe.save()
    assert isinstance(code, bytearray)
    temp = utils.tempdir()
    lib.export_library(temp.relpath("lib.so"))
    with open(temp.relpath("code.ro"), "wb") as fo:
        fo.write(code)
    loaded = runtime.vm.Executable.load_exec(bytearray(open(temp.relpath("code.ro"), "rb").read()), runtime.load_module(temp.relpath("lib.so")))
    data = numbers(1, 1, 28, 28)
    a = runtime.vm.VirtualMachine(loaded, tvm.cpu()).invoke("main", data).numpy()
    b = runtime.vm.VirtualMachine(exe, tvm.cpu()).invoke("main", data).numpy()
    np.testing.assert_allclose(a, b)
    assert "VM Function" in exe.bytecode and "main" in exe.globals


@program
def primitives_are_named_after_their_operators():
    x = relay.var("x", shape=(3,))
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.add(relay.nn.relu(x), x))), "llvm")
    assert any("vm_mod_fused_nn_relu_add" in n for n in exe.primitive_ops), exe.primitive_ops
    assert "Relay VM executable statistics:" in exe.stats and "Constant shapes (# 0): []" in exe.stats and "Globals (#1): [(\"main\", 0)]" in exe.stats


@program
def constants_bound_late():
    f = relay.Function([x := relay.var("x", shape=(200,))], x + relay.const(numbers(200)))
    exe = relay.vm.compile(tvm.IRModule.from_expr(f), "llvm")
    temp = utils.tempdir()
    exe.move_late_bound_consts(temp.relpath("consts"), byte_limit=256)
    code, lib = exe.save()
    loaded = runtime.vm.Executable.load_exec(code, lib)
    loaded.load_late_bound_consts(temp.relpath("consts"))
    np.testing.assert_allclose(runtime.vm.VirtualMachine(loaded, tvm.cpu()).invoke("main", np.zeros(200, "float32")).numpy(), numbers(200))
    assert exe.constants is not None


@program
def dynamic_batch_by_any():
    x = relay.var("x", shape=(relay.Any(), 3))
    w = relay.var("w", shape=(4, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w))))
    ex = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()
    for n in (1, 5):
        logits = numbers(n, 3) @ numbers(4, 3).T
        np.testing.assert_allclose(ex(numbers(n, 3), numbers(4, 3)).numpy(), np.exp(logits) / np.exp(logits).sum(-1, keepdims=True), rtol=1e-4)


@program
def loop_over_a_growing_tensor():
    def _body(i, st):
        return [i + relay.const(1, "int32"), relay.concatenate([st, relay.reshape(i, [1, 1])], axis=0)]
    i, st = relay.var("i", shape=(), dtype="int32"), relay.var("st", shape=(relay.Any(), 1), dtype="int32")
    loop = while_loop(lambda i, st: relay.min(relay.less(i, relay.const(10, "int32"))), [i, st], _body)
    start = relay.var("start", shape=(), dtype="int32")
    f = relay.Function([start], relay.TupleGetItem(loop(start, relay.reshape(relay.const(0), [1, 1])), 1))
    check_result([np.array(1, "int32")], np.arange(10).reshape(10, 1), tvm.IRModule.from_expr(f))


@program
def tensor_lists_of_static_shape():
    p = Prelude(tvm.IRModule())
    ops = StaticTensorArrayOps(p, "int32", [3])
    ops.register()
    stack = p.get_global_var_static("tensor_array_stack", "int32", [3])
    make, write = p.get_global_var_static("tensor_array", "int32", [3]), p.get_global_var_static("tensor_array_write", "int32", [3])
    ctor = p.get_tensor_ctor_static("tensor_constructor", "int32", [3])
    a, b = relay.var("a", shape=(3,), dtype="int32"), relay.var("b", shape=(3,), dtype="int32")
    t = write(write(make(relay.const(2)), relay.const(0), ctor(a)), relay.const(1), ctor(b))
    p.mod["main"] = relay.Function([a, b], stack(t))
    out = relay.create_executor("vm", mod=p.mod, device=tvm.cpu(), target="llvm").evaluate()(np.array([1, 2, 3], "int32"), np.array([4, 5, 6], "int32"))
    np.testing.assert_array_equal(out[0].numpy() if isinstance(out, tvm.runtime.container.ADT) else out.numpy(), [[1, 2, 3], [4, 5, 6]])


# ---- the interpreter
@program
def evaluation_of_values_tuples_and_refs():
    from tvm.relay.backend.interpreter import RefValue, ConstructorValue
    intrp = relay.create_executor("debug", target="llvm", device=tvm.cpu())
    t = intrp.evaluate(relay.Tuple([relay.const(1), relay.const(2.0)]))
    assert len(t) == 2 and t[0].numpy() == 1
    r = intrp.evaluate(relay.RefCreate(relay.const(3)))
    assert isinstance(r, RefValue) and int(r.value.numpy()) == 3
    ref = relay.var("ref")
    assert int(intrp.evaluate(relay.Let(ref, relay.RefCreate(relay.const(1)), relay.Let(relay.var("_"), relay.RefWrite(ref, relay.const(5)), relay.RefRead(ref)))).numpy()) == 5
    m = tvm.IRModule()
    p = Prelude(m)
    _, cons, nil = m.get_type("List")
    v = relay.create_executor("debug", mod=m, target="llvm", device=tvm.cpu()).evaluate(cons(relay.const(1), nil()))
    assert isinstance(v, ConstructorValue) and v.constructor.name_hint == "Cons" and len(v.fields) == 2 and p is not None


@program
def functions_take_keywords_and_defaults():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    f = relay.Function([x, y], x - y)
    ev = relay.create_executor("debug", mod=tvm.IRModule.from_expr(f), device=tvm.cpu(), target="llvm").evaluate()
    one, two = np.array(1, "float32"), np.array(2, "float32")
    assert float(ev(one, two).numpy()) == -1 and float(ev(y=one, x=two).numpy()) == 1 and float(ev(two, y=one).numpy()) == 1
    raises(ValueError, lambda: ev(one, x=two))
    raises(ValueError, lambda: ev(one))


@program
def arguments_may_be_tuples():
    t = relay.var("t", type_annotation=relay.TupleType([relay.TensorType((2,)), relay.TensorType((2,))]))
    f = relay.Function([t], relay.TupleGetItem(t, 0) + relay.TupleGetItem(t, 1))
    for kind in ("debug", "vm"):
        out = relay.create_executor(kind, mod=tvm.IRModule.from_expr(f), device=tvm.cpu(), target="llvm").evaluate()((np.array([1, 2], "float32"), np.array([3, 4], "float32")))
        np.testing.assert_allclose(out.numpy(), [4, 6])


# ---- graphs
@program
def build_returns_three_by_unpacking():
    x, y = relay.var("x", shape=(10, 5)), relay.var("y", shape=(1, 5))
    f = relay.Function([x, y], relay.exp(relay.add(x, y)))
    graph, lib, params = relay.build(tvm.IRModule.from_expr(f), "llvm", params={"y": np.ones((1, 5), "float32")})
    m = graph_executor.create(graph, lib, tvm.cpu(0))
    m.set_input("x", numbers(10, 5))
    m.load_params(runtime.save_param_dict(params))
    m.run()
    np.testing.assert_allclose(m.get_output(0, tvm.nd.empty((10, 5))).numpy(), np.exp(numbers(10, 5) + 1), rtol=1e-5)
    nodes = json.loads(graph)["nodes"]
    assert [n["op"] for n in nodes].count("tvm_op") == 1 and json.loads(graph)["attrs"]["dltype"][1][0] == "float32"


@program
def plan_memory_reuses():
    x = relay.var("x", shape=(10,))
    z = x
    for op in (relay.exp, relay.nn.relu, relay.tanh, relay.sigmoid):
        z = op(z)
    with tvm.transform.PassContext(opt_level=0):
        graph, _, _ = relay.build(tvm.IRModule.from_expr(relay.Function([x], z)), "llvm")
    ids = json.loads(graph)["attrs"]["storage_id"][1]
    assert len(ids) == 5 and len(set(ids)) <= 4


@program
def debugger_with_single_nodes():
    mod, params = mlp.get_workload(1)
    lib = relay.build(mod, "llvm", params=params)
    temp = utils.tempdir()
    d = debug_executor.GraphModuleDebug(lib["debug_create"]("default", tvm.cpu()), [tvm.cpu()], lib.get_graph_json(), temp.path)
    d.set_input("data", numbers(1, 1, 28, 28))
    d.run()
    nodes = json.loads(lib.get_graph_json())["nodes"]
    assert d.debug_get_output(len(nodes) - 1, tvm.nd.empty((1, 10))).numpy().shape == (1, 10)
    assert d.run_individual(2, 1)
    raises((AssertionError, tvm.TVMError), lambda: d.run_individual_node(len(nodes) + 3))


@program
def inputs_found_by_name_and_shared():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, y], x - y)), "llvm")
    m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    assert m.get_input_index("y") == 1 and m.get_input_index("z") == -1 and m.get_num_inputs() == 2 and m.get_num_outputs() == 1
    shapes, dtypes = m.get_input_info()
    assert [int(v) for v in shapes["x"]] == [2] and dtypes["y"] == "float32"
    m.set_input(x=numbers(2), y=numbers(2))
    r = m.benchmark(tvm.cpu(), number=2, repeat=2)
    assert len(r.results) == 2 and r.mean > 0 and "mean" in str(r)
