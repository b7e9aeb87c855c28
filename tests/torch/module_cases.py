# SPDX-License-Identifier: Apache-2.0
"""Whole small modules for tests/torch/modules.py: what people write, of every kind, beside the operators of operator_cases.py.

Each case says which doors it goes through: `script` (control flow that data decide cannot be traced), `trace` and `export`, and which axes of its
inputs are free when it is exported again with dynamic sizes."""
import dataclasses
import math
from typing import Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import nn

ALL = ("script", "trace", "export")


@dataclasses.dataclass
class Case:
    name: str
    module: nn.Module
    inputs: tuple
    doors: tuple = ALL
    free: tuple = ()  # (input, axis) pairs that may have other sizes; export takes them as dynamic
    other: tuple = ()  # inputs of other sizes for what was exported so


CASES = []


def case(*inputs, doors=ALL, free=(), other=()):
    def note(kind):
        torch.manual_seed(len(CASES))
        CASES.append(Case(kind.__name__, kind().eval(), inputs, doors, free, other))
        return kind
    return note


def real(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def whole(high, *shape, low=0, seed=2):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))


# ---- attention and what surrounds it

@case(real(2, 6, 16), free=((0, 0), (0, 1)), other=(real(3, 9, 16),))
class RelativeAttention(nn.Module):
    """Heads with a learned bias by distance, and a causal mask made of tril."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.bias = nn.Linear(16, 48), nn.Linear(16, 16), nn.Embedding(32, 4)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = [y.reshape(n, t, 4, 4).permute(0, 2, 1, 3) for y in self.qkv(x).chunk(3, dim=-1)]
        places = torch.arange(t)
        apart = (places[:, None] - places[None, :]).clamp(-15, 16) + 15
        scores = torch.einsum("nhqd,nhkd->nhqk", q, k) / 2 + self.bias(apart).permute(2, 0, 1)
        scores = scores.masked_fill(torch.tril(torch.ones(t, t)) == 0, float("-inf"))
        return self.out(torch.einsum("nhqk,nhkd->nqhd", scores.softmax(-1), v).reshape(n, t, c))


@case(real(2, 5, 12), real(2, 7, 12), torch.arange(7)[None, :] < torch.tensor([[4], [7]]))
class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x, memory, valid):
        y, weights = self.attend(x, memory, memory, key_padding_mask=~valid)
        return y, weights


@case(real(2, 4, 8, 8), free=((0, 0),), other=(real(3, 4, 8, 8),))
class LinearAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Conv2d(4, 24, 1, bias=False)

    def forward(self, x):
        n, _, h, w = x.shape
        q, k, v = self.qkv(x).reshape(n, 3, 2, 4, h * w).unbind(1)
        context = torch.einsum("nhdt,nhet->nhde", k.softmax(-1), v)
        return torch.einsum("nhde,nhdt->nhet", context, q.softmax(-2)).reshape(n, 8, h, w)


@case(real(1, 6, 16), doors=("trace", "export"))
class Rotary(nn.Module):
    """Rotary places by complex numbers, as some decoders write them."""

    def __init__(self):
        super().__init__()
        turns = torch.outer(torch.arange(16), 1.0 / 100 ** (torch.arange(0, 4, 2) / 4))
        self.register_buffer("angles", turns)

    def forward(self, x):
        n, t, _ = x.shape
        pairs = torch.view_as_complex(x.reshape(n, t, 4, 2, 2).contiguous())
        turned = pairs * torch.polar(torch.ones(t, 2), self.angles[:t])[None, :, None, :]
        return torch.view_as_real(turned).flatten(2)


@case(real(2, 8, 8), doors=ALL)
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(x)


# ---- recurrent layers

@case(real(7, 2, 5), real(2, 2, 6), real(2, 2, 6))
class StackedLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, num_layers=2)

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return y, h, c


@case(real(2, 5, 4))
class TwoWayLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True, bidirectional=True, bias=False)

    def forward(self, x):
        return self.lstm(x)[0]


@case(real(5, 4), doors=ALL)
class UnbatchedGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 3, num_layers=2, bidirectional=True)

    def forward(self, x):
        y, h = self.gru(x)
        return y, h


@case(real(2, 6, 4), doors=ALL)
class CellLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(4, 5), nn.Linear(5, 2)

    def forward(self, x):
        h, c = torch.zeros(x.shape[0], 5), torch.zeros(x.shape[0], 5)
        made = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
            made.append(self.out(h))
        return torch.stack(made, 1)


# ---- pictures

@case(real(2, 3, 13, 17), free=((0, 0),), other=(real(3, 3, 13, 17),))
class Paddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.reflect, self.replicate = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), nn.Conv2d(3, 4, 5, padding=2, padding_mode="replicate")
        self.circular, self.same = nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), nn.Conv2d(3, 4, 4, padding="same", dilation=2)

    def forward(self, x):
        y = self.reflect(x) + self.replicate(x) * self.circular(x) + self.same(x)
        return F.pad(y, (1, -2, 0, 3), value=0.5), F.pad(y, (2, 1, 0, 1), mode="circular"), F.pad(x, (1, 0, -1, 2, 0, 1))


@case(real(2, 3, 9, 11))
class Interpolations(nn.Module):
    def forward(self, x):
        a = F.interpolate(x, scale_factor=2.0, mode="nearest")
        b = F.interpolate(x, size=[5, 23], mode="bilinear", align_corners=False)
        c = F.interpolate(x, scale_factor=[1.5, 0.7], mode="bicubic", align_corners=True)
        d = F.interpolate(x, size=[4, 5], mode="area")
        e = F.interpolate(x, size=[4, 6], mode="bilinear", antialias=True, align_corners=False)
        f = F.interpolate(x, scale_factor=1.3, mode="nearest-exact")
        return a, b, c, d, e, f


@case(real(2, 4, 11, 13), free=((0, 2), (0, 3)), other=(real(2, 4, 14, 9),))
class Pools(nn.Module):
    def forward(self, x):
        return (F.adaptive_avg_pool2d(x, [1, 1]), F.adaptive_max_pool2d(x, [1, 1]), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), F.max_pool2d(x, 3, 2, 1, dilation=2, ceil_mode=True),
                F.lp_pool2d(x, 2.0, 3, 2))


@case(real(2, 4, 11, 13))
class UnevenPools(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, [3, 5]), F.adaptive_max_pool2d(x, [4, 2]), F.adaptive_avg_pool1d(x[:, :, 0], 5)


@case(real(1, 8, 12, 12), free=((0, 2), (0, 3)), other=(real(1, 8, 16, 20),))
class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.up, self.out, self.norm = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(16, 3, 1), nn.GroupNorm(4, 16)

    def forward(self, x):
        y = F.silu(self.norm(self.middle(F.relu(self.down(x)))))
        return torch.sigmoid(self.out(torch.cat([x, self.up(y)], 1)))


@case(real(2, 8, 6, 6))
class SqueezeExcite(nn.Module):
    def __init__(self):
        super().__init__()
        self.fold, self.mix = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.Mish(), nn.Conv2d(2, 8, 1), nn.Hardsigmoid()), nn.PixelShuffle(2)

    def forward(self, x):
        y = x * self.fold(x)
        return self.mix(y), F.pixel_unshuffle(y, 3), F.unfold(y, 3, padding=1), F.fold(F.unfold(y, 2, stride=2), [6, 6], 2, stride=2)


@case(real(1, 2, 7, 9), real(1, 6))
class SpatialTransformer(nn.Module):
    def forward(self, x, theta):
        grid = F.affine_grid(theta.reshape(1, 2, 3), [1, 2, 5, 6], align_corners=False)
        return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False), F.grid_sample(x, grid, mode="nearest", padding_mode="zeros", align_corners=True)


@case(real(1, 2, 6, 7, 8))
class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Conv3d(2, 4, 3, padding=1, groups=2), nn.ConvTranspose3d(4, 2, 2, stride=2), nn.InstanceNorm3d(4, affine=True)

    def forward(self, x):
        y = self.norm(F.elu(self.a(x)))
        return self.b(F.max_pool3d(y, 2)), F.interpolate(y, size=[3, 4, 5], mode="trilinear", align_corners=False)


# ---- sequences of tokens

@case(whole(20, 3, 7), whole(4, 3, 7, seed=5), free=((0, 1), (1, 1)), other=(whole(20, 3, 11), whole(4, 3, 11, seed=6)))
class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.kinds, self.norm = nn.Embedding(20, 8, padding_idx=0), nn.Embedding(4, 8, max_norm=None), nn.LayerNorm(8)

    def forward(self, ids, kinds):
        mask = (ids != 0).unsqueeze(-1).to(torch.float32)
        x = self.norm(self.words(ids) + self.kinds(kinds))
        return (x * mask).sum(1) / mask.sum(1).clamp(min=1e-6), F.one_hot(kinds, 4).cumsum(1)


@case(whole(20, 9), torch.tensor([0, 2, 2, 6]), doors=("trace", "export"))
class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.sums, self.means = nn.EmbeddingBag(20, 6, mode="sum"), nn.EmbeddingBag(20, 6, mode="mean")

    def forward(self, ids, starts):
        return self.sums(ids, starts), self.means(ids, starts)


@case(whole(20, 2, 5), doors=("trace", "export"))
class RowsOfBags(nn.Module):
    def __init__(self):
        super().__init__()
        self.most = nn.EmbeddingBag(20, 6, mode="max")

    def forward(self, ids):
        return self.most(ids)


@case(real(2, 30), doors=ALL)
class WaveStem(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(1, 4, 5, stride=2, padding=2), nn.BatchNorm1d(4)
        self.tail = nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(4, 1, 4, stride=2, padding=1))

    def forward(self, x):
        y = F.leaky_relu(self.norm(self.conv(x.unsqueeze(1))), 0.1)
        return torch.tanh(self.tail(y)).squeeze(1), y.abs().amax(-1), y.std(-1), y.var(-1, unbiased=False)


# The tail is what a parametrization computes, which scripts do not take.
CASES[-1].doors = ("trace", "export")


@case(real(1, 400), doors=("trace", "export"))
class Spectrogram(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x):
        s = torch.stft(x, 64, hop_length=16, window=self.window, return_complex=True, center=True)
        return torch.log1p(s.abs()), torch.view_as_real(s * torch.conj(s)), torch.fft.irfft(torch.fft.rfft(x, dim=-1), n=400, dim=-1)


# ---- indices

@case(real(6, 5), whole(6, 4), whole(5, 4, seed=3))
class Indexing(nn.Module):
    def forward(self, x, rows, columns):
        y = x.clone()
        y[rows, columns] = 1.5
        y.index_put_((rows,), x[:4], accumulate=True)
        y[:, 1:3] *= 2
        y[-1] = x.mean(0)
        return y, x[rows][:, columns], x[rows, columns], x.index_select(1, columns), torch.take(x, rows), x[..., None, ::2]


@case(real(4, 6), whole(4, 4, 6, seed=7), real(4, 6, seed=8))
class Scatters(nn.Module):
    def forward(self, x, where, values):
        zeros = torch.zeros(4, 6)
        return (zeros.scatter(0, where, values), zeros.scatter_add(0, where, values), x.scatter_reduce(0, where, values, reduce="amax"),
                x.scatter_reduce(0, where, values, reduce="mean", include_self=False), torch.gather(x, 0, where), x.index_add(0, where[:, 0], values, alpha=2.0))


@case(real(5, 7), free=((0, 0),), other=(real(9, 7),))
class Ordering(nn.Module):
    def forward(self, x):
        values, places = x.sort(dim=-1, descending=True, stable=True)
        top, at = x.topk(3, dim=1)
        return values, places, top, at, x.argmax(1), x.cumsum(0), x.cumprod(1), x.median(dim=1).values, x.kthvalue(2, dim=1).values


@case(whole(5, 12), real(12), doors=("script", "export"))
class Uniques(nn.Module):
    def forward(self, ids, x):
        values, places, counts = torch.unique(ids, return_inverse=True, return_counts=True)
        sums = torch.zeros(values.shape[0]).index_add(0, places, x)
        return values, counts, sums / counts


@case(real(6, 4), doors=("script", "export"))
class Kept(nn.Module):
    def forward(self, x):
        score = x[:, 0]
        kept = x[score > 0]
        rows = torch.nonzero(score > 0).squeeze(1)
        return kept * 2, rows, kept.sum(0), torch.masked_select(x, x > 0.5)


@case(real(5, 5), real(4, 5, 6), real(4, 6, 3))
class Products(nn.Module):
    def forward(self, a, b, c):
        return (torch.einsum("bij,bjk->bik", b, c), torch.einsum("ii->i", a), torch.einsum("bij->b", b), torch.tensordot(b, c, dims=([0, 2], [0, 1])), torch.kron(a, a[:2, :2]),
                torch.cdist(a, a[:3]), torch.baddbmm(b[:, :, :3], b, c, beta=0.5), torch.triu(a, 1) + torch.tril(a, -1), torch.diag_embed(a[:, 0]), torch.trace(a), torch.cross(b[..., :3], b[..., 3:], dim=-1))


@case(real(3, 4), real(3, 4, seed=2), torch.rand(3, 4, generator=torch.Generator().manual_seed(3)))
class Losses(nn.Module):
    def forward(self, x, y, p):
        t = y.argmax(1)
        return (F.mse_loss(x, y), F.smooth_l1_loss(x, y), F.cross_entropy(x, t, label_smoothing=0.1), F.binary_cross_entropy_with_logits(x, p), F.kl_div(x.log_softmax(1), p, reduction="batchmean"),
                F.cosine_similarity(x, y), F.nll_loss(x.log_softmax(1), t), F.pairwise_distance(x, y), F.normalize(x, dim=1), F.huber_loss(x, y), F.triplet_margin_loss(x, y, p))


@case(real(4, 6), whole(9, 4, 6, low=-9))
class Numbers(nn.Module):
    def forward(self, x, n):
        return (torch.where(x > 0, x, n), n // 4, n % 4, torch.div(n, 4, rounding_mode="trunc"), n / 3, x.pow(3), 2 ** n.clamp(0, 4), torch.lerp(x, x * 2, 0.3), x.remainder(0.7), torch.sinc(x),
                torch.erfinv(x.clamp(-0.9, 0.9)), x.round(decimals=1), torch.heaviside(x, x), torch.copysign(x, n), torch.xlogy(x.abs(), x.abs()), torch.signbit(x), torch.rad2deg(x), torch.deg2rad(x))


@case(real(2, 3, 4), free=((0, 0),), other=(real(5, 3, 4),))
class Shapes(nn.Module):
    def forward(self, x):
        a, b = x.split([1, 2], 1)
        return (x.permute(2, 0, 1).flatten(1), a.expand(-1, 2, -1) + b, x.unflatten(2, [2, 2]), torch.rot90(x, 1, [1, 2]), x.roll([1, -1], [1, 2]), x.unfold(2, 2, 1), torch.flip(x, [0, 2]), x.repeat(1, 2, 1), x.repeat_interleave(2, dim=2),
                x.movedim(0, 2).diagonal(0, 0, 1), torch.block_diag(x[0], x[1]) if x.shape[0] == -1 else x.sum(), torch.atleast_2d(x[0, 0]), x.narrow(1, 1, 2), torch.broadcast_to(x[:, :1], x.shape), x.T if x.dim() == 2 else x.mT)


# ---- control flow

@case(real(4), torch.tensor(3), doors=("script",))
class DataLoop(nn.Module):
    def forward(self, x, n):
        total, steps = x, 0
        while bool(total.abs().sum() < 50.0):
            total = total * 1.5 + 0.1
            steps += 1
            if steps > int(n) + 20:
                break
        return total, torch.tensor(steps)


@case(real(3, 4), doors=("script",))
class DataBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 5), nn.Linear(4, 5)

    def forward(self, x):
        y = self.a(x) if bool(x.sum() > 0) else self.b(x).relu()
        parts: List[torch.Tensor] = []
        for row in y:
            if bool(row[0] > 0):
                parts.append(row * 2)
            else:
                parts.append(-row)
        return torch.stack(parts)


@case(real(2, 3, 4), doors=("script",))
class Structures(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})

    def pair(self, x, scale: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, int]:
        if scale is not None:
            x = x * scale
        return x, x.shape[1]

    def forward(self, x):
        found: Dict[str, torch.Tensor] = {}
        for name, layer in self.layers.items():
            found[name] = layer(x)
        y, n = self.pair(found["a"], found["b"])
        z, _ = self.pair(y)
        names = [k for k in found.keys()]
        return torch.cat([found[k] for k in names], -1), z / n, torch.full([n], float(len(names)))


@case(real(5, 3), doors=("export",))
class Conditional(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() * 2, (x,))


@case(real(8, 2), whole(8, 2, 12, seed=9), doors=ALL, free=((1, 1),), other=(real(8, 2), whole(8, 2, 20, seed=10)))
class GraphConvolution(nn.Module):
    """Messages along edges, summed at their ends."""

    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(4, 6), nn.Linear(8, 3)

    def forward(self, x, edges):
        start, end = edges[0], edges[1]
        sent = F.relu(self.message(torch.cat([x[start], x[end]], -1)))
        got = torch.zeros(x.shape[0], 6).index_add(0, end, sent)
        count = torch.zeros(x.shape[0]).index_add(0, end, torch.ones(end.shape[0]))
        return self.update(torch.cat([x, got / count.clamp(min=1.0)[:, None]], -1))


@case(real(2, 10, 4), doors=ALL, free=((0, 0),), other=(real(3, 10, 4),))
class Experts(nn.Module):
    """A mixture of two of four experts, by weights of zero for the others."""

    def __init__(self):
        super().__init__()
        self.gate, self.inner, self.outer = nn.Linear(4, 4), nn.Parameter(torch.randn(4, 4, 8) * 0.3), nn.Parameter(torch.randn(4, 8, 4) * 0.3)

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        gates = torch.zeros(x.shape[0], x.shape[1], 4).scatter(-1, chosen, weights / weights.sum(-1, keepdim=True))
        h = F.gelu(torch.einsum("btc,ech->bteh", x, self.inner), approximate="tanh")
        return torch.einsum("bteh,ehc,bte->btc", h, self.outer, gates)


@case(real(1, 12, 6), doors=ALL)
class StateSpace(nn.Module):
    """A selective scan written as a loop over time."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.step = nn.Parameter(-torch.rand(6, 4)), nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(6, 6)

    def forward(self, x):
        step, b, c = F.softplus(self.step(x)), self.b(x), self.c(x)
        h, made = torch.zeros(x.shape[0], 6, 4), []
        for t in range(x.shape[1]):
            h = torch.exp(step[:, t, :, None] * self.a) * h + step[:, t, :, None] * b[:, t, None, :] * x[:, t, :, None]
            made.append((h * c[:, t, None, :]).sum(-1))
        return torch.stack(made, dim=1)


@case(real(3, 8), doors=ALL)
class Fourier(nn.Module):
    """Features of sines, gated, with statistics of their own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", 2.0 ** torch.arange(4))
        self.lin, self.prelu, self.norm = nn.Linear(64, 10), nn.PReLU(5), nn.RMSNorm(5)

    def forward(self, x):
        angles = x[..., None] * self.frequencies * math.pi
        y = self.lin(torch.cat([angles.sin(), angles.cos()], -1).flatten(1))
        return self.norm(self.prelu(F.glu(y, -1))), F.softmin(y, -1), F.logsigmoid(y), F.celu(y), F.rrelu(y), F.hardtanh(y), F.tanhshrink(y), F.threshold(y, 0.1, 2.0)


@case(real(2, 5, 3), torch.tensor([5, 2]), doors=("script", "trace", "export"))
class Lengths(nn.Module):
    """What a mask of lengths keeps, and the last valid step of each row."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 4, batch_first=True)

    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1])[None, :] < lengths[:, None]
        y = self.gru(x)[0].masked_fill(~mask[..., None], -1e4)
        last = y.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, 4)).squeeze(1)
        return y.max(dim=1).values, last, torch.logsumexp(y, 1), mask.any(0), mask.all(1)


@case(real(2, 3, 8, 8), doors=ALL)
class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.b, self.i, self.g, self.l, self.lrn = nn.BatchNorm2d(3, affine=False), nn.InstanceNorm2d(3), nn.GroupNorm(3, 3), nn.LayerNorm([8, 8]), nn.LocalResponseNorm(2)

    def forward(self, x):
        return self.b(x), self.i(x), self.g(x), self.l(x), self.lrn(x), F.dropout2d(x, 0.5, self.training), F.channel_shuffle(x, 3)


@case(real(4, 4), doors=ALL)
class LinearAlgebra(nn.Module):
    def forward(self, x):
        spd = x @ x.T + 4 * torch.eye(4)
        return torch.linalg.norm(x), torch.linalg.vector_norm(x, 1, dim=1), torch.linalg.matrix_norm(x), torch.matrix_power(spd / 8, 3)
