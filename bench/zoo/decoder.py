# SPDX-License-Identifier: Apache-2.0
"""A decoder in GPT-2's shape as an ONNX file, written without PyTorch: one new token, and a cache of keys and values that
grows by it. Weights are random but seeded; the embedding is the last layer's matrix, too, as in GPT-2."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, WIDTH, WORDS, PLACES = 12, 12, 768, 50257, 1024


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.rng = [], [], np.random.default_rng(7)

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def random(self, *shape):
        return self.constant(self.rng.standard_normal(shape, np.float32) * np.float32(0.02))

    def zeros(self, size):
        return self.constant(np.zeros(size, np.float32))

    def add(self, op, inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if len(names) == 1 else names

    def normalised(self, x):
        return self.add("LayerNormalization", [x, self.constant(np.ones(WIDTH, np.float32)), self.zeros(WIDTH)], axis=-1, epsilon=1e-5)

    def linear(self, x, inner, outer):
        return self.add("Add", [self.add("MatMul", [x, self.random(inner, outer)]), self.zeros(outer)])

    def heads(self, x):
        return self.add("Transpose", [self.add("Reshape", [x, self.constant(np.array([0, 0, HEADS, WIDTH // HEADS]))])], perm=[0, 2, 1, 3])


def write(path, layers=LAYERS, words=WORDS):
    g = Graph()
    words_table = g.random(words, WIDTH)
    x = g.add("Add", [g.add("Gather", [words_table, "ids"]), g.add("Gather", [g.random(PLACES, WIDTH), "places"])])
    scale = g.constant(np.float32((WIDTH // HEADS) ** -0.5))
    cache = ["batch", HEADS, "past", WIDTH // HEADS]
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", 1]) for n in ("ids", "places")]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1, words])]
    for layer in range(layers):
        q, k, v = g.add("Split", [g.linear(g.normalised(x), WIDTH, 3 * WIDTH)], 3, axis=-1, num_outputs=3)
        sides = []
        for side, fresh in (("k", k), ("v", v)):
            sides.append(g.add("Concat", [f"past_{side}{layer}", g.heads(fresh)], [f"present_{side}{layer}"], axis=2))
            inputs.append(helper.make_tensor_value_info(f"past_{side}{layer}", TensorProto.FLOAT, cache))
            outputs.append(helper.make_tensor_value_info(f"present_{side}{layer}", TensorProto.FLOAT, cache[:2] + ["total"] + cache[3:]))
        scores = g.add("Mul", [g.add("MatMul", [g.heads(q), g.add("Transpose", [sides[0]], perm=[0, 1, 3, 2])]), scale])
        mixed = g.add("Transpose", [g.add("MatMul", [g.add("Softmax", [scores], axis=-1), sides[1]])], perm=[0, 2, 1, 3])
        mixed = g.add("Reshape", [mixed, g.constant(np.array([0, 0, WIDTH]))])
        x = g.add("Add", [x, g.linear(mixed, WIDTH, WIDTH)])
        wide = g.add("Gelu", [g.linear(g.normalised(x), WIDTH, 4 * WIDTH)], approximate="tanh")
        x = g.add("Add", [x, g.linear(wide, 4 * WIDTH, WIDTH)])
    g.add("MatMul", [g.normalised(x), g.add("Transpose", [words_table], perm=[1, 0])], ["logits"])
    model = helper.make_model(helper.make_graph(g.nodes, path.stem, inputs, outputs, g.weights), opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 9
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path
