# SPDX-License-Identifier: Apache-2.0
"""Known networks written with the onnx package alone, seeded random weights: where torch is not installed."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Net:
    def __init__(self, shape, seed=0):
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], []
        self.input = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)

    def weight(self, *shape, scale=None):
        fan = np.prod(shape[1:]) if len(shape) > 1 else 1
        value = self.rng.standard_normal(shape) * (scale if scale is not None else (2 / fan) ** 0.5)
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def op(self, kind, *inputs, **attributes):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=f"{kind}_{len(self.nodes)}", **attributes))
        return out

    def conv(self, x, out, channels, k, stride=1, pad=None, group=1):
        pad = k // 2 if pad is None else pad
        return self.op("Conv", x, self.weight(out, channels // group, k, k), self.weight(out, scale=0.1),
                       kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=group)

    def relu(self, x):
        return self.op("Relu", x)

    def relu6(self, x):
        for bound in (0.0, 6.0):
            self.weights.append(numpy_helper.from_array(np.float32(bound), f"w{len(self.weights)}"))
        return self.op("Clip", x, self.weights[-2].name, self.weights[-1].name)

    def linear(self, x, out, channels):
        return self.op("Gemm", x, self.weight(out, channels), self.weight(out, scale=0.1), transB=1)

    def constant(self, *values):
        self.weights.append(numpy_helper.from_array(np.array(values, np.float32), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def model(self, result, shape):
        graph = helper.make_graph(self.nodes, "net", [self.input],
                                  [helper.make_tensor_value_info(result, TensorProto.FLOAT, shape)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def head(net, x, channels):
    return net.model(net.linear(net.op("Flatten", net.op("GlobalAveragePool", x)), 1000, channels), [1, 1000])


def resnet18():
    net = Net([1, 3, 224, 224])
    x = net.relu(net.conv("x", 64, 3, 7, 2))
    x, channels = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = net.conv(net.relu(net.conv(x, width, channels, 3, stride)), width, width, 3)
        short = x if stride == 1 and width == channels else net.conv(x, width, channels, 1, stride)
        x, channels = net.relu(net.op("Add", y, short)), width
    return head(net, x, 512)


def mobilenet_v2():
    net = Net([1, 3, 224, 224])
    x, channels = net.relu6(net.conv("x", 32, 3, 3, 2)), 32
    for t, c, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                       (6, 320, 1, 1)):
        for i in range(n):
            stride, wide = s if i == 0 else 1, channels * t
            y = net.relu6(net.conv(x, wide, channels, 1)) if t > 1 else x
            y = net.conv(net.relu6(net.conv(y, wide, wide, 3, stride, group=wide)), c, wide, 1)
            x, channels = net.op("Add", x, y) if stride == 1 and channels == c else y, c
    return head(net, net.relu6(net.conv(x, 1280, 320, 1)), 1280)


def squeezenet():
    net = Net([1, 3, 224, 224])

    def pool(x):
        return net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)

    x, channels = pool(net.relu(net.conv("x", 64, 3, 3, 2, 0))), 64
    for i, (squeeze, expand) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256),
                                           (64, 256))):
        if i in (2, 4):
            x = pool(x)
        y = net.relu(net.conv(x, squeeze, channels, 1))
        x = net.op("Concat", net.relu(net.conv(y, expand, squeeze, 1)), net.relu(net.conv(y, expand, squeeze, 3)), axis=1)
        channels = 2 * expand
    x = net.op("GlobalAveragePool", net.relu(net.conv(x, 1000, channels, 1)))
    return net.model(net.op("Flatten", x), [1, 1000])


def convnext(widths=(96, 192, 384, 768), depths=(3, 3, 9, 3)):
    """ConvNeXt-T as torchvision exports it: norms and products over transposed channels, GELU through Erf."""
    net = Net([1, 3, 224, 224])

    def norm(x, c):
        return net.op("LayerNormalization", x, net.weight(c, scale=0.5), net.weight(c, scale=0.1), epsilon=1e-6)

    def moved(x, *order):
        return net.op("Transpose", x, perm=list(order))

    x = moved(norm(moved(net.conv("x", widths[0], 3, 4, 4, 0), 0, 2, 3, 1), widths[0]), 0, 3, 1, 2)
    for stage, (c, n) in enumerate(zip(widths, depths)):
        if stage:
            x = moved(norm(moved(x, 0, 2, 3, 1), widths[stage - 1]), 0, 3, 1, 2)
            x = net.conv(x, c, widths[stage - 1], 2, 2, 0)
        for _ in range(n):
            y = norm(moved(net.conv(x, c, c, 7, group=c), 0, 2, 3, 1), c)
            y = net.op("Add", net.op("MatMul", y, net.weight(c, 4 * c, scale=c ** -0.5)), net.weight(4 * c, scale=0.1))
            half = net.op("Mul", y, net.constant(0.5))
            erf = net.op("Erf", net.op("Div", y, net.constant(2 ** 0.5)))
            y = net.op("Mul", half, net.op("Add", erf, net.constant(1)))
            y = net.op("Add", net.op("MatMul", y, net.weight(4 * c, c, scale=(4 * c) ** -0.5)), net.weight(c, scale=0.1))
            x = net.op("Add", x, moved(y, 0, 3, 1, 2))
    return head(net, x, widths[-1])


NETWORKS = {"resnet18": resnet18, "mobilenet_v2": mobilenet_v2, "squeezenet": squeezenet, "convnext_tiny": convnext}
