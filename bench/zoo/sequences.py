# SPDX-License-Identifier: Apache-2.0
"""Networks over sequences: speech encoders, temporal and separable convolutions, a vocoder, a language model's block.

Shaped after well-known ones, written here so that torch alone exports them.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class SpeechEncoder(nn.Module):
    """wav2vec 2.0's shape: seven strided convolutions over samples, a grouped positional convolution, encoder layers."""

    def __init__(self, width=512, layers=2):
        super().__init__()
        kernels, strides = (10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2)
        self.convs = nn.ModuleList(nn.Conv1d(1 if i == 0 else width, width, k, s, bias=False) for i, (k, s) in enumerate(zip(kernels, strides)))
        self.first = nn.GroupNorm(width, width)
        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, 768)
        self.position = nn.Conv1d(768, 768, 128, padding=64, groups=16)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True) for _ in range(layers))

    def forward(self, samples):
        x = samples.unsqueeze(1)
        for i, conv in enumerate(self.convs):
            x = conv(x)
            if i == 0:
                x = self.first(x)
            x = F.gelu(x)
        x = self.project(self.norm(x.transpose(1, 2)))
        x = x + F.gelu(self.position(x.transpose(1, 2))[:, :, :-1]).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return x


class TemporalNet(nn.Module):
    """A temporal convolution network: causal, dilated pairs of convolutions with residuals."""

    def __init__(self, inputs=40, width=100, levels=6, classes=10):
        super().__init__()
        self.blocks = nn.ModuleList()
        for i in range(levels):
            reach = 2 * 2**i
            a = nn.Conv1d(inputs if i == 0 else width, width, 3, dilation=2**i)
            b = nn.Conv1d(width, width, 3, dilation=2**i)
            skip = nn.Conv1d(inputs, width, 1) if i == 0 else nn.Identity()
            self.blocks.append(nn.ModuleList([nn.ConstantPad1d((reach, 0), 0.0), a, b, skip]))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        for pad, a, b, skip in self.blocks:
            x = F.relu(F.relu(b(pad(F.relu(a(pad(x)))))) + skip(x))
        return self.head(x[:, :, -1])


class ConformerBlock(nn.Module):
    def __init__(self, width, heads, kernel):
        super().__init__()
        self.heads = heads
        self.ff1 = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.conv_norm = nn.LayerNorm(width)
        self.point1 = nn.Conv1d(width, 2 * width, 1)
        self.depth = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch = nn.BatchNorm1d(width)
        self.point2 = nn.Conv1d(width, width, 1)
        self.ff2 = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
        self.last = nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        q, k, v = (y.view(n, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(c // self.heads)
        x = x + self.out(torch.matmul(scores.softmax(-1), v).transpose(1, 2).reshape(n, t, c))
        y = F.glu(self.point1(self.conv_norm(x).transpose(1, 2)), 1)
        x = x + self.point2(F.silu(self.batch(self.depth(y)))).transpose(1, 2)
        return self.last(x + 0.5 * self.ff2(x))


class Conformer(nn.Module):
    def __init__(self, features=80, width=144, heads=4, layers=4, kernel=31, classes=128):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.Conv2d(width, width, 3, 2), nn.ReLU())
        self.into = nn.Linear(width * (((features - 1) // 2 - 1) // 2), width)
        self.blocks = nn.Sequential(*(ConformerBlock(width, heads, kernel) for _ in range(layers)))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.sub(x.unsqueeze(1))
        n, c, t, f = x.shape
        x = self.into(x.transpose(1, 2).reshape(n, t, c * f))
        return self.head(self.blocks(x)).log_softmax(-1)


class SeparableSpeechNet(nn.Module):
    """QuartzNet's shape: time-channel separable convolutions with long kernels."""

    def __init__(self, features=64, classes=29):
        super().__init__()
        plan = ((256, 33), (256, 39), (512, 51), (512, 63), (512, 75))

        def unit(c_in, c_out, k, s=1, d=1):
            return nn.Sequential(nn.Conv1d(c_in, c_in, k, s, padding=d * (k - 1) // 2, dilation=d, groups=c_in, bias=False),
                                 nn.Conv1d(c_in, c_out, 1, bias=False), nn.BatchNorm1d(c_out))

        self.first = unit(features, 256, 33, 2)
        self.main = nn.ModuleList()
        self.skip = nn.ModuleList()
        c = 256
        for width, k in plan:
            self.main.append(nn.Sequential(unit(c, width, k), nn.ReLU(), unit(width, width, k)))
            self.skip.append(nn.Sequential(nn.Conv1d(c, width, 1, bias=False), nn.BatchNorm1d(width)))
            c = width
        self.last = nn.Sequential(unit(512, 512, 87, 1, 2), nn.ReLU(), nn.Conv1d(512, 1024, 1), nn.ReLU(), nn.Conv1d(1024, classes, 1))

    def forward(self, x):
        x = F.relu(self.first(x))
        for main, skip in zip(self.main, self.skip):
            x = F.relu(main(x) + skip(x))
        return self.last(x).log_softmax(1)


class Vocoder(nn.Module):
    """HiFi-GAN's generator shape: transposed convolutions and dilated residual blocks of three kernel sizes."""

    def __init__(self, mels=80, width=128):
        super().__init__()
        self.first = nn.Conv1d(mels, width, 7, padding=3)
        self.ups = nn.ModuleList()
        self.blocks = nn.ModuleList()
        for i, (k, s) in enumerate(((16, 8), (16, 8), (4, 2), (4, 2))):
            c = width // 2 ** (i + 1)
            self.ups.append(nn.ConvTranspose1d(2 * c, c, k, s, padding=(k - s) // 2))
            self.blocks.append(nn.ModuleList(nn.ModuleList(nn.Conv1d(c, c, k, dilation=d, padding=d * (k - 1) // 2) for d in (1, 3, 5)) for k in (3, 7, 11)))
        self.last = nn.Conv1d(width // 16, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        for up, blocks in zip(self.ups, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            total = 0
            for block in blocks:
                y = x
                for conv in block:
                    y = y + conv(F.leaky_relu(y, 0.1))
                total = total + y
            x = total / 3
        return torch.tanh(self.last(F.leaky_relu(x)))


class HeartbeatNet(nn.Module):
    """A one-dimensional residual network over a twelve-lead electrocardiogram."""

    def __init__(self, leads=12, classes=5):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(leads, 64, 15, 2, padding=7), nn.BatchNorm1d(64), nn.ReLU(), nn.MaxPool1d(3, 2, 1))
        self.blocks = nn.ModuleList()
        c = 64
        for width, stride in ((64, 1), (128, 2), (196, 2), (256, 2)):
            a = nn.Sequential(nn.Conv1d(c, width, 7, stride, padding=3), nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, width, 7, padding=3), nn.BatchNorm1d(width))
            b = nn.Sequential(nn.Conv1d(c, width, 1, stride), nn.BatchNorm1d(width)) if stride > 1 or c != width else nn.Identity()
            self.blocks.append(nn.ModuleList([a, b]))
            c = width
        self.head = nn.Linear(c, classes)

    def forward(self, x):
        x = self.stem(x)
        for a, b in self.blocks:
            x = F.relu(a(x) + b(x))
        return self.head(x.mean(2))
