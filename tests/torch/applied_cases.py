# SPDX-License-Identifier: Apache-2.0
"""More modules for tests/torch/modules.py, by field: vision, text, speech and signals."""
import math
from typing import List

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from module_cases import ALL, case, real, whole

TRACED = ("trace", "export")


# ---- vision

@case(real(2, 3, 16, 16), free=((0, 0),), other=(real(5, 3, 16, 16),))
class ConvMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.GELU(), nn.BatchNorm2d(8))
        self.depth, self.point = nn.Conv2d(8, 8, 3, groups=8, padding="same"), nn.Conv2d(8, 8, 1)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(8, 5))

    def forward(self, x):
        x = self.stem(x)
        x = x + F.gelu(self.depth(x))
        return self.head(F.gelu(self.point(x)))


@case(real(2, 4, 8, 8), free=((0, 0),), other=(real(3, 4, 8, 8),))
class ConvNeXtBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth, self.norm = nn.Conv2d(4, 4, 7, padding=3, groups=4), nn.LayerNorm(4, eps=1e-6)
        self.up, self.down, self.gamma = nn.Linear(4, 16), nn.Linear(16, 4), nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        y = self.gamma * self.down(F.gelu(self.up(y), approximate="tanh"))
        return x + y.permute(0, 3, 1, 2)


@case(real(1, 8, 8, 4))
class WindowAttention(nn.Module):
    """Shifted windows with their mask, as Swin has them."""

    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(4, 12), nn.Linear(4, 4)
        mask = torch.zeros(1, 8, 8, 1)
        for k, (h, w) in enumerate((h, w) for h in (slice(0, -4), slice(-4, -2), slice(-2, None)) for w in (slice(0, -4), slice(-4, -2), slice(-2, None))):
            mask[:, h, w] = k
        parts = mask.view(1, 2, 4, 2, 4, 1).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16)
        apart = parts.unsqueeze(1) - parts.unsqueeze(2)
        self.register_buffer("mask", apart.masked_fill(apart != 0, -100.0).masked_fill(apart == 0, 0.0))

    def forward(self, x):
        b, h, w, c = x.shape
        y = torch.roll(x, shifts=(-2, -2), dims=(1, 2))
        y = y.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 16, c)
        q, k, v = self.qkv(y).reshape(-1, 16, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        a = (q * 0.7) @ k.transpose(-2, -1)
        a = a.view(b, 4, 2, 16, 16) + self.mask.unsqueeze(1).unsqueeze(0)
        y = (a.view(-1, 2, 16, 16).softmax(-1) @ v).transpose(1, 2).reshape(-1, 16, c)
        y = self.proj(y).view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return torch.roll(y, shifts=(2, 2), dims=(1, 2))


@case(real(2, 6, 5, 5))
class CbamGate(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared, self.place = nn.Sequential(nn.Linear(6, 3), nn.ReLU(inplace=True), nn.Linear(3, 6)), nn.Conv2d(2, 1, 7, padding=3)

    def forward(self, x):
        channel = torch.sigmoid(self.shared(x.mean((2, 3))) + self.shared(torch.amax(x, dim=(2, 3))))
        x = x * channel[:, :, None, None]
        spatial = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], dim=1)
        return x * torch.sigmoid(self.place(spatial))


@case(real(1, 8, 10, 12), free=((0, 2), (0, 3)), other=(real(1, 8, 14, 9),))
class PyramidPooling(nn.Module):
    """PSPNet's head: pooled to several grids and brought back to the picture's size."""

    def __init__(self):
        super().__init__()
        self.sides = (1, 1)
        self.convs = nn.ModuleList([nn.Conv2d(8, 4, 1) for _ in self.sides])

    def forward(self, x):
        h, w = x.shape[-2:]
        parts = [x]
        for conv in self.convs:
            parts.append(F.interpolate(conv(F.adaptive_avg_pool2d(x, 1)), size=(h, w), mode="bilinear", align_corners=False))
        return torch.cat(parts, 1)


@case(real(2, 3, 12, 12))
class BlurPool(nn.Module):
    def __init__(self):
        super().__init__()
        one = torch.tensor([1.0, 2.0, 1.0])
        self.register_buffer("kernel", (one[:, None] * one[None, :] / 16).expand(3, 1, 3, 3).clone())

    def forward(self, x):
        return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), self.kernel, stride=2, groups=3)


@case(real(1, 3, 8, 10), real(3, seed=3).abs())
class ColourJitter(nn.Module):
    """Brightness, contrast and saturation as torchvision computes them on tensors."""

    def forward(self, x, factors):
        x = torch.sigmoid(x)
        grey = (0.2989 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]).unsqueeze(-3)
        y = (x * factors[0]).clamp(0, 1)
        y = (factors[1] * y + (1 - factors[1]) * grey.mean(dim=(-3, -2, -1), keepdim=True)).clamp(0, 1)
        y = (factors[2] * y + (1 - factors[2]) * grey).clamp(0, 1)
        return (y * 255).round().to(torch.uint8), y.sub(0.45).div(0.22)


@case(real(1, 2, 6, 7), real(1, 2, 6, 7, seed=4))
class FlowWarp(nn.Module):
    """A picture warped by an optical flow."""

    def forward(self, x, flow):
        n, _, h, w = x.shape
        ys, xs = torch.meshgrid(torch.arange(h, dtype=x.dtype), torch.arange(w, dtype=x.dtype), indexing="ij")
        grid = torch.stack((xs, ys), 0).unsqueeze(0) + flow
        gx, gy = 2.0 * grid[:, 0] / max(w - 1, 1) - 1.0, 2.0 * grid[:, 1] / max(h - 1, 1) - 1.0
        return F.grid_sample(x, torch.stack((gx, gy), dim=3), mode="bilinear", padding_mode="zeros", align_corners=True)


@case(real(1, 18, 4, 5), doors=ALL, free=((0, 2), (0, 3)), other=(real(1, 18, 6, 3),))
class YoloHead(nn.Module):
    """Anchors and a grid, decoded to boxes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("anchors", torch.tensor([[10.0, 13.0], [16.0, 30.0], [33.0, 23.0]]).view(1, 3, 1, 1, 2))

    def forward(self, x):
        n, _, h, w = x.shape
        x = x.view(n, 3, 6, h, w).permute(0, 1, 3, 4, 2).contiguous()
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((xs, ys), 2).view(1, 1, h, w, 2).float()
        y = x.sigmoid()
        y[..., 0:2] = (y[..., 0:2] * 2.0 - 0.5 + grid) * 8.0
        y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * self.anchors
        return y.view(n, -1, 6)


@case(real(6, 4, seed=5).abs(), real(5, 4, seed=6).abs())
class BoxOverlap(nn.Module):
    """Intersection over union, generalised, of two lists of boxes."""

    def forward(self, a, b):
        a, b = torch.cat([a[:, :2], a[:, :2] + a[:, 2:]], 1), torch.cat([b[:, :2], b[:, :2] + b[:, 2:]], 1)
        area_a, area_b = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]), (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        lt, rb = torch.max(a[:, None, :2], b[:, :2]), torch.min(a[:, None, 2:], b[:, 2:])
        wh = (rb - lt).clamp_(min=0)
        inter = wh[..., 0] * wh[..., 1]
        union = area_a[:, None] + area_b - inter
        whole_wh = (torch.max(a[:, None, 2:], b[:, 2:]) - torch.min(a[:, None, :2], b[:, :2])).clamp(min=0)
        hull = whole_wh.prod(-1)
        return inter / union, inter / union - (hull - union) / hull


@case(real(1, 5, 6, 6))
class HeatmapPeaks(nn.Module):
    """CenterNet: the peaks of a heat map."""

    def forward(self, x):
        heat = x.sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, stride=1, padding=1) == heat).float()
        n, c, h, w = heat.shape
        scores, at = torch.topk(heat.view(n, c, -1), 4)
        best, which = torch.topk(scores.view(n, -1), 4)
        places = at.view(n, -1).gather(1, which)
        return best, torch.div(which, 4, rounding_mode="floor"), (places // w).float(), (places % w).float()


@case(real(2, 8, 6, 6), free=((0, 0),), other=(real(1, 8, 6, 6),))
class ShuffleUnit(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU6(), nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), nn.BatchNorm2d(4), nn.Hardswish())
        self.shuffle = nn.ChannelShuffle(2)

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        return self.shuffle(torch.cat((a, self.branch(b)), dim=1))


@case(real(1, 3, 8, 8), doors=("export",))
class DeconvSegmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.Conv2d(6, 6, 3, padding=2, dilation=2)
        self.up, self.pool, self.unpool = nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=0, groups=2), nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)

    def forward(self, x):
        y = F.relu(self.b(F.relu(self.a(x))))
        z = self.up(y)
        pooled, places = self.pool(x)
        return z.argmax(1), z.softmax(1), self.unpool(pooled, places)


@case(real(1, 3, 8, 8))
class Wavelet(nn.Module):
    """Haar's transform by strided slices."""

    def forward(self, x):
        a, b, c, d = x[..., 0::2, 0::2], x[..., 0::2, 1::2], x[..., 1::2, 0::2], x[..., 1::2, 1::2]
        return torch.cat([a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d], dim=1) / 2


@case(real(2, 12, 8), free=((0, 0),), other=(real(3, 12, 8),))
class MaeEncoder(nn.Module):
    """Patches by their scores: some are kept, the others replaced by a learned token."""

    def __init__(self):
        super().__init__()
        self.score, self.token = nn.Linear(8, 1), nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        order = torch.argsort(self.score(x).squeeze(-1), dim=1)
        back = torch.argsort(order, dim=1)
        kept = torch.gather(x, 1, order[:, :4].unsqueeze(-1).repeat(1, 1, 8))
        filled = torch.cat([kept, self.token.repeat(x.shape[0], 8, 1)], 1)
        return kept, torch.gather(filled, 1, back.unsqueeze(-1).expand(-1, -1, 8))


# ---- text

@case(whole(30, 2, 9), free=((0, 1),), other=(whole(30, 2, 5, seed=9),))
class TinyGpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(16, 16)
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.head = nn.Linear(16, 30, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        b, t = ids.shape
        x = self.words(ids) + self.places(torch.arange(t, device=ids.device))
        q, k, v = self.qkv(self.norm(x)).split(16, dim=2)
        q, k, v = (q.view(b, t, 4, 4).transpose(1, 2), k.view(b, t, 4, 4).transpose(1, 2), v.view(b, t, 4, 4).transpose(1, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, 16))
        return self.head(x), self.head(x)[:, -1].softmax(-1)


@case(whole(30, 3, 7), torch.tensor([7, 4, 2]), doors=("script", "trace"))
class PackedTagger(nn.Module):
    """An LSTM over sequences of other lengths, packed and padded again."""

    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.out = nn.Embedding(30, 6), nn.LSTM(6, 5, batch_first=True, bidirectional=True), nn.Linear(10, 4)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(ids), lengths, batch_first=True)
        y, (h, _) = self.lstm(packed)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return self.out(y), h


@case(whole(30, 4, 8), free=((0, 0), (0, 1)), other=(whole(30, 2, 11, seed=8),))
class TextCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.convs = nn.Embedding(30, 6), nn.ModuleList([nn.Conv1d(6, 4, k) for k in (2, 3, 4)])
        self.drop, self.out = nn.Dropout(0.5), nn.Linear(12, 3)

    def forward(self, ids):
        x = self.embed(ids).transpose(1, 2)
        pooled = [F.relu(conv(x)).max(dim=2)[0] for conv in self.convs]
        return self.out(self.drop(torch.cat(pooled, 1)))


@case(real(2, 6, 8), whole(2, 2, 6, seed=4).bool(), doors=("trace", "export"))
class MaskedMean(nn.Module):
    def forward(self, x, mask):
        m = mask.unsqueeze(-1).float()
        mean = (x * m).sum(1) / m.sum(1).clamp(min=1)
        most = x.masked_fill(~mask.unsqueeze(-1), torch.finfo(x.dtype).min).max(1).values
        return F.normalize(torch.cat([mean, most], -1), p=2.0, dim=-1), mean @ mean.t()


@case(real(2, 5, 8), real(2, 7, 8), free=((0, 1), (1, 1)), other=(real(2, 3, 8), real(2, 9, 8)))
class BahdanauAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 6), nn.Linear(8, 6, bias=False), nn.Linear(6, 1)

    def forward(self, queries, keys):
        e = self.v(torch.tanh(self.q(queries).unsqueeze(2) + self.k(keys).unsqueeze(1))).squeeze(-1)
        return torch.bmm(F.softmax(e, dim=-1), keys)


@case(real(2, 5, 4), whole(2, 2, 5, low=1, seed=3), doors=("trace", "export"))
class CrfScore(nn.Module):
    """The forward algorithm of a linear-chain CRF and its best path."""

    def __init__(self):
        super().__init__()
        self.moves, self.first, self.last = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))

    def forward(self, scores, mask):
        alpha, best = self.first + scores[:, 0], self.first + scores[:, 0]
        came: List[Tensor] = []
        for t in range(1, scores.shape[1]):
            step = alpha.unsqueeze(2) + self.moves + scores[:, t].unsqueeze(1)
            alpha = torch.where(mask[:, t].unsqueeze(1).bool(), torch.logsumexp(step, 1), alpha)
            best, which = (best.unsqueeze(2) + self.moves + scores[:, t].unsqueeze(1)).max(1)
            came.append(which)
        at = (best + self.last).argmax(1)
        path = [at]
        for k in range(len(came) - 1, -1, -1):
            at = came[k].gather(1, at.unsqueeze(1)).squeeze(1)
            path.append(at)
        return torch.logsumexp(alpha + self.last, 1), torch.stack(path[::-1], 1)


@case(real(1, 4, 8), whole(30, 1, 3))
class GreedyDecoder(nn.Module):
    """A loop that a script runs until a word ends it."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(30, 8), nn.GRUCell(8, 8), nn.Linear(8, 30)

    def forward(self, memory: Tensor, ids: Tensor):
        h = memory.mean(1)
        word = ids[:, 0]
        made: List[Tensor] = []
        for _ in range(6):
            h = self.cell(self.embed(word), h)
            word = self.out(h).argmax(-1)
            made.append(word)
        return torch.stack(made, 1), h


@case(whole(30, 2, 6), doors=ALL)
class SinusPlaces(nn.Module):
    def __init__(self):
        super().__init__()
        place, table = torch.arange(50).unsqueeze(1), torch.zeros(1, 50, 8)
        div = torch.exp(torch.arange(0, 8, 2) * (-math.log(10000.0) / 8))
        table[0, :, 0::2], table[0, :, 1::2] = torch.sin(place * div), torch.cos(place * div)
        self.register_buffer("table", table)
        self.embed = nn.Embedding(30, 8)

    def forward(self, ids):
        return self.embed(ids) * math.sqrt(8) + self.table[:, :ids.size(1)]


@case(real(1, 8, 16), doors=ALL)
class AlibiAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48, bias=False)
        self.register_buffer("slopes", torch.tensor([2.0 ** -(i + 1) for i in range(4)]).view(4, 1, 1))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = [z.view(b, t, 4, 4).transpose(1, 2) for z in torch.chunk(self.qkv(x), 3, dim=-1)]
        apart = torch.arange(t).view(1, 1, t) - torch.arange(t).view(1, t, 1)
        bias = self.slopes * apart.clamp(max=0)
        hidden = torch.full((t, t), float("-inf")).triu(1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(bias + hidden).unsqueeze(0)).transpose(1, 2).flatten(2)


@case(real(4, 6, 8), doors=ALL)
class MixtureOfExperts(nn.Module):
    """Each token goes to its two best experts; all are computed and weighed."""

    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(8, 4, bias=False), nn.Parameter(torch.randn(4, 8, 12)), nn.Parameter(torch.randn(4, 12, 8))

    def forward(self, x):
        flat = x.reshape(-1, 8)
        weight, chosen = torch.topk(F.softmax(self.gate(flat), dim=-1), 2, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        share = torch.zeros(flat.shape[0], 4).scatter_(1, chosen, weight)
        made = torch.einsum("teh,ehd->ted", F.silu(torch.einsum("td,edh->teh", flat, self.up)), self.down)
        return (share.unsqueeze(-1) * made).sum(1).view_as(x), F.one_hot(chosen, num_classes=4).sum((0, 1))


@case(real(6, 8), doors=("script", "export"))
class RoutedExperts(nn.Module):
    """Tokens are gathered by expert, as many as there are."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 3), nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = torch.where(chosen == i)[0]
            y.index_add_(0, rows, expert(x[rows]))
        return y


@case(real(1, 1, 8), real(1, 2, 5, 4), real(1, 2, 5, 4, seed=4), free=((1, 2), (2, 2)), other=(real(1, 1, 8), real(1, 2, 9, 4), real(1, 2, 9, 4, seed=4)))
class CachedStep(nn.Module):
    """One step of a decoder whose cache grows."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, past_k, past_v):
        b, t, _ = x.shape
        q, k, v = self.q(x).view(b, t, 2, 4).transpose(1, 2), self.k(x).view(b, t, 2, 4).transpose(1, 2), self.v(x).view(b, t, 2, 4).transpose(1, 2)
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.o(y.transpose(1, 2).reshape(b, t, 8)), k, v


# ---- speech and signals

@case(real(1, 256), doors=TRACED)
class MelSpectrogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("banks", torch.rand(33, 10, generator=torch.Generator().manual_seed(4)))

    def forward(self, x):
        s = torch.stft(x, 64, 32, 64, self.window, center=True, pad_mode="reflect", return_complex=True)
        power = s.real ** 2 + s.imag ** 2
        mel = torch.matmul(power.transpose(1, 2), self.banks)
        db = 10 * torch.log10(torch.clamp(mel, min=1e-10))
        return torch.maximum(db, db.amax((1, 2), keepdim=True) - 80.0)


@case(real(1, 256), doors=TRACED)
class MagnitudeRoundTrip(nn.Module):
    """A mask on the spectrum, and the signal again."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x):
        s = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        mask = torch.sigmoid(s.abs() - 2)
        return torch.istft(s * mask, 64, 16, window=self.window, length=256)


@case(real(1, 64), doors=TRACED)
class SpectralGate(nn.Module):
    def forward(self, x):
        f = torch.fft.rfft(x)
        phase, size = torch.angle(f), torch.abs(f)
        kept = torch.where(size > size.mean(), size, torch.zeros_like(size))
        return torch.fft.irfft(torch.polar(kept, phase), n=64), torch.fft.fftshift(size, dim=-1), torch.fft.rfftfreq(64)


@case(real(2, 1, 200), free=((0, 2),), other=(real(2, 1, 320),))
class Wav2VecStem(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Conv1d(1, 6, 10, stride=5, bias=False), nn.GroupNorm(6, 6), nn.Conv1d(6, 6, 3, stride=2)

    def forward(self, x):
        return F.gelu(self.b(F.gelu(self.norm(self.a(x))))).transpose(1, 2)


@case(real(1, 4, 50), free=((0, 2),), other=(real(1, 4, 71),), doors=("trace", "export"))
class DilatedCausal(nn.Module):
    """WaveNet's gated layers."""

    def __init__(self):
        super().__init__()
        self.filters, self.gates = nn.ModuleList([nn.Conv1d(4, 4, 2, dilation=2 ** i) for i in range(3)]), nn.ModuleList([nn.Conv1d(4, 4, 2, dilation=2 ** i) for i in range(3)])
        self.skip = nn.Conv1d(4, 3, 1)

    def forward(self, x):
        total = torch.zeros_like(self.skip(x))
        for i, (f, g) in enumerate(zip(self.filters, self.gates)):
            padded = F.pad(x, (2 ** i, 0))
            y = torch.tanh(f(padded)) * torch.sigmoid(g(padded))
            total = total + self.skip(y)
            x = x + y
        return total


@case(real(2, 20, 8), free=((0, 1),), other=(real(2, 13, 8),))
class ConformerConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.depth, self.batch, self.b = nn.LayerNorm(8), nn.Conv1d(8, 16, 1), nn.Conv1d(8, 8, 5, padding=2, groups=8), nn.BatchNorm1d(8), nn.Conv1d(8, 8, 1)

    def forward(self, x):
        y = F.glu(self.a(self.norm(x).transpose(1, 2)), dim=1)
        return x + self.b(F.silu(self.batch(self.depth(y)))).transpose(1, 2)


@case(real(2, 9, 6), doors=("trace", "export"))
class CtcGreedy(nn.Module):
    """Collapsed labels of a CTC head, padded with -1."""

    def forward(self, x):
        best = x.argmax(-1)
        before = F.pad(best[:, :-1], [1, 0], value=-1)
        keep = (best != before) & (best != 0)
        place = torch.cumsum(keep.long(), 1) - 1
        out = torch.full_like(best, -1)
        rows = torch.arange(best.shape[0]).unsqueeze(1).expand_as(best)
        where = torch.where(keep, place, torch.full_like(place, best.shape[1] - 1))
        out[rows, where] = torch.where(keep, best, out[rows, where])
        return out, keep.sum(1)


@case(real(1, 100))
class Emphasis(nn.Module):
    """Pre-emphasis, frames, a window and energies."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hamming_window(20))

    def forward(self, x):
        y = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], dim=1)
        frames = y.unfold(-1, 20, 10) * self.window
        energy = frames.pow(2).sum(-1).clamp_min(1e-8).log()
        rate = ((frames[..., 1:] * frames[..., :-1]) < 0).float().mean(-1)
        return energy, rate, frames.std(-1), torch.diff(energy, dim=-1)


@case(real(1, 2, 64))
class FirFilter(nn.Module):
    def __init__(self):
        super().__init__()
        n = torch.arange(-4, 5).float()
        self.register_buffer("taps", torch.sinc(0.5 * n) * torch.blackman_window(9, periodic=False))

    def forward(self, x):
        y = F.conv1d(F.pad(x, (4, 4), mode="replicate"), self.taps.flip(0).view(1, 1, -1).repeat(2, 1, 1), groups=2)
        return y[..., ::2], F.interpolate(y, scale_factor=2.0, mode="linear", align_corners=True), y.quantile(0.25, dim=-1)


@case(real(3, 7, 5), doors=ALL)
class SpeakerPooling(nn.Module):
    """x-vectors: the attentive mean and deviation, and cosine scores."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(7, 4, 1), nn.Conv1d(4, 7, 1)

    def forward(self, x):
        w = torch.softmax(self.b(torch.tanh(self.a(x))), dim=2)
        mean = (w * x).sum(2)
        deviation = ((w * x ** 2).sum(2) - mean ** 2).clamp(min=1e-6).sqrt()
        e = F.normalize(torch.cat([mean, deviation], 1))
        return F.cosine_similarity(e[:, None], e[None, :], dim=-1), F.linear(e, e)
