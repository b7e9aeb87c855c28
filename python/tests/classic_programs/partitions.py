# SPDX-License-Identifier: Apache-2.0
"""Regions for other code generators: annotated by a script, by operators, in several functions; with constants, tuples and composites."""
import os
import tempfile

import numpy as np
import tvm
import tvm.testing
from tvm import relay, te, tir
from tvm.contrib import graph_executor
from tvm.relay import transform
from tvm.relay.build_module import bind_params_by_name
from tvm.relay.expr_functor import ExprMutator
from tvm.relay.op.annotation import compiler_begin, compiler_end
from tvm.relay.testing import mlp

from harness import program, refusing


def run(mod, inputs, params=None):
    """What a library computes that was written and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lib.so")
        relay.build(mod, "llvm", params=params).export_library(path)
        executor = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](tvm.cpu(0)))
    for name, value in inputs.items():
        executor.set_input(name, value)
    executor.run()
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


def two_branches(shape=(8, 8)):
    x, y = relay.var("x", shape=shape), relay.var("y", shape=shape)
    both = x + y
    return relay.Function([x, y], relay.concatenate([relay.log(both), relay.exp(both)], axis=0))


def partitioned(mod, target="ccompiler", **options):
    return transform.PartitionGraph(**options)(transform.MergeCompilerRegions()(transform.AnnotateTarget(target)(transform.InferType()(mod))))


def outside(mod):
    return sorted(g.name_hint for g in mod.get_global_vars() if g.name_hint != "main")


class Marked(ExprMutator):
    """Regions from the operands of an addition to the product that uses it."""

    def __init__(self):
        super().__init__()
        self.inside = False

    def begun(self, e):
        e = self.visit(e)
        return compiler_begin(e, "ccompiler") if isinstance(e, relay.Var) else e

    def visit_call(self, call):
        if call.op.name == "multiply":
            self.inside = True
            made = compiler_end(relay.multiply(*map(self.begun, call.args)), "ccompiler")
            self.inside = False
            return made
        return relay.Call(call.op, [self.begun(a) for a in call.args], call.attrs) if self.inside else super().visit_call(call)


@program
def regions_of_a_mutator():
    x, w = relay.var("x", shape=(10, 10)), [relay.var(f"w{i}", shape=(10, 10)) for i in range(8)]
    q = [relay.multiply(relay.subtract(relay.add(x, w[i]), w[i + 1]), w[i + 2]) for i in (0, 3)]
    body = relay.concatenate((*q, relay.subtract(relay.add(x, w[6]), w[7])), axis=0)
    mod = tvm.IRModule()
    mod["main"] = Marked().visit(relay.Function([x, *w], body))
    mod = transform.InferType()(transform.PartitionGraph()(mod))
    assert len(outside(mod)) == 2
    v = {n: np.random.rand(10, 10).astype("float32") for n in ["x", *(f"w{i}" for i in range(8))]}
    want = np.concatenate([*(((v["x"] + v[f"w{i}"]) - v[f"w{i + 1}"]) * v[f"w{i + 2}"] for i in (0, 3)), v["x"] + v["w6"] - v["w7"]])
    tvm.testing.assert_allclose(run(mod, v)[0], want, rtol=1e-5)


@program
def operators_that_come_with_a_generator():
    x, y, x0, y0, p0 = (relay.var(n, shape=(8, 8)) for n in ("x", "y", "x0", "y0", "p0"))
    name, one = relay.GlobalVar("tvmgen_default_ccompiler_main_0"), tir.IntImm("int32", 1)
    wanted = tvm.IRModule()
    wanted[name] = relay.Function([x0, y0], x0 + y0).with_attr("Primitive", one).with_attr("Inline", one).with_attr("Compiler", "ccompiler").with_attr("global_symbol", name.name_hint)
    wanted = transform.InferType()(wanted)
    fused = relay.Function([p0], relay.concatenate([relay.log(p0), relay.exp(p0)], axis=0)).with_attr("Primitive", one)
    wanted["main"] = relay.Function([x, y], relay.Call(fused, [name(x, y)]))
    mod = transform.PartitionGraph()(transform.AnnotateTarget(["ccompiler"])(tvm.IRModule.from_expr(two_branches())))
    assert tvm.ir.structural_equal(transform.FuseOps(2)(mod), transform.InferType()(wanted), map_free_vars=True)
    a, b = np.random.rand(2, 8, 8).astype("float32")
    tvm.testing.assert_allclose(run(mod, {"x": a, "y": b})[0], np.concatenate([np.log(a + b), np.exp(a + b)]), rtol=1e-5)


@program
def two_functions_of_a_module():
    mod = tvm.IRModule()
    mod["main"], mod["subfunction"] = two_branches(), two_branches((16, 16))
    assert {"tvmgen_default_ccompiler_main_0", "tvmgen_default_ccompiler_subfunction_0"} <= set(outside(partitioned(mod)))


@program(True, False)
def constants_of_a_region(bound):
    ones = np.ones((8, 8), "float32")
    mod = tvm.IRModule()
    mod["main"] = bind_params_by_name(two_branches(), {"y": tvm.nd.array(ones)})
    parts = partitioned(mod, bind_constants=bound)
    found = []
    for name in outside(parts):
        relay.analysis.post_order_visit(parts[name].body, lambda e: found.append(e) if isinstance(e, relay.Constant) else None)
    assert bool(found) == bound
    tvm.testing.assert_allclose(run(parts, {"x": ones * 2})[0], np.concatenate([np.log(ones * 3), np.exp(ones * 3)]), rtol=1e-5)


@program
def names_with_the_modules():
    x = relay.var("x", shape=(3,))
    assert outside(partitioned(tvm.IRModule.from_expr(x + x), mod_name="my_Net")) == ["tvmgen_my_Net_ccompiler_main_0"]


@program
def several_outputs_of_a_region():
    for op in ("nn.conv2d", "nn.batch_norm"):
        tvm.ir.register_op_attr(op, "target.test_batch", lambda call: True)
    data, weight = relay.var("data", shape=(1, 3, 24, 24)), relay.var("weight", shape=(16, 3, 3, 3))
    rest = [relay.var(n, shape=(16,)) for n in ("gamma", "beta", "mean", "var")]
    norm = relay.nn.batch_norm(relay.nn.conv2d(data, weight, kernel_size=(3, 3), channels=16, padding=(1, 1)), *rest)
    parts = partitioned(tvm.IRModule.from_expr(relay.Function([data, weight, *rest], relay.Tuple((relay.nn.relu(norm[0]), norm[1], norm[2])))), "test_batch")
    assert len(outside(parts)) == 1
    body = parts[outside(parts)[0]].body
    assert isinstance(body, relay.Tuple) and len(body.fields) == 3


@program
def a_generator_sees_the_module_first():
    seen = []
    tvm.register_func("relay.ext.looker", lambda function: tvm.runtime.create_module("looker", {}, b"x"), override=True)
    tvm.register_func("relay.ext.looker.optimize", lambda mod: seen.append(mod) or mod, override=True)
    tvm.register_func("runtime.module.loadbinary_looker", lambda data: tvm.runtime.create_module("looker", {}, data), override=True)
    x, i, j = (relay.var(n, shape=(4,)) for n in "xij")
    composite = relay.Function([j], relay.nn.relu(relay.exp(j))).with_attr("Composite", "looker.exp_relu").with_attr("PartitionedFromPattern", "exp_nn.relu_")
    mod, name = tvm.IRModule(), relay.GlobalVar("looker_0")
    mod[name] = relay.Function([i], relay.Call(composite, [i])).with_attr("Compiler", "looker").with_attr("Primitive", 1).with_attr("global_symbol", "looker_0")
    mod["main"] = relay.Function([x], name(x))
    lib = relay.build(transform.InferType()(mod), "llvm")
    assert len(seen) == 1 and "looker" in [m.type_key for m in lib.lib.imported_modules]


@program
def source_of_an_imported_module():
    x = relay.var("x", shape=(3,))
    made = relay.build(partitioned(tvm.IRModule.from_expr(relay.exp(x + x))), "llvm").lib.imported_modules[0]
    assert made.type_key == "c" and "tvmgen_default_ccompiler_main_0" in made.get_source()


@program
def a_factory_by_its_models_name():
    mod, params = mlp.get_workload(1)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params, mod_name="mlp")
    data = np.random.rand(1, 1, 28, 28).astype("float32")
    module = lib["mlp"](tvm.cpu(0))
    module["set_input"]("data", tvm.nd.array(data))
    module["run"]()
    with tempfile.TemporaryDirectory() as folder:
        lib.export_library(os.path.join(folder, "a.tar"))
        again = graph_executor.GraphModule(tvm.runtime.load_module(os.path.join(folder, "a.tar"))["mlp"](tvm.cpu(0)))
    again.run(data=data)
    tvm.testing.assert_allclose(module["get_output"](0).numpy(), again.get_output(0).numpy(), rtol=1e-5)


@program
def values_on_a_device():
    x = relay.var("x", shape=(4,))
    there = relay.annotation.on_device(relay.exp(x), tvm.ext_dev(0), constrain_result=True)
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.sqrt(there))), {"cpu": "llvm", "ext_dev": "ext_dev"})
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu(0), tvm.ext_dev(0)))
    executor.run(x=np.zeros(4, "float32"))
    assert (executor.get_output(0).numpy() == 1).all()


@program
def functions_of_the_runtime_have_no_script():
    @tvm.register_func("tvm.test_added", override=True)
    def added(x, y, out):
        tvm.nd.array(x.numpy() + y.numpy()).copyto(out)
    a, b = te.placeholder((10,), name="a"), te.placeholder((10,), name="b")
    c = te.extern(a.shape, [a, b], lambda ins, outs: tir.call_packed("tvm.test_added", ins[0], ins[1], outs[0]), name="c")
    schedule, out = te.create_schedule(c.op), tvm.nd.array(np.zeros(10, "float32"))
    tvm.build(schedule, [a, b, c], "llvm")(*(tvm.nd.array(np.ones(10, "float32")) for _ in range(2)), out)
    assert (out.numpy() == 2).all()
    with refusing(ValueError, "tvm.test_added"):
        te.hybrid.build(schedule, [a, b], [c])


@program
def what_a_left_out_pass_was_for():
    x, rest = relay.var("x", shape=(2, 3)), [relay.var(n, shape=(3,)) for n in "gbmv"]
    mod = tvm.IRModule.from_expr(relay.Function([x, *rest], relay.nn.batch_norm(x, *rest)[0]))
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["ExpandNormalization", "FoldConstant"]), refusing(tvm.TVMError, "is left out: ExpandNormalization"):
        relay.build(mod, "llvm")
