# SPDX-License-Identifier: Apache-2.0
"""Numbers and structure as the classic stack has them, where it is easy to be a little off: ties, names, sharing, layouts."""
import unittest

import numpy as np

from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.ir import structural_equal, structural_hash
from tilewright.classic.relay import transform


def value(function, *arrays, kind="graph"):
    out = relay.create_executor(kind, tw.IRModule.from_expr(function)).evaluate()(*arrays)
    return out.numpy() if hasattr(out, "numpy") else [v.numpy() for v in out]


class Numbers(unittest.TestCase):
    def test_nearest_neighbours_round_down_by_default(self):
        data = np.arange(2 * 5, dtype="float32").reshape(1, 2, 5)
        for dtype in ("float32", "int8"):
            x = relay.var("x", shape=data.shape, dtype=dtype)
            for mode, rounding, places in (("asymmetric", "", [0, 0, 1, 1, 2, 3, 3, 4]), ("asymmetric", "round", [0, 1, 1, 2, 3, 3, 4, 4]),
                                           ("half_pixel", "", [0, 0, 1, 1, 2, 2, 3, 4]), ("align_corners", "", [0, 1, 1, 2, 2, 3, 3, 4])):
                y = relay.image.resize1d(x, (8,), None, "NCW", "nearest_neighbor", coordinate_transformation_mode=mode, rounding_method=rounding)
                out = value(relay.Function([x], y), data.astype(dtype))
                np.testing.assert_array_equal(out, data[..., places].astype(dtype), err_msg=f"{dtype} {mode} {rounding}")

    def test_kernels_of_transposed_convolutions_begin_with_the_input_channels(self):
        rng = np.random.default_rng(0)
        for channels, groups, layout in ((3, 1, "OIHW"), (2, 1, "OIHW"), (3, 1, "IOHW"), (32, 1, "OIHW"), (4, 2, "OIHW")):
            taken = 16 if channels > 16 else 2 * groups
            data, kernel = rng.random((1, taken, 4, 5), "float32"), rng.random((taken, channels // groups, 2, 2), "float32")
            factor = np.arange(2, 2 + channels, dtype="float32").reshape(channels, 1, 1)
            x = relay.var("x", shape=data.shape)
            y = relay.nn.conv2d_transpose(x, relay.const(kernel), (2, 2), channels=channels, kernel_size=(2, 2), groups=groups, kernel_layout=layout)
            out = value(relay.Function([x], y * relay.const(factor)), data)
            of_group = [slice(g * taken // groups, (g + 1) * taken // groups) for g in range(groups)]
            want = np.concatenate([np.einsum("nchw,cokl->nohkwl", data[:, g], kernel[g]).reshape(1, -1, 8, 10) for g in of_group], axis=1)
            np.testing.assert_allclose(out, want * factor, rtol=1e-5, err_msg=f"{channels} {groups} {layout}")
            for wanted in (["NHWC", "default"], ["NHWC", "HWIO"], ["NCHW", "IOHW"]):
                module = transform.InferType()(tw.IRModule.from_expr(relay.Function([x], y)))
                moved = transform.ConvertLayout({"nn.conv2d_transpose": wanted})(module)
                np.testing.assert_allclose(value(moved["main"], data), want, rtol=1e-5, err_msg=f"{channels} {groups} {layout} {wanted}")

    def test_variables_are_who_they_are(self):
        a, b = relay.var("x", shape=(3,)), relay.var("x", shape=(3,))
        one, two = np.array([1, 2, 3], "float32"), np.array([0, 5, 1], "float32")
        for kind in ("graph", "vm", "debug"):
            np.testing.assert_array_equal(value(relay.Function([a, b], a - b), one, two, kind=kind), one - two)

    def test_halves(self):
        x, data = relay.var("x", shape=(6,)), np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], "float32")
        quantized = relay.qnn.op.quantize(x, relay.const(1.0), relay.const(0), out_dtype="int8")
        for y in (relay.round(x), quantized):
            for kind in ("graph", "debug"):
                np.testing.assert_array_equal(value(relay.Function([x], y), data, kind=kind), [-3, -2, -1, 1, 2, 3])

    def test_requantised_ties_go_up_whatever_the_shape(self):
        scales = [relay.const(0.3), relay.const(0), relay.const(0.6), relay.const(0)]
        for shape in ((4,), (1, 4), (2, 2), (1, 4, 1, 1)):
            x = relay.var("x", shape=shape, dtype="int32")
            for rounding, want in (("UPWARD", [0, -1, 1, 2]), ("TONEAREST", [-1, -2, 1, 2])):
                y = relay.qnn.op.requantize(x, *scales, rounding=rounding, out_dtype="int8")
                np.testing.assert_array_equal(value(relay.Function([x], y), np.array([-1, -3, 1, 3], "int32").reshape(shape)).ravel(), want)

    def test_quantised_sums_round_each_operand(self):
        a, b = (relay.var(n, shape=(4,), dtype="uint8") for n in "ab")
        half = [relay.const(0.5), relay.const(0)]
        left, right = np.array([1, 3, 2, 5], "uint8"), np.array([1, 2, 2, 5], "uint8")
        for op, zero, want in ((relay.qnn.op.add, 0, [2, 3, 2, 6]), (relay.qnn.op.subtract, 10, [10, 11, 10, 10])):
            y = op(a, b, *half, *half, relay.const(1.0), relay.const(zero))
            np.testing.assert_array_equal(value(relay.Function([a, b], y), left, right), want)

    def test_no_elements_of_topk_means_all(self):
        x, k = relay.var("x", shape=(5,)), relay.var("k", shape=(), dtype="int32")
        y = relay.topk(x, k)
        self.assertEqual(len(value(relay.Function([x, k], y.astuple()), np.arange(5, dtype="float32"), np.array(0, "int32"), kind="vm")[0]), 5)

    def test_gradients_of_integers(self):
        x = relay.var("x", shape=(1, 1, 4, 4), dtype="int32")
        gradient = transform.gradient(relay.Function([x], relay.nn.avg_pool2d(x, pool_size=(1, 1))))
        _, (dx,) = relay.create_executor("graph").evaluate(gradient)(np.ones((1, 1, 4, 4), "int32"))
        np.testing.assert_array_equal(dx.numpy(), np.ones((1, 1, 4, 4), "int32"))


    def test_extremes_among_several_axes(self):
        data = np.random.default_rng(0).permutation(60).reshape(3, 4, 5).astype("float32")
        x = relay.var("x", shape=data.shape)
        for axes in ((1, 2), (0, 2), (2, 1), (0, 1, 2)):
            rest = [d for d in range(3) if d not in axes]
            flat = data.transpose(rest + sorted(axes)).reshape([data.shape[d] for d in rest] + [-1])
            np.testing.assert_array_equal(value(relay.Function([x], relay.argmax(x, axis=axes)), data), flat.argmax(-1))
        np.testing.assert_array_equal(value(relay.Function([x], relay.argmin(x, axis=1, exclude=True)), data), data.transpose(1, 0, 2).reshape(4, -1).argmin(1))

    def test_sums_of_segments(self):
        x, ids = relay.var("x", shape=(4, 3)), relay.var("ids", shape=(4,), dtype="int32")
        rows, places = np.arange(12, dtype="float32").reshape(4, 3), np.array([0, 0, 2, 2], "int32")
        want = np.stack([rows[:2].sum(0), np.zeros(3), rows[2:].sum(0)])
        np.testing.assert_array_equal(value(relay.Function([x, ids], relay.segment_sum(x, ids, 3)), rows, places), want)
        np.testing.assert_array_equal(value(relay.Function([x, ids], relay.segment_sum(x, ids)), rows, places, kind="vm"), want)

    def test_kernels_for_small_and_blocked_operands(self):
        rng = np.random.default_rng(0)
        for m, k, n in ((4, 1, 3), (1, 4, 3), (5, 7, 9)):
            left, right = rng.random((k, m), "float32"), rng.random((k, n), "float32")
            x, y = relay.var("x", shape=left.shape), relay.var("y", shape=right.shape)
            np.testing.assert_allclose(value(relay.Function([x, y], relay.nn.matmul(x, y, transpose_a=True)), left, right), left.T @ right, rtol=1e-5)
        image = rng.random((1, 3, 7, 5), "float32")
        x = relay.var("x", shape=image.shape)
        np.testing.assert_array_equal(value(relay.Function([x], relay.nn.adaptive_max_pool2d(x, (1, 1))), image), image.max((2, 3), keepdims=True))
        blocks = rng.random((1, 2, 3, 3, 4), "float32")
        x = relay.var("x", shape=blocks.shape)
        np.testing.assert_array_equal(value(relay.Function([x], relay.nn.upsampling(x, 2, 2, layout="NCHW4c")), blocks), blocks.repeat(2, 2).repeat(2, 3))
        x = relay.var("x", shape=(2, 3, 4))
        for codes, shape in (((4, 0, 2), (4, 3, 2)), ((0, -1), (3, 8)), ((-1, 0), (6, 4)), ((0, -3), (2, 12))):
            self.assertEqual(relay.reverse_reshape(x, codes).checked_type, relay.TensorType(shape))

    def test_weights_without_types(self):
        x, w, o = relay.var("x", shape=(4, 8)), relay.var("w"), relay.var("o")
        typed = lambda e, i: transform.InferType()(tw.IRModule.from_expr(e))["main"].params[i].checked_type  # noqa: E731
        self.assertEqual(typed(relay.nn.matmul(x, w, units=2), 1), relay.TensorType((8, 2)))
        self.assertEqual(typed(relay.nn.matmul(x, w, units=2, transpose_b=True), 1), relay.TensorType((2, 8)))
        image = relay.var("image", shape=(1, 4, 8, 8))
        y = relay.nn.deformable_conv2d(image, o, w, strides=(1, 1), padding=(1, 1), kernel_size=(3, 3), channels=6)
        self.assertEqual([typed(y, i) for i in (1, 2)], [relay.TensorType((1, 18, 8, 8)), relay.TensorType((6, 4, 3, 3))])


class Gradients(unittest.TestCase):
    def gradient(self, function, *arrays, kind="debug"):
        made = transform.gradient(transform.InferType()(tw.IRModule.from_expr(function))["main"])
        _, gradients = relay.create_executor(kind, tw.IRModule.from_expr(made)).evaluate()(*arrays)
        return [g.numpy() for g in gradients]

    def test_of_functions(self):
        rng = np.random.default_rng(0)
        for name, low, high in (("acos", -0.5, 0.5), ("acosh", 1.5, 3), ("asin", -0.5, 0.5), ("asinh", -1, 1), ("atan", -1, 1), ("atanh", -0.5, 0.5),
                                ("sinh", -1, 1), ("cosh", -1, 1), ("tan", -0.5, 0.5), ("erf", -1, 1), ("log10", 1, 2), ("log2", 1, 2)):
            x, data, step = relay.var("x", shape=(4,), dtype="float64"), rng.uniform(low, high, 4), 1e-6
            f = relay.Function([x], getattr(relay, name)(x))
            slope = (value(f, data + step) - value(f, data - step)) / (2 * step)
            np.testing.assert_allclose(self.gradient(f, data)[0], slope, rtol=1e-4, err_msg=name)

    def test_through_programs(self):
        x, y, r, u = relay.var("x", shape=(3,)), relay.var("y", shape=(3,)), relay.var("r"), relay.var("u")
        ones = np.ones(3, "float32")
        let = relay.Let(y, x, relay.add(y, y))
        cell = relay.Let(r, relay.RefCreate(x), relay.Let(u, relay.RefWrite(r, relay.RefRead(r) + relay.RefRead(r)), relay.RefRead(r)))
        z = relay.var("z", shape=(3,))
        closure = relay.Call(relay.Function([z], z + x), [x])
        for body in (let, cell, closure):
            np.testing.assert_array_equal(self.gradient(relay.Function([x], body), ones)[0], 2 * ones)
        c, w = relay.var("c", shape=(), dtype="bool"), relay.var("w", shape=(3,))
        _, left, right = self.gradient(relay.Function([c, x, w], relay.log(relay.If(c, x, w))), np.array(True), 2 * ones, ones)
        np.testing.assert_array_equal([left, right], [0.5 * ones, 0 * ones])
        square = relay.Function([x], x * x)
        once = transform.gradient(transform.InferType()(tw.IRModule.from_expr(square))["main"])
        slope = relay.Function([z], relay.TupleGetItem(relay.TupleGetItem(once(z), 1), 0))
        np.testing.assert_array_equal(self.gradient(slope, ones)[0], 2 * ones)
        free = relay.var("x", relay.TensorType((relay.Any(),)))
        np.testing.assert_array_equal(self.gradient(relay.Function([free], free + free * free), ones, kind="vm")[0], 3 * ones)


class Structure(unittest.TestCase):
    def test_equal_and_hash(self):
        x, y, z = relay.var("x", shape=(2,)), relay.var("y", shape=(3,)), relay.var("z", shape=(2,))
        same = [(relay.Function([x], x), relay.Function([z], z)), (relay.nn.leaky_relu(x, 1e-05), relay.nn.leaky_relu(x, float(np.float32(1e-05))))]
        a, b = relay.add(x, z), relay.add(x, z)
        other = [(relay.Function([x], x), relay.Function([y], y)), (relay.add(a, a), relay.add(a, b)), (relay.add(a, b), relay.add(a, a)), (x, z),
                 (relay.Function([x], x), relay.Function([x], x).with_attr("a", 1)),
                 (relay.Let(relay.var("v", shape=(2,)), x, x), relay.Let(relay.var("v", shape=(3,)), x, x))]
        for left, right in same + [(relay.add(a, a), relay.add(b, b))]:
            self.assertTrue(structural_equal(left, right))
            self.assertEqual(structural_hash(left), structural_hash(right))
        for left, right in other:
            self.assertFalse(structural_equal(left, right), f"{left}\n{right}")
            self.assertNotEqual(structural_hash(left), structural_hash(right))
        self.assertTrue(structural_equal(x, z, map_free_vars=True))
        self.assertEqual(structural_hash(x, map_free_vars=True), structural_hash(z, map_free_vars=True))
        self.assertEqual(relay.TensorType((relay.Any(), 3)), relay.TensorType((relay.Any(), 3)))


class Passes(unittest.TestCase):
    def assert_becomes(self, function, expected, *passes):
        with tw.transform.PassContext(opt_level=4):
            out = tw.transform.Sequential(list(passes))(tw.IRModule.from_expr(function))["main"]
            want = transform.InferType()(tw.IRModule.from_expr(expected))["main"]
        self.assertTrue(structural_equal(out, want), f"{out}\nexpected\n{want}")

    def test_simplify(self):
        x, y = relay.var("x", shape=(3, 2)), relay.var("y", shape=(3, 2))
        image = relay.var("x", shape=(1, 8, 4, 4, 4))
        plain = relay.layout_transform(relay.nn.relu(image), "NCHW4c", "NCHW")
        for function, want in ((relay.Function([x, y], relay.zeros_like(x) + y), relay.Function([x, y], y)),
                               (relay.Function([x, y], relay.ones((3, 2), "float32") * y), relay.Function([x, y], y)),
                               (relay.Function([x], x * relay.full_like(x, relay.const(2.5))), relay.Function([x], x * relay.const(2.5))),
                               (relay.Function([x], relay.reshape(relay.reshape(x, (2, 3)), (6,))), relay.Function([x], relay.reshape(x, (6,)))),
                               (relay.Function([image], relay.transpose(plain, [0, 2, 3, 1])),
                                relay.Function([image], relay.layout_transform(relay.nn.relu(image), "NCHW4c", "NHWC")))):
            self.assert_becomes(function, want, transform.SimplifyExpr())

    def test_parallel_products(self):
        x, v, w = relay.var("x", shape=(3, 5)), relay.var("v", shape=(4, 5)), relay.var("w", shape=(4, 5))
        both = relay.Function([x, v, w], relay.Tuple([relay.nn.dense(x, v), relay.nn.dense(x, w)]))
        wide = relay.nn.dense(x, relay.concatenate((v, w), axis=0), units=8)
        part = lambda i: relay.strided_slice(wide, [0, 4 * i], [-1, 4], [1, 1], slice_mode="size")  # noqa: E731
        self.assert_becomes(both, relay.Function([x, v, w], relay.Tuple([part(0), part(1)])), transform.CombineParallelDense(2, to_batch=False))
        batch = relay.split(relay.nn.batch_matmul(relay.stack((x, x), axis=0), relay.stack((v, w), axis=0)), 2)
        self.assert_becomes(both, relay.Function([x, v, w], relay.Tuple([relay.squeeze(b, [0]) for b in batch])), transform.CombineParallelDense(2))

    def test_inlined_functions_go(self):
        mod, x = tw.IRModule(), relay.var("x", shape=(3,))
        mod["twice"] = relay.Function([x], x + x).with_attr("Inline", 1)
        y = relay.var("y", shape=(3,))
        mod["main"] = relay.Function([y], mod.get_global_var("twice")(y))
        self.assertEqual([g.name_hint for g in transform.Inline()(transform.InferType()(mod)).get_global_vars()], ["main"])


class Layouts(unittest.TestCase):
    def opt(self, function, *passes):
        with tw.transform.PassContext(opt_level=3):
            return tw.transform.Sequential(list(passes))(tw.IRModule.from_expr(function))["main"]

    def converted(self, layouts, of, expected):
        def whole(moved, body):
            x, w = relay.var("x", shape=(1, 8, 8, 16)), relay.var("w", shape=(3, 3, 16, 16))
            if moved:
                data, weight = relay.layout_transform(x, "NHWC", "NCHW"), relay.layout_transform(w, "HWIO", "OIHW")
                return relay.Function([x, w], body(relay.nn.conv2d(data, weight, channels=16, kernel_size=(3, 3), padding=(1, 1))))
            return relay.Function([x, w], body(relay.nn.conv2d(x, w, channels=16, kernel_size=(3, 3), padding=(1, 1), data_layout="NHWC", kernel_layout="HWIO")))
        out, want = self.opt(whole(False, of), transform.ConvertLayout(layouts)), self.opt(whole(True, expected), transform.InferType())
        self.assertTrue(structural_equal(out, want), f"{out}\nexpected\n{want}")

    def test_layouts_go_through_operators(self):
        back = lambda y: relay.layout_transform(y, "NCHW", "NHWC")  # noqa: E731
        layouts = {"nn.conv2d": ["NCHW", "default"]}
        self.converted(layouts, relay.nn.relu, lambda y: back(relay.nn.relu(y)))
        self.converted(layouts, lambda y: relay.squeeze(y, axis=[0]), lambda y: relay.layout_transform(relay.squeeze(y, axis=[0]), "CHW", "HWC"))
        self.converted(layouts, lambda y: relay.topk(y, k=2, axis=3)[0], lambda y: back(relay.topk(y, k=2, axis=1)[0]))
        self.converted(layouts, lambda y: relay.strided_slice(y, [0, 1], [1, -1, 7], [1, 1, 2, 1]),
                       lambda y: back(relay.strided_slice(y, [0, 0, 1], [1, 2**31 - 1, -1, 7], [1, 1, 1, 2])))
        self.converted(layouts, lambda y: relay.transpose(y, [0, 3, 1, 2]), lambda y: relay.transpose(y, [0, 1, 2, 3]))
        self.converted(layouts, lambda y: relay.nn.softmax(y, axis=3), lambda y: relay.nn.softmax(back(y), axis=3))

    def test_rules_of_scripts(self):
        def blocks(attrs, inputs, types, out_type):
            return relay.nn.conv2d(*inputs, **{**dict(attrs.items()), "data_layout": "NCHW16c"})

        def whole(make, moved):
            x, w, b = relay.var("x", shape=(1, 16, 8, 8)), relay.var("w", shape=(32, 16, 3, 3)), relay.var("b", shape=(32, 1, 1))
            if moved:
                y = relay.nn.conv2d(relay.layout_transform(x, "NCHW", "NCHW16c"), w, channels=32, kernel_size=(3, 3), data_layout="NCHW16c")
                return relay.Function([x, w, b], make(y, relay.layout_transform(relay.expand_dims(b, 0, 1), "NCHW", "NCHW16c")))
            return relay.Function([x, w, b], make(relay.nn.conv2d(x, w, channels=32, kernel_size=(3, 3)), b))
        back = lambda y: relay.layout_transform(y, "NCHW16c", "NCHW")  # noqa: E731
        cases = [(lambda y, b: relay.nn.max_pool2d(relay.add(y, b), (2, 2)), lambda y, b: back(relay.nn.max_pool2d(relay.add(y, b), (2, 2), layout="NCHW16c"))),
                 (lambda y, b: relay.strided_slice(relay.add(y, b), [0, 16], [1, 32], [1, 1]),
                  lambda y, b: back(relay.strided_slice(relay.add(y, b), [0, 1], [1, 2], [1, 1])))]
        relay.op.register_alter_op_layout("nn.conv2d", blocks, level=15)
        try:
            for make, expected in cases:
                out, want = self.opt(whole(make, False), transform.AlterOpLayout()), self.opt(whole(expected, True), transform.InferType())
                self.assertTrue(structural_equal(out, want), f"{out}\nexpected\n{want}")
        finally:
            relay.op.get("nn.conv2d").reset_attr("FTVMAlterOpLayout")


if __name__ == "__main__":
    unittest.main()
