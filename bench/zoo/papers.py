# SPDX-License-Identifier: Apache-2.0
"""Architectures of many fields, one after the other, each written from its paper: pictures, boxes, segments, restoration, generators, rays, points, sound,
words, time series, graphs, video and volumes. They stay together in one file since they share nothing that would part them.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention import MergedAttention
from classifiers import Pooled
from places import unit


def plain(inputs, outputs, kernel=3, stride=1, groups=1, act=None):
    """A convolution with a bias and no norm, as networks are deployed whose norms were merged."""
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups)]
    return nn.Sequential(*layers, *([act()] if act else []))


def gate(width, inner):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), nn.ReLU(), nn.Conv2d(inner, width, 1), nn.Sigmoid())


class LayerScale(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.layer_scale = nn.Parameter(torch.ones(shape))

    def forward(self, x):
        return x * self.layer_scale


def mobileone():
    """Vasu et al., arXiv:2206.04040, S2 as it is deployed: 3x3 depthwise and 1x1 convolutions, no norms, no residuals."""
    layers, inputs = [plain(3, 64, 3, 2, act=nn.ReLU)], 64
    for outputs, count in ((96, 2), (256, 8), (640, 10), (2048, 1)):
        for i in range(count):
            layers += [plain(inputs, inputs, 3, 1 if i else 2, inputs, nn.ReLU), plain(inputs, outputs, 1, act=nn.ReLU)]
            inputs = outputs
    return Pooled(nn.Sequential(*layers), 2048)


class FastVit(nn.Module):
    """Vasu et al., arXiv:2303.14189, SA12 as it is deployed: 3x3 depthwise mixers, feed-forward parts behind 7x7 depthwise convolutions, attention at 8x8."""

    class Block(nn.Module):
        def __init__(self, width, attends):
            super().__init__()
            self.attention = MergedAttention(width, width // 32) if attends else None
            self.mix = nn.BatchNorm2d(width) if attends else plain(width, width, groups=width)
            self.scales = nn.ModuleList(LayerScale(width, 1, 1) for _ in range(2))
            self.wide = nn.Sequential(unit(width, width, 7, groups=width, act=None), nn.Conv2d(width, 4 * width, 1), nn.GELU(),
                                      nn.Conv2d(4 * width, width, 1))

        def forward(self, x):
            y = self.mix(x)
            if self.attention is not None:
                n, c, h, w = y.shape
                y = self.attention(y.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(n, c, h, w)
                y = x + self.scales[0](y)
            return y + self.scales[1](self.wide(y))

    def __init__(self):
        super().__init__()
        layers = [plain(3, 64, 3, 2, act=nn.GELU), plain(64, 64, 3, 2, 64, nn.GELU), plain(64, 64, 1, act=nn.GELU)]
        for a, b, count in ((64, 64, 2), (64, 128, 2), (128, 256, 6), (256, 512, 2)):
            if a != b:
                layers += [plain(a, b, 7, 2, a, nn.GELU), plain(b, b, 1, act=nn.GELU)]
            if b == 512:
                layers.append(plain(b, b, 7, groups=b))
            layers += [self.Block(b, b == 512) for _ in range(count)]
        self.body, self.last, self.weigh = nn.Sequential(*layers), plain(512, 1024, groups=512), gate(1024, 64)
        self.head = nn.Linear(1024, 1000)

    def forward(self, x):
        x = self.last(self.body(x))
        return self.head(F.gelu(x * self.weigh(x)).mean((2, 3)))


class EfficientFormer(nn.Module):
    """Li et al., arXiv:2206.01191, L1: pools as mixers on maps, one block of attention with a table of biases on the last 49 tokens."""

    class Maps(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.pool, self.scales = nn.AvgPool2d(3, 1, 1, count_include_pad=False), nn.ModuleList(LayerScale(width, 1, 1) for _ in range(2))
            self.wide = nn.Sequential(unit(width, 4 * width, 1, act=nn.GELU), unit(4 * width, width, 1, act=None))

        def forward(self, x):
            x = x + self.scales[0](self.pool(x) - x)
            return x + self.scales[1](self.wide(x))

    class Tokens(nn.Module):
        def __init__(self, width, side, heads=8, key=32, value=128):
            super().__init__()
            self.heads, self.parts = heads, (key, key, value)
            self.norms, self.scales = nn.ModuleList(nn.LayerNorm(width) for _ in range(2)), nn.ModuleList(LayerScale(width) for _ in range(2))
            self.qkv, self.out = nn.Linear(width, heads * sum(self.parts)), nn.Linear(heads * value, width)
            self.bias = nn.Parameter(torch.randn(heads, side * side))
            at = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).flatten(1)
            apart = (at[:, :, None] - at[:, None]).abs()
            self.register_buffer("table", apart[0] * side + apart[1])
            self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            n, tokens, _ = x.shape
            q, k, v = self.qkv(self.norms[0](x)).reshape(n, tokens, self.heads, -1).permute(0, 2, 1, 3).split(self.parts, 3)
            scores = (q @ k.transpose(2, 3) * self.parts[0] ** -0.5 + self.bias[:, self.table]).softmax(3)
            x = x + self.scales[0](self.out((scores @ v).transpose(1, 2).reshape(n, tokens, -1)))
            return x + self.scales[1](self.wide(self.norms[1](x)))

    def __init__(self, widths=(48, 96, 224, 448)):
        super().__init__()
        layers = [unit(3, 24, 3, 2), unit(24, 48, 3, 2)]
        for level, (width, count) in enumerate(zip(widths, (3, 2, 6, 3))):
            if level:
                layers.append(unit(widths[level - 1], width, 3, 2, act=None))
            layers += [self.Maps(width) for _ in range(count)]
        self.maps, self.tokens = nn.Sequential(*layers), self.Tokens(widths[-1], 7)
        self.norm, self.head = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], 1000)

    def forward(self, x):
        return self.head(self.norm(self.tokens(self.maps(x).flatten(2).transpose(1, 2))).mean(1))


class DinoRegisters(nn.Module):
    """Oquab et al., arXiv:2304.07193, S/14 with the four registers of arXiv:2309.16588: 261 tokens, scaled branches, features out."""

    def __init__(self, width=384, heads=6, depth=12, registers=4):
        super().__init__()
        self.patch, self.skip = nn.Conv2d(3, width, 14, 14), 1 + registers
        self.class_token, self.registers = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, registers, width))
        self.position = nn.Parameter(torch.randn(1, 257, width) * 0.1)
        def wide():
            return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.layers = nn.ModuleList(nn.ModuleList((nn.LayerNorm(width), MergedAttention(width, heads), LayerScale(width),
                                                   nn.LayerNorm(width), wide(), LayerScale(width))) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        n = x.shape[0]
        x = torch.cat([self.class_token.expand(n, -1, -1), x], 1) + self.position
        x = torch.cat([x[:, :1], self.registers.expand(n, -1, -1), x[:, 1:]], 1)
        for norm1, attention, scale1, norm2, wide, scale2 in self.layers:
            x = x + scale1(attention(norm1(x)))
            x = x + scale2(wide(norm2(x)))
        x = self.norm(x)
        return torch.cat([x[:, 0], x[:, self.skip:].mean(1)], 1)


class Res2Block(nn.Module):
    def __init__(self, inputs, width, outputs, stride):
        super().__init__()
        self.width, self.first = width, stride > 1 or inputs != outputs
        self.up, self.down = unit(inputs, 4 * width, 1), unit(4 * width, outputs, 1, act=None)
        self.chain = nn.ModuleList(unit(width, width, 3, stride) for _ in range(3))
        self.pool = nn.AvgPool2d(3, stride, 1) if self.first else nn.Identity()
        self.side = unit(inputs, outputs, 1, stride, act=None) if self.first else nn.Identity()

    def forward(self, x):
        parts, done = self.up(x).split(self.width, 1), []
        for conv, part in zip(self.chain, parts):
            done.append(conv(part if self.first or not done else part + done[-1]))
        return F.relu(self.down(torch.cat([*done, self.pool(parts[3])], 1)) + self.side(x))


def res2net():
    """Gao et al., arXiv:1904.01169, 50 layers, 26w x 4s: a bottleneck's channels in four parts, each convolved with the part before added."""
    layers, inputs = [unit(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width, count in ((26, 3), (52, 4), (104, 6), (208, 3)):
        for i in range(count):
            outputs = width // 26 * 256
            layers.append(Res2Block(inputs, width, outputs, 2 if i == 0 and width > 26 else 1))
            inputs = outputs
    return Pooled(nn.Sequential(*layers), 2048)


class BiSeNet(nn.Module):
    """BiSeNet V2, Yu et al., arXiv:2004.02147, with a head of 256 channels: wide shallow details, narrow deep meaning, each gates the other."""

    class Expand(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            wide = 6 * inputs
            deep = [unit(inputs, wide, 3, stride, inputs, act=None)] + ([unit(wide, wide, 3, 1, wide)] if stride > 1 else [])
            self.net = nn.Sequential(unit(inputs, inputs), *deep, unit(wide, outputs, 1, act=None))
            self.side = (nn.Sequential(unit(inputs, inputs, 3, 2, inputs, act=None), unit(inputs, outputs, 1, act=None)) if stride > 1
                         else nn.Identity())

        def forward(self, x):
            return F.relu(self.net(x) + self.side(x))

    def __init__(self, classes=19):
        super().__init__()
        self.detail = nn.Sequential(*(unit(a, b, 3, s) for a, b, s in ((3, 64, 2), (64, 64, 1), (64, 64, 2), (64, 64, 1), (64, 64, 1),
                                                                      (64, 128, 2), (128, 128, 1), (128, 128, 1))))
        self.stem, self.left = unit(3, 16, 3, 2), nn.Sequential(unit(16, 8, 1), unit(8, 16, 3, 2))
        self.join = unit(32, 16)
        self.meaning = nn.Sequential(*(self.Expand(a, b, 1 if a == b else 2) for a, b in ((16, 32), (32, 32), (32, 64), (64, 64), (64, 128),
                                                                                           (128, 128), (128, 128), (128, 128))))
        self.context, self.mix = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(128, 128, 1), nn.ReLU()), unit(128, 128)
        def thin():
            return nn.Sequential(unit(128, 128, 3, 1, 128, act=None), nn.Conv2d(128, 128, 1))
        self.keep, self.shrink = thin(), nn.Sequential(unit(128, 128, 3, 2, act=None), nn.AvgPool2d(3, 2, 1))
        self.lift, self.weigh, self.last = unit(128, 128, act=None), thin(), unit(128, 128, act=None)
        self.head = nn.Sequential(unit(128, 256), nn.Conv2d(256, classes, 1))

    def forward(self, x):
        def larger(y, times):
            return F.interpolate(y, scale_factor=float(times), mode="bilinear", align_corners=False)
        d, m = self.detail(x), self.stem(x)
        m = self.meaning(self.join(torch.cat([self.left(m), F.max_pool2d(m, 3, 2, 1)], 1)))
        m = self.mix(m + self.context(m))
        fine = self.keep(d) * torch.sigmoid(larger(self.lift(m), 4))
        coarse = self.shrink(d) * torch.sigmoid(self.weigh(m))
        return larger(self.head(self.last(fine + larger(coarse, 4))), 8)


class RtmDet(nn.Module):
    """Lyu et al., arXiv:2212.07784, tiny: cross-stage blocks with 5x5 depthwise convolutions, channels weighed, one head with norms of each level's own."""

    class Stage(nn.Module):
        def __init__(self, inputs, outputs, add):
            super().__init__()
            half, self.add = outputs // 2, add
            self.left, self.right = unit(inputs, half, 1, act=nn.SiLU), unit(inputs, half, 1, act=nn.SiLU)
            self.block = nn.Sequential(unit(half, half, act=nn.SiLU), unit(half, half, 5, groups=half, act=nn.SiLU), unit(half, half, 1, act=nn.SiLU))
            self.weigh = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(outputs, outputs, 1), nn.Hardsigmoid()) if add else None
            self.join = unit(outputs, outputs, 1, act=nn.SiLU)

        def forward(self, x):
            left = self.left(x)
            x = torch.cat([left + self.block(left) if self.add else self.block(left), self.right(x)], 1)
            return self.join(x if self.weigh is None else x * self.weigh(x))

    def __init__(self, widths=(24, 48, 96, 192), width=96, size=640, classes=80):
        super().__init__()
        def silu(*args):
            return unit(*args, act=nn.SiLU)
        self.stem, self.stages = nn.Sequential(silu(3, 12, 3, 2), silu(12, 12), silu(12, 24)), nn.ModuleList()
        for a, b in zip(widths, widths[1:]):
            self.stages.append(nn.Sequential(silu(a, b, 3, 2), self.Stage(b, b, True)))
        self.stages.append(nn.ModuleList((silu(192, 384, 3, 2), silu(384, 192, 1), silu(4 * 192, 384, 1), self.Stage(384, 384, False))))
        self.reduce = nn.ModuleList((silu(384, 192, 1), silu(192, 96, 1)))
        self.top = nn.ModuleList((self.Stage(384, 192, False), self.Stage(192, 96, False)))
        self.down = nn.ModuleList((silu(96, 96, 3, 2), silu(192, 192, 3, 2)))
        self.bottom = nn.ModuleList((self.Stage(192, 192, False), self.Stage(384, 384, False)))
        self.out = nn.ModuleList(silu(w, width) for w in (96, 192, 384))
        self.convs = nn.ModuleList(nn.ModuleList(nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2)) for _ in range(2))
        self.norms = nn.ModuleList(nn.ModuleList(nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2)) for _ in range(2)) for _ in range(3))
        self.heads = nn.ModuleList((nn.Conv2d(width, classes, 1), nn.Conv2d(width, 4, 1)))
        self.scales, self.centres = nn.Parameter(torch.rand(3) * 0.2 + 0.2), []
        for level in range(3):
            step = 8 << level
            at = torch.arange(size // step) * float(step)
            self.centres.append(torch.stack(torch.meshgrid(at, at, indexing="xy"), 2).reshape(-1, 2))

    def forward(self, x):
        x, maps = self.stem(x), []
        for stage in self.stages[:3]:
            x = stage(x)
            maps.append(x)
        enter, narrow, wide, last = self.stages[3]
        pools = [narrow(enter(x))]
        for kernel in (5, 9, 13):
            pools.append(F.max_pool2d(pools[0], kernel, 1, kernel // 2))
        high = self.reduce[0](last(wide(torch.cat(pools, 1))))
        middle = self.reduce[1](self.top[0](torch.cat([F.interpolate(high, scale_factor=2.0, mode="nearest"), maps[2]], 1)))
        p3 = self.top[1](torch.cat([F.interpolate(middle, scale_factor=2.0, mode="nearest"), maps[1]], 1))
        p4 = self.bottom[0](torch.cat([self.down[0](p3), middle], 1))
        p5 = self.bottom[1](torch.cat([self.down[1](p4), high], 1))
        boxes, scores = [], []
        for level, (out, p, norms) in enumerate(zip(self.out, (p3, p4, p5), self.norms)):
            p, answers = out(p), []
            for convs, own, head in zip(self.convs, norms, self.heads):
                y = p
                for conv, norm in zip(convs, own):
                    y = F.silu(norm(conv(y)))
                answers.append(head(y).permute(0, 2, 3, 1).flatten(1, 2))
            reach = answers[1] * self.scales[level] * float(8 << level)
            boxes.append(torch.cat([self.centres[level] - reach[..., :2], self.centres[level] + reach[..., 2:]], 2))
            scores.append(answers[0].sigmoid())
        return torch.cat(boxes, 1), torch.cat(scores, 1)


class EfficientDet(nn.Module):
    """Tan et al., arXiv:1911.09070, D0 on torchvision's EfficientNet-B0: three rounds of weighted sums over five maps, separable heads."""

    class Separable(nn.Sequential):
        def __init__(self, width, outputs=None):
            last = unit(width, width, 1, act=None) if outputs is None else nn.Conv2d(width, outputs, 1)
            super().__init__(nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False), last)

    class Round(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.shares = nn.ParameterList(nn.Parameter(torch.rand(n) + 0.2) for n in (2, 2, 2, 2, 3, 3, 3, 2))
            self.convs = nn.ModuleList(EfficientDet.Separable(width) for _ in range(8))

        def join(self, i, *maps):
            shares = F.relu(self.shares[i])
            shares = shares / (shares.sum() + 1e-4)
            return self.convs[i](F.silu(sum(share * m for share, m in zip(shares, maps))))

        def forward(self, maps):
            up, kept = maps[4], [maps[4]]
            for i in range(4):
                up = self.join(i, maps[3 - i], F.interpolate(up, scale_factor=2.0, mode="nearest"))
                kept.append(up)
            kept, down = kept[::-1], [up]
            for i in range(1, 5):
                below = F.max_pool2d(down[-1], 3, 2, 1)
                down.append(self.join(3 + i, maps[i], *([kept[i]] if i < 4 else []), below))
            return down

    def __init__(self, width=64, classes=90):
        super().__init__()
        import torchvision

        features = torchvision.models.efficientnet_b0(weights=None, stochastic_depth_prob=0.0).features
        self.stages = nn.ModuleList((features[:4], features[4:6], features[6:8]))
        self.across = nn.ModuleList(unit(w, width, 1, act=None) for w in (40, 112, 320, 320))
        self.rounds = nn.ModuleList(self.Round(width) for _ in range(3))
        def head(outputs):
            layers = []
            for _ in range(3):
                layers += [self.Separable(width), nn.SiLU()]
            return nn.Sequential(*layers, self.Separable(width, outputs))
        self.boxes, self.scores = head(9 * 4), head(9 * classes)

    def forward(self, x):
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        maps = [across(m) for across, m in zip(self.across, [*maps, x])]
        maps[3] = F.max_pool2d(maps[3], 3, 2, 1)
        maps.append(F.max_pool2d(maps[3], 3, 2, 1))
        for fuse in self.rounds:
            maps = fuse(maps)
        def flat(head, n):
            return torch.cat([head(m).permute(0, 2, 3, 1).reshape(m.shape[0], -1, n) for m in maps], 1)
        return flat(self.boxes, 4), flat(self.scores, 90)


class NafNet(nn.Module):
    """Chen et al., arXiv:2204.04676, 32 wide, fewer blocks: no activations, one half of the channels multiplies the other; norms along the channels."""

    class Block(nn.Module):
        class Norm(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.weight, self.bias = nn.Parameter(torch.rand(width, 1, 1) + 0.5), nn.Parameter(torch.randn(width, 1, 1) * 0.2)

            def forward(self, x):
                x = x - x.mean(1, keepdim=True)
                return x / (x.pow(2).mean(1, keepdim=True) + 1e-6).sqrt() * self.weight + self.bias

        def __init__(self, width):
            super().__init__()
            self.norms, self.scales = nn.ModuleList(self.Norm(width) for _ in range(2)), nn.ModuleList(LayerScale(width, 1, 1) for _ in range(2))
            self.up = nn.Sequential(nn.Conv2d(width, 2 * width, 1), plain(2 * width, 2 * width, groups=2 * width))
            self.weigh, self.down = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width, 1)), nn.Conv2d(width, width, 1)
            self.wide, self.back = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(width, width, 1)

        def forward(self, x):
            a, b = self.up(self.norms[0](x)).chunk(2, 1)
            y = a * b
            x = x + self.scales[0](self.down(y * self.weigh(y)))
            a, b = self.wide(self.norms[1](x)).chunk(2, 1)
            return x + self.scales[1](self.back(a * b))

    def __init__(self, width=32, counts=(1, 1, 2, 4), middle=4):
        super().__init__()
        widths = [width << i for i in range(len(counts))]
        def blocks(width, count):
            return nn.Sequential(*(self.Block(width) for _ in range(count)))
        self.head, self.tail = plain(3, width), plain(width, 3)
        self.encode, self.decode = nn.ModuleList(blocks(w, n) for w, n in zip(widths, counts)), nn.ModuleList(blocks(w, 1) for w in widths[::-1])
        self.down = nn.ModuleList(nn.Conv2d(w, 2 * w, 2, 2) for w in widths)
        self.middle = blocks(2 * widths[-1], middle)
        self.up = nn.ModuleList(nn.Sequential(nn.Conv2d(2 * w, 4 * w, 1, bias=False), nn.PixelShuffle(2)) for w in widths[::-1])

    def forward(self, image):
        x, skips = self.head(image), []
        for encode, down in zip(self.encode, self.down):
            x = encode(x)
            skips.append(x)
            x = down(x)
        x = self.middle(x)
        for up, decode, skip in zip(self.up, self.decode, skips[::-1]):
            x = decode(up(x) + skip)
        return image + self.tail(x)


class SwinIr(nn.Module):
    """Liang et al., arXiv:2108.10257, the light one for twice the size: windows of 8x8, every second one shifted, four groups of six layers."""

    class Layer(nn.Module):
        def __init__(self, width, heads, side, window, shift):
            super().__init__()
            self.heads, self.window, self.shift, area = heads, window, shift, window * window
            self.norms, self.bias = nn.ModuleList(nn.LayerNorm(width) for _ in range(2)), nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
            apart = at[:, :, None] - at[:, None] + window - 1
            self.register_buffer("table", apart[0] * (2 * window - 1) + apart[1])
            zone = (torch.arange(side) >= side - window).long() + (torch.arange(side) >= side - shift).long()
            zones = self.windows((zone[:, None] * 3 + zone).reshape(1, side, side, 1)).reshape(-1, area)
            self.register_buffer("mask", (zones[:, None] != zones[:, :, None]).float() * -100.0)

        def windows(self, x):
            n, h, w, c = x.shape
            s = self.window
            return x.reshape(n, h // s, s, w // s, s, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, s * s, c)

        def forward(self, x):
            n, h, w, c = x.shape
            s, y = self.window, self.norms[0](x)
            y = self.windows(torch.roll(y, (-self.shift, -self.shift), (1, 2)) if self.shift else y)
            q, k, v = self.qkv(y).reshape(-1, s * s, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            scores = q * (c // self.heads) ** -0.5 @ k.transpose(2, 3) + self.bias[self.table].permute(2, 0, 1)
            scores = scores + self.mask[:, None] if self.shift else scores
            y = self.out((scores.softmax(3) @ v).transpose(1, 2).reshape(-1, s * s, c))
            y = y.reshape(n, h // s, w // s, s, s, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
            x = x + (torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y)
            return x + self.wide(self.norms[1](x))

    def __init__(self, width=60, heads=6, side=64, groups=4, depth=6):
        super().__init__()
        self.head, self.norm = plain(3, width), nn.LayerNorm(width)
        self.groups = nn.ModuleList(nn.Sequential(*(self.Layer(width, heads, side, 8, 4 * (i % 2)) for i in range(depth))) for _ in range(groups))
        self.convs, self.last = nn.ModuleList(plain(width, width) for _ in range(groups)), plain(width, width)
        self.tail = nn.Sequential(plain(width, 12), nn.PixelShuffle(2))

    def forward(self, x):
        x = self.head(x)
        y = x.permute(0, 2, 3, 1)
        for group, conv in zip(self.groups, self.convs):
            y = y + conv(group(y).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.tail(x + self.last(self.norm(y).permute(0, 3, 1, 2)))


class NormedBlock(nn.Module):
    """Group norm, SiLU, convolution, twice; between them a vector may be added."""

    def __init__(self, inputs, outputs, vector=0):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, inputs), nn.SiLU(), plain(inputs, outputs))
        self.second = nn.Sequential(nn.GroupNorm(32, outputs), nn.SiLU(), plain(outputs, outputs))
        self.add = nn.Linear(vector, outputs) if vector else None
        self.side = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, vector=None):
        y = self.first(x)
        if self.add is not None:
            y = y + self.add(F.silu(vector))[:, :, None, None]
        return self.side(x) + self.second(y)


class MapAttention(nn.Module):
    """One head over all pixels of a map."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(32, width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(n, 3, c, h * w).unbind(1)
        shares = (torch.bmm(q.transpose(1, 2), k) * c ** -0.5).softmax(2)
        return x + self.out(torch.bmm(v, shares.transpose(1, 2)).reshape(n, c, h, w))


class DiffusionUNet(nn.Module):
    """Ho et al., arXiv:2006.11239, for CIFAR-10: group norms, attention at 16x16; the step's number is the mean of a fourth channel."""

    def __init__(self, width=128, multiples=(1, 2, 2, 2)):
        super().__init__()
        vector, widths = 4 * width, [width * m for m in multiples]
        self.register_buffer("waves", torch.exp(-math.log(10000) * torch.arange(width // 2) / (width // 2 - 1)))
        self.step, self.head = nn.Sequential(nn.Linear(width, vector), nn.SiLU(), nn.Linear(vector, vector)), plain(3, width)
        self.down, self.up, skips, c = nn.ModuleList(), nn.ModuleList(), [width], width
        for level, w in enumerate(widths):
            for _ in range(2):
                self.down.append(nn.ModuleList((NormedBlock(c, w, vector), MapAttention(w) if level == 1 else nn.Identity())))
                skips.append(w)
                c = w
            if level + 1 < len(widths):
                self.down.append(nn.ModuleList((nn.Conv2d(c, c, 3, 2, 1),)))
                skips.append(c)
        self.middle = nn.ModuleList((NormedBlock(c, c, vector), MapAttention(c), NormedBlock(c, c, vector)))
        for level, w in list(enumerate(widths))[::-1]:
            for i in range(3):
                more = plain(w, w) if level and i == 2 else None
                self.up.append(nn.ModuleList((NormedBlock(c + skips.pop(), w, vector), MapAttention(w) if level == 1 else nn.Identity(),
                                              *([more] if more else []))))
                c = w
        self.tail = nn.Sequential(nn.GroupNorm(32, c), nn.SiLU(), plain(c, 3))

    def forward(self, x):
        angles = (500.0 + x[:, 3:].mean((1, 2, 3)))[:, None] * self.waves
        vector = self.step(torch.cat([angles.sin(), angles.cos()], 1))
        x = self.head(x[:, :3])
        skips = [x]
        for parts in self.down:
            x = parts[0](x) if len(parts) == 1 else parts[1](parts[0](x, vector))
            skips.append(x)
        first, attention, second = self.middle
        x = second(attention(first(x, vector)), vector)
        for parts in self.up:
            x = parts[1](parts[0](torch.cat([x, skips.pop()], 1), vector))
            if len(parts) == 3:
                x = parts[2](F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.tail(x)


class LatentDecoder(nn.Sequential):
    """The decoder of Rombach et al., arXiv:2112.10752, half as wide: 16x16 latents to 128x128 pixels, three blocks a level, attention at the start."""

    def __init__(self, widths=(256, 256, 128, 64)):
        c = widths[0]
        layers = [nn.Conv2d(4, 4, 1), plain(4, c), NormedBlock(c, c), MapAttention(c), NormedBlock(c, c)]
        for level, width in enumerate(widths):
            if level:
                layers += [nn.Upsample(scale_factor=2.0, mode="nearest"), plain(c, c)]
            for _ in range(3):
                layers.append(NormedBlock(c, width))
                c = width
        super().__init__(*layers, nn.GroupNorm(32, c), nn.SiLU(), plain(c, 3))


class StyleGan(nn.Module):
    """StyleGAN2, Karras et al., arXiv:1912.04958, half as wide, to 128x128: convolutions whose weights the style scales and a norm divides."""

    class Styled(nn.Module):
        def __init__(self, inputs, outputs, kernel=3, norm=True):
            super().__init__()
            self.weight, self.style, self.norm = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel)), nn.Linear(512, inputs), norm
            self.size, self.padding, self.bias = (inputs * kernel * kernel) ** -0.5, kernel // 2, nn.Parameter(torch.randn(outputs, 1, 1) * 0.1)
            self.layer_scale = nn.Parameter(torch.zeros(1))

        def forward(self, x, style):
            weight = self.weight * self.size * (1 + self.style(style)).reshape(1, -1, 1, 1)
            if self.norm:
                weight = weight * torch.rsqrt(weight.pow(2).sum((1, 2, 3), keepdim=True) + 1e-8)
            return F.conv2d(x, weight, padding=self.padding) + self.bias

    def __init__(self, widths=(256, 256, 256, 256, 128, 64)):
        super().__init__()
        layers = []
        for _ in range(8):
            layers += [nn.Linear(512, 512), nn.LeakyReLU(0.2)]
        self.mapping, self.start = nn.Sequential(*layers), nn.Parameter(torch.randn(1, widths[0], 4, 4))
        self.first, self.second, self.colours = (nn.ModuleList() for _ in range(3))
        for level, (a, b) in enumerate(zip(widths[:1] + widths, widths)):
            self.first.append(self.Styled(a, b) if level else nn.Identity())
            self.second.append(self.Styled(b, b))
            self.colours.append(self.Styled(b, 3, 1, False))
            for layer in range(2):
                self.register_buffer(f"noise{level}{layer}", torch.randn(1, 1, 4 << level, 4 << level))

    def forward(self, z):
        style = self.mapping(z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8))
        x, picture = self.start, None
        for level, (first, second, colour) in enumerate(zip(self.first, self.second, self.colours)):
            for layer, conv in enumerate((first, second)):
                if level == 0 and layer == 0:
                    continue
                if layer == 0:
                    x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
                x = conv(x, style) + conv.layer_scale * getattr(self, f"noise{level}{layer}")
                x = F.leaky_relu(x, 0.2) * 2 ** 0.5
            if picture is not None:
                picture = F.interpolate(picture, scale_factor=2.0, mode="bilinear", align_corners=False)
            picture = colour(x, style) if picture is None else picture + colour(x, style)
        return picture


class RadianceField(nn.Module):
    """NeRF, Mildenhall et al., arXiv:2003.08934: 64 samples of 64 rays, sines of places and directions, eight layers of 256 with one skip."""

    def __init__(self, width=256):
        super().__init__()
        self.register_buffer("waves", 2.0 ** torch.arange(10))
        self.layers = nn.ModuleList(nn.Linear(63 if i == 0 else width + 63 * (i == 5), width) for i in range(8))
        self.density, self.feature = nn.Linear(width, 1), nn.Linear(width, width)
        self.view, self.colour = nn.Linear(width + 27, width // 2), nn.Linear(width // 2, 3)

    def encode(self, x, count):
        angles = (x[..., None] * self.waves[:count]).flatten(2)
        return torch.cat([x, angles.sin(), angles.cos()], 2)

    def forward(self, x):
        place, direction = self.encode(x[..., :3], 10), self.encode(x[..., 3:], 4)
        y = place
        for i, layer in enumerate(self.layers):
            y = F.relu(layer(torch.cat([place, y], 2) if i == 5 else y))
        colour = self.colour(F.relu(self.view(torch.cat([self.feature(y), direction], 2)))).sigmoid()
        return torch.cat([colour, F.relu(self.density(y))], 2)


class PointGraph(nn.Module):
    """DGCNN, Wang et al., arXiv:1801.07829: 20 neighbours of each of 1024 points, found anew before each of four layers; a maximum over the edges."""

    def __init__(self, neighbours=20, widths=(3, 64, 64, 128, 256), classes=40):
        super().__init__()
        self.neighbours = neighbours
        def leaky(a, b, kernel=1):
            return unit(a, b, kernel, act=lambda: nn.LeakyReLU(0.2))
        self.edges = nn.ModuleList(leaky(2 * a, b) for a, b in zip(widths, widths[1:]))
        self.join = nn.Sequential(nn.Conv1d(sum(widths[1:]), 1024, 1, bias=False), nn.BatchNorm1d(1024), nn.LeakyReLU(0.2))
        self.head = nn.Sequential(nn.Linear(2048, 512), nn.LeakyReLU(0.2), nn.Linear(512, 256), nn.LeakyReLU(0.2), nn.Linear(256, classes))

    def pairs(self, x):
        b, c, n = x.shape
        square = x.pow(2).sum(1, keepdim=True)
        near = (2 * torch.bmm(x.transpose(1, 2), x) - square - square.transpose(1, 2)).topk(self.neighbours, 2)[1]
        near = near + torch.arange(b, device=x.device).reshape(b, 1, 1) * n
        points = x.transpose(1, 2).reshape(b * n, c)
        others = points[near.reshape(-1)].reshape(b, n, self.neighbours, c)
        own = points.reshape(b, n, 1, c).expand(-1, -1, self.neighbours, -1)
        return torch.cat([others - own, own], 3).permute(0, 3, 1, 2)

    def forward(self, x):
        found = []
        for edge in self.edges:
            x = edge(self.pairs(x)).max(3)[0]
            found.append(x)
        x = self.join(torch.cat(found, 1))
        return self.head(torch.cat([x.max(2)[0], x.mean(2)], 1))


class ConvTasNet(nn.Module):
    """Luo and Mesgarani, arXiv:1809.07454: a second of two speakers at 8 kHz, 24 dilated blocks normed over time and channels, a mask for each speaker."""

    class Block(nn.Module):
        def __init__(self, width, wide, dilation):
            super().__init__()
            self.net = nn.Sequential(nn.Conv1d(width, wide, 1), nn.PReLU(), nn.GroupNorm(1, wide),
                                     nn.Conv1d(wide, wide, 3, padding=dilation, dilation=dilation, groups=wide), nn.PReLU(), nn.GroupNorm(1, wide))
            self.on, self.skip = nn.Conv1d(wide, width, 1), nn.Conv1d(wide, width, 1)

    def __init__(self, filters=512, width=128, wide=512, speakers=2):
        super().__init__()
        self.speakers, self.encode, self.decode = speakers, nn.Conv1d(1, filters, 16, 8, bias=False), nn.ConvTranspose1d(filters, 1, 16, 8, bias=False)
        self.enter = nn.Sequential(nn.GroupNorm(1, filters), nn.Conv1d(filters, width, 1))
        self.blocks = nn.ModuleList(self.Block(width, wide, 1 << (i % 8)) for i in range(24))
        self.masks = nn.Sequential(nn.PReLU(), nn.Conv1d(width, speakers * filters, 1), nn.Sigmoid())

    def forward(self, x):
        heard = F.relu(self.encode(x))
        y, total = self.enter(heard), 0
        for block in self.blocks:
            z = block.net(y)
            y, total = y + block.on(z), total + block.skip(z)
        n, filters, steps = heard.shape
        apart = self.masks(total).reshape(n, self.speakers, filters, steps) * heard[:, None]
        return self.decode(apart.reshape(n * self.speakers, filters, steps)).reshape(n, self.speakers, -1)


class DeepFilter(nn.Module):
    """DeepFilterNet, Schröter et al., arXiv:2110.05588, over 400 frames: gains of 32 bands from a recurrent U-Net, and five complex taps over time for each
    of the lowest 96 bins. The input has the bands, then real and imaginary parts of the bins."""

    def __init__(self, width=64, hidden=256, bands=32, bins=96, taps=5):
        super().__init__()
        self.bands, self.bins, self.taps = bands, bins, taps
        def conv(a, b, stride=1, frames=1):
            first = [nn.ConstantPad2d((0, 0, frames - 1, 0), 0.0), nn.Conv2d(a, b, (frames, 3), (1, stride), (0, 1), groups=2 if a == 2 else a, bias=False)]
            return nn.Sequential(*first, nn.Conv2d(b, b, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU())
        def back(stride):
            first = (nn.ConvTranspose2d(width, width, (1, 3), (1, 2), (0, 1), (0, 1), groups=width, bias=False) if stride == 2
                     else nn.Conv2d(width, width, (1, 3), 1, (0, 1), groups=width, bias=False))
            return nn.Sequential(first, nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.encode = nn.ModuleList((conv(1, width, 1, 3), conv(width, width, 2), conv(width, width, 2), conv(width, width)))
        self.fine = nn.ModuleList((conv(2, width, 1, 3), conv(width, width, 2)))
        self.narrow, self.merge = nn.Linear(width * bins // 2, width * bands // 4), nn.GRU(width * bands // 4, hidden, batch_first=True)
        self.up, self.paths = nn.Linear(hidden, width * bands // 4), nn.ModuleList(unit(width, width, 1) for _ in range(4))
        self.decode = nn.ModuleList((back(1), back(2), back(2)))
        self.gains = nn.Sequential(nn.Conv2d(width, 1, (1, 3), padding=(0, 1)), nn.Sigmoid())
        self.rows, self.coefficients = nn.GRU(hidden, hidden, 2, batch_first=True), nn.Linear(hidden, bins * taps * 2)
        self.path = nn.Conv2d(width, taps * 2, 1)

    def forward(self, x):
        n, frames, _ = x.shape
        y, maps = x[:, None, :, :self.bands], []
        for encode in self.encode:
            y = encode(y)
            maps.append(y)
        spectrum = x[:, :, self.bands:].reshape(n, frames, 2, self.bins).transpose(1, 2)
        first = self.fine[0](spectrum)
        flat = F.relu(self.narrow(self.fine[1](first).transpose(1, 2).flatten(2)))
        hidden = self.merge(maps[3].transpose(1, 2).flatten(2) + flat)[0]
        y = F.relu(self.up(hidden)).reshape(n, frames, -1, self.bands // 4).transpose(1, 2)
        for decode, path, skip in zip(self.decode, self.paths, maps[:0:-1]):
            y = decode(y + path(skip))
        gains = self.gains(y + self.paths[3](maps[0]))
        taps = torch.tanh(self.coefficients(self.rows(hidden)[0])).reshape(n, frames, self.bins, 2 * self.taps).permute(0, 3, 1, 2) + self.path(first)
        past, real, imaginary = F.pad(spectrum, (0, 0, self.taps - 1, 0)), 0, 0
        for i in range(self.taps):
            a, b, c, d = past[:, 0, i:i + frames], past[:, 1, i:i + frames], taps[:, 2 * i], taps[:, 2 * i + 1]
            real, imaginary = real + a * c - b * d, imaginary + a * d + b * c
        return gains, torch.stack([real, imaginary], 1)


class EnCodec(nn.Module):
    """Défossez et al., arXiv:2210.13438, without its quantiser: 24 kHz to 75 vectors a second and back, ELU, causal, edges reflected, LSTMs."""

    class Causal(nn.Module):
        def __init__(self, inputs, outputs, kernel, stride=1):
            super().__init__()
            self.reach, self.conv = kernel - stride, nn.Conv1d(inputs, outputs, kernel, stride)

        def forward(self, x):
            return self.conv(F.pad(x, (self.reach, 0), mode="reflect") if self.reach else x)

    class Residual(nn.Module):
        def __init__(self, width):
            super().__init__()
            causal = EnCodec.Causal
            self.net = nn.Sequential(nn.ELU(), causal(width, width // 2, 3), nn.ELU(), causal(width // 2, width, 1))
            self.side = causal(width, width, 1)

        def forward(self, x):
            return self.side(x) + self.net(x)

    class Rows(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.lstm = nn.LSTM(width, width, 2, batch_first=True)

        def forward(self, x):
            return x + self.lstm(x.transpose(1, 2))[0].transpose(1, 2)

    class Up(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.stride, self.conv = stride, nn.ConvTranspose1d(inputs, outputs, 2 * stride, stride)

        def forward(self, x):
            return self.conv(x)[..., :-self.stride]

    def __init__(self, width=32, strides=(2, 4, 5, 8), code=128):
        super().__init__()
        layers, back = [self.Causal(1, width, 7)], []
        for stride in strides:
            layers += [self.Residual(width), nn.ELU(), self.Causal(width, 2 * width, 2 * stride, stride)]
            back = [nn.ELU(), self.Up(2 * width, width, stride), self.Residual(width), *back]
            width *= 2
        self.encode = nn.Sequential(*layers, self.Rows(width), nn.ELU(), self.Causal(width, code, 7))
        self.decode = nn.Sequential(self.Causal(code, width, 7), self.Rows(width), *back, nn.ELU(), self.Causal(width // 16, 1, 7))

    def forward(self, x):
        code = self.encode(x)
        return code, self.decode(code)


class Deberta(nn.Module):
    """He et al., arXiv:2006.03654, the six layers of 768 of its small one: words attend to words, words to places, places to words. Embedded tokens in."""

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.norms = heads, nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x, places, apart):
            n, tokens, width = x.shape
            def split(t):
                return t.reshape(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
            q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
            at = apart.expand(n, self.heads, -1, -1)
            scores = q @ k.transpose(2, 3) + (q @ split(self.k(places)).transpose(2, 3)).gather(3, at)
            scores = scores + (k @ split(self.q(places)).transpose(2, 3)).gather(3, at).transpose(2, 3)
            y = (scores / math.sqrt(3 * width // self.heads)).softmax(3) @ v
            x = self.norms[0](x + self.out(y.transpose(1, 2).reshape(n, tokens, width)))
            return self.norms[1](x + self.wide(x))

    def __init__(self, width=768, heads=12, depth=6, tokens=128, reach=128):
        super().__init__()
        self.places, self.norm = nn.Parameter(torch.randn(1, 2 * reach, width)), nn.LayerNorm(width)
        at = torch.arange(tokens)
        self.register_buffer("apart", (at[:, None] - at + reach).clamp(0, 2 * reach - 1)[None, None])
        self.layers = nn.ModuleList(self.Layer(width, heads) for _ in range(depth))

    def forward(self, x):
        places = self.norm(self.places)
        for layer in self.layers:
            x = layer(x, places, self.apart)
        return x


class RecurrentLanguageModel(nn.Module):
    """Zaremba et al., arXiv:1409.2329, the medium one: two LSTM layers of 650 over 35 embedded words, the likelihood of 10,000 words after each."""

    def __init__(self, width=650, words=10000):
        super().__init__()
        self.rows, self.head = nn.LSTM(width, width, 2, batch_first=True), nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.rows(x)[0]).log_softmax(2)


class PatchTst(nn.Module):
    """Nie et al., arXiv:2211.14730, for the 321 series of Electricity: 336 hours of each in 42 patches, layers with batch norms, the next 96 hours."""

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attention, self.norms = MergedAttention(width, heads), nn.ModuleList(nn.BatchNorm1d(width) for _ in range(2))
            self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, x):
            x = self.norms[0]((x + self.attention(x)).transpose(1, 2)).transpose(1, 2)
            return self.norms[1]((x + self.wide(x)).transpose(1, 2)).transpose(1, 2)

    def __init__(self, width=128, heads=16, depth=3, patches=42, ahead=96):
        super().__init__()
        self.patch, self.position = nn.Conv1d(1, width, 16, 8), nn.Parameter(torch.randn(patches, width) * 0.1)
        self.layers, self.head = nn.Sequential(*(self.Layer(width, heads) for _ in range(depth))), nn.Linear(width * patches, ahead)

    def forward(self, x):
        n, series, hours = x.shape
        mean = x.mean(2, keepdim=True)
        x = x - mean
        spread = (x.pow(2).mean(2, keepdim=True) + 1e-5).sqrt()
        y = F.pad((x / spread).reshape(n * series, 1, hours), (0, 8), mode="replicate")
        y = self.layers(self.patch(y).transpose(1, 2) + self.position)
        return self.head(y.transpose(1, 2).flatten(1)).reshape(n, series, -1) * spread + mean


class DeepGraph(nn.Module):
    """GCNII, Chen et al., arXiv:2007.02133, of the size of Cora: 2,708 papers of 1,433 words, a dense matrix of who cites whom, eight layers of 64."""

    def __init__(self, nodes=2708, words=1433, width=64, depth=8, classes=7, alpha=0.1, strength=0.5):
        super().__init__()
        links = (torch.rand(nodes, nodes) < 2.0 / nodes).float()
        links = ((links + links.t()) > 0).float().fill_diagonal_(1.0)
        degrees = links.sum(1).rsqrt()
        self.register_buffer("links", degrees[:, None] * links * degrees)
        self.enter, self.head, self.alpha = nn.Linear(words, width), nn.Linear(width, classes), alpha
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(width, width) * width ** -0.5) for _ in range(depth))
        self.shares = [math.log(strength / (i + 1) + 1) for i in range(depth)]

    def forward(self, x):
        x = first = F.relu(self.enter(x))
        for weight, share in zip(self.weights, self.shares):
            x = (1 - self.alpha) * (self.links @ x) + self.alpha * first
            x = F.relu((1 - share) * x + share * (x @ weight))
        return self.head(x).log_softmax(2)


def solid(inputs, outputs, kernel, stride=(1, 1, 1), act=True):
    layers = [nn.Conv3d(inputs, outputs, kernel, stride, tuple(k // 2 for k in kernel), bias=False), nn.BatchNorm3d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU()] if act else []))


class SlowFast(nn.Module):
    """Feichtenhofer et al., arXiv:1812.03982, 4x16 on ResNet-50 at 112x112: four frames through a wide path, 32 through one an eighth as wide."""

    class Block(nn.Module):
        def __init__(self, inputs, inner, outputs, frames, stride):
            super().__init__()
            step = (1, stride, stride)
            self.net = nn.Sequential(solid(inputs, inner, (frames, 1, 1)), solid(inner, inner, (1, 3, 3), step), solid(inner, outputs, (1, 1, 1), act=False))
            self.side = solid(inputs, outputs, (1, 1, 1), step, False) if inputs != outputs or stride > 1 else nn.Identity()

        def forward(self, x):
            return F.relu(self.net(x) + self.side(x))

    def __init__(self, ratio=8, classes=400):
        super().__init__()
        self.ratio, self.pool = ratio, nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1))
        def stage(inputs, inner, count, frames, level):
            return nn.Sequential(*(self.Block(inputs if i == 0 else 4 * inner, inner, 4 * inner, frames, 2 if level and i == 0 else 1) for i in range(count)))
        self.slow, self.fast = nn.ModuleList((solid(3, 64, (1, 7, 7), (1, 2, 2)),)), nn.ModuleList((solid(3, 8, (5, 7, 7), (1, 2, 2)),))
        self.across, wide, thin = nn.ModuleList(), 64, 8
        for level, (inner, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
            self.across.append(solid(thin, 2 * thin, (5, 1, 1), (ratio, 1, 1)))
            self.slow.append(stage(wide + 2 * thin, inner, count, 1 if level < 2 else 3, level))
            self.fast.append(stage(thin, inner // 8, count, 3, level))
            wide, thin = 4 * inner, inner // 2
        self.head = nn.Linear(wide + thin, classes)

    def forward(self, x):
        slow, fast = self.pool(self.slow[0](x[:, :, ::self.ratio])), self.pool(self.fast[0](x))
        for wide, thin, across in zip(self.slow[1:], self.fast[1:], self.across):
            slow, fast = wide(torch.cat([slow, across(fast)], 1)), thin(fast)
        return self.head(torch.cat([slow.mean((2, 3, 4)), fast.mean((2, 3, 4))], 1))


class SegResNet(nn.Module):
    """Myronenko, arXiv:1810.11654, 8 wide, without its second decoder: residual blocks with group norms over four scans, trilinear steps up."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            def half():
                return nn.Sequential(nn.GroupNorm(8, width), nn.ReLU(), nn.Conv3d(width, width, 3, padding=1, bias=False))
            self.net = nn.Sequential(half(), half())

        def forward(self, x):
            return x + self.net(x)

    def __init__(self, widths=(8, 16, 32, 64), counts=(1, 2, 2, 4), classes=3):
        super().__init__()
        self.head = nn.Conv3d(4, widths[0], 3, padding=1, bias=False)
        self.levels = nn.ModuleList(nn.Sequential(*(self.Block(w) for _ in range(n))) for w, n in zip(widths, counts))
        self.down = nn.ModuleList(nn.Conv3d(a, b, 3, 2, 1, bias=False) for a, b in zip(widths, widths[1:]))
        self.narrow = nn.ModuleList(nn.Conv3d(b, a, 1, bias=False) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(self.Block(a) for a in widths[:-1])
        self.tail = nn.Sequential(nn.GroupNorm(8, widths[0]), nn.ReLU(), nn.Conv3d(widths[0], classes, 1))

    def forward(self, x):
        x, skips = self.head(x), []
        for i, level in enumerate(self.levels):
            x = level(self.down[i - 1](x) if i else x)
            skips.append(x)
        for i in (2, 1, 0):
            x = self.up[i](F.interpolate(self.narrow[i](x), scale_factor=2.0, mode="trilinear", align_corners=False) + skips[i])
        return self.tail(x).sigmoid()
