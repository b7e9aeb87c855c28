# SPDX-License-Identifier: Apache-2.0
"""Gradients beside differences, small: of operators over parts of tensors, of grouped convolutions, through what a program is made of."""
import numpy as np
import tvm
from harness import numbers, program
from tvm import relay
from tvm.relay.testing import check_grad, run_infer_type
from tvm.relay.transform import gradient


def const(values):
    return relay.const(np.array(values))


# name: (shapes of the operands, the operator)
CASES = {
    "take of rows": ([(3, 2)], lambda x: relay.take(x, const([0, 2, 2]), axis=0)), "take of columns": ([(2, 3)], lambda x: relay.take(x, const([0, 2, 2]), axis=1)),
    "take between axes": ([(2, 2, 2)], lambda x: relay.take(x, const([1, 1, 0]), axis=1)), "take of a flat tensor": ([(2, 2)], lambda x: relay.take(x, const([0, 3, 3]))),
    "take that wraps": ([(3, 2)], lambda x: relay.take(x, const([4, -1]), axis=0, mode="wrap")), "take that clips": ([(3, 2)], lambda x: relay.take(x, const([9, -2]), axis=0, mode="clip")),
    "take by a table": ([(3,)], lambda x: relay.take(x, const([[0, 1], [2, 0]]), axis=0)),
    "slice by size": ([(3, 4)], lambda x: relay.strided_slice(x, [1, 1], [2, 2], slice_mode="size")), "slice in steps": ([(5,)], lambda x: relay.strided_slice(x, [0], [5], [2])),
    "slice of one axis": ([(3, 2)], lambda x: relay.strided_slice(x, [1], [3], axes=[0])),
    "tile": ([(2, 1)], lambda x: relay.tile(x, (2, 2))), "tile to more axes": ([(2,)], lambda x: relay.tile(x, (2, 3))),
    "repeat": ([(2, 2)], lambda x: relay.repeat(x, 2, 0)), "repeat of the last axis": ([(2, 2)], lambda x: relay.repeat(x, 3, -1)), "reverse": ([(2, 2)], lambda x: relay.reverse(x, 1)),
    "layout": ([(1, 4, 1, 1)], lambda x: relay.layout_transform(x, "NCHW", "NCHW2c")),
    "conv2d in groups": ([(1, 4, 3, 3), (2, 2, 2, 2)], lambda x, w: relay.nn.conv2d(x, w, groups=2, kernel_size=(2, 2), channels=2)),
    "depthwise conv2d": ([(1, 2, 3, 3), (2, 1, 3, 3)], lambda x, w: relay.nn.conv2d(x, w, groups=2, padding=1, kernel_size=(3, 3), channels=2)),
    "depthwise conv2d in steps": ([(2, 2, 3, 3), (2, 1, 2, 2)], lambda x, w: relay.nn.conv2d(x, w, groups=2, strides=2, padding=1, kernel_size=(2, 2), channels=2)),
    "global pool of channels last": ([(1, 2, 2, 2)], lambda x: relay.nn.global_avg_pool2d(x, layout="NHWC")),
    "full": ([()], lambda x: relay.full(x, (2, 2), "float32")), "scalars": ([(), ()], lambda x, y: x * y + x),
}


@program(*CASES)
def beside_differences(name):
    shapes, operator = CASES[name]
    variables = [relay.var(n, shape=s) for n, s in zip("xy", shapes)]
    check_grad(relay.Function(variables, operator(*variables)), inputs=[numbers(*s, seed=11) if s else np.float32(0.7) for s in shapes], eps=1e-2, rtol=0.05, atol=0.02)


@program("arange", "argmax", "argmin", "trunc", "floor", "ones_like")
def nothing_flows_back(name):
    x = relay.var("x", shape=(3,))
    out = {"arange": lambda: relay.arange(relay.const(3.0)), "argmax": lambda: relay.cast(relay.argmax(x), "float32"), "argmin": lambda: relay.cast(relay.argmin(x), "float32")}
    body = out.get(name, lambda: getattr(relay, name)(x))() + x
    function = run_infer_type(gradient(run_infer_type(relay.Function([x], body))))
    value = relay.create_executor("debug", mod=tvm.IRModule.from_expr(function)).evaluate()(numbers(3))
    np.testing.assert_allclose(value[1][0].numpy(), np.ones(3))
