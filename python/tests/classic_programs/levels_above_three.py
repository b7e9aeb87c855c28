# SPDX-License-Identifier: Apache-2.0
"""Operators of the fourth to the tenth level: reductions, slices, images, sorting, sequences."""
import numpy as np
import tvm
import tvm.topi.testing
from tvm import relay, te
from tvm.relay.testing import run_infer_type

from harness import program, raises, numbers, evaluate


def both(function, *arrays):
    """What each of the two executors makes of it."""
    return [relay.create_executor(kind, device=tvm.cpu(0), target="llvm").evaluate(function)(*arrays) for kind in ("graph", "debug")]


@program
def argument_reductions_with_last_index():
    x = relay.var("x", shape=(3, 4))
    a = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [0, 5, 1, 5]], "float32")
    for last, want in ((False, [1, 0, 1]), (True, [2, 3, 3])):
        np.testing.assert_array_equal(evaluate(relay.Function([x], relay.argmax(x, axis=1, select_last_index=last)), a), want)
    assert run_infer_type(relay.argmin(x, axis=(0,), keepdims=True)).checked_type == relay.TensorType((1, 4), "int32")
    assert run_infer_type(relay.argmin(x, axis=(1,), exclude=True)).checked_type == relay.TensorType((4,), "int32")


@program
def mean_variance_std_numbers():
    x = relay.var("x", shape=(2, 3, 4))
    a = numbers(2, 3, 4)
    m, v = evaluate(relay.Function([x], relay.mean_variance(x, axis=[1], keepdims=True).astuple()), a)
    np.testing.assert_allclose(m, a.mean(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(v, a.var(1, keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(evaluate(relay.Function([x], relay.std(x, axis=2, unbiased=True)), a), a.std(2, ddof=1), rtol=1e-4)
    np.testing.assert_allclose(evaluate(relay.Function([x], relay.logsumexp(x, axis=(0, 2))), a), np.log(np.exp(a).sum((0, 2))), rtol=1e-5)


@program
def strided_slice_that_a_mode_reads():
    x = relay.var("x", relay.TensorType((3, 4, 3), "float32"))
    for begin, end, strides, mode, want in (([1, 1, 0], [4, 4, 3], [2, 1, 1], "end", (1, 3, 3)), ([1, 0, 0], [2, 2, 3], [1, 1, 2], "end", (1, 2, 2)), ([1, -1, 0], [2, -3, 3], [1, -1, 1], "end", (1, 2, 3)), ([1, 0, 0], [-1, 2, 3], [1, 1, 1], "size", (2, 2, 3)), ([1, 1], [4, 4, 3], None, "end", (2, 3, 3)), ([1, -1, 0], [4, -5, 3], [2, -1, 1], "end", (1, 4, 3))):
        z = relay.strided_slice(x, begin=begin, end=end, strides=strides, slice_mode=mode) if strides else relay.strided_slice(x, begin=begin, end=end)
        assert run_infer_type(z).checked_type == relay.TensorType(want, "float32")
        want_numbers = tvm.topi.testing.strided_slice_python(numbers(3, 4, 3), begin, end, strides or [1, 1, 1], mode)
        for out in both(relay.Function([x], z), numbers(3, 4, 3)):
            np.testing.assert_allclose(out.numpy(), want_numbers)
    assert "begin=" in z.astext() and "end=" in z.astext()


@program
def strided_set_of_rows():
    x, v = relay.var("x", relay.TensorType((3, 4, 3), "float32")), relay.var("v", relay.TensorType((1, 3, 3), "float32"))
    z = relay.strided_set(x, v, [1, 1, 0], [4, 4, 3], [2, 1, 1])
    assert run_infer_type(z).checked_type == relay.TensorType((3, 4, 3), "float32")
    a, b = numbers(3, 4, 3), numbers(1, 3, 3, seed=3)
    want = a.copy()
    want[1:4:2, 1:4, 0:3] = b
    np.testing.assert_allclose(both(relay.Function([x, v], z), a, b)[0].numpy(), want)


@program
def resize_layouts_and_methods():
    for method in ("nearest_neighbor", "linear"):
        x = relay.var("x", relay.TensorType((1, 4, 4, 2), "float32"))
        z = relay.image.resize2d(x, (8, 8), None, "NHWC", method, "align_corners")
        assert "size=" in z.astext() and run_infer_type(z).checked_type == relay.TensorType((1, 8, 8, 2), "float32")
        a = numbers(1, 4, 4, 2)
        want = tvm.topi.testing.resize2d_python(a, (2, 2), "NHWC", method, "align_corners")
        for out in both(relay.Function([x], z), a):
            np.testing.assert_allclose(out.numpy(), want, rtol=1e-4, atol=1e-5)


@program
def multibox_prior_numbers():
    x = relay.var("x", relay.TensorType((1, 3, 3, 2), "float32"))
    z = relay.vision.multibox_prior(x, sizes=(0.3, 0.5), ratios=(1.0, 2.0), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=True)
    assert "sizes=" in z.astext() and run_infer_type(z).checked_type == relay.TensorType((1, 18, 4), "float32")
    out = both(relay.Function([x], z), numbers(1, 3, 3, 2))[0].numpy()
    assert out.shape == (1, 18, 4) and out.min() >= 0 and out.max() <= 1


@program
def topk_results_by_ret_type():
    x = relay.var("x", relay.TensorType((4, 7), "float32"))
    a = np.random.RandomState(3).permutation(28).reshape(4, 7).astype("float32")
    order = np.argsort(-a, axis=1)[:, :3]
    for ret in ("both", "values", "indices"):
        out = relay.topk(x, 3, 1, ret, False, "int64")
        out = out.astuple() if isinstance(out, relay.expr.TupleWrapper) else out
        for got in both(relay.Function([x], out), a):
            if ret == "both":
                np.testing.assert_allclose(got[0].numpy(), np.take_along_axis(a, order, 1))
                np.testing.assert_array_equal(got[1].numpy(), order)
            else:
                np.testing.assert_allclose(got.numpy(), np.take_along_axis(a, order, 1) if ret == "values" else order)


@program
def searchsorted_sides():
    s, v = relay.var("s", relay.TensorType((8,), "int32")), relay.var("v", relay.TensorType((5,), "int32"))
    a, b = np.array([1, 2, 2, 3, 5, 5, 8, 9], "int32"), np.array([0, 2, 5, 6, 10], "int32")
    for right in (True, False):
        out = relay.searchsorted(s, v, right)
        assert run_infer_type(out).checked_type == relay.TensorType((5,), "int32")
        np.testing.assert_array_equal(both(relay.Function([s, v], out), a, b)[0].numpy(), np.searchsorted(a, b, "right" if right else "left"))


@program
def broadcast_to_and_like():
    x = relay.var("x", relay.TensorType((3,), "float32"))
    for target in ((1, 3), (4, 2, 3)):
        z = relay.broadcast_to(x, target)
        assert run_infer_type(z).checked_type == relay.TensorType(target, "float32")
        np.testing.assert_allclose(both(relay.Function([x], z), numbers(3))[0].numpy(), np.broadcast_to(numbers(3), target))
    y = relay.broadcast_to(x, relay.const([2, 3], "int64"))
    assert run_infer_type(y).checked_type == relay.TensorType((2, 3), "float32")


@program
def reverse_sequence_numbers():
    a = np.arange(16).reshape(4, 4).astype("int32")
    x = relay.var("x", relay.TensorType((4, 4), "int32"))
    lens = relay.const(np.array([1, 2, 3, 4]))
    got = both(relay.Function([x], relay.reverse_sequence(x, lens, 1, 0)), a)[0].numpy()
    np.testing.assert_array_equal(got, [[0, 1, 2, 3], [5, 4, 6, 7], [10, 9, 8, 11], [15, 14, 13, 12]])
    raises(tvm.TVMError, lambda: run_infer_type(relay.reverse_sequence(x, relay.const(np.array([1, 2, 3, 4, 5])), 1, 0)))


@program
def batch_matmul_of_symbols():
    b, m, n, k = (te.size_var(v) for v in "bmnk")
    x, y = relay.var("x", relay.TensorType((b, m, k), "float32")), relay.var("y", relay.TensorType((b, n, k), "float32"))
    assert run_infer_type(relay.nn.batch_matmul(x, y)).checked_type == relay.TensorType((b, m, n), "float32")
    for ta, tb, sx, sy in ((False, True, (2, 3, 5), (2, 4, 5)), (True, False, (2, 5, 3), (2, 5, 4)), (False, False, (1, 3, 5), (2, 5, 4))):
        p, q = relay.var("p", shape=sx), relay.var("q", shape=sy)
        got = evaluate(relay.Function([p, q], relay.nn.batch_matmul(p, q, transpose_a=ta, transpose_b=tb)), numbers(*sx), numbers(*sy))
        np.testing.assert_allclose(got, np.matmul(numbers(*sx).transpose(0, 2, 1) if ta else numbers(*sx), numbers(*sy).transpose(0, 2, 1) if tb else numbers(*sy)), rtol=1e-4, atol=1e-5)


@program
def sequence_mask_and_one_hot():
    x, n = relay.var("x", shape=(3, 2, 2)), relay.var("n", shape=(2,), dtype="int32")
    m = relay.sequence_mask(x, n, mask_value=-2.0, axis=0)
    np.testing.assert_allclose(evaluate(relay.Function([x, n], m), numbers(3, 2, 2), np.array([1, 2], "int32")), tvm.topi.testing.sequence_mask(numbers(3, 2, 2), np.array([1, 2]), -2.0, 0))
    i = relay.var("i", shape=(2, 3), dtype="int32")
    h = relay.one_hot(i, relay.const(5), relay.const(-1), 4, 1, "int32")
    assert run_infer_type(h).checked_type == relay.TensorType((2, 4, 3), "int32")
    index = np.array([[0, 1, 2], [3, 0, 1]], "int32")
    np.testing.assert_array_equal(evaluate(relay.Function([i], h), index), tvm.topi.testing.one_hot(index, 5, -1, 4, 1, "int32"))


@program
def matrix_set_diag_with_offsets():
    x, d = relay.var("x", shape=(2, 3, 4)), relay.var("d", shape=(2, 2, 3))
    z = relay.matrix_set_diag(x, d, (-1, 0), "LEFT_RIGHT")
    assert run_infer_type(z).checked_type == relay.TensorType((2, 3, 4))
    want = tvm.topi.testing.matrix_set_diag(numbers(2, 3, 4), numbers(2, 2, 3), (-1, 0), "LEFT_RIGHT")
    np.testing.assert_allclose(both(relay.Function([x, d], z), numbers(2, 3, 4), numbers(2, 2, 3))[0].numpy(), want)


@program
def ndarray_and_shape_functions():
    x = relay.var("x", relay.TensorType((10, te.var("k"), 3), "float32"))
    assert run_infer_type(relay.shape_of(x)).checked_type == relay.TensorType((3,), "int32")
    assert run_infer_type(relay.op.contrib.ndarray_size(x)).checked_type == relay.TensorType((), "int32")
    y = relay.var("y", shape=(2, 5))
    assert int(both(relay.Function([y], relay.op.contrib.ndarray_size(y, "int64")), numbers(2, 5))[0].numpy()) == 10


@program
def adaptive_pools_by_layout():
    for layout, shape, out in (("NCHW", (1, 2, 7, 6), (3, 2)), ("NHWC", (1, 7, 6, 2), (3, 2))):
        x = relay.var("x", shape=shape)
        for kind, op in (("max", relay.nn.adaptive_max_pool2d), ("avg", relay.nn.adaptive_avg_pool2d)):
            got = both(relay.Function([x], op(x, out, layout)), numbers(*shape))[0].numpy()
            np.testing.assert_allclose(got, tvm.topi.testing.adaptive_pool(numbers(*shape), out, kind, layout), rtol=1e-5, atol=1e-6)
