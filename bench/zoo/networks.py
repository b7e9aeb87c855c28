# SPDX-License-Identifier: Apache-2.0
"""Networks of the zoo that torchvision does not have."""
import torch
from torch import nn


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """Ronneberger et al., arXiv:1505.04597, with padded convolutions, BatchNorm and a base width of 32."""

    def __init__(self, width=32, depth=4, classes=2):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.stem = DoubleConv(3, widths[0])
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(DoubleConv(2 * a, a) for a in widths[:-1])
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        x = self.stem(x)
        skips = []
        for block in self.down:
            skips.append(x)
            x = block(self.pool(x))
        for up, merge, skip in zip(reversed(self.up), reversed(self.merge), reversed(skips)):
            x = merge(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


class SpeechNet(nn.Module):
    """Two bidirectional LSTM layers and a GRU over 200 frames of 80 features, as in acoustic models before attention."""

    def __init__(self, features=80, width=256, classes=64):
        super().__init__()
        self.front = nn.Linear(features, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x, _ = self.lstm(torch.relu(self.front(x)))
        x, _ = self.gru(x)
        return torch.log_softmax(self.head(x), dim=-1)


class ConvUnit(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=1, stride=1):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
                         nn.BatchNorm2d(outputs, eps=1e-3), nn.SiLU(inplace=True))


class Bottleneck(nn.Module):
    def __init__(self, channels, shortcut):
        super().__init__()
        self.first, self.second = ConvUnit(channels, channels, 3), ConvUnit(channels, channels, 3)
        self.shortcut = shortcut

    def forward(self, x):
        y = self.second(self.first(x))
        return x + y if self.shortcut else y


class SplitStage(nn.Module):
    """A cross-stage block that keeps the output of every bottleneck and merges all of them with one 1x1."""

    def __init__(self, inputs, outputs, repeats, shortcut):
        super().__init__()
        half = outputs // 2
        self.enter = ConvUnit(inputs, 2 * half)
        self.blocks = nn.ModuleList(Bottleneck(half, shortcut) for _ in range(repeats))
        self.leave = ConvUnit((2 + repeats) * half, outputs)

    def forward(self, x):
        parts = list(self.enter(x).chunk(2, dim=1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.leave(torch.cat(parts, dim=1))


class PyramidPool(nn.Module):
    """Three chained 5x5 max-pools: receptive fields 5, 9 and 13 for the price of one size."""

    def __init__(self, channels):
        super().__init__()
        self.enter, self.leave = ConvUnit(channels, channels // 2), ConvUnit(2 * channels, channels)
        self.pool = nn.MaxPool2d(5, stride=1, padding=2)

    def forward(self, x):
        levels = [self.enter(x)]
        for _ in range(3):
            levels.append(self.pool(levels[-1]))
        return self.leave(torch.cat(levels, dim=1))


class DetectorNano(nn.Module):
    """The shape of a YOLOv8n: CSP backbone, two-way feature pyramid, three anchor-free heads with distribution
    boxes (16 bins a side) decoded in the graph. Output: [1, 4 + classes, 8400] for a 640 x 640 picture."""

    bins = 16

    def __init__(self, classes=80):
        super().__init__()
        self.classes = classes
        self.stem = nn.Sequential(ConvUnit(3, 16, 3, 2), ConvUnit(16, 32, 3, 2), SplitStage(32, 32, 1, True))
        self.stage3 = nn.Sequential(ConvUnit(32, 64, 3, 2), SplitStage(64, 64, 2, True))
        self.stage4 = nn.Sequential(ConvUnit(64, 128, 3, 2), SplitStage(128, 128, 2, True))
        self.stage5 = nn.Sequential(ConvUnit(128, 256, 3, 2), SplitStage(256, 256, 1, True), PyramidPool(256))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.top4, self.top3 = SplitStage(384, 128, 1, False), SplitStage(192, 64, 1, False)
        self.down3, self.out4 = ConvUnit(64, 64, 3, 2), SplitStage(192, 128, 1, False)
        self.down4, self.out5 = ConvUnit(128, 128, 3, 2), SplitStage(384, 256, 1, False)
        widths = (64, 128, 256)
        hidden_box, hidden_class = max(16, widths[0] // 4, 4 * self.bins), max(widths[0], min(classes, 100))
        self.boxes = nn.ModuleList(nn.Sequential(ConvUnit(w, hidden_box, 3), ConvUnit(hidden_box, hidden_box, 3),
                                                 nn.Conv2d(hidden_box, 4 * self.bins, 1)) for w in widths)
        self.scores = nn.ModuleList(nn.Sequential(ConvUnit(w, hidden_class, 3), ConvUnit(hidden_class, hidden_class, 3),
                                                  nn.Conv2d(hidden_class, classes, 1)) for w in widths)
        self.register_buffer("bin_values", torch.arange(self.bins, dtype=torch.float32).view(1, self.bins, 1, 1))

    def forward(self, x):
        p3 = self.stage3(self.stem(x))
        p4 = self.stage4(p3)
        p5 = self.stage5(p4)
        t4 = self.top4(torch.cat([self.up(p5), p4], dim=1))
        t3 = self.top3(torch.cat([self.up(t4), p3], dim=1))
        n4 = self.out4(torch.cat([self.down3(t3), t4], dim=1))
        n5 = self.out5(torch.cat([self.down4(n4), p5], dim=1))
        levels = (t3, n4, n5)
        side = [head(level).flatten(2) for head, level in zip(self.boxes, levels)]
        score = [head(level).flatten(2) for head, level in zip(self.scores, levels)]
        distribution = torch.cat(side, dim=2).view(x.shape[0], 4, self.bins, -1).transpose(1, 2).softmax(dim=1)
        distance = (distribution * self.bin_values).sum(dim=1)
        centre, stride = self.anchors([level.shape[2:] for level in levels], x.shape[2])
        near, far = distance.chunk(2, dim=1)
        low, high = centre - near, centre + far
        box = torch.cat([(low + high) / 2, high - low], dim=1) * stride
        return torch.cat([box, torch.cat(score, dim=2).sigmoid()], dim=1)

    @staticmethod
    def anchors(sizes, height):
        """Cell centres [1, 2, cells] in cells, and each cell's stride [1, 1, cells] in pixels."""
        centres, strides = [], []
        for rows, columns in ((int(r), int(c)) for r, c in sizes):
            y, x = torch.meshgrid(torch.arange(rows) + 0.5, torch.arange(columns) + 0.5, indexing="ij")
            centres.append(torch.stack([x.reshape(-1), y.reshape(-1)]))
            strides.append(torch.full((rows * columns,), float(int(height) // rows)))
        return torch.cat(centres, dim=1)[None], torch.cat(strides)[None, None]


class Upscaler(nn.Sequential):
    """The shape of an ESPCN (Shi et al., arXiv:1609.05158): convolutions at low resolution, then a pixel shuffle."""

    def __init__(self, channels=3, factor=4):
        super().__init__(nn.Conv2d(channels, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(32, channels * factor ** 2, 3, padding=1), nn.PixelShuffle(factor))


class Perceptron(nn.Sequential):
    """Three dense layers: so little work that what an engine does besides shows."""

    def __init__(self, inputs=784, hidden=256, classes=10):
        super().__init__(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes))
