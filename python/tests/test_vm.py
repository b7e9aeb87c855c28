# SPDX-License-Identifier: Apache-2.0
"""Programs from Python: free sizes, recursion, data types; saved, loaded and run; executors by kind."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import tilewright
from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.runtime import vm as vm_rt
from tilewright.classic.runtime.container import ADT


def free_dense():
    x = relay.var("x", shape=(relay.Any(), 4))
    w = relay.const(np.arange(12, dtype="float32").reshape(3, 4))
    return tw.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, w))))


def tuple_net():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    return tw.IRModule.from_expr(relay.Function([x, y], relay.Tuple([relay.add(x, y), relay.subtract(x, y)])))


class Programs(unittest.TestCase):
    def test_profiles(self):
        from tilewright.classic.runtime import profiler_vm
        self.assertTrue(profiler_vm.enabled())
        x = np.ones((2, 4), "float32")
        with_kernels = profiler_vm.VirtualMachineProfiler(relay.vm.compile(free_dense(), "llvm"), tw.cpu()).profile(x)
        self.assertTrue(with_kernels.calls and all(call["Name"].startswith("vm_mod_fused_") for call in with_kernels.calls), str(with_kernels))
        machine = profiler_vm.VirtualMachine(relay.vm.compile(free_dense(), "llvm"), tw.cpu())
        names = [[call["Name"] for call in machine.profile(x).calls] for _ in range(4)]
        self.assertEqual(names[0], ["evaluate region_0"])
        self.assertEqual(relay.vm.compile(free_dense(), "llvm").primitive_ops, ["vm_mod_fused_nn_dense_nn_relu_0"])
        self.assertIn("compile region_0", names[2])
        self.assertTrue(any("dense" in name for name in names[3]), names)
        report = machine.profile()
        self.assertEqual(report.configuration["Executor"], "VM")
        self.assertIn("Duration (us)", str(report))
        self.assertIn("traceEvents", report.trace())
        np.testing.assert_array_equal(machine.get_outputs()[0].numpy(), machine.run(x).numpy())
        with self.assertRaises(ValueError):
            machine.profile(x, x)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.so")
            relay.vm.compile(free_dense(), "llvm").mod.export_library(path)
            model = tilewright.load(path)
            with self.assertRaises(tw.Error):
                model.profile()
            model.set_input("x", x)
            self.assertIn("region_0", model.profile())
            self.assertIn("traceEvents", model.profile(form="trace"))
            with self.assertRaises(tw.Error):
                model.profile(form="picture")

    def test_save_load_and_free_sizes(self):
        exe = relay.vm.compile(free_dense(), "llvm")
        self.assertEqual(exe.get_function_params("main"), ["x"])
        with self.assertRaises(ValueError):
            exe.get_function_params("other")
        self.assertIn("InvokePacked", exe.bytecode)
        self.assertIn("Globals (#1)", exe.stats)
        code, lib = exe.save()
        self.assertIsInstance(code, bytearray)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lib.so")
            lib.export_library(path)
            with open(os.path.join(folder, "code.ro"), "wb") as file:
                file.write(code)
            loaded = tw.runtime.load_module(path)
            with open(os.path.join(folder, "code.ro"), "rb") as file:
                again = vm_rt.Executable.load_exec(bytearray(file.read()), loaded)
            machine = vm_rt.VirtualMachine(again, tw.cpu())
            for n in (1, 3, 1):
                x = np.random.rand(n, 4).astype("float32")
                np.testing.assert_allclose(machine.run(x).numpy(), np.maximum(x @ np.arange(12, dtype="float32").reshape(3, 4).T, 0), rtol=1e-5)
            with self.assertRaises(tw.Error) as raised:
                vm_rt.Executable.load_exec(bytes(code[:40]), loaded)
            self.assertEqual(raised.exception.code, 501)
            damaged = bytearray(code)
            damaged[len(damaged) // 2] ^= 255
            try:
                vm_rt.Executable.load_exec(damaged, loaded)
            except tw.Error as error:
                self.assertIn(error.code, (501, 502))
        with self.assertRaises(TypeError):
            vm_rt.Executable.load_exec("text", loaded)

    def test_results_as_large_as_the_values_say(self):
        x = relay.var("x", shape=(relay.Any(), 3), dtype="int32")
        values = relay.unique(relay.reshape(x, (-1,)), is_sorted=True, return_counts=True)
        mod = tw.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.argwhere(x), values[0], values[2], values[4]])))
        run = relay.create_executor("vm", mod=mod).evaluate()
        for data in ([[0, 2, 2], [7, 0, -1]], [[0, 0, 0]], [[5, 5, 5], [1, 1, 1], [0, 9, 9]]):
            data = np.array(data, "int32")
            where, found, inverse, counts = (out.numpy() for out in run(data))
            np.testing.assert_array_equal(where, np.argwhere(data))
            expected = np.unique(data, return_inverse=True, return_counts=True)
            for ours, theirs in zip((found, inverse, counts), expected):
                np.testing.assert_array_equal(ours, theirs.reshape(-1))

    def test_arguments(self):
        machine = vm_rt.VirtualMachine(relay.vm.compile(tuple_net(), "llvm"), tw.cpu())
        a, b = np.full((2, 3), 5, "float32"), np.ones((2, 3), "float32")
        out = machine.invoke("main", a, y=tw.nd.array(b))
        self.assertIsInstance(out, ADT)
        np.testing.assert_array_equal(out[0].numpy(), a + b)
        machine.set_input("main", a, b)
        machine.invoke_stateful("main")
        np.testing.assert_array_equal(machine.get_outputs()[1].numpy(), a - b)
        machine.set_one_input("main", "x", b)
        np.testing.assert_array_equal(machine.invoke("main")[1].numpy(), b - b)
        held = [tw.nd.empty((2, 3)), tw.nd.empty((2, 3))]
        machine.set_outputs("main", *held)
        machine.invoke("main", a, b)
        np.testing.assert_array_equal(held[0].numpy(), a + b)
        self.assertEqual((machine.get_input_index("y"), machine.get_input_index("z")), (1, -1))
        self.assertEqual(len(machine.benchmark(tw.cpu(), a, b, repeat=3, number=2).results), 3)
        for bad in (lambda: machine.run(a), lambda: machine.run(a, b, a), lambda: machine.run(a, z=b), lambda: machine.run(a.astype("float64"), b),
                    lambda: machine.run(a[:1], b), lambda: machine.invoke("nothing", a)):
            with self.assertRaises(ValueError):
                bad()
        with self.assertRaises(TypeError):
            vm_rt.VirtualMachine(relay.vm.compile(tuple_net()), "cpu")

    def test_tuples_as_arguments(self):
        pair = relay.var("pair", relay.TupleType([relay.TensorType((2,)), relay.TupleType([relay.TensorType((2,)), relay.TensorType((1,))])]))
        x = relay.var("x", shape=(2,))
        inner = relay.TupleGetItem(pair, 1)
        mod = tw.IRModule.from_expr(relay.Function([pair, x], relay.TupleGetItem(pair, 0) * relay.TupleGetItem(inner, 0) + relay.TupleGetItem(inner, 1) + x))
        a, b, c, d = np.array([1, 2], "float32"), np.array([3, 4], "float32"), np.array([5], "float32"), np.array([6, 7], "float32")
        for kind in ("vm", "graph", "debug"):
            run = relay.create_executor(kind, mod).evaluate()
            np.testing.assert_array_equal(run((a, (b, c)), d).numpy(), a * b + c + d)
            with self.assertRaisesRegex(ValueError, "pair is missing"):
                run(x=d)

    def test_exported_through_its_module(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.so")
            relay.vm.compile(free_dense(), "llvm").mod.export_library(path)
            out = vm_rt.VirtualMachine(tw.runtime.load_module(path), tw.cpu()).run(np.ones((5, 4), "float32"))
            self.assertEqual(out.shape, (5, 3))

    def test_params_and_late_constants(self):
        x, w = relay.var("x", shape=(relay.Any(), 64)), relay.var("w", shape=(64, 64))
        values = np.random.rand(64, 64).astype("float32")
        choice = relay.If(relay.less(relay.sum(x), relay.const(0.0)), w, relay.multiply(w, relay.const(2.0)))
        mod = tw.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, choice)))
        compiler = relay.vm.VMCompiler()
        with self.assertRaises(ValueError):
            compiler.codegen()
        compiler.set_params({"w": values})
        compiler.lower(mod, "llvm")
        compiler.codegen()
        exe = compiler.get_exec()
        data = np.ones((2, 64), "float32")
        expected = data @ (2 * values).T
        np.testing.assert_allclose(vm_rt.VirtualMachine(exe, tw.cpu()).run(data).numpy(), expected, rtol=1e-5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "consts")
            exe.move_late_bound_consts(path, 256)
            self.assertGreaterEqual(os.path.getsize(path), 0)
            exe.load_late_bound_consts(path)
            np.testing.assert_allclose(vm_rt.VirtualMachine(exe, tw.cpu()).run(data).numpy(), expected, rtol=1e-5)

    def test_recursion_and_kinds_of_executors(self):
        sum_up, i = relay.GlobalVar("sum_up"), relay.var("i", shape=[], dtype="int32")
        sb = relay.ScopeBuilder()
        with sb.if_scope(relay.equal(i, relay.const(0, "int32"))):
            sb.ret(i)
        with sb.else_scope():
            rest = relay.Call(sum_up, [relay.subtract(i, relay.const(1, "int32"))])
            sb.ret(relay.add(rest, i))
        mod = tw.IRModule()
        mod[sum_up] = relay.Function([i], sb.get(), relay.TensorType([], "int32"))
        j = relay.var("j", shape=[], dtype="int32")
        mod["main"] = relay.Function([j], sum_up(j))
        for kind in ("vm", "debug"):
            self.assertEqual(int(relay.create_executor(kind, mod=mod, device=tw.cpu(), target="llvm").evaluate()(np.array(10, "int32")).numpy()), 55)
        net = tuple_net()
        a, b = np.full((2, 3), 5, "float32"), np.ones((2, 3), "float32")
        for kind in ("graph", "vm", "debug", "aot"):
            out = relay.create_executor(kind, mod=net).evaluate()(a, y=b)
            np.testing.assert_array_equal(out[1].numpy(), a - b)
        with self.assertRaises(RuntimeError):
            relay.create_executor("pipeline", mod=net)
        with self.assertRaises(ValueError):
            relay.create_executor("graph", mod=net).evaluate()(a)

    def test_references_run_on_the_interpreter(self):
        r, z = relay.var("r"), relay.var("z", "float32")
        mod = tw.IRModule.from_expr(relay.Function([z], relay.Let(r, relay.RefCreate(z), relay.RefRead(r) + relay.const(1.0))))
        self.assertEqual(float(relay.create_executor("debug", mod=mod).evaluate()(np.float32(3)).numpy()), 4.0)


class DataTypes(unittest.TestCase):
    def test_prelude(self):
        mod = tw.IRModule()
        p = relay.Prelude(mod)
        xs = p.cons(relay.const(1), p.cons(relay.const(2), p.nil()))
        y = relay.var("y", "int32")
        out = relay.create_executor("vm", mod=mod).evaluate(p.map(relay.Function([y], y + relay.const(1)), xs))
        self.assertEqual((out.constructor.name_hint, int(out[0].numpy()), int(out[1][0].numpy()), out[1][1].constructor.name_hint), ("Cons", 2, 3, "Nil"))
        self.assertEqual(int(relay.create_executor("debug", mod=mod).evaluate(p.length(xs)).numpy()), 2)
        with self.assertRaises(AttributeError):
            p.fold_sideways
        with self.assertRaises(FileNotFoundError):
            mod.import_from_std("nothing.rly")

    def test_types_of_ones_own(self):
        List, a = relay.GlobalTypeVar("list"), relay.TypeVar("a")
        nil = relay.Constructor("nil", [], List)
        cons = relay.Constructor("cons", [a, List(a)], List)
        mod = tw.IRModule()
        mod[List] = relay.TypeData(List, [a], [nil, cons])
        xs, head, tail = relay.var("xs", List(relay.scalar_type("int32"))), relay.var("head"), relay.var("tail")
        first = relay.Match(xs, [relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(head), relay.PatternVar(tail)]), head),
                                 relay.Clause(relay.PatternConstructor(nil, []), relay.const(0))])
        mod["first"] = relay.Function([xs], first)
        mod["main"] = relay.Function([], mod.get_global_var("first")(cons(relay.const(7), nil())))
        typed = relay.transform.InferType()(mod)
        self.assertEqual(typed["first"].checked_type.arg_types[0], List(relay.scalar_type("int32")))
        self.assertEqual(tw.IRModule.from_text(typed.astext()), typed)
        self.assertEqual([c.name_hint for c in typed["list"].constructors], ["nil", "cons"])
        self.assertEqual([c.tag for c in typed.get_type("list")[1:]], [0, 1])
        self.assertEqual(int(relay.create_executor("vm", mod=mod).evaluate()().numpy()), 7)
        other = relay.Constructor("snoc", [a], List)
        mod["main"] = relay.Function([], mod.get_global_var("first")(other(relay.const(7))))
        with self.assertRaises(tw.Error):
            relay.transform.InferType()(mod)



def onnx_model(nodes, inputs, outputs, initializers=(), opset=17):
    from onnx import helper as h
    value = lambda name, kind, shape: h.make_tensor_value_info(name, kind, shape)  # noqa: E731
    graph = h.make_graph(nodes, "g", [value(*i) for i in inputs], [value(*o) for o in outputs], list(initializers))
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8)


class OnnxControlFlow(unittest.TestCase):
    """If, Loop and Scan that only a run decides: Relay control flow in the module, run by both executors."""

    def run_all(self, model, shape, inputs, expected):
        mod, params = relay.frontend.from_onnx(model, shape)
        self.assertEqual(params, {})
        for kind in ("vm", "debug"):
            got = relay.create_executor(kind, mod=mod, device=tw.cpu(), target="llvm").evaluate()(**inputs)
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, err_msg=kind)
        return mod

    def test_if(self):
        from onnx import TensorProto as T
        from onnx import helper as h
        side = lambda op: h.make_graph([h.make_node(op, ["x"], ["out"])], op, [], [h.make_tensor_value_info("out", T.FLOAT, [2, 3])])  # noqa: E731
        model = onnx_model([h.make_node("If", ["c"], ["y"], then_branch=side("Exp"), else_branch=side("Neg"))],
                           [("c", T.BOOL, []), ("x", T.FLOAT, [2, 3])], [("y", T.FLOAT, [2, 3])])
        x = np.arange(6, dtype="float32").reshape(2, 3)
        for c, expected in ((True, np.exp(x)), (False, -x)):
            mod = self.run_all(model, {"x": (2, 3)}, {"c": np.array(c), "x": x}, expected)
        self.assertIn("if (%c)", mod.astext(show_meta_data=False))

    def test_loop(self):
        from onnx import TensorProto as T
        from onnx import helper as h
        value = h.make_tensor_value_info
        body = h.make_graph([h.make_node("Add", ["a", "x"], ["a2"]), h.make_node("Identity", ["go"], ["go2"])], "body",
                            [value("i", T.INT64, []), value("go", T.BOOL, []), value("a", T.FLOAT, [3])],
                            [value("go2", T.BOOL, []), value("a2", T.FLOAT, [3])])
        model = onnx_model([h.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
                           [("n", T.INT64, []), ("x", T.FLOAT, [3])], [("y", T.FLOAT, [3])])
        x = np.array([1, 2, 3], "float32")
        mod = self.run_all(model, {}, {"n": np.array(4, "int64"), "x": x}, x * 5)
        self.assertIn("let %loop", mod.astext(show_meta_data=False))

    def test_scan(self):
        from onnx import TensorProto as T
        from onnx import helper as h
        value = h.make_tensor_value_info
        body = h.make_graph([h.make_node("Add", ["s", "e"], ["s2"]), h.make_node("Identity", ["s2"], ["o"])], "body",
                            [value("s", T.FLOAT, [2]), value("e", T.FLOAT, [2])], [value("s2", T.FLOAT, [2]), value("o", T.FLOAT, [2])])
        model = onnx_model([h.make_node("Scan", ["z", "x"], ["last", "y"], body=body, num_scan_inputs=1)],
                           [("z", T.FLOAT, [2]), ("x", T.FLOAT, ["n", 2])], [("y", T.FLOAT, ["n", 2])])
        x = np.arange(10, dtype="float32").reshape(5, 2)
        self.run_all(model, {}, {"z": np.zeros(2, "float32"), "x": x}, np.cumsum(x, 0))

    def test_programs_are_no_libraries(self):
        from onnx import TensorProto as T
        from onnx import helper as h
        model = onnx_model([h.make_node("Reshape", ["x", "s"], ["y"])], [("x", T.FLOAT, [6]), ("s", T.INT64, [2])], [("y", T.FLOAT, ["a", "b"])])
        mod, _ = relay.frontend.from_onnx(model)
        with self.assertRaisesRegex(tw.Error, "virtual machine"):
            relay.build(mod, "llvm")


def bitmap(pixels):
    """The bytes of a BMP file."""
    height, width, _ = pixels.shape
    rows = b"".join(row[:, ::-1].tobytes().ljust((3 * width + 3) // 4 * 4, b"\0") for row in pixels[::-1])
    return struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + len(rows), 0, 0, 54, 40, width, height, 1, 24, 0, len(rows), 0, 0, 0, 0) + rows


def picture_model(pixel_format):
    from onnx import TensorProto as T
    from onnx import helper as h
    return onnx_model([h.make_node("ImageDecoder", ["bytes"], ["image"], pixel_format=pixel_format)], [("bytes", T.UINT8, ["n"])], [("image", T.UINT8, ["h", "w", "c"])], opset=20)


class Pictures(unittest.TestCase):
    pixels = np.arange(2 * 3 * 3, dtype="uint8").reshape(2, 3, 3) * 9

    def run_format(self, pixel_format):
        return tilewright.compile(picture_model(pixel_format))(np.frombuffer(bitmap(self.pixels), "uint8"))

    def test_formats_of_pixels(self):
        np.testing.assert_array_equal(self.run_format("RGB"), self.pixels)
        np.testing.assert_array_equal(self.run_format("BGR"), self.pixels[:, :, ::-1])
        self.assertEqual(self.run_format("Grayscale").shape, (2, 3, 1))

    def test_a_format_that_there_is_not(self):
        for pixel_format in ("rgb", "CMYK", ""):
            said = f"pixel_format '{pixel_format}' is unknown"
            with self.subTest(pixel_format):
                with self.assertRaisesRegex(tilewright.Error, f"E301.*{said}"):
                    tilewright.compile(picture_model(pixel_format), {"bytes": (60,)})
                with self.assertRaisesRegex(tilewright.Error, f"E101.*ImageDecoder.*{said}"):  # free sizes: the node waits for the run
                    self.run_format(pixel_format)

    def test_without_the_decoders(self):
        """The package with its runtime, but without the library that has the decoders."""
        package = pathlib.Path(tilewright.__file__).parent
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, "python", "tilewright")
            shutil.copytree(package, copy, ignore=shutil.ignore_patterns("libtilewright_pictures*", "classic", "__pycache__"))
            for library in package.parent.parent.glob("libtilewright_runtime.so*"):
                shutil.copy(library, folder)
            model = pathlib.Path(folder, "picture.onnx")
            model.write_bytes(picture_model("RGB").SerializeToString())
            script = f"import numpy, tilewright; tilewright.compile({str(model)!r})(numpy.zeros(9, 'uint8'))"
            done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(copy.parent)}, cwd=folder, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"E403.*pictures cannot be decoded(?s:.*)hint: put libtilewright_pictures.so")


if __name__ == "__main__":
    unittest.main()
