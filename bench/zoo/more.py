# SPDX-License-Identifier: Apache-2.0
"""Networks beyond classifiers: an upscaler with residual blocks, a text encoder and a text decoder, segmentation heads."""
import torch
from torch import nn
from torch.nn import functional as F


class ResidualUpscaler(nn.Module):
    """SRResNet's shape: 16 residual blocks of 64 channels, then two pixel shuffles."""

    def __init__(self, channels=64, blocks=16):
        super().__init__()
        self.head = nn.Sequential(nn.Conv2d(3, channels, 9, padding=4), nn.PReLU(channels))
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.PReLU(channels),
                          nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))
            for _ in range(blocks))
        self.tail = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))
        self.up = nn.ModuleList(nn.Sequential(nn.Conv2d(channels, 4 * channels, 3, padding=1), nn.PixelShuffle(2), nn.PReLU(channels))
                                for _ in range(2))
        self.last = nn.Conv2d(channels, 3, 9, padding=4)

    def forward(self, x):
        start = y = self.head(x)
        for block in self.blocks:
            y = y + block(y) * 0.2
        y = start + self.tail(y)
        for up in self.up:
            y = up(y)
        return torch.tanh(self.last(y))


class Block(nn.Module):
    """Self-attention and a feed-forward part, each with its layer norm behind it (BERT) or before it (GPT)."""

    def __init__(self, width, heads, before, causal):
        super().__init__()
        self.heads, self.before, self.causal = heads, before, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x):
        n, tokens, width = x.shape
        q, k, v = (t.reshape(n, tokens, self.heads, width // self.heads).transpose(1, 2) for t in self.qkv(x).split(width, 2))
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(tokens, tokens).tril() == 0, float("-inf"))
        return self.out((scores.softmax(3) @ v).transpose(1, 2).reshape(n, tokens, width))

    def forward(self, x):
        gelu = (lambda t: F.gelu(t, approximate="tanh")) if self.before else F.gelu
        if self.before:
            x = x + self.attend(self.norm1(x))
            return x + self.down(gelu(self.up(self.norm2(x))))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.down(gelu(self.up(x))))


class TextEncoder(nn.Module):
    """BERT-base from the embeddings on."""

    def __init__(self, layers=12, width=768, heads=12):
        super().__init__()
        self.layers = nn.Sequential(*(Block(width, heads, False, False) for _ in range(layers)))

    def forward(self, x):
        return self.layers(x)


class TextDecoder(nn.Module):
    """A small GPT: embeddings of 64 tokens in, the scores of every word of a vocabulary out."""

    def __init__(self, layers=6, width=512, heads=8, words=8192):
        super().__init__()
        self.layers = nn.Sequential(*(Block(width, heads, True, True) for _ in range(layers)))
        self.norm, self.words = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x):
        return self.words(self.norm(self.layers(x)))


def segmentation(name):
    """A segmentation network of torchvision; only its main output."""
    from torchvision.models import segmentation as zoo

    class Main(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = getattr(zoo, name)(weights=None, weights_backbone=None, num_classes=21)

        def forward(self, x):
            return self.network(x)["out"]

    return Main()


def deeplabv3():
    return segmentation("deeplabv3_mobilenet_v3_large")


def fcn():
    return segmentation("fcn_resnet50")


def lraspp():
    return segmentation("lraspp_mobilenet_v3_large")
