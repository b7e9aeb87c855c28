# SPDX-License-Identifier: Apache-2.0
"""Operators that onnxruntime writes for other processors, or computes inexactly on this one, as those that it has on this
one and computes exactly: so that it can be asked."""
import onnx
from onnx import helper


def with_kernels(model):
    """The same model without such operators."""
    if not any(n.op_type in REPLACED or n.op_type in SIGNED_WEIGHTS for n in model.graph.node):
        return model
    out = onnx.ModelProto.FromString(model.SerializeToString())
    del out.graph.node[:]
    model = onnx.shape_inference.infer_shapes(model)
    for node in model.graph.node:
        replaced = REPLACED[node.op_type](node, model) if node.op_type in REPLACED else [node]
        out.graph.node.extend(with_unsigned_weights(node, model) if node.op_type in SIGNED_WEIGHTS else replaced)
    return out


# Operators on bytes: where the data's zero point, the weights and the weights' zero point are among their inputs.
SIGNED_WEIGHTS = {"QLinearConv": (2, 3, 5), "QLinearMatMul": (2, 3, 5), "QGemm": (2, 3, 5), "ConvInteger": (2, 1, 3), "MatMulInteger": (2, 1, 3),
                  "MatMulIntegerToFloat": (4, 1, 5), "QAttention": (6, 1, 7), "DynamicQuantizeMatMul": (None, 1, 3)}


def with_unsigned_weights(node, model):
    """Signed weights as unsigned ones, 128 more than they are: without VNNI onnxruntime adds two products of unsigned and
    signed bytes in 16 bits, which stop at the largest."""
    at_data, at_weights, at_zero = SIGNED_WEIGHTS[node.op_type]
    graph, given = model.graph, lambda at: node.input[at] if at is not None and at < len(node.input) else ""
    types = {v.name: v.type.tensor_type.elem_type for v in [*graph.input, *graph.value_info]} | {t.name: t.data_type for t in graph.initializer}
    data = "" if at_data is None else given(at_data) or node.input[0]
    if types.get(given(at_weights)) != onnx.TensorProto.INT8 or (data and types.get(data) != onnx.TensorProto.UINT8):
        return [node]
    out, made = onnx.NodeProto.FromString(node.SerializeToString()), []
    out.input.extend([""] * (at_zero + 1 - len(out.input)))
    for at in (at_weights, at_zero):
        name = f"{node.output[0]}.{at}"
        number = lambda value, as_type: helper.make_node("Constant", [], [f"{name}.{as_type}"], value=helper.make_tensor("", as_type, [], [value]))
        if not out.input[at]:
            made.append(number(128, onnx.TensorProto.UINT8))
            out.input[at] = made[-1].output[0]
            continue
        made += [number(128, onnx.TensorProto.INT32), helper.make_node("Cast", [out.input[at]], [f"{name}.wide"], to=onnx.TensorProto.INT32)]
        made += [helper.make_node("Add", [f"{name}.wide", made[-2].output[0]], [f"{name}.more"]), helper.make_node("Cast", [f"{name}.more"], [f"{name}.bytes"], to=onnx.TensorProto.UINT8)]
        out.input[at] = f"{name}.bytes"
    return [*made, out]


def nhwc_fused_conv(node, model):
    """Channels last: the plain convolution between two changes of layout."""
    x, y = node.input[0], node.output[0]
    turned = [helper.make_node("Transpose", [name], [f"{y}.{name}"], perm=[0, 3, 1, 2]) for name in (x, *node.input[3:]) if name]
    inputs = [f"{y}.{x}", *node.input[1:3], *(f"{y}.{name}" for name in node.input[3:])]
    conv = helper.make_node("FusedConv", inputs, [f"{y}.channels_first"], domain="com.microsoft")
    conv.attribute.extend(node.attribute)
    return [*turned, conv, helper.make_node("Transpose", [f"{y}.channels_first"], [y], perm=[0, 2, 3, 1])]


def bias_softmax(node, model):
    """The sum, and the softmax of rows that begin at the axis."""
    (x, bias), y = node.input, node.output[0]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    added = helper.make_node("Add", [x, bias], [f"{y}.sum"])
    flat = helper.make_node("Flatten", [f"{y}.sum"], [f"{y}.rows"], axis=attributes.get("axis", 1))
    soft = helper.make_node("Softmax", [f"{y}.rows"], [f"{y}.soft"], axis=1)
    shape = helper.make_node("Shape", [x], [f"{y}.shape"])
    return [added, flat, soft, shape, helper.make_node("Reshape", [f"{y}.soft", f"{y}.shape"], [y])]


REPLACED = {"NhwcFusedConv": nhwc_fused_conv, "BiasSoftmax": bias_softmax}
