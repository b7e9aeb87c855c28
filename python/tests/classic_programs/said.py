# SPDX-License-Identifier: Apache-2.0
"""Fields that texts always have, free sizes of scaled pictures, functions that see values, names in profiles."""
import json

import numpy as np
import tvm
from harness import evaluate, numbers, program, same
from tvm import relay, te, tir
from tvm.relay.testing import run_infer_type

IMAGE = relay.var("x", shape=(1, 4, 8, 8))
FLAT = relay.var("m", shape=(3, 4))
SAID = {
    "pool_size=[1, 1]": lambda: relay.nn.max_pool2d(IMAGE), "units=None": lambda: relay.nn.dense(FLAT, relay.var("w", shape=(2, 4))), "axes=None": lambda: relay.transpose(IMAGE),
    "axis=0": lambda: relay.expand_dims(FLAT, 0), "repeats=1": lambda: relay.repeat(FLAT, 1, 0), "reps=[1, 1]": lambda: relay.tile(FLAT, (1, 1)),
    "scale_h=1f": lambda: relay.nn.upsampling(IMAGE), "shape=[]": lambda: relay.zeros((), "float32"), "newshape=[]": lambda: relay.reshape(relay.const([1.0]), ()),
    "k=1": lambda: relay.topk(FLAT, 1, ret_type="values"), "begin=[0], end=[1], strides=[1]": lambda: relay.strided_slice(FLAT, [0], [1]),
    "a_min=0f, a_max=6f": lambda: relay.clip(FLAT, 0, 6), "alpha=0.1f": lambda: relay.nn.leaky_relu(FLAT, 0.1), "alpha=": lambda: relay.nn.lrn(IMAGE),
    'src_layout="NCHW", dst_layout="NHWC"': lambda: relay.layout_transform(IMAGE, "NCHW", "NHWC"), "eps=": lambda: relay.nn.l2_normalize(IMAGE, 1e-5, [1]),
    'out_dtype="int8"': lambda: relay.qnn.op.requantize(relay.var("q", shape=(2,), dtype="int32"), relay.const(0.5), relay.const(0), relay.const(0.25), relay.const(0), out_dtype="int8"),
    "pad_width=[[0, 0], [1, 1]]": lambda: relay.nn.pad(FLAT, ((0, 0), (1, 1))), "window_shape=[2], strides=[1]": lambda: relay.sliding_window(FLAT, 1, (2,), (1,))}


@program(*SAID)
def fields_without_a_default(text):
    made = SAID[text]()
    made = made.tuple_value if isinstance(made, relay.expr.TupleWrapper) else made
    assert text in made.astext(), made.astext()
    params = relay.analysis.free_vars(made)
    mod = tvm.IRModule.from_expr(relay.Function(params, made))
    assert tvm.ir.structural_equal(tvm.parser.fromtext(mod.astext()), relay.transform.InferType()(mod)) or "Constant" in mod.astext()


@program
def fields_that_are_left_out():
    text = relay.sum(IMAGE).astext() + relay.nn.softmax(IMAGE).astext() + relay.squeeze(IMAGE).astext()
    assert "axis" not in text and "keepdims" not in text


@program("upsampling", "upsampling3d")
def scaled_free_sizes(name):
    n, c, d, h, w = (te.size_var(letter) for letter in "ncdhw")
    two = tir.const(2.0, "float64")
    twice = [tir.Cast("int32", te.round(v * two)) for v in (d, h, w)]
    if name == "upsampling":
        made = relay.nn.upsampling(relay.var("x", relay.TensorType((n, c, h, w))), scale_h=2, scale_w=2, layout="NCHW", method="bilinear")
        want = relay.TensorType((n, c, *twice[1:]), "float32")
    else:
        made = relay.nn.upsampling3d(relay.var("x", relay.TensorType((n, c, d, h, w))), scale_d=2, scale_h=2, scale_w=2, layout="NCDHW", method="trilinear")
        want = relay.TensorType((n, c, *twice), "float32")
    assert tvm.ir.structural_equal(run_infer_type(made).checked_type, want)


@program
def free_sizes_of_reorganised_pictures():
    n, c, h, w = (te.size_var(letter) for letter in "nchw")
    div = tir.indexdiv
    made = run_infer_type(relay.vision.yolo_reorg(relay.var("x", relay.TensorType((n, c, h, w))), stride=2))
    assert tvm.ir.structural_equal(made.checked_type, relay.TensorType((n, c * 2 * 2, div(h, 2), div(w, 2)), "float32"))
    made = run_infer_type(relay.vision.yolo_reorg(relay.var("x", relay.TensorType((n, c, 20, 30))), stride=10))
    assert "stride=10" in made.astext() and tvm.ir.structural_equal(made.checked_type, relay.TensorType((n, c * 10 * 10, 2, 3), "float32"))


@program
def functions_that_see_values():
    seen = []
    x = relay.var("x", shape=(2, 2))
    inner = relay.op.debug(x + x, lambda value: seen.append(value.numpy().sum()))
    outer = relay.op.debug(relay.nn.relu(inner), lambda value: seen.append(-value.numpy().sum()))
    out = evaluate(relay.Function([x], outer), np.ones((2, 2), "float32"), kind="debug")
    assert seen == [8.0, -8.0] and out.sum() == 8
    np.testing.assert_array_equal(evaluate(relay.Function([x], outer), np.ones((2, 2), "float32")), out)


@program
def names_of_profiled_kernels():
    x = relay.var("x", shape=(4, 10))
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.nn.relu(x + x)))), "llvm")
    report = tvm.runtime.profiler_vm.VirtualMachineProfiler(exe, tvm.cpu()).profile(numbers(4, 10))
    assert "fused_" in str(report) and "nn_softmax" in str(report) and "compile" not in str(report), str(report)
    assert "Duration (us)" in json.loads(report.json())["calls"][0]


@program
def a_let_on_a_device():
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    place = tvm.target.VirtualDevice(tvm.cpu(1))
    moved = relay.LetWithFields(relay.Let(y, x, y), None, None, None, place)
    assert moved.virtual_device_.virtual_device_id == 1 and moved.var == y
    assert relay.LetWithFields(moved, virtual_device=place) is moved


@program
def reshapes_from_the_end_are_reshapes():
    x = relay.var("x", shape=(1, 16, 16, 16))
    folded = relay.reverse_reshape(relay.reshape(x, (4, 8, -1, 8)), (32, 0, -1))
    mod = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.SimplifyExpr()])(tvm.IRModule.from_expr(relay.Function([x], folded)))
    shape = tuple(int(d) for d in run_infer_type(folded).checked_type.shape)
    same(mod["main"], run_infer_type(relay.Function([x], relay.reshape(x, shape))))
