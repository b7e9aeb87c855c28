# SPDX-License-Identifier: Apache-2.0
"""Networks that find things: poses, segments, boxes; and clouds of points. Boxes are left as the heads give them."""
import torch
from torch import nn
from torch.nn import functional as F


def unit(inputs, outputs, kernel=3, stride=1, groups=1, dilation=1, act=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, dilation * (kernel // 2), dilation, groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.net = nn.Sequential(unit(inputs, outputs, 3, stride), unit(outputs, outputs, act=None))
        self.side = unit(inputs, outputs, 1, stride, act=None) if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return F.relu(self.net(x) + self.side(x))


class HighResolution(nn.Module):
    """HRNet's shape, arXiv:1902.09212: branches of three resolutions that exchange sums; heat maps of 17 joints."""

    class Exchange(nn.Module):
        def __init__(self, widths):
            super().__init__()
            self.branches = nn.ModuleList(nn.Sequential(Residual(w, w), Residual(w, w)) for w in widths)
            def way(i, j):
                if i == j:
                    return nn.Identity()
                if i > j:
                    return nn.Sequential(unit(widths[i], widths[j], 1, act=None), nn.Upsample(scale_factor=2 ** (i - j), mode="nearest"))
                return nn.Sequential(*(unit(widths[i], widths[i if k + 1 < j - i else j], 3, 2, act=nn.ReLU if k + 1 < j - i else None)
                                       for k in range(j - i)))
            self.ways = nn.ModuleList(nn.ModuleList(way(i, j) for i in range(len(widths))) for j in range(len(widths)))

        def forward(self, xs):
            xs = [branch(x) for branch, x in zip(self.branches, xs)]
            return [F.relu(sum(way(x) for way, x in zip(ways, xs))) for ways in self.ways]

    def __init__(self, widths=(32, 64, 128)):
        super().__init__()
        self.stem = nn.Sequential(unit(3, 64, 3, 2), unit(64, 64, 3, 2), Residual(64, widths[0]))
        self.start = nn.ModuleList(unit(a, b, 3, 2) for a, b in zip(widths, widths[1:]))
        self.exchange = nn.ModuleList(self.Exchange(widths) for _ in range(3))
        self.head = nn.Conv2d(widths[0], 17, 1)

    def forward(self, x):
        xs = [self.stem(x)]
        for down in self.start:
            xs.append(down(xs[-1]))
        for exchange in self.exchange:
            xs = exchange(xs)
        return self.head(xs[0])


class Hourglass(nn.Module):
    """Newell et al., arXiv:1603.06937: down to 4x4 and up again, a residual block at every level."""

    def __init__(self, width=96, depth=4):
        super().__init__()
        self.stem = nn.Sequential(unit(3, 48, 7, 2), Residual(48, width), nn.MaxPool2d(2))
        self.side, self.low, self.back = (nn.ModuleList(Residual(width, width) for _ in range(depth)) for _ in range(3))
        self.middle, self.head = Residual(width, width), nn.Sequential(unit(width, width, 1), nn.Conv2d(width, 16, 1))

    def level(self, x, depth):
        if depth == len(self.side):
            return self.middle(x)
        y = self.back[depth](self.level(self.low[depth](F.max_pool2d(x, 2)), depth + 1))
        return self.side[depth](x) + F.interpolate(y, scale_factor=2.0, mode="nearest")

    def forward(self, x):
        return self.head(self.level(self.stem(x), 0))


class SimplePose(nn.Module):
    """Xiao et al., arXiv:1804.06208: ResNet-18, three 4x4 transposed convolutions of stride 2, heat maps."""

    def __init__(self):
        super().__init__()
        import torchvision

        net = torchvision.models.resnet18(weights=None)
        layers, inputs = list(net.children())[:-2], 512
        for _ in range(3):
            layers += [nn.ConvTranspose2d(inputs, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU()]
            inputs = 128
        self.net = nn.Sequential(*layers, nn.Conv2d(128, 17, 1))

    def forward(self, x):
        return self.net(x)


class CenterNet(nn.Module):
    """Zhou et al., arXiv:1904.07850, on MobileNetV2: transposed convolutions of each channel for itself, three heads."""

    def __init__(self):
        super().__init__()
        import torchvision

        layers, inputs = [torchvision.models.mobilenet_v2(weights=None).features], 1280
        for outputs in (256, 128, 64):
            layers += [unit(inputs, outputs, 1), nn.ConvTranspose2d(outputs, outputs, 4, 2, 1, groups=outputs, bias=False),
                       nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        self.net = nn.Sequential(*layers)
        self.heads = nn.ModuleList(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, n, 1)) for n in (80, 2, 2))

    def forward(self, x):
        x = self.net(x)
        return tuple(head(x) for head in self.heads)


class Ssd(nn.Module):
    """Liu et al., arXiv:1512.02325, on a narrow VGG: boxes and classes from six maps."""

    def __init__(self, classes=21):
        super().__init__()
        def stage(a, b, n):
            return [unit(a if i == 0 else b, b) for i in range(n)]
        self.first = nn.Sequential(*stage(3, 32, 2), nn.MaxPool2d(2), *stage(32, 64, 2), nn.MaxPool2d(2), *stage(64, 128, 3),
                                   nn.MaxPool2d(2, ceil_mode=True), *stage(128, 256, 3))
        self.second = nn.Sequential(nn.MaxPool2d(2), *stage(256, 256, 3), nn.MaxPool2d(3, 1, 1), unit(256, 512, 3, dilation=6), unit(512, 512, 1))
        self.more = nn.ModuleList(nn.Sequential(unit(a, b // 2, 1), unit(b // 2, b, 3, 2)) for a, b in ((512, 256), (256, 128), (128, 128)))
        widths = (256, 512, 256, 128, 128)
        self.heads = nn.ModuleList(nn.Conv2d(w, 6 * (classes + 4), 3, padding=1) for w in widths)

    def forward(self, x):
        maps = [self.first(x)]
        maps.append(self.second(maps[0]))
        for block in self.more:
            maps.append(block(maps[-1]))
        return torch.cat([head(m).permute(0, 2, 3, 1).flatten(1) for head, m in zip(self.heads, maps)], 1)


class RetinaNet(nn.Module):
    """Lin et al., arXiv:1708.02002, on ResNet-18: a feature pyramid, two heads of four convolutions over five maps."""

    def __init__(self, classes=20, width=128):
        super().__init__()
        import torchvision

        net = torchvision.models.resnet18(weights=None)
        parts = list(net.children())
        self.stem, self.stages = nn.Sequential(*parts[:5]), nn.ModuleList(parts[5:8])
        self.across = nn.ModuleList(nn.Conv2d(w, width, 1) for w in (128, 256, 512))
        self.smooth = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
        self.extra = nn.ModuleList((nn.Conv2d(512, width, 3, 2, 1), nn.Conv2d(width, width, 3, 2, 1)))
        def head(n):
            layers = []
            for _ in range(4):
                layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
            return nn.Sequential(*layers, nn.Conv2d(width, 9 * n, 3, padding=1))
        self.boxes, self.scores = head(4), head(classes)

    def forward(self, x):
        x, maps = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        p = [across(m) for across, m in zip(self.across, maps)]
        for i in (1, 0):
            p[i] = p[i] + F.interpolate(p[i + 1], scale_factor=2.0, mode="nearest")
        p = [smooth(m) for smooth, m in zip(self.smooth, p)]
        p.append(self.extra[0](maps[-1]))
        p.append(self.extra[1](F.relu(p[-1])))
        def flat(head, n):
            return torch.cat([head(m).permute(0, 2, 3, 1).reshape(1, -1, n) for m in p], 1)
        return flat(self.boxes, 4), flat(self.scores, 20).sigmoid()


class DarkNet(nn.Module):
    """YOLOv3's shape, arXiv:1804.02767, half as wide: DarkNet-53 and three heads."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.net = nn.Sequential(unit(width, width // 2, 1, act=lambda: nn.LeakyReLU(0.1)), unit(width // 2, width, act=lambda: nn.LeakyReLU(0.1)))

        def forward(self, x):
            return x + self.net(x)

    def __init__(self):
        super().__init__()
        def leaky(*args):
            return unit(*args, act=lambda: nn.LeakyReLU(0.1))
        self.stem, self.stages = leaky(3, 16, 3), nn.ModuleList()
        for width, count in ((32, 1), (64, 2), (128, 8), (256, 8), (512, 4)):
            self.stages.append(nn.Sequential(leaky(width // 2, width, 3, 2), *(self.Block(width) for _ in range(count))))
        self.narrow = nn.ModuleList(leaky(a, b, 1) for a, b in ((512, 256), (256 + 256, 128), (128 + 128, 64)))
        self.heads = nn.ModuleList(nn.Sequential(leaky(b, 2 * b, 3), nn.Conv2d(2 * b, 255, 1)) for b in (256, 128, 64))

    def forward(self, x):
        x, maps = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        outputs, y = [], maps[-1]
        for i, (narrow, head) in enumerate(zip(self.narrow, self.heads)):
            y = narrow(y)
            outputs.append(head(y))
            if i < 2:
                y = torch.cat([F.interpolate(y, scale_factor=2.0, mode="nearest"), maps[-2 - i]], 1)
        return tuple(outputs)


class SegFormer(nn.Module):
    """Xie et al., arXiv:2105.15203, small: overlapping patches, attention over reduced keys, mixing feed-forward parts with
    3x3 depthwise convolutions, one head over all resolutions."""

    class Block(nn.Module):
        def __init__(self, width, heads, reduction):
            super().__init__()
            self.heads, self.norms = heads, nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
            self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
            self.reduce = nn.Conv2d(width, width, reduction, reduction) if reduction > 1 else None
            self.up, self.deep, self.down = nn.Linear(width, 4 * width), nn.Conv2d(4 * width, 4 * width, 3, padding=1, groups=4 * width), nn.Linear(4 * width, width)

        def forward(self, x, h, w):
            n, tokens, width = x.shape
            y = self.norms[0](x)
            source = y
            if self.reduce is not None:
                source = self.norms[2](self.reduce(y.transpose(1, 2).reshape(n, width, h, w)).flatten(2).transpose(1, 2))
            def split(t):
                return t.reshape(n, -1, self.heads, width // self.heads).transpose(1, 2)
            q, (k, v) = split(self.q(y)), (split(t) for t in self.kv(source).chunk(2, 2))
            scores = (q @ k.transpose(2, 3) * (width // self.heads) ** -0.5).softmax(3)
            x = x + self.out((scores @ v).transpose(1, 2).reshape(n, tokens, width))
            y = self.up(self.norms[1](x)).transpose(1, 2).reshape(n, 4 * width, h, w)
            return x + self.down(F.gelu(self.deep(y).flatten(2).transpose(1, 2)))

    def __init__(self, widths=(32, 64, 160, 256)):
        super().__init__()
        self.patches = nn.ModuleList(nn.Conv2d(a, b, k, s, k // 2) for a, b, k, s in zip((3,) + widths, widths, (7, 3, 3, 3), (4, 2, 2, 2)))
        self.blocks = nn.ModuleList(nn.ModuleList(self.Block(w, heads, r) for _ in range(2)) for w, heads, r in zip(widths, (1, 2, 5, 8), (8, 4, 2, 1)))
        self.ways = nn.ModuleList(nn.Conv2d(w, 128, 1) for w in widths)
        self.head = nn.Sequential(unit(512, 128, 1), nn.Conv2d(128, 19, 1))

    def forward(self, x):
        maps = []
        for patch, blocks in zip(self.patches, self.blocks):
            x = patch(x)
            n, c, h, w = x.shape
            x = x.flatten(2).transpose(1, 2)
            for block in blocks:
                x = block(x, h, w)
            x = x.transpose(1, 2).reshape(n, c, h, w)
            maps.append(x)
        size = maps[0].shape[2:]
        return self.head(torch.cat([F.interpolate(way(m), size=size, mode="bilinear", align_corners=False) for way, m in zip(self.ways, maps)], 1))


class PointNet(nn.Module):
    """Qi et al., arXiv:1612.00593: per-point products, a maximum over all points, a class for each of them."""

    def __init__(self, classes=13):
        super().__init__()
        def point(a, b):
            return nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
        self.near = nn.Sequential(point(6, 64), point(64, 64))
        self.far = nn.Sequential(point(64, 64), point(64, 128), point(128, 1024))
        self.head = nn.Sequential(point(1088, 512), point(512, 256), point(256, 128), nn.Conv1d(128, classes, 1))

    def forward(self, x):
        near = self.near(x)
        far = self.far(near).max(2, keepdim=True)[0]
        return self.head(torch.cat([near, far.expand(-1, -1, x.shape[2])], 1))


class ENet(nn.Module):
    """Paszke et al., arXiv:1606.02147: narrow bottlenecks, dilated and 5x1 by 1x5, 3x3 transposed convolutions up."""

    class Neck(nn.Module):
        def __init__(self, width, dilation=1, flat=False):
            super().__init__()
            inner = width // 4
            middle = ([nn.Conv2d(inner, inner, (5, 1), padding=(2, 0)), nn.Conv2d(inner, inner, (1, 5), padding=(0, 2))] if flat
                      else [nn.Conv2d(inner, inner, 3, padding=dilation, dilation=dilation)])
            self.net = nn.Sequential(unit(width, inner, 1), *middle, nn.BatchNorm2d(inner), nn.PReLU(inner), unit(inner, width, 1, act=None))

        def forward(self, x):
            return F.relu(x + self.net(x))

    def __init__(self):
        super().__init__()
        def stage():
            return [self.Neck(128), self.Neck(128, 2), self.Neck(128, flat=True), self.Neck(128, 4), self.Neck(128), self.Neck(128, 8),
                    self.Neck(128, flat=True), self.Neck(128, 16)]
        self.net = nn.Sequential(unit(3, 16, 3, 2), unit(16, 64, 2, 2), self.Neck(64), self.Neck(64), unit(64, 128, 2, 2), *stage(), *stage(),
                                 nn.ConvTranspose2d(128, 64, 3, 2, 1, 1), nn.ReLU(), self.Neck(64),
                                 nn.ConvTranspose2d(64, 16, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(16, 19, 2, 2))

    def forward(self, x):
        return self.net(x)
