# SPDX-License-Identifier: Apache-2.0
"""Classifiers that torchvision does not have, each as its paper draws it, some narrower; and short ones over sound and text."""
import torch
from torch import nn
from torch.nn import functional as F

from places import unit


class Pooled(nn.Module):
    """Features, their mean over the picture, one dense layer."""

    def __init__(self, features, width, classes=1000):
        super().__init__()
        self.features, self.head = features, nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def mobilenet_v1():
    """Howard et al., arXiv:1704.04861."""
    layers, inputs = [unit(3, 32, 3, 2)], 32
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        layers += [unit(inputs, inputs, 3, stride, inputs), unit(inputs, outputs, 1)]
        inputs = outputs
    return Pooled(nn.Sequential(*layers), 1024)


class RepVggBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.three, self.one = unit(inputs, outputs, 3, stride, act=None), unit(inputs, outputs, 1, stride, act=None)
        self.same = nn.BatchNorm2d(inputs) if inputs == outputs and stride == 1 else None

    def forward(self, x):
        y = self.three(x) + self.one(x)
        return F.relu(y if self.same is None else y + self.same(x))


def repvgg():
    """Ding et al., arXiv:2101.03697, A0 as it is trained: three branches a block, not yet merged."""
    layers, inputs = [], 3
    for outputs, count in ((48, 1), (48, 2), (96, 4), (192, 6), (640, 1)):
        for i in range(count):
            layers.append(RepVggBlock(inputs, outputs, 2 if i == 0 else 1))
            inputs = outputs
    return Pooled(nn.Sequential(*layers), 640)


class Ghost(nn.Module):
    """Half of the channels from a product, the other half from the first by a depthwise convolution."""

    def __init__(self, inputs, outputs, act=nn.ReLU):
        super().__init__()
        self.first, self.cheap = unit(inputs, outputs // 2, 1, act=act), unit(outputs // 2, outputs // 2, 3, 1, outputs // 2, act=act)

    def forward(self, x):
        x = self.first(x)
        return torch.cat([x, self.cheap(x)], 1)


class GhostBlock(nn.Module):
    def __init__(self, inputs, wide, outputs, kernel, stride, squeeze):
        super().__init__()
        self.up, self.down = Ghost(inputs, wide), Ghost(wide, outputs, None)
        self.deep = unit(wide, wide, kernel, stride, wide, act=None) if stride > 1 else None
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, wide // 4, 1), nn.ReLU(), nn.Conv2d(wide // 4, wide, 1),
                                     nn.Hardsigmoid()) if squeeze else None
        self.side = (nn.Identity() if stride == 1 and inputs == outputs else
                     nn.Sequential(unit(inputs, inputs, kernel, stride, inputs, act=None), unit(inputs, outputs, 1, act=None)))

    def forward(self, x):
        y = self.up(x)
        if self.deep is not None:
            y = self.deep(y)
        if self.squeeze is not None:
            y = y * self.squeeze(y)
        return self.down(y) + self.side(x)


def ghostnet():
    """Han et al., arXiv:1911.11907."""
    layers, inputs = [unit(3, 16, 3, 2)], 16
    for k, wide, outputs, squeeze, stride in (
            (3, 16, 16, 0, 1), (3, 48, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2), (5, 120, 40, 1, 1), (3, 240, 80, 0, 2),
            (3, 200, 80, 0, 1), (3, 184, 80, 0, 1), (3, 184, 80, 0, 1), (3, 480, 112, 1, 1), (3, 672, 112, 1, 1),
            (5, 672, 160, 1, 2), (5, 960, 160, 0, 1), (5, 960, 160, 1, 1)):
        layers.append(GhostBlock(inputs, wide, outputs, k, stride, squeeze))
        inputs = outputs
    return Pooled(nn.Sequential(*layers, unit(inputs, 960, 1)), 960)


class NextBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.net = nn.Sequential(unit(inputs, inputs // 2, 1, stride), unit(inputs // 2, inputs // 4, 1),
                                 nn.Conv2d(inputs // 4, inputs // 2, (1, 3), padding=(0, 1)), nn.ReLU(),
                                 nn.Conv2d(inputs // 2, inputs // 2, (3, 1), padding=(1, 0)), nn.ReLU(), unit(inputs // 2, outputs, 1))
        self.side = nn.Identity() if inputs == outputs and stride == 1 else unit(inputs, outputs, 1, stride)

    def forward(self, x):
        return self.net(x) + self.side(x)


def squeezenext():
    """Gholami et al., arXiv:1803.10615: 1x3 and 3x1 convolutions between narrowing products."""
    layers, inputs = [unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for outputs, count in ((32, 6), (64, 6), (128, 8), (256, 1)):
        for i in range(count):
            layers.append(NextBlock(inputs, outputs, 2 if i == 0 and outputs > 32 else 1))
            inputs = outputs
    return Pooled(nn.Sequential(*layers, unit(256, 128, 1)), 128)


class DualBlock(nn.Module):
    """A residual path and a growing one out of one grouped bottleneck."""

    def __init__(self, inputs, middle, width, grow, stride, first):
        super().__init__()
        self.width = width
        self.net = nn.Sequential(unit(inputs, middle, 1), unit(middle, middle, 3, stride, 32), unit(middle, width + grow, 1, act=None))
        self.side = unit(inputs, width + 2 * grow, 1, stride, act=None) if first else None

    def forward(self, x):
        side, y = x if self.side is None else self.side(x), self.net(x)
        return torch.cat([side[:, :self.width] + y[:, :self.width], side[:, self.width:], y[:, self.width:]], 1)


def dual_path():
    """DPN-68's shape, arXiv:1707.01629, shorter: groups of 4, 8, 16 and 32 channels."""
    layers, inputs = [unit(3, 16, 3, 2), nn.MaxPool2d(3, 2, 1)], 16
    for middle, width, grow, count in ((128, 64, 16, 3), (256, 128, 32, 4), (512, 256, 32, 4), (1024, 512, 64, 2)):
        for i in range(count):
            layers.append(DualBlock(inputs, middle, width, grow, 2 if i == 0 and width > 64 else 1, i == 0))
            inputs = width + (3 if i == 0 else 1) * grow + (0 if i == 0 else inputs - width)
    return Pooled(nn.Sequential(*layers), inputs)


class CrossStage(nn.Module):
    def __init__(self, inputs, outputs, count):
        super().__init__()
        mish = nn.Mish
        self.enter = unit(inputs, outputs, 3, 2, act=mish)
        self.left, self.right = unit(outputs, outputs // 2, 1, act=mish), unit(outputs, outputs // 2, 1, act=mish)
        self.blocks = nn.ModuleList(nn.Sequential(unit(outputs // 2, outputs // 2, 1, act=mish), unit(outputs // 2, outputs // 2, act=mish))
                                    for _ in range(count))
        self.leave = unit(outputs, outputs, 1, act=mish)

    def forward(self, x):
        x = self.enter(x)
        left, right = self.left(x), self.right(x)
        for block in self.blocks:
            right = right + block(right)
        return self.leave(torch.cat([left, right], 1))


def cross_stage():
    """CSPDarkNet's shape, arXiv:1911.11929, narrow, with Mish."""
    return Pooled(nn.Sequential(unit(3, 32, act=nn.Mish), *(CrossStage(a, b, n) for a, b, n in
                                                              ((32, 64, 1), (64, 128, 2), (128, 256, 4), (256, 512, 2)))), 512)


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norms = nn.ModuleList((nn.LayerNorm(width), nn.LayerNorm(width)))
        def wide(n, m):
            return nn.Sequential(nn.Linear(n, m), nn.GELU(), nn.Linear(m, n))
        self.across, self.along = wide(tokens, width // 2), wide(width, 4 * width)

    def forward(self, x):
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norms[1](x))


class Mixer(nn.Module):
    """Tolstikhin et al., arXiv:2105.01601, Mixer-S/16."""

    def __init__(self, width=512, depth=8):
        super().__init__()
        self.patch, self.blocks = nn.Conv2d(3, width, 16, 16), nn.Sequential(*(MixerBlock(196, width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.patch(x).flatten(2).transpose(1, 2))).mean(1))


class MixedByConvolutions(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.deep = nn.Sequential(nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width), nn.GELU(), nn.BatchNorm2d(width))
        self.wide = nn.Sequential(nn.Conv2d(width, width, 1), nn.GELU(), nn.BatchNorm2d(width))

    def forward(self, x):
        return self.wide(x + self.deep(x))


def convmixer():
    """Trockman and Kolter, arXiv:2201.09792: patches of 14, depthwise 9x9, GELU before the norms."""
    return Pooled(nn.Sequential(nn.Conv2d(3, 256, 14, 14), nn.GELU(), nn.BatchNorm2d(256), *(MixedByConvolutions(256, 9) for _ in range(8))), 256)


class MobileVitBlock(nn.Module):
    """Attention between the same places of 2x2 patches."""

    def __init__(self, channels, width, depth):
        super().__init__()
        self.local = nn.Sequential(unit(channels, channels, act=nn.SiLU), nn.Conv2d(channels, width, 1))
        layer = lambda: nn.ModuleList((nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width),
                                       nn.Linear(width, 2 * width), nn.Linear(2 * width, width)))
        self.layers = nn.ModuleList(layer() for _ in range(depth))
        self.back, self.join = unit(width, channels, 1, act=nn.SiLU), unit(2 * channels, channels, act=nn.SiLU)

    def forward(self, x):
        y = self.local(x)
        n, c, h, w = y.shape
        y = y.reshape(n * c * h // 2, 2, w // 2, 2).transpose(1, 2).reshape(n, c, h * w // 4, 4).transpose(1, 3)
        for before, qkv, out, norm, up, down in self.layers:
            q, k, v = (t.reshape(4, -1, 4, c // 4).transpose(1, 2) for t in qkv(before(y)).reshape(4, -1, 3 * c).chunk(3, 2))
            y = y + out(((q @ k.transpose(2, 3) * (c // 4) ** -0.5).softmax(3) @ v).transpose(1, 2).reshape(n, 4, -1, c))
            y = y + down(F.silu(up(norm(y))))
        y = y.transpose(1, 3).reshape(n * c * h // 2, w // 2, 2, 2).transpose(1, 2).reshape(n, c, h, w)
        return self.join(torch.cat([x, self.back(y)], 1))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, wide=4):
        super().__init__()
        w = inputs * wide
        self.net = nn.Sequential(unit(inputs, w, 1, act=nn.SiLU), unit(w, w, 3, stride, w, act=nn.SiLU), unit(w, outputs, 1, act=None))
        self.same = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.net(x) if self.same else self.net(x)


def mobilevit():
    """Mehta and Rastegari, arXiv:2110.02178, S, for 256x256."""
    return Pooled(nn.Sequential(unit(3, 16, 3, 2, act=nn.SiLU), Inverted(16, 32, 1), Inverted(32, 64, 2), Inverted(64, 64, 1), Inverted(64, 64, 1),
                                Inverted(64, 96, 2), MobileVitBlock(96, 144, 2), Inverted(96, 128, 2), MobileVitBlock(128, 192, 4),
                                Inverted(128, 160, 2), MobileVitBlock(160, 240, 3), unit(160, 640, 1, act=nn.SiLU)), 640)


class ShuffleV1(nn.Module):
    def __init__(self, inputs, outputs, stride, groups=3):
        super().__init__()
        middle, self.groups, self.stride = outputs // 4, groups, stride
        self.first = unit(inputs, middle, 1, 1, groups if inputs > 24 else 1)
        self.deep = unit(middle, middle, 3, stride, middle, act=None)
        self.last = unit(middle, outputs - (inputs if stride == 2 else 0), 1, 1, groups, act=None)

    def forward(self, x):
        y = self.first(x)
        n, c, h, w = y.shape
        y = self.last(self.deep(y.reshape(n, self.groups, c // self.groups, h, w).transpose(1, 2).reshape(n, c, h, w)))
        return F.relu(torch.cat([F.avg_pool2d(x, 3, 2, 1), y], 1) if self.stride == 2 else x + y)


def shufflenet_v1():
    """Zhang et al., arXiv:1707.01083, three groups: 1x1 convolutions of groups of 20, 80, 160 channels."""
    layers, inputs = [unit(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)], 24
    for outputs, count in ((240, 4), (480, 8), (960, 4)):
        for i in range(count):
            layers.append(ShuffleV1(inputs, outputs, 2 if i == 0 else 1))
            inputs = outputs
    return Pooled(nn.Sequential(*layers), 960)


class PoolBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norms = nn.ModuleList((nn.GroupNorm(1, width), nn.GroupNorm(1, width)))
        self.pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.wide = nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1))

    def forward(self, x):
        y = self.norms[0](x)
        x = x + self.pool(y) - y
        return x + self.wide(self.norms[1](x))


def poolformer():
    """Yu et al., arXiv:2111.11418, S12: pools in attention's place."""
    layers = []
    for a, b, k, s, count in ((3, 64, 7, 4, 2), (64, 128, 3, 2, 2), (128, 320, 3, 2, 6), (320, 512, 3, 2, 2)):
        layers += [nn.Conv2d(a, b, k, s, k // 2), *(PoolBlock(b) for _ in range(count))]
    return Pooled(nn.Sequential(*layers), 512)


class XceptionBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        layers, width = [], inputs
        for n in (outputs, outputs, outputs) if stride == 1 else (outputs, outputs):
            layers += [nn.ReLU(), nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False), unit(width, n, 1, act=None)]
            width = n
        self.net = nn.Sequential(*layers, *([nn.MaxPool2d(3, 2, 1)] if stride == 2 else []))
        self.side = unit(inputs, outputs, 1, stride, act=None) if stride == 2 else nn.Identity()

    def forward(self, x):
        return self.net(x) + self.side(x)


def xception():
    """Chollet, arXiv:1610.02357, four middle blocks of the eight."""
    return Pooled(nn.Sequential(unit(3, 32, 3, 2), unit(32, 64), XceptionBlock(64, 128, 2), XceptionBlock(128, 256, 2), XceptionBlock(256, 728, 2),
                                *(XceptionBlock(728, 728, 1) for _ in range(4)), XceptionBlock(728, 1024, 2)), 1024)


class TextReader(nn.Module):
    """CRNN, arXiv:1507.05717: convolutions to one row, two bidirectional LSTM layers, scores of every column."""

    def __init__(self, classes=37):
        super().__init__()
        self.features = nn.Sequential(unit(1, 64), nn.MaxPool2d(2), unit(64, 128), nn.MaxPool2d(2), unit(128, 256), unit(256, 256),
                                      nn.MaxPool2d((2, 1)), unit(256, 512), unit(512, 512), nn.MaxPool2d((2, 1)), nn.Conv2d(512, 512, 2), nn.ReLU())
        self.rows, self.head = nn.LSTM(512, 256, 2, bidirectional=True, batch_first=True), nn.Linear(512, classes)

    def forward(self, x):
        return self.head(self.rows(self.features(x).squeeze(2).transpose(1, 2))[0])


class WaveNet(nn.Module):
    """van den Oord et al., arXiv:1609.03499: gated convolutions of two taps, dilated 1 to 512, with skips."""

    def __init__(self, width=32, skip=64):
        super().__init__()
        self.head = nn.Conv1d(1, width, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=1 << (i % 10)) for i in range(20))
        self.out = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(20))
        self.skip = nn.ModuleList(nn.Conv1d(width, skip, 1) for _ in range(20))
        self.tail = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, 256, 1))

    def forward(self, x):
        x, total = self.head(x), 0
        for i, (gate, out, skip) in enumerate(zip(self.gates, self.out, self.skip)):
            a, b = gate(F.pad(x, (1 << (i % 10), 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(y)
            x = x + out(y)
        return self.tail(total)
