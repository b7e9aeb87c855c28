# SPDX-License-Identifier: Apache-2.0
"""Builds with passes left out: an error names the pass that the model cannot do without."""
import unittest

import numpy as np

from tilewright import classic as tw
from tilewright.classic import relay


class LeftOut(unittest.TestCase):
    """A pass that a model cannot do without is named where it was left out."""

    def refusal(self, mod, *names):
        with tw.transform.PassContext(opt_level=3, disabled_pass=list(names)), self.assertRaises(tw.Error) as raised:
            relay.build(mod, "llvm")
        return raised.exception.code, str(raised.exception)

    def networks(self):
        def var(name, *shape, dtype="float32"):
            return relay.var(name, shape=shape, dtype=dtype)
        x, y = var("x", 2, 4), relay.var("y")
        norm = [var(n, 4) for n in "gbmv"]
        image = var("image", 1, 4, 5, 5)
        inner = relay.Function([y], relay.exp(y))
        return {
            "norm": relay.Function([x, *norm], relay.nn.batch_norm(x, *norm)[0]),
            "let": relay.Function([x], relay.Let(y, relay.exp(x), y + y)),
            "function": relay.Function([x], relay.Call(inner, [x])),
            "integers": relay.Function([x], relay.qnn.op.quantize(x, relay.const(0.5), relay.const(3), out_dtype="int8")),
            "composed": relay.Function([x], relay.std(x, axis=1)),
            "transposed": relay.Function([image], relay.nn.conv2d_transpose(image, relay.const(np.ones((4, 3, 3, 3), "float32")), channels=3, kernel_size=(3, 3))),
            "halves": relay.Function([x], relay.nn.softmax(relay.cast(x, "float16"))),
        }

    def test_the_pass_is_named(self):
        networks = {name: tw.IRModule.from_expr(f) for name, f in self.networks().items()}
        code, text = self.refusal(networks["norm"], "ExpandNormalization")
        self.assertEqual(code, 202)
        self.assertIn("nn.batch_norm", text)
        self.assertIn("the model needs the pass that is left out: ExpandNormalization", text)
        self.assertIn("the pass that is left out: ExpandNormalization", self.refusal(networks["norm"], "FoldConstant", "ExpandNormalization", "FastMath")[1])

    def test_every_necessary_pass(self):
        named = set()
        for name, function in self.networks().items():
            mod = tw.IRModule.from_expr(function)
            for left_out in ("ElideMemory", "ToGraphNormalForm", "Inline", "ExpandComposed", "CanonicalizeQnn", "WidenSmallFloats", "Legalize", "ExpandNormalization", "SplitRecurrent", "PlanDevices", "LabelOps"):
                with self.subTest(name, left_out=left_out), tw.transform.PassContext(opt_level=3, disabled_pass=[left_out]):
                    try:
                        relay.build(mod, "llvm")
                    except tw.Error as error:
                        self.assertNotIn(error.code, (304, 901))
                        self.assertIn(f"the model needs the pass that is left out: {left_out}", str(error))
                        named.add(left_out)
        self.assertIn("ExpandNormalization", named)


if __name__ == "__main__":
    unittest.main()
