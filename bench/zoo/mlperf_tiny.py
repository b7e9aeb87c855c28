#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The four networks of the MLPerf Tiny benchmark in int8, with seeded random weights, as ONNX files: mlperf_tiny.py FOLDER [name...].

The shapes are those of the closed division: kws (DS-CNN, 49x10 spectrograms, 12 words), vww (MobileNetV1 0.25, 96x96 pictures, 2 classes),
ic (ResNet-8, 32x32 pictures, 10 classes), ad (autoencoder, 640 features). Activations are int8 with a zero point, weights int8 with a scale for
each output channel, biases int32; inputs and outputs are int8, as in the benchmark's TFLite files. Batch normalisations are folded."""
from __future__ import annotations

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Quantised:
    """An int8 network, layer by layer; each layer returns the name of its float tensor (after DequantizeLinear)."""

    def __init__(self, name: str, seed: int, shape: list[int]):
        self.name, self.random = name, np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0
        self.shape: dict[str, list[int]] = {}
        self.input = helper.make_tensor_value_info("input", TensorProto.INT8, shape)
        self.first = self._dequantise("input", 0.03, -3)
        self.shape[self.first] = shape

    def _constant(self, values) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def _node(self, op: str, inputs: list[str], **attributes) -> str:
        self.count += 1
        out = f"{op.lower()}_{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def _dequantise(self, x: str, scale, zero, axis: int | None = None) -> str:
        per_channel = {} if axis is None else {"axis": axis}
        zeros = np.int8(zero) if np.ndim(scale) == 0 else np.zeros(len(scale), "int8")
        return self._node("DequantizeLinear", [x, self._constant(np.asarray(scale, "float32")), self._constant(zeros)], **per_channel)

    def _requantise(self, x: str, scale: float, zero: int) -> str:
        self.last = self._node("QuantizeLinear", [x, self._constant(np.float32(scale)), self._constant(np.int8(zero))])
        return self._dequantise(self.last, scale, zero)

    def _weights(self, shape: list[int]) -> tuple[str, np.ndarray]:
        scales = self.random.uniform(0.004, 0.012, shape[0]).astype("float32")
        return self._dequantise(self._constant(self.random.integers(-127, 128, shape).astype("int8")), scales, 0, 0), scales

    def _bias(self, scales: np.ndarray, channels: int) -> str:
        scale = (scales * np.float32(0.03)).astype("float32")
        values = self._constant(self.random.integers(-2000, 2000, channels).astype("int32"))
        return self._node("DequantizeLinear", [values, self._constant(scale), self._constant(np.zeros(channels, "int32"))], axis=0)

    def conv(self, x: str, channels: int, kernel: tuple[int, int], stride: int = 1, depthwise: bool = False, relu: bool = True) -> str:
        n, c, h, w = self.shape[x]
        groups = c if depthwise else 1
        channels = c if depthwise else channels
        weight, scales = self._weights([channels, c // groups, *kernel])
        out_h, out_w = -(-h // stride), -(-w // stride)
        pad = [max(0, (o - 1) * stride + k - i) for o, k, i in ((out_h, kernel[0], h), (out_w, kernel[1], w))]
        y = self._node("Conv", [x, weight, self._bias(scales, channels)], kernel_shape=list(kernel), strides=[stride, stride], group=groups,
                       pads=[pad[0] // 2, pad[1] // 2, pad[0] - pad[0] // 2, pad[1] - pad[1] // 2])
        if relu:
            y = self._node("Relu", [y])
        y = self._requantise(y, 0.03, -128 if relu else 4)
        self.shape[y] = [n, channels, out_h, out_w]
        return y

    def add_relu(self, a: str, b: str) -> str:
        y = self._requantise(self._node("Relu", [self._node("Add", [a, b])]), 0.03, -128)
        self.shape[y] = self.shape[a]
        return y

    def pool_all(self, x: str) -> str:
        n, c, h, w = self.shape[x]
        y = self._requantise(self._node("AveragePool", [x], kernel_shape=[h, w]), 0.03, -128)
        y = self._node("Reshape", [y, self._constant(np.array([n, c], "int64"))])
        self.shape[y] = [n, c]
        return y

    def dense(self, x: str, units: int, relu: bool = False) -> str:
        n, c = self.shape[x]
        weight, scales = self._weights([units, c])
        y = self._node("Gemm", [x, weight, self._bias(scales, units)], transB=1)
        if relu:
            y = self._node("Relu", [y])
        y = self._requantise(y, 0.03, -128 if relu else 4)
        self.shape[y] = [n, units]
        return y

    def softmax(self, x: str) -> str:
        y = self._requantise(self._node("Softmax", [x], axis=1), 1 / 256, -128)
        self.shape[y] = self.shape[x]
        return y

    def model(self, x: str) -> onnx.ModelProto:
        output = helper.make_tensor_value_info(self.last, TensorProto.INT8, self.shape[x])
        graph = helper.make_graph([n for n in self.nodes if x not in n.output], self.name, [self.input], [output], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="mlperf_tiny")
        onnx.checker.check_model(model)
        return model


def kws() -> onnx.ModelProto:
    net = Quantised("kws", 1, [1, 1, 49, 10])
    x = net.conv(net.first, 64, (10, 4), 2)
    for _ in range(4):
        x = net.conv(net.conv(x, 64, (3, 3), depthwise=True), 64, (1, 1))
    return net.model(net.softmax(net.dense(net.pool_all(x), 12)))


def vww() -> onnx.ModelProto:
    net = Quantised("vww", 2, [1, 3, 96, 96])
    x = net.conv(net.first, 8, (3, 3), 2)
    for channels, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)):
        x = net.conv(net.conv(x, 0, (3, 3), stride, depthwise=True), channels, (1, 1))
    return net.model(net.softmax(net.dense(net.pool_all(x), 2)))


def ic() -> onnx.ModelProto:
    net = Quantised("ic", 3, [1, 3, 32, 32])
    x = net.conv(net.first, 16, (3, 3))
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv(net.conv(x, channels, (3, 3), stride), channels, (3, 3), relu=False)
        x = net.add_relu(x if stride == 1 else net.conv(x, channels, (1, 1), stride, relu=False), y)
    return net.model(net.softmax(net.dense(net.pool_all(x), 10)))


def ad() -> onnx.ModelProto:
    net = Quantised("ad", 4, [1, 640])
    x = net.first
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, units, relu=True)
    return net.model(net.dense(x, 640))


NETWORKS = {"kws": kws, "vww": vww, "ic": ic, "ad": ad}


def main() -> None:
    if len(sys.argv) < 2 or any(name not in NETWORKS for name in sys.argv[2:]):
        sys.exit(f"{__doc__}\nnetworks: {' '.join(NETWORKS)}")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        onnx.save(NETWORKS[name](), folder / f"{name}.onnx")


if __name__ == "__main__":
    main()
