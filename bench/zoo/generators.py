# SPDX-License-Identifier: Apache-2.0
"""Networks that draw: generators with transposed convolutions, restoration, super-resolution."""
import torch
from torch import nn
from torch.nn import functional as F


class Dcgan(nn.Sequential):
    """Radford et al., arXiv:1511.06434: 4x4 transposed convolutions of stride 2 from 100 numbers to 64x64 pixels."""

    def __init__(self, width=64):
        layers, inputs = [], 100
        for i, outputs in enumerate((8 * width, 4 * width, 2 * width, width)):
            layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2 if i else 1, 1 if i else 0, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        super().__init__(*layers, nn.ConvTranspose2d(inputs, 3, 4, 2, 1), nn.Tanh())


class CycleGan(nn.Module):
    """Zhu et al., arXiv:1703.10593: reflected edges, instance norms, residual blocks, 3x3 transposed convolutions."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.net = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width), nn.ReLU(),
                                     nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width))

        def forward(self, x):
            return x + self.net(x)

    def __init__(self, width=32, blocks=6):
        super().__init__()
        self.net = nn.Sequential(
            nn.ReflectionPad2d(3), nn.Conv2d(3, width, 7), nn.InstanceNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.InstanceNorm2d(2 * width), nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, 2, 1), nn.InstanceNorm2d(4 * width), nn.ReLU(),
            *(self.Block(4 * width) for _ in range(blocks)),
            nn.ConvTranspose2d(4 * width, 2 * width, 3, 2, 1, 1), nn.InstanceNorm2d(2 * width), nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 3, 2, 1, 1), nn.InstanceNorm2d(width), nn.ReLU(),
            nn.ReflectionPad2d(3), nn.Conv2d(width, 3, 7), nn.Tanh())

    def forward(self, x):
        return self.net(x)


class Pix2Pix(nn.Module):
    """Isola et al., arXiv:1611.07004: a U-Net of 4x4 convolutions of stride 2, down to one row of pixels and back."""

    def __init__(self, widths=(32, 64, 128, 256, 256, 256)):
        super().__init__()
        self.down = nn.ModuleList(nn.Sequential(nn.LeakyReLU(0.2), nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b))
                                  for a, b in zip((3,) + widths, widths))
        ups = list(zip(widths[::-1], widths[-2::-1] + (3,)))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a * (2 if i else 1), b, 4, 2, 1) for i, (a, b) in enumerate(ups))

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
        for i, up in enumerate(self.up):
            x = up(F.relu(x if i == 0 else torch.cat([x, skips[-1 - i]], 1)))
        return torch.tanh(x)


class Edsr(nn.Module):
    """Lim et al., arXiv:1707.02921: residual blocks without norms, then pixel shuffles."""

    def __init__(self, width=64, blocks=8):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
                                    for _ in range(blocks))
        self.tail = nn.Sequential(nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x):
        y = x = self.head(x)
        for block in self.blocks:
            y = y + block(y)
        return self.tail(x + y)


class Rcan(nn.Module):
    """Zhang et al., arXiv:1807.02758, one group: residual blocks whose channels are weighed."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
            self.weigh = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width // 16, 1), nn.ReLU(),
                                       nn.Conv2d(width // 16, width, 1), nn.Sigmoid())

        def forward(self, x):
            y = self.net(x)
            return x + y * self.weigh(y)

    def __init__(self, width=64, blocks=6):
        super().__init__()
        self.head, self.body = nn.Conv2d(3, width, 3, padding=1), nn.Sequential(*(self.Block(width) for _ in range(blocks)))
        self.tail = nn.Sequential(nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x):
        x = self.head(x)
        return self.tail(x + self.body(x))


class Fsrcnn(nn.Sequential):
    """Dong et al., arXiv:1608.00367: narrow convolutions, then one 9x9 transposed convolution of stride 4 to one channel."""

    def __init__(self, wide=56, narrow=12):
        layers = [nn.Conv2d(1, wide, 5, padding=2), nn.PReLU(wide), nn.Conv2d(wide, narrow, 1), nn.PReLU(narrow)]
        for _ in range(4):
            layers += [nn.Conv2d(narrow, narrow, 3, padding=1), nn.PReLU(narrow)]
        super().__init__(*layers, nn.Conv2d(narrow, wide, 1), nn.PReLU(wide), nn.ConvTranspose2d(wide, 1, 9, 4, 4, 3))


class DenoisingNet(nn.Sequential):
    """DnCNN, arXiv:1608.03981: seventeen 3x3 convolutions at full resolution."""

    def __init__(self, width=64, depth=17):
        layers = [nn.Conv2d(1, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth - 2):
            layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        super().__init__(*layers, nn.Conv2d(width, 1, 3, padding=1))


class WaveGenerator(nn.Module):
    """HiFi-GAN's generator, arXiv:2010.05646, small: 16 taps of stride 8 and 4 of stride 2, transposed, between dilated
    residual blocks over a signal."""

    class Residual(nn.Module):
        def __init__(self, width, kernel):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv1d(width, width, kernel, dilation=d, padding=d * (kernel // 2)) for d in (1, 3, 5))

        def forward(self, x):
            for conv in self.convs:
                x = x + conv(F.leaky_relu(x, 0.1))
            return x

    def __init__(self, width=128):
        super().__init__()
        self.head = nn.Conv1d(80, width, 7, padding=3)
        self.up, self.residual = nn.ModuleList(), nn.ModuleList()
        for kernel, stride in ((16, 8), (16, 8), (4, 2), (4, 2)):
            self.up.append(nn.ConvTranspose1d(width, width // 2, kernel, stride, (kernel - stride) // 2))
            width //= 2
            self.residual.append(nn.ModuleList(self.Residual(width, k) for k in (3, 7)))
        self.tail = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, x):
        x = self.head(x)
        for up, residual in zip(self.up, self.residual):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(r(x) for r in residual) / len(residual)
        return torch.tanh(self.tail(F.leaky_relu(x)))


class SourceSeparator(nn.Module):
    """Demucs' shape, arXiv:1911.13254: 8 taps of stride 4 down, gated; transposed ones up; skips added."""

    def __init__(self, widths=(32, 64, 128, 256)):
        super().__init__()
        self.down = nn.ModuleList(nn.Sequential(nn.Conv1d(a, b, 8, 4), nn.ReLU(), nn.Conv1d(b, 2 * b, 1), nn.GLU(1))
                                  for a, b in zip((2,) + widths, widths))
        self.up = nn.ModuleList(nn.Sequential(nn.Conv1d(b, 2 * b, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(b, a, 8, 4))
                                for a, b in zip((8,) + widths, widths))

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
        for i, block in enumerate(reversed(self.up)):
            skip = skips[-1 - i]
            x = block(x[..., :skip.shape[-1]] + skip)
        return x
