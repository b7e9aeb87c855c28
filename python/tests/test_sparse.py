# SPDX-License-Identifier: Apache-2.0
"""Sparse weights from a script: operators, passes and the conversions that change parameters with them."""
import collections
import unittest

import numpy as np

from tilewright import classic as tvm
from tilewright.classic import relay
from tilewright.classic.relay import data_dep_optimization as ddo
from tilewright.classic.relay.analysis import sparse_conv2d, sparse_dense

Sparse = collections.namedtuple("Sparse", "data indices indptr")


def blocks(rows, columns, r, c, seed=1, keep=0.2):
    """A matrix most of whose blocks are zero."""
    rng = np.random.default_rng(seed)
    mask = np.kron(rng.random((rows // r, columns // c)) < keep, np.ones((r, c)))
    return (rng.standard_normal((rows, columns)) * mask).astype("float32")


def run(func, params, x):
    mod = tvm.IRModule.from_expr(func)
    lib = relay.build(mod, "llvm", params=params)
    module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input("x", x)
    module.run()
    return module.get_output(0).numpy()


def one_product(r, c):
    w = blocks(64, 48, r, c)
    x = np.random.default_rng(2).standard_normal((5, 48)).astype("float32")
    matrix = Sparse(*(relay.const(v) for v in sparse_dense.to_blocks(w, (r, c))))
    v = relay.var("x", shape=x.shape)
    for lhs in (False, True):
        y = relay.nn.sparse_dense(v, matrix, sparse_lhs=lhs)
        np.testing.assert_allclose(run(relay.Function([v], y), {}, x), (x @ w.T).T if lhs else x @ w.T, rtol=1e-4, atol=1e-4)


def one_convolution(layout, kernel):
    rng = np.random.default_rng(4)
    w = blocks(32, 8 * kernel * kernel, 16, 1)
    weight = w.T.reshape(kernel, kernel, 8, 32) if layout == "NHWC" else w.reshape(32, 8, kernel, kernel)
    data = rng.standard_normal((1, 6, 6, 8) if layout == "NHWC" else (1, 8, 6, 6)).astype("float32")
    x, v = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
    made = lambda k: relay.nn.conv2d(x, k, padding=(kernel // 2,) * 2, channels=32, kernel_size=(kernel, kernel), data_layout=layout,  # noqa: E731
                                     kernel_layout="HWIO" if layout == "NHWC" else "OIHW")
    func, params = relay.Function([x, v], made(v)), {"w": tvm.nd.array(np.ascontiguousarray(weight))}
    expected = run(func, dict(params), data)
    changed, params = ddo.bsr_conv2d.convert(func, params, (16, 1), 0.5, layout=layout, kernel_size=kernel)
    assert set(params) == {"w.data", "w.indices", "w.indptr"}
    np.testing.assert_allclose(run(changed, params, data), expected, rtol=1e-4, atol=1e-4)
    frozen = relay.Function([x], made(relay.const(np.ascontiguousarray(weight))))
    mod = relay.transform.Conv2dToSparse2(layout, kernel, (16, 1), 0.5)(tvm.IRModule.from_expr(frozen))
    assert relay.analysis.list_op_freqs(mod) == {"nn.sparse_conv2d": 1}
    np.testing.assert_allclose(run(mod["main"], {}, data), expected, rtol=1e-4, atol=1e-4)
    assert "nn.conv2d" in relay.analysis.list_op_freqs(relay.transform.Conv2dToSparse2(layout, kernel, (16, 1), 0.99)(tvm.IRModule.from_expr(frozen)))


class SparseWeights(unittest.TestCase):
    def test_operators(self):
        for r, c in ((16, 1), (8, 4), (1, 1)):
            one_product(r, c)

    def test_add_and_transpose(self):
        w = blocks(24, 24, 1, 1)
        data, indices, indptr = sparse_dense.to_blocks(w, (1, 1))
        parts = [relay.const(v) for v in (data.reshape(-1), indices, indptr)]
        x = np.random.default_rng(2).standard_normal((24, 24)).astype("float32")
        v = relay.var("x", shape=x.shape)
        np.testing.assert_allclose(run(relay.Function([v], relay.nn.sparse_add(v, parts)), {}, x), x + w, rtol=1e-5, atol=1e-5)
        turned = relay.nn.sparse_transpose(parts)
        np.testing.assert_allclose(run(relay.Function([v], relay.nn.sparse_dense(v, list(turned))), {}, x), x @ w, rtol=1e-4, atol=1e-4)

    def test_text_round_trip(self):
        x = relay.var("x", shape=(2, 8))
        parts = [relay.var(n, shape=s, dtype=t) for n, s, t in (("d", (3, 16, 1), "float32"), ("i", (3,), "int32"), ("p", (3,), "int32"))]
        mod = tvm.IRModule.from_expr(relay.Function([x, *parts], relay.nn.sparse_dense(x, parts, sparse_lhs=True)))
        assert "nn.sparse_dense(%x, %d, %i, %p, sparse_lhs=True)" in mod.astext()
        assert tvm.ir.structural_equal(tvm.parser.fromtext(mod.astext()), mod)

    def test_dense_conversions(self):
        """The classic way of a model: transposes out of the weights, then blocks in their place."""
        rng = np.random.default_rng(3)
        x, w1, b, w2 = relay.var("x", shape=(4, 32)), relay.var("w1", shape=(32, 64)), relay.var("b", shape=(64,)), relay.var("w2", shape=(10, 64))
        hidden = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, relay.transpose(w1, [1, 0])), b))
        func = relay.Function([x, w1, b, w2], relay.nn.dense(hidden, w2))
        params = {"w1": tvm.nd.array(blocks(64, 32, 16, 1).T.copy()), "b": tvm.nd.array(rng.standard_normal(64).astype("float32")),
                  "w2": tvm.nd.array(rng.standard_normal((10, 64)).astype("float32"))}
        data = rng.standard_normal((4, 32)).astype("float32")
        expected = run(func, dict(params), data)
        func, params = ddo.simplify_fc_transpose.convert(func, params)
        assert "w1.T" in params and "w1" not in params
        assert [p.name_hint for p in func.params] == ["x", "b", "w2", "w1.T"]
        func, params = ddo.bsr_dense.convert(func, params, (16, 1), sparsity_threshold=0.6)
        assert {"w1.T.data", "w1.T.indices", "w1.T.indptr", "w2"} <= set(params) and "w1.T" not in params
        assert [p.name_hint for p in func.params] == ["x", "b", "w2", "w1.T.data", "w1.T.indices", "w1.T.indptr"]
        assert relay.analysis.list_op_freqs(tvm.IRModule.from_expr(func))["nn.sparse_dense"] == 1
        np.testing.assert_allclose(run(func, params, data), expected, rtol=1e-4, atol=1e-4)

    def test_shared_weight_stays(self):
        x, table = relay.var("x", shape=(4, 32)), relay.var("table", shape=(64, 32))
        func = relay.Function([x, table], relay.Tuple([relay.nn.dense(x, table), relay.take(table, relay.const([1, 2]), axis=0)]))
        params = {"table": tvm.nd.array(blocks(64, 32, 16, 1))}
        func, params = ddo.bsr_dense.convert(func, params, (16, 1), 0.6)
        assert "table" in params and "table.data" in params

    def test_convolutions(self):
        for layout in ("NHWC", "NCHW"):
            for kernel in (1, 3):
                one_convolution(layout, kernel)

    def test_refusals(self):
        with self.assertRaisesRegex(ValueError, "blocks of 16 x 1 do not divide"):
            sparse_dense.to_blocks(np.zeros((8, 8), "float32"), (16, 1))
        with self.assertRaisesRegex(ValueError, "2 weights and the shapes of 1"):
            relay.transform.DenseToSparse(["a", "b"], [[1, 16, 1, 1, 3]])
        with self.assertRaisesRegex(ValueError, "is not NHWC or NCHW"):
            sparse_conv2d.process_params(relay.var("x", shape=(1,)), {}, (1, 1), 0.5, "HWCN", 1)
        x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(32, 8))
        with self.assertRaisesRegex(tvm.Error, "the sizes of the weight 'w' are not those of"):
            relay.transform.DenseToSparse(["w"], [[3, 8, 1, 3, 3]])(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w))))


if __name__ == "__main__":
    unittest.main()
