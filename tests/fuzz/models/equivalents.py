# SPDX-License-Identifier: Apache-2.0
"""Operators that onnxruntime writes for other processors, as those that it has on this one: so that it can be asked."""
import onnx
from onnx import helper


def with_kernels(model):
    """The same model without such operators."""
    if not any(n.op_type in REPLACED for n in model.graph.node):
        return model
    out = onnx.ModelProto.FromString(model.SerializeToString())
    del out.graph.node[:]
    for node in model.graph.node:
        out.graph.node.extend(REPLACED[node.op_type](node, model) if node.op_type in REPLACED else [node])
    return out


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
