# SPDX-License-Identifier: Apache-2.0
"""Networks over volumes: video and medical pictures."""
import torch
from torch import nn
from torch.nn import functional as F


def video(name):
    from torchvision.models import video as zoo

    return getattr(zoo, name)(weights=None)


def r3d():
    return video("r3d_18")


def mixed():
    return video("mc3_18")


def factored():
    return video("r2plus1d_18")


def unit(inputs, outputs, kernel=3, stride=1, groups=1, act=True):
    kernel = (kernel,) * 3 if isinstance(kernel, int) else kernel
    layers = [nn.Conv3d(inputs, outputs, kernel, stride, tuple(k // 2 for k in kernel), groups=groups, bias=False),
              nn.BatchNorm3d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if act else []))


class UNet3d(nn.Module):
    """Çiçek et al., arXiv:1606.06650: two convolutions a level, 2x2x2 pools down, 2x2x2 transposed convolutions up."""

    def __init__(self, widths=(16, 32, 64, 128), classes=3):
        super().__init__()
        def double(a, b):
            return nn.Sequential(unit(a, b), unit(b, b))
        self.down = nn.ModuleList(double(a, b) for a, b in zip((1,) + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(double(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv3d(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool3d(x, 2) if level else x)
            skips.append(x)
        for up, merge, skip in list(zip(self.up, self.merge, skips))[::-1]:
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


class VNet(nn.Module):
    """Milletari et al., arXiv:1606.04797: 5x5x5 residual stages, strided convolutions down and transposed ones up, PReLU."""

    def __init__(self, widths=(16, 32, 64)):
        super().__init__()
        def stage(width):
            return nn.Sequential(nn.Conv3d(width, width, 5, padding=2), nn.PReLU(width), nn.Conv3d(width, width, 5, padding=2))
        self.stem = nn.Conv3d(1, widths[0], 5, padding=2)
        self.stages = nn.ModuleList(stage(w) for w in widths)
        self.down = nn.ModuleList(nn.Sequential(nn.Conv3d(a, b, 2, 2), nn.PReLU(b)) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.Sequential(nn.ConvTranspose3d(b, a, 2, 2), nn.PReLU(a)) for a, b in zip(widths, widths[1:]))
        self.head = nn.Conv3d(widths[0], 2, 1)

    def forward(self, x):
        x = self.stem(x)
        skips = []
        for level, stage in enumerate(self.stages):
            x = x + stage(x)
            skips.append(x)
            if level < len(self.down):
                x = self.down[level](x)
        for up, skip in list(zip(self.up, skips))[::-1]:
            x = up(x) + skip
        return self.head(x).softmax(1)


class C3d(nn.Sequential):
    """Tran et al., arXiv:1412.0767: eight 3x3x3 convolutions and five pools over 16 frames of 112x112."""

    def __init__(self):
        layers, inputs = [], 3
        for outputs, pool in ((64, (1, 2, 2)), (128, 2), (256, 0), (256, 2), (512, 0), (512, 2), (512, 0), (512, 2)):
            layers += [nn.Conv3d(inputs, outputs, 3, padding=1), nn.ReLU()]
            if pool:
                layers.append(nn.MaxPool3d(pool, pool))
            inputs = outputs
        super().__init__(*layers, nn.Flatten(), nn.Linear(512 * 9, 400))


class X3d(nn.Module):
    """Feichtenhofer, arXiv:2004.04730, small: inverted residuals with 3x3x3 depthwise convolutions, squeezes, Swish."""

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            wide = inputs * 9 // 4 // 8 * 8
            self.up, self.deep = unit(inputs, wide, 1), unit(wide, wide, 3, (1, stride, stride), wide, False)
            self.squeeze = nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Conv3d(wide, wide // 8, 1), nn.ReLU(),
                                         nn.Conv3d(wide // 8, wide, 1), nn.Sigmoid())
            self.down, self.same = unit(wide, outputs, 1, act=False), stride == 1 and inputs == outputs

        def forward(self, x):
            y = self.deep(self.up(x))
            y = self.down(F.silu(y * self.squeeze(y)))
            return F.relu(x + y if self.same else y)

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv3d(3, 24, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
                                  nn.Conv3d(24, 24, (5, 1, 1), padding=(2, 0, 0), groups=24, bias=False), nn.BatchNorm3d(24), nn.ReLU())
        blocks, inputs = [], 24
        for outputs, count in ((24, 2), (48, 3), (96, 4), (192, 2)):
            for i in range(count):
                blocks.append(self.Block(inputs, outputs, 2 if i == 0 else 1))
                inputs = outputs
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(192, 400)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3, 4)))


class Inception3d(nn.Module):
    """Carreira and Zisserman, arXiv:1705.07750, its first stages: four branches joined along the channels."""

    class Mixed(nn.Module):
        def __init__(self, inputs, a, b, c, d):
            super().__init__()
            self.one = unit(inputs, a, 1)
            self.two = nn.Sequential(unit(inputs, b[0], 1), unit(b[0], b[1]))
            self.three = nn.Sequential(unit(inputs, c[0], 1), unit(c[0], c[1]))
            self.four = nn.Sequential(nn.MaxPool3d(3, 1, 1), unit(inputs, d, 1))

        def forward(self, x):
            return torch.cat([self.one(x), self.two(x), self.three(x), self.four(x)], 1)

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(unit(3, 64, 7, 2), nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)), unit(64, 64, 1), unit(64, 192),
                                 nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)), self.Mixed(192, 64, (96, 128), (16, 32), 32),
                                 self.Mixed(256, 128, (128, 192), (32, 96), 64), nn.MaxPool3d(3, 2, 1),
                                 self.Mixed(480, 192, (96, 208), (16, 48), 64))
        self.head = nn.Linear(512, 400)

    def forward(self, x):
        return self.head(self.net(x).mean((2, 3, 4)))
