# SPDX-License-Identifier: Apache-2.0
"""Visitors, mutators and the pattern language on expressions built in Python."""
import unittest

from tilewright.classic import relay
from tilewright.classic.relay import dataflow_pattern as dfp
from tilewright.classic.relay.expr_functor import ExprMutator, ExprVisitor, post_order_visit


def net():
    x, w, b = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 1, 1)), relay.var("b", shape=(4, 1, 1))
    conv = relay.Call("nn.conv2d", [x, w], {"groups": 1})
    return x, w, b, conv, relay.Call("nn.relu", [relay.Call("add", [conv, b])])


class Functors(unittest.TestCase):
    def test_visitor_meets_each_call_once(self):
        class Count(ExprVisitor):
            names = []

            def visit_call(self, call):
                super().visit_call(call)
                self.names.append(call.op)

        *_, relu = net()
        Count().visit(relay.Call("add", [relu, relu]))
        self.assertEqual(Count.names, ["nn.conv2d", "add", "nn.relu", "add"])
        seen = []
        post_order_visit(relu, seen.append)
        self.assertEqual(seen[-1], relu)

    def test_mutator_keeps_what_it_leaves(self):
        class Swap(ExprMutator):
            def visit_call(self, call):
                new = super().visit_call(call)
                return relay.Call("tanh", new.args) if new.op == "nn.relu" else new

        x, w, b, conv, relu = net()
        out = Swap().visit(relay.Function([x, w, b], relu))
        self.assertEqual(out.body.op, "tanh")
        self.assertEqual(out.body.args[0], relu.args[0])
        self.assertEqual(Swap().visit(conv), conv)


class Patterns(unittest.TestCase):
    def test_matches(self):
        x, w, b, conv, relu = net()
        pattern = dfp.is_op("nn.relu")(dfp.wildcard() + dfp.is_op("nn.conv2d")(dfp.is_var("x"), dfp.wildcard()).has_attr({"groups": 1}))
        self.assertTrue(pattern.match(relu))
        self.assertFalse(dfp.is_op("tanh")(dfp.wildcard()).match(relu))
        self.assertFalse(dfp.is_op("nn.conv2d")(dfp.wildcard(), dfp.is_constant()).match(conv))
        same = dfp.wildcard()
        self.assertTrue((same * same).match(x * x))
        self.assertFalse((same * same).match(x * w))
        biased = dfp.is_op("nn.conv2d")(dfp.wildcard(), dfp.wildcard()).optional(lambda p: p + dfp.wildcard())
        end = (dfp.is_op("nn.relu") | dfp.is_op("tanh"))(biased)
        self.assertTrue(end.match(relu) and end.match(relay.Call("tanh", [conv])))
        self.assertFalse(end.match(relay.Call("exp", [conv])))

    def test_rewrites_until_nothing_changes(self):
        class Once(dfp.DFPatternCallback):
            def __init__(self):
                super().__init__()
                self.inside = dfp.wildcard()
                self.pattern = dfp.is_op("nn.relu")(dfp.is_op("nn.relu")(self.inside))

            def callback(self, pre, post, node_map):
                return relay.Call("nn.relu", [node_map[self.inside][0]])

        x, w, b, conv, relu = net()
        out = dfp.rewrite(Once(), relay.Function([x, w, b], relay.Call("nn.relu", [relay.Call("nn.relu", [relu])])))
        self.assertEqual(out.body.op, "nn.relu")
        self.assertEqual(out.body.args[0], relu.args[0])

        class Grows(Once):
            def callback(self, pre, post, node_map):
                return relay.Call("nn.relu", [relay.Call("nn.relu", [relay.Call("exp", [post])])])

        with self.assertRaises(RuntimeError):
            dfp.rewrite(Grows(), relay.Call("nn.relu", [relu]))


if __name__ == "__main__":
    unittest.main()
