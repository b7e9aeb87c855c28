# SPDX-License-Identifier: Apache-2.0
"""A float32 ONNX model in another float type, as the common converters write it.

    python3 bench/zoo/convert_floats.py model.onnx model_f16.onnx --to float16 --keep-io

Initialisers, constants, casts and value types become the other type; operands that the standard wants in float32
(Resize's scales) stay. With --keep-io the inputs and outputs stay float32, with a Cast behind and before them.
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16, "float64": TensorProto.DOUBLE}
# Operands by operator that no type variable of the data covers.
KEPT = {"Resize": (1, 2), "Upsample": (1,), "QuantizeLinear": (1,), "DequantizeLinear": (1,)}


def converted_tensor(tensor, elem):
    array = numpy_helper.to_array(tensor)
    if elem == TensorProto.FLOAT16:  # out of range is the largest, as the common converters do
        array = np.clip(array, -65504, 65504)
    made = numpy_helper.from_array(array.astype(helper.tensor_dtype_to_np_dtype(elem)), tensor.name)
    return made


def converted(model, to, keep_io=False):
    """The model in the type `to`; the given one stays as it is."""
    elem = TYPES[to]
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    kept = {node.input[i] for node in graph.node for i in KEPT.get(node.op_type, ()) if i < len(node.input)}
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in kept:
            tensor.CopyFrom(converted_tensor(tensor, elem))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == TensorProto.FLOAT:
                if not set(node.output) & kept:
                    attribute.t.CopyFrom(converted_tensor(attribute.t, elem))
            if node.op_type in ("Cast", "EyeLike") and attribute.name in ("to", "dtype"):
                if attribute.i == TensorProto.FLOAT:
                    attribute.i = elem
    del graph.value_info[:]
    for info in list(graph.input) + list(graph.output):
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = elem
    return with_float_io(made, elem) if keep_io else made


def with_float_io(model, elem):
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    first, last = [], []
    for info in graph.input:
        if info.type.tensor_type.elem_type != elem or info.name in constants:
            continue
        inner = info.name + "_converted"
        for node in graph.node:
            for i, name in enumerate(node.input):
                if name == info.name:
                    node.input[i] = inner
        info.type.tensor_type.elem_type = TensorProto.FLOAT
        first.append(helper.make_node("Cast", [info.name], [inner], name=inner, to=elem))
    for info in graph.output:
        if info.type.tensor_type.elem_type != elem:
            continue
        inner = info.name + "_converted"
        for node in graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name == info.name:
                        names[i] = inner
        info.type.tensor_type.elem_type = TensorProto.FLOAT
        last.append(helper.make_node("Cast", [inner], [info.name], name=info.name, to=TensorProto.FLOAT))
    nodes = first + list(graph.node) + last
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--to", choices=sorted(TYPES), default="float16")
    parser.add_argument("--keep-io", action="store_true", help="inputs and outputs stay float32")
    args = parser.parse_args()
    onnx.save(converted(onnx.load(args.model), args.to, args.keep_io), args.out)


if __name__ == "__main__":
    main()
