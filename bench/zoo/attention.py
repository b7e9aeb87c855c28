# SPDX-License-Identifier: Apache-2.0
"""Transformers in the spellings that libraries use for attention: one projection for queries, keys and values that is
reshaped to three, grouped heads that are expanded, rotary positions, causal masks, cross-attention, windows with biases.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class MergedAttention(nn.Module):
    """As in timm: (B, N, 3, H, D), permuted, taken apart along its first axis; the query is scaled."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        shares = ((q * self.scale) @ k.transpose(-2, -1)).softmax(-1)
        return self.proj((shares @ v).transpose(1, 2).reshape(b, n, c))


class VisionTransformer(nn.Module):
    """timm's vit_small_patch16_224 by shape."""

    def __init__(self, width=384, heads=6, layers=12, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(width), MergedAttention(width, heads), nn.LayerNorm(width),
                           nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))]) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.position
        for norm1, attention, norm2, mlp in self.layers:
            x = x + attention(norm1(x))
            x = x + mlp(norm2(x))
        return self.head(self.norm(x)[:, 0])


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class GroupedAttention(nn.Module):
    """As in Llama: rotary positions, key and value heads expanded over groups of query heads, a causal mask added."""

    def __init__(self, width, heads, shared):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, shared * self.size, bias=False) for _ in range(2))

    def forward(self, x, cos, sin, mask):
        b, n, c = x.shape

        def rotate(y):
            first, second = y[..., : self.size // 2], y[..., self.size // 2:]
            return y * cos + torch.cat((-second, first), -1) * sin

        def expand(y):
            repeats = self.heads // self.shared
            return y[:, :, None].expand(b, self.shared, repeats, n, self.size).reshape(b, self.heads, n, self.size)

        q = rotate(self.q(x).view(b, n, self.heads, self.size).transpose(1, 2))
        k = expand(rotate(self.k(x).view(b, n, self.shared, self.size).transpose(1, 2)))
        v = expand(self.v(x).view(b, n, self.shared, self.size).transpose(1, 2))
        shares = F.softmax(torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size) + mask, -1)
        return self.o(torch.matmul(shares, v).transpose(1, 2).reshape(b, n, c))


class LanguageModel(nn.Module):
    """Llama's shape: grouped attention and gated feed-forward layers over embedded tokens."""

    def __init__(self, width=512, heads=8, shared=2, layers=4, hidden=1376, length=128):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([RmsNorm(width), GroupedAttention(width, heads, shared), RmsNorm(width), nn.Linear(width, hidden, bias=False),
                           nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)]) for _ in range(layers))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, 4000, bias=False)
        size = width // heads
        angles = torch.outer(torch.arange(length).float(), 10000 ** (-torch.arange(0, size, 2).float() / size))
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())
        self.register_buffer("mask", torch.full((1, 1, length, length), torch.finfo(torch.float32).min).triu(1))

    def forward(self, x):
        for norm1, attention, norm2, gate, up, down in self.layers:
            x = x + attention(norm1(x), self.cos, self.sin, self.mask)
            y = norm2(x)
            x = x + down(F.silu(gate(y)) * up(y))
        return self.head(self.norm(x[:, -1]))


class CrossAttention(nn.Module):
    """As in Whisper: query and key are both scaled by the fourth root of the head's size; the key is turned by permute."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = nn.Linear(width, width), nn.Linear(width, width, bias=False), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, memory, mask=None):
        b, n, c = x.shape
        scale = (c // self.heads) ** -0.25
        q = self.q(x).view(b, n, self.heads, -1).permute(0, 2, 1, 3) * scale
        k = self.k(memory).view(b, memory.shape[1], self.heads, -1).permute(0, 2, 3, 1) * scale
        v = self.v(memory).view(b, memory.shape[1], self.heads, -1).permute(0, 2, 1, 3)
        scores = q @ k
        if mask is not None:
            scores = scores + mask[:n, :n]
        return self.o((F.softmax(scores, -1) @ v).permute(0, 2, 1, 3).flatten(2))


class Transcriber(nn.Module):
    """Whisper's shape: convolutions over a spectrogram, an encoder, and a decoder over embedded tokens."""

    def __init__(self, mels=80, width=384, heads=6, layers=2, tokens=32, frames=600):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(mels, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, padding=1)
        self.position = nn.Parameter(torch.randn(frames // 2, width) * 0.02)
        self.text = nn.Parameter(torch.randn(1, tokens, width))

        def mlp():
            return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        self.encoder = nn.ModuleList(nn.ModuleList([nn.LayerNorm(width), CrossAttention(width, heads), nn.LayerNorm(width), mlp()]) for _ in range(layers))
        self.decoder = nn.ModuleList(nn.ModuleList([nn.LayerNorm(width), CrossAttention(width, heads), nn.LayerNorm(width), CrossAttention(width, heads),
                                                    nn.LayerNorm(width), mlp()]) for _ in range(layers))
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.register_buffer("mask", torch.full((tokens, tokens), float("-inf")).triu_(1))

    def forward(self, mel):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1) + self.position
        for norm1, attention, norm2, mlp in self.encoder:
            y = norm1(x)
            x = x + attention(y, y)
            x = x + mlp(norm2(x))
        memory = self.norm(x)
        t = self.text + 0 * memory.mean()
        for norm1, own, norm2, cross, norm3, mlp in self.decoder:
            y = norm1(t)
            t = t + own(y, y, self.mask)
            t = t + cross(norm2(t), memory)
            t = t + mlp(norm3(t))
        return self.last(t)


class CausalBlock(nn.Module):
    """As in GPT-2: one projection split in three, scores divided, a triangle chosen by where."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("triangle", torch.tril(torch.ones(length, length, dtype=torch.bool)).view(1, 1, length, length))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (y.view(b, n, self.heads, c // self.heads).permute(0, 2, 1, 3) for y in self.attend(self.norm1(x)).split(c, 2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (c // self.heads) ** 0.5
        scores = torch.where(self.triangle[:, :, :n, :n], scores, torch.tensor(torch.finfo(torch.float32).min))
        x = x + self.proj(torch.matmul(scores.softmax(-1), v).permute(0, 2, 1, 3).reshape(b, n, c))
        y = self.up(self.norm2(x))
        return x + self.down(0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3))))


class TextModel(nn.Module):
    def __init__(self, width=384, heads=6, layers=3, length=64):
        super().__init__()
        self.blocks = nn.Sequential(*(CausalBlock(width, heads, length) for _ in range(layers)))

    def forward(self, x):
        return self.blocks(x)


class WindowAttention(nn.Module):
    """As in Swin: windows of tokens as batches, a bias of relative positions, a mask per window added in five axes."""

    def __init__(self, width, heads, tokens, windows):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.bias = nn.Parameter(torch.randn(heads, tokens, tokens) * 0.1)
        self.register_buffer("mask", torch.where(torch.rand(windows, tokens, tokens) < 0.2, torch.tensor(-100.0), torch.tensor(0.0)))

    def forward(self, x):
        w, n, c = x.shape
        qkv = self.qkv(x).reshape(w, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0] * self.scale, qkv[1], qkv[2]
        scores = q @ k.transpose(-2, -1) + self.bias.unsqueeze(0)
        scores = scores.view(1, w, self.heads, n, n) + self.mask.unsqueeze(1).unsqueeze(0)
        shares = scores.view(-1, self.heads, n, n).softmax(-1)
        return self.proj((shares @ v).transpose(1, 2).reshape(w, n, c))


class WindowedModel(nn.Module):
    def __init__(self, width=192, heads=6, layers=2, tokens=49, windows=16):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList([nn.LayerNorm(width), WindowAttention(width, heads, tokens, windows)]) for _ in range(layers))

    def forward(self, x):
        for norm, attention in self.layers:
            x = x + attention(norm(x))
        return x
