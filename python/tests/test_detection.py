# SPDX-License-Identifier: Apache-2.0
"""Heads of detection networks as the classic deployment tutorials use them, and the networks and numbers of relay.testing."""
import unittest

import numpy as np

from tilewright import classic as tw
from tilewright.classic import relay
from tilewright.classic.relay import testing
from test_scripts import run_script

rng = np.random.default_rng(3)


def run(outs, inputs, kind="graph"):
    body = relay.Tuple([o.astuple() if isinstance(o, relay.TupleWrapper) else o for o in outs])
    mod = tw.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    again = relay.fromtext(mod.astext())
    assert tw.ir.structural_equal(mod, again), mod.astext()
    return [o.numpy() for o in relay.create_executor(kind, mod).evaluate()(**inputs)]


def overlap(a, b):
    inner = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
    return inner / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner)


class Heads(unittest.TestCase):
    def test_ssd(self):
        """Anchors, locations, suppression: what gluon's SSD networks end with."""
        lines = run_script(self, '''
            import numpy as np
            import tvm
            from tvm import relay
            from tvm.contrib import graph_executor

            features = relay.var("features", shape=(1, 8, 4, 4))
            anchor = relay.vision.multibox_prior(features, sizes=(0.3, 0.4), ratios=(1.0, 2.0, 0.5), steps=(-1, -1), offsets=(0.5, 0.5), clip=False)
            boxes, classes = 4 * 4 * 4, 3
            cls_prob = relay.var("cls_prob", shape=(1, classes, boxes))
            loc_pred = relay.var("loc_pred", shape=(1, boxes * 4))
            located = relay.vision.multibox_transform_loc(relay.nn.softmax(cls_prob, axis=1), loc_pred, anchor, threshold=0.2, variances=(0.1, 0.1, 0.2, 0.2))
            out = relay.vision.non_max_suppression(located[0], located[1], located[1], return_indices=False, iou_threshold=0.4, force_suppress=True, top_k=40)
            func = relay.Function(relay.analysis.free_vars(out), out)
            mod = tvm.IRModule.from_expr(func)
            assert "vision.multibox_transform_loc" in mod.astext()
            with tvm.transform.PassContext(opt_level=3):
                lib = relay.build(mod, "llvm")
            module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
            rng = np.random.RandomState(0)
            module.set_input(features=np.zeros((1, 8, 4, 4), "float32"), cls_prob=rng.randn(1, classes, boxes).astype("float32") * 2, loc_pred=rng.randn(1, boxes * 4).astype("float32"))
            module.run()
            result = module.get_output(0).numpy()
            rows = result[0][result[0, :, 0] >= 0]
            assert result.shape == (1, boxes, 6) and 3 < len(rows) < 40
            assert (np.diff(rows[:, 1]) <= 0).all() and rows[:, 2:].min() >= 0 and rows[:, 2:].max() <= 1
            for i, a in enumerate(rows[:, 2:]):
                for b in rows[:i, 2:]:
                    inner = max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))
                    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner
                    assert inner < 0.4 * union + 1e-6
            print("ssd", len(rows) == len({tuple(r) for r in rows}))
            ''')
        self.assertEqual(lines, ["ssd True"])

    def test_yolo(self):
        """A Darknet region layer, decoded by relay.testing.yolo_detection."""
        lines = run_script(self, '''
            import numpy as np
            import tvm
            from tvm import relay
            from tvm.relay.testing import yolo_detection
            from tvm.relay.testing.darknet import LAYERTYPE

            data = relay.var("data", shape=(1, 64, 8, 8))
            reorg = relay.vision.yolo_reorg(data, stride=2)
            weight = relay.var("weight", shape=(14, 256, 1, 1))
            out = relay.nn.conv2d(reorg, weight, channels=14, kernel_size=(1, 1))
            out = relay.reshape(out, (2, 7, 4, 4))
            xy, wh, rest = relay.split(out, (2, 4), axis=1)
            out = relay.concatenate([relay.sigmoid(xy), wh, relay.sigmoid(rest)], axis=1)
            mod = tvm.IRModule.from_expr(relay.Function([data, weight], out))
            run = relay.create_executor("graph", mod=mod, device=tvm.cpu(), target="llvm").evaluate()
            rng = np.random.RandomState(1)
            got = run(rng.randn(1, 64, 8, 8).astype("float32"), (rng.randn(14, 256, 1, 1) * 0.2).astype("float32")).numpy()
            layer = {"type": "Region", "output": got, "classes": 2, "coords": 4, "background": False, "biases": [1.0, 1.5, 2.0, 1.0]}
            dets = yolo_detection.fill_network_boxes((128, 128), (200, 100), 0.3, True, [layer])
            before = sum(float(d["prob"].max()) > 0 for d in dets)
            yolo_detection.do_nms_sort(dets, 2, 0.1)
            after = sum(float(d["prob"].max()) > 0 for d in dets)
            assert len(dets) == 32 and after < before, (before, after)
            picture = np.zeros((3, 100, 200), "float32")
            found = [yolo_detection.get_detections(picture, d, 0.3, ["cat", "dog"], 2) for d in dets]
            print(LAYERTYPE.REGION, after == sum(valid for valid, _ in found), {"left", "top", "right", "bot", "rgb"} <= set(next(d for valid, d in found if valid)))
            ''')
        self.assertEqual(lines, ["22 True True"])

    def test_proposals(self):
        """The region proposals and pooled regions of a two-stage network."""
        prob, moves, info = (relay.var(n, shape=s) for n, s in (("prob", (1, 12, 6, 8)), ("moves", (1, 24, 6, 8)), ("info", (1, 3))))
        features = relay.var("features", shape=(1, 5, 6, 8))
        rois = relay.vision.proposal(prob, moves, info, (1.0, 2.0), (0.5, 1.0, 2.0), 16, 0.7, 200, 20, 8, False)
        values = {"prob": rng.random((1, 12, 6, 8)).astype("float32"), "moves": rng.normal(0, 0.3, (1, 24, 6, 8)).astype("float32"),
                  "info": np.array([[96, 128, 1]], "float32"), "features": rng.normal(size=(1, 5, 6, 8)).astype("float32")}
        regions, aligned, pooled = run([rois, relay.vision.roi_align(features, rois, (3, 3), 1 / 16, 2), relay.vision.roi_pool(features, rois, (3, 3), 1 / 16)], values)
        self.assertEqual((regions.shape, aligned.shape, pooled.shape), ((20, 5), (20, 5, 3, 3), (20, 5, 3, 3)))
        self.assertTrue((regions[:, 0] == 0).all() and (regions[:, 1:] >= 0).all() and (regions[:, 3] <= 127).all() and (regions[:, 4] <= 95).all())
        for i in range(20):
            for j in range(i):
                a, b = regions[i, 1:], regions[j, 1:]
                self.assertTrue((a == b).all() or overlap(a + [0, 0, 1, 1], b + [0, 0, 1, 1]) <= 0.7 + 1e-5)
        self.assertLessEqual(aligned.max(), values["features"].max())
        self.assertTrue((np.isin(pooled, values["features"]) | (pooled == 0)).all())  # bins beyond the picture are empty
        self.assertGreater(np.count_nonzero(pooled), 400)

    def test_suppression_of_all_classes(self):
        """Indices by class for ONNX's operator, scores by picture for TensorFlow's; sizes known or free."""
        boxes, scores = relay.var("boxes", shape=(2, 30, 4)), relay.var("scores", shape=(2, 3, 30))
        low = rng.random((2, 30, 2)).astype("float32")
        values = {"boxes": np.concatenate([low, low + 0.3], -1).astype("float32"), "scores": rng.random((2, 3, 30)).astype("float32")}
        onnx = relay.vision.all_class_non_max_suppression(boxes, scores, 4, 0.3, 0.2)
        tensorflow = relay.vision.all_class_non_max_suppression(boxes, scores, 4, 0.3, 0.2, output_format="tensorflow")
        indices, count, places, chosen, counts = run([*onnx, *tensorflow], values)
        self.assertEqual(count[0], counts.sum())
        self.assertTrue(6 < count[0] <= 24)
        at = 0
        for picture in range(2):
            for k in range(counts[picture]):
                kind, box = places[picture, k]
                self.assertEqual(list(indices[at]), [picture, kind, box])
                self.assertEqual(chosen[picture, k], values["scores"][picture, kind, box])
                at += 1
        self.assertFalse(indices[at:].any())

    def test_errors(self):
        data = relay.var("data", shape=(1, 5, 6))
        with self.assertRaisesRegex(tw.Error, "score_index 9 is outside 6"):
            relay.transform.InferType()(tw.IRModule.from_expr(relay.vision.get_valid_counts(data, 0.1, score_index=9).astuple()))
        with self.assertRaisesRegex(ValueError, "does not divide by stride 3"):
            relay.vision.yolo_reorg(relay.var("x", shape=(1, 4, 4, 4)), 3).checked_type
        with self.assertRaisesRegex(ValueError, "not avg or max"):
            relay.vision.roi_align(relay.var("x", shape=(1, 4, 4, 4)), relay.var("r", shape=(2, 5)), (2, 2), 1.0, mode="median").checked_type
        with self.assertRaisesRegex(ValueError, "not onnx or tensorflow"):
            relay.vision.all_class_non_max_suppression(relay.var("b", shape=(1, 5, 4)), relay.var("s", shape=(1, 2, 5)), output_format="caffe").tuple_value.checked_type
        with self.assertRaisesRegex(AttributeError, "non_max_suppression"):
            relay.vision.nms


class References(unittest.TestCase):
    """topi.testing says what operators compute: beside the compiled ones."""

    def test_operators(self):
        from tilewright.classic.topi import testing as ref
        x, w, v = (rng.normal(size=s).astype("float32") for s in ((2, 4, 9, 8), (6, 2, 3, 3), (2, 3, 4, 5, 6)))
        a, rois = relay.var("x", shape=x.shape), np.array([[0, 1, 2, 15, 9], [1, 4, 0, 11, 17]], "float32")
        moves = rng.normal(size=(2, 18, 9, 8)).astype("float32")
        wide, up = rng.normal(size=(6, 4, 3, 3)).astype("float32"), rng.normal(size=(4, 5, 3, 2)).astype("float32")
        c, nn = relay.const, relay.nn
        pairs = [
            (nn.conv2d(a, c(w), strides=(2, 1), padding=(1, 1), groups=2), ref.conv2d_nchw_python(x, w, (2, 1), 1, 2)),
            (nn.conv2d(relay.transpose(a, [0, 2, 3, 1]), c(wide.transpose(2, 3, 1, 0)), data_layout="NHWC", kernel_layout="HWIO", padding=(1, 1), channels=6, kernel_size=(3, 3)),
             ref.conv2d_nhwc_python(x.transpose(0, 2, 3, 1), wide.transpose(2, 3, 1, 0), 1, "SAME")),
            (nn.conv2d_transpose(a, c(up), strides=(2, 2), padding=(1, 0), output_padding=(1, 1), channels=5, kernel_size=(3, 2)),
             ref.conv2d_transpose_nchw_python(x, up, (2, 2), (1, 0), (1, 1))),
            (nn.avg_pool2d(a, (3, 2), (2, 2), padding=(1, 0, 0, 1)), ref.poolnd_python(x, (3, 2), (2, 2), (1, 1), (1, 0), (0, 1), "avg", False)),
            (nn.max_pool2d(a, (3, 3), (2, 2), padding=(1, 1, 1, 1), ceil_mode=True), ref.poolnd_python(x, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), "max", ceil_mode=True)),
            (nn.adaptive_avg_pool2d(a, (4, 3)), ref.adaptive_pool(x, (4, 3), "avg", "NCHW")),
            (nn.global_avg_pool3d(c(v)), ref.adaptive_pool(v, (1, 1, 1), "avg", "NCDHW")),
            (nn.softmax(a, axis=1), ref.softmax_python(x)), (nn.log_softmax(a, axis=-1), ref.log_softmax_python(x, -1)),
            (nn.lrn(a, 3, 1, 1.0, 0.5, 0.75), ref.lrn_python(x, 3, 1, 1.0, 0.5, 0.75)), (nn.dilate(a, [1, 1, 2, 3]), ref.dilate_python(x, [1, 1, 2, 3])),
            (nn.space_to_depth(relay.strided_slice(a, [0], [8], [1], axes=[2]), 2), ref.space_to_depth_python(x[:, :, :8], 2)),
            (nn.depth_to_space(a, 2), ref.depth_to_space_python(x, 2)),
            (relay.image.resize2d(a, (18, 12), method="linear", coordinate_transformation_mode="half_pixel"), ref.resize2d_python(x, (2, 1.5), "NCHW", "bilinear", "half_pixel")),
            (relay.image.resize2d(a, (5, 4), method="linear", coordinate_transformation_mode="align_corners"), ref.resize2d_python(x, (5 / 9, 0.5), "NCHW", "bilinear", "align_corners")),
            (relay.vision.roi_align(a, c(rois), (3, 2), 0.5, -1), ref.roi_align_nchw_python(x, rois, (3, 2), 0.5, -1)),
            (relay.vision.roi_pool(a, c(rois), (3, 2), 0.5), ref.roi_pool_nchw_python(x, rois, (3, 2), 0.5)),
            (nn.deformable_conv2d(a, c(moves), c(wide), padding=(1, 1), channels=6, kernel_size=(3, 3)), ref.deformable_conv2d_nchw_python(x, moves, wide, 1, 1, 1, 1, 1)),
            (nn.batch_matmul(relay.reshape(a, [8, 9, 8]), c(w.reshape(4, 3, 9)[:, :, :8].repeat(2, 0))), ref.batch_matmul(x.reshape(8, 9, 8), w.reshape(4, 3, 9)[:, :, :8].repeat(2, 0))),
            (relay.one_hot(c(np.array([0, 2], "int32")), c(3.0), c(-1.0), 4, -1, "float32"), ref.one_hot(np.array([0, 2]), 3.0, -1.0, 4, -1, "float32"))]
        got = run([p for p, _ in pairs], {"x": x})
        for place, (one, (_, other)) in enumerate(zip(got, pairs)):
            self.assertEqual(one.shape, other.shape, place)
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3, err_msg=f"pair {place}")
        self.assertIs(tw.topi.testing, ref)
        relay.te_compiler.get().clear()

    def test_regions_of_an_onnx_model(self):
        """A number of samples that depends on the region; its bins beside the classic operator's."""
        from onnx import helper as h
        value = lambda n, t, s: h.make_tensor_value_info(n, t, s)  # noqa: E731
        node = h.make_node("RoiAlign", ["x", "r", "b"], ["y"], output_height=3, output_width=2, sampling_ratio=0, spatial_scale=0.5, coordinate_transformation_mode="output_half_pixel")
        graph = h.make_graph([node], "g", [value("x", 1, (2, 5, 9, 8)), value("r", 1, (2, 4)), value("b", 7, (2,))], [value("y", 1, (2, 5, 3, 2))])
        mod, _ = relay.frontend.from_onnx(h.make_model(graph, opset_imports=[h.make_opsetid("", 16)], ir_version=8))
        x, rois = rng.normal(size=(2, 5, 9, 8)).astype("float32"), np.array([[0, 1, 2, 15, 9], [1, 4, 0, 11, 17]], "float32")
        got = relay.create_executor("graph", mod).evaluate()(x, rois[:, 1:], rois[:, 0].astype("int64"))
        np.testing.assert_allclose(got.numpy(), tw.topi.testing.roi_align_nchw_python(x, rois, (3, 2), 0.5, -1), rtol=1e-4, atol=1e-5)


class Testing(unittest.TestCase):
    def test_networks(self):
        for name, args, shape in (("synthetic", {}, (1, 3, 24, 12)), ("resnet_3d", {"image_shape": (3, 4, 32, 32), "num_classes": 7}, (1, 7)),
                                  ("resnet_3d", {"image_shape": (4, 32, 32, 3), "num_classes": 7, "layout": "NDHWC", "num_layers": 50}, (1, 7))):
            mod, params = getattr(testing, name).get_workload(**args)
            with tw.transform.PassContext(opt_level=3):
                module = tw.contrib.graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tw.cpu()))
            size = mod["main"].params[0].checked_type.concrete_shape
            module.run(data=rng.random(size).astype("float32"))
            out = module.get_output(0).numpy()
            self.assertEqual(out.shape, shape)
            self.assertTrue(np.isfinite(out).all())
        names = [p.name_hint for p in mod["main"].params]
        self.assertTrue({"conv0_weight", "stage4_unit3_conv3_weight", "stage1_unit1_sc_weight", "bn1_moving_var", "fc1_bias"} <= set(names))

    def test_natural_numbers(self):
        p = relay.Prelude(tw.IRModule())
        testing.nat.add_nat_definitions(p)
        double, add, iterate = (p.mod.get_global_var(f"nat_{n}") for n in ("double", "add", "iterate"))
        number = lambda n: testing.make_nat_expr(p, n)  # noqa: E731
        evaluate = relay.create_executor("debug", p.mod).evaluate
        self.assertEqual(testing.count(p, evaluate(add(number(3), double(number(4))))), 11)
        self.assertEqual(testing.count(p, evaluate(iterate(double, number(3))(number(1)))), 8)
        self.assertEqual(testing.count(p, testing.make_nat_value(p, 6)), 6)
        self.assertIsInstance(testing.make_nat_value(p, 0), relay.ConstructorValue)
        graph = relay.analysis.CallGraph(p.mod)
        self.assertTrue(graph.is_recursive(double))
        self.assertEqual((graph.ref_count("nat_add"), graph.global_call_count("id"), "nat_add" in str(graph)), (1, 0, True))
        with self.assertRaisesRegex(ValueError, "no function 'none'"):
            graph.ref_count("none")

    def test_copies_with_other_parts(self):
        x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,), dtype="int8")
        f = relay.Function([x], x + relay.const(1.0))
        self.assertIs(relay.FunctionWithFields(f, params=None), f)
        self.assertEqual(relay.FunctionWithFields(f, body=x).body, x)
        self.assertIs(relay.FunctionWithFields(f, body=f.body), f)
        self.assertEqual(relay.CallWithFields(f.body, args=[x, x]).args[1], x)
        self.assertEqual(relay.TupleWithFields(relay.Tuple([x, y]), [y]).fields[0], y)
        self.assertEqual(relay.VarWithFields(x, "z").name_hint, "z")
        self.assertIs(relay.VarWithFields(x), x)
        branch = relay.If(relay.const(True), x, x)
        self.assertEqual(relay.IfWithFields(branch, false_branch=x), branch)
        let = relay.Let(x, relay.const(np.ones(2, "float32")), x)
        self.assertEqual(relay.LetWithFields(let, body=y).body, y)
        with self.assertRaisesRegex(TypeError, "takes a Call, not a Var"):
            relay.CallWithFields(x, args=[])
        self.assertEqual(relay.analysis.all_dtypes(relay.Tuple([x, y])), {"float32", "int8"})
        self.assertEqual(testing.count_ops(f), {"add": 1})


if __name__ == "__main__":
    unittest.main()
