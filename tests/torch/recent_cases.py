# SPDX-License-Identifier: Apache-2.0
"""More modules for tests/torch/modules.py: blocks of recent papers, as people write them down."""
import math
from typing import List

import torch
import torch.nn.functional as F
from torch import nn

from module_cases import case, real, whole

TRACED = ("trace", "export")
EXPORTED = ("export",)
SCRIPTED = ("script",)


# ---- attention

@case(real(2, 7, 32), doors=TRACED, free=((0, 0), (0, 1)), other=(real(1, 11, 32),))
class DifferentialAttention(nn.Module):
    """The difference of two softmax maps, each head normalised."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32, bias=False) for _ in range(4))
        self.lambdas = nn.ParameterList([nn.Parameter(torch.randn(4) * 0.1) for _ in range(4)])
        self.norm = nn.RMSNorm(8, eps=1e-5, elementwise_affine=False)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.q(x).view(b, t, 8, 4).transpose(1, 2)
        k = self.k(x).view(b, t, 8, 4).transpose(1, 2)
        v = self.v(x).view(b, t, 4, 8).transpose(1, 2)
        scores = q @ k.transpose(-1, -2) * 0.5
        scores = scores + torch.triu(torch.full((t, t), float("-inf")), diagonal=1)
        maps = torch.nan_to_num(scores).softmax(-1).view(b, 4, 2, t, t)
        a, c, d, e = self.lambdas
        weight = torch.exp((a * c).sum()) - torch.exp((d * e).sum()) + 0.8
        y = self.norm((maps[:, :, 0] - weight * maps[:, :, 1]) @ v) * 0.2
        return self.o(y.transpose(1, 2).reshape(b, t, 32))


@case(real(2, 6, 32), torch.arange(6), doors=TRACED, free=((0, 0), (0, 1), (1, 0)), other=(real(1, 9, 32), torch.arange(9)))
class LatentAttention(nn.Module):
    """Keys and values from one narrow latent, with a part of each head apart for the rotary positions."""

    def __init__(self):
        super().__init__()
        self.down, self.norm, self.up = nn.Linear(32, 12 + 4), nn.RMSNorm(12), nn.Linear(12, 4 * 16)
        self.q, self.o = nn.Linear(32, 4 * 12), nn.Linear(4 * 8, 32)
        self.register_buffer("frequencies", 1.0 / (100 ** (torch.arange(0, 4, 2).float() / 4)))

    def turned(self, x, places):
        angle = torch.outer(places.float(), self.frequencies)
        z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous()) * torch.polar(torch.ones_like(angle), angle)
        return torch.view_as_real(z).flatten(-2).type_as(x)

    def forward(self, x, places):
        b, t, _ = x.shape
        latent, rotary = self.down(x).split([12, 4], dim=-1)
        key, value = self.up(self.norm(latent)).view(b, t, 4, 16).transpose(1, 2).split([8, 8], dim=-1)
        q, turn = self.q(x).view(b, t, 4, 12).transpose(1, 2).split([8, 4], dim=-1)
        q = torch.cat([q, self.turned(turn, places)], dim=-1)
        key = torch.cat([key, self.turned(rotary.unsqueeze(1), places).expand(-1, 4, -1, -1)], dim=-1)
        return self.o(F.scaled_dot_product_attention(q, key, value, is_causal=True).transpose(1, 2).flatten(2))


@case(real(2, 8, 24), free=((0, 0),), other=(real(5, 8, 24),))
class Retention(nn.Module):
    """Attention that decays with distance, each head at a rate of its own."""

    def __init__(self):
        super().__init__()
        self.qkvg, self.out, self.norm = nn.Linear(24, 96), nn.Linear(24, 24), nn.GroupNorm(3, 24)
        self.register_buffer("rates", torch.log(1 - torch.exp2(-5 - torch.arange(3).float())))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v, g = self.qkvg(x).chunk(4, dim=-1)
        q, k, v = [y.reshape(b, t, 3, 8).permute(0, 2, 1, 3) for y in (q, k, v)]
        apart = torch.arange(t).unsqueeze(1) - torch.arange(t).unsqueeze(0)
        decay = torch.exp(self.rates.view(3, 1, 1) * apart.clamp(min=0)) * (apart >= 0)
        y = (q @ k.transpose(-1, -2) / math.sqrt(8)) * decay
        y = y / y.detach().sum(-1, keepdim=True).abs().clamp(min=1)
        y = self.norm((y @ v).permute(0, 2, 1, 3).reshape(b * t, c)).view(b, t, c)
        return self.out(F.silu(g) * y)


@case(real(2, 16, 12, 12), doors=TRACED, free=((0, 0),), other=(real(3, 16, 12, 12),))
class OutlookAttention(nn.Module):
    """Attention inside of each window, by unfold and fold."""

    def __init__(self):
        super().__init__()
        self.v, self.a, self.o = nn.Linear(16, 16), nn.Linear(16, 2 * 81), nn.Linear(16, 16)

    def forward(self, x):
        n, c, h, w = x.shape
        y = x.permute(0, 2, 3, 1)
        v = F.unfold(self.v(y).permute(0, 3, 1, 2), 3, padding=1).reshape(n, 2, 8, 9, h * w).permute(0, 1, 4, 3, 2)
        a = (self.a(y).reshape(n, h * w, 2, 9, 9).permute(0, 2, 1, 3, 4) * 8 ** -0.5).softmax(-1)
        y = F.fold((a @ v).permute(0, 1, 4, 3, 2).reshape(n, c * 9, h * w), (h, w), 3, padding=1)
        return self.o(y.permute(0, 2, 3, 1))


@case(real(2, 5, 32), real(2, 84, 32, seed=4), torch.rand(2, 5, 2, 2, generator=torch.Generator().manual_seed(3)), doors=TRACED)
class DeformableAttention(nn.Module):
    """Samples of two maps around places that the queries choose."""

    def __init__(self):
        super().__init__()
        self.offsets, self.weights, self.value, self.out = nn.Linear(32, 4 * 2 * 3 * 2), nn.Linear(32, 4 * 2 * 3), nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, query, maps, places):
        b, q, _ = query.shape
        sizes = [(8, 8), (4, 5)]
        value = self.value(maps).view(b, -1, 4, 8)
        offset = self.offsets(query).view(b, q, 4, 2, 3, 2)
        weight = self.weights(query).view(b, q, 4, 6).softmax(-1)
        scale = torch.tensor([[w, h] for h, w in sizes], dtype=torch.float32)
        at = 2 * (places[:, :, None, :, None, :] + offset / scale[None, None, None, :, None, :]) - 1
        parts = []
        for level, part in enumerate(value.split([h * w for h, w in sizes], dim=1)):
            h, w = sizes[level]
            picture = part.flatten(2).transpose(1, 2).reshape(b * 4, 8, h, w)
            parts.append(F.grid_sample(picture, at[:, :, :, level].transpose(1, 2).flatten(0, 1), mode="bilinear", padding_mode="zeros", align_corners=False))
        y = (torch.stack(parts, dim=-2).flatten(-2) * weight.transpose(1, 2).reshape(b * 4, 1, q, 6)).sum(-1)
        return self.out(y.view(b, 32, q).transpose(1, 2))


# ---- sequences without attention

@case(real(2, 6, 16), free=((0, 0),), other=(real(3, 6, 16),))
class SelectiveScan(nn.Module):
    """A state-space layer whose step, input and output matrices come from the input."""

    def __init__(self):
        super().__init__()
        self.into, self.conv, self.of, self.step, self.out = nn.Linear(16, 48), nn.Conv1d(24, 24, 4, groups=24, padding=3), nn.Linear(24, 2 + 8), nn.Linear(2, 24), nn.Linear(24, 16)
        self.a, self.d = nn.Parameter(torch.log(torch.arange(1, 5).float()).repeat(24, 1)), nn.Parameter(torch.ones(24))

    def forward(self, x):
        u, gate = self.into(x).chunk(2, dim=-1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, b, c = torch.split(self.of(u), [2, 4, 4], dim=-1)
        step = F.softplus(self.step(step))
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.a))
        add = step.unsqueeze(-1) * b.unsqueeze(2) * u.unsqueeze(-1)
        state = torch.zeros(x.shape[0], 24, 4)
        rows: List[torch.Tensor] = []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + add[:, t]
            rows.append((state * c[:, t].unsqueeze(1)).sum(-1))
        y = torch.stack(rows, dim=1) + u * self.d
        return self.out(y * F.silu(gate))


@case(real(5, 2, 12))
class WeightedKeyValue(nn.Module):
    """RWKV's recurrence, kept from overflow by a running maximum."""

    def __init__(self):
        super().__init__()
        self.decay, self.first = nn.Parameter(torch.randn(12)), nn.Parameter(torch.randn(12))
        self.mix = nn.Parameter(torch.rand(3, 12))
        self.k, self.v, self.r = nn.Linear(12, 12, bias=False), nn.Linear(12, 12, bias=False), nn.Linear(12, 12, bias=False)

    def forward(self, x):
        before = F.pad(x, (0, 0, 0, 0, 1, -1))
        k, v = self.k(torch.lerp(before, x, self.mix[0])), self.v(torch.lerp(before, x, self.mix[1]))
        r = torch.sigmoid(self.r(torch.lerp(before, x, self.mix[2])))
        over, under, most = torch.zeros_like(k[0]), torch.zeros_like(k[0]), torch.full_like(k[0], -1e38)
        out = torch.empty_like(x)
        for t in range(x.size(0)):
            best = torch.maximum(most, self.first + k[t])
            old, new = torch.exp(most - best), torch.exp(self.first + k[t] - best)
            out[t] = r[t] * (old * over + new * v[t]) / (old * under + new)
            best = torch.maximum(most - self.decay.exp(), k[t])
            old, new = torch.exp(most - self.decay.exp() - best), torch.exp(k[t] - best)
            over, under, most = old * over + new * v[t], old * under + new, best
        return out


@case(real(2, 3, 20), doors=TRACED, free=((0, 0), (0, 2)), other=(real(1, 3, 33),))
class LongConvolution(nn.Module):
    """Hyena: an implicit filter as long as the sequence, multiplied in the frequency domain."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 3))
        self.skip = nn.Parameter(torch.randn(3))

    def forward(self, x):
        n = x.shape[-1]
        t = torch.arange(n, dtype=torch.float32) / n
        bands = torch.stack([t, (2 * math.pi * t).sin(), (2 * math.pi * t).cos(), (4 * math.pi * t).sin(), (4 * math.pi * t).cos()], -1)
        h = self.filter(bands).T * torch.exp(-3 * t)
        y = torch.fft.irfft(torch.fft.rfft(x, n=2 * n) * torch.fft.rfft(h, n=2 * n), n=2 * n)[..., :n]
        return y + x * self.skip[:, None]


@case(real(2, 9, 8), doors=EXPORTED)
class LinearRecurrentUnit(nn.Module):
    """A diagonal complex state, by an associative scan over its real and imaginary parts."""

    def __init__(self):
        super().__init__()
        self.radius, self.angle = nn.Parameter(torch.rand(6)), nn.Parameter(torch.rand(6))
        self.b, self.c = nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x):
        from torch._higher_order_ops.associative_scan import associative_scan
        pole = torch.exp(torch.complex(-self.radius.exp(), self.angle))
        u = self.b(x)
        real_pole, imag_pole = pole.real.expand(2, 9, 6), pole.imag.expand(2, 9, 6)

        def joined(a, b):
            ar, ai, ur, ui = a
            br, bi, vr, vi = b
            return ar * br - ai * bi, ar * bi + ai * br, br * ur - bi * ui + vr, br * ui + bi * ur + vi

        _, _, re, im = associative_scan(joined, (real_pole.contiguous(), imag_pole.contiguous(), u[..., :6].contiguous(), u[..., 6:].contiguous()), dim=1, combine_mode="generic")
        return self.c(torch.cat([re, im], -1)) + x


# ---- layers of other kinds

@case(real(4, 3), free=((0, 0),), other=(real(7, 3),))
class SplineEdges(nn.Module):
    """A Kolmogorov-Arnold layer: B-splines on every edge."""

    def __init__(self):
        super().__init__()
        self.register_buffer("grid", (torch.arange(-3, 9) * 0.4 - 1).expand(3, -1).contiguous())
        self.weight, self.base = nn.Parameter(torch.randn(5, 3, 8) * 0.3), nn.Parameter(torch.randn(5, 3))

    def forward(self, x):
        y = x.unsqueeze(-1)
        bases = ((y >= self.grid[:, :-1]) & (y < self.grid[:, 1:])).to(x.dtype)
        for k in range(1, 4):
            left = (y - self.grid[:, : -(k + 1)]) / (self.grid[:, k:-1] - self.grid[:, : -(k + 1)]) * bases[:, :, :-1]
            right = (self.grid[:, k + 1:] - y) / (self.grid[:, k + 1:] - self.grid[:, 1:-k]) * bases[:, :, 1:]
            bases = left + right
        return F.linear(F.silu(x), self.base) + F.linear(bases.reshape(x.size(0), -1), self.weight.reshape(5, -1))


@case(real(2, 6, 5, 5), free=((0, 0),), other=(real(3, 6, 5, 5),), doors=TRACED)
class VectorQuantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(16, 6)

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, 6)
        which = torch.cdist(flat, self.codes.weight).argmin(dim=1)
        found = self.codes(which).view(z.shape[0], 5, 5, 6).permute(0, 3, 1, 2)
        use = F.one_hot(which, 16).float().mean(0)
        return z + (found - z).detach(), which, torch.exp(-(use * torch.log(use + 1e-10)).sum()), F.mse_loss(found, z)


@case(real(2, 10, 6), doors=TRACED)
class CapsuleRouting(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 10, 8, 6) * 0.3)

    def squash(self, x):
        n = (x * x).sum(-1, keepdim=True)
        return n / (1 + n) * x / torch.sqrt(n + 1e-8)

    def forward(self, x):
        votes = torch.einsum("jiop,bip->bjio", self.weight, x)
        logits = torch.zeros(x.shape[0], 4, 10)
        out = torch.zeros(x.shape[0], 4, 8)
        for turn in range(3):
            share = F.softmax(logits, dim=1)
            out = self.squash(torch.einsum("bji,bjio->bjo", share, votes))
            if turn < 2:
                logits = logits + torch.einsum("bjio,bjo->bji", votes, out)
        return out.norm(dim=-1), out


@case(real(3, 9), free=((0, 0), (0, 1)), other=(real(5, 13),))
class SparseMaxima(nn.Module):
    """sparsemax and the 1.5-entmax."""

    def forward(self, x):
        z = x.sort(dim=-1, descending=True)[0]
        k = torch.arange(1, x.size(-1) + 1, dtype=x.dtype)
        total = z.cumsum(-1)
        support = (1 + k * z > total).to(torch.int64).sum(-1, keepdim=True)
        sparse = torch.clamp(x - (total.gather(-1, support - 1) - 1) / support, min=0)
        y = (x - x.max(dim=-1, keepdim=True)[0]) / 2
        z = torch.sort(y, dim=-1, descending=True)[0]
        mean, square = z.cumsum(-1) / k, (z ** 2).cumsum(-1) / k
        delta = torch.clamp((1 - k * (square - mean ** 2)) / k, min=0)
        tau = mean - torch.sqrt(delta)
        at = (tau <= z).sum(-1, keepdim=True) - 1
        return sparse, torch.clamp(y - tau.gather(-1, at), min=0) ** 2


@case(real(2, 5, 4), real(2, 6, 4, seed=7))
class OptimalTransport(nn.Module):
    """Sinkhorn's iterations with a dustbin row and column, as in SuperGlue."""

    def __init__(self):
        super().__init__()
        self.bin = nn.Parameter(torch.tensor(0.7))

    def forward(self, a, b):
        scores = torch.einsum("bmd,bnd->bmn", a, b) / 2
        n, rows, cols = scores.shape
        scores = torch.cat([torch.cat([scores, self.bin.expand(n, rows, 1)], -1), self.bin.expand(n, 1, cols + 1)], 1)
        norm = -torch.log(torch.tensor(float(rows + cols)))
        mu = torch.cat([norm.expand(rows), torch.log(torch.tensor([float(cols)])) + norm])[None].expand(n, -1)
        nu = torch.cat([norm.expand(cols), torch.log(torch.tensor([float(rows)])) + norm])[None].expand(n, -1)
        u, v = torch.zeros_like(mu), torch.zeros_like(nu)
        for _ in range(5):
            u = mu - torch.logsumexp(scores + v.unsqueeze(1), dim=2)
            v = nu - torch.logsumexp(scores + u.unsqueeze(2), dim=1)
        p = scores + u.unsqueeze(2) + v.unsqueeze(1) - norm
        best = p[:, :-1, :-1].max(2)
        back = p[:, :-1, :-1].max(1)
        mutual = torch.arange(rows)[None] == back.indices.gather(1, best.indices)
        return p, torch.where(mutual, best.values.exp(), torch.zeros(1)), best.indices.masked_fill(~mutual, -1)


@case(real(2, 6, 8, 8), real(2, 10, seed=3), doors=TRACED)
class ModulatedConv(nn.Module):
    """StyleGAN's convolution whose weights the style scales, one group for each sample, and a blur."""

    def __init__(self):
        super().__init__()
        self.weight, self.style = nn.Parameter(torch.randn(4, 6, 3, 3)), nn.Linear(10, 6)
        self.register_buffer("blur", torch.outer(torch.tensor([1.0, 3, 3, 1]), torch.tensor([1.0, 3, 3, 1])) / 64)

    def forward(self, x, w):
        n = x.shape[0]
        weight = self.weight[None] * (self.style(w) + 1)[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        up = F.conv_transpose2d(x.reshape(1, n * 6, 8, 8), weight.transpose(1, 2).reshape(n * 6, 4, 3, 3), stride=2, groups=n)
        y = F.conv2d(F.pad(up, [1, 1, 1, 1]), self.blur.expand(n * 4, 1, 4, 4) * 4, groups=n * 4)
        return F.leaky_relu(y.view(n, 4, *y.shape[2:]), 0.2) * math.sqrt(2)


@case(real(2, 8, 6, 7), doors=TRACED, free=((0, 0),), other=(real(3, 8, 6, 7),))
class FourierMixer(nn.Module):
    """AFNO: a small network of complex blocks on the spectrum of the tokens, thresholded."""

    def __init__(self):
        super().__init__()
        self.w1, self.b1 = nn.Parameter(0.3 * torch.randn(2, 2, 4, 4)), nn.Parameter(0.3 * torch.randn(2, 2, 4))

    def forward(self, x):
        y = torch.fft.rfft2(x.float(), dim=(2, 3), norm="ortho")
        y = y.reshape(x.shape[0], 2, 4, *y.shape[2:])
        re = F.relu(torch.einsum("bkihw,kio->bkohw", y.real, self.w1[0]) - torch.einsum("bkihw,kio->bkohw", y.imag, self.w1[1]) + self.b1[0][:, :, None, None])
        im = F.relu(torch.einsum("bkihw,kio->bkohw", y.imag, self.w1[0]) + torch.einsum("bkihw,kio->bkohw", y.real, self.w1[1]) + self.b1[1][:, :, None, None])
        y = F.softshrink(torch.stack([re, im], -1), 0.01)
        y = torch.view_as_complex(y).flatten(1, 2)
        return torch.fft.irfft2(y, s=x.shape[2:], dim=(2, 3), norm="ortho").type_as(x) + x


@case(real(3, 4), torch.tensor([0.5, 2.0, 3.5]), doors=TRACED, free=((0, 0), (1, 0)), other=(real(5, 4), torch.rand(5) + 1))
class Parametrized(nn.Module):
    """Weights that torch.nn.utils.parametrizations make from others."""

    def __init__(self):
        super().__init__()
        from torch.nn.utils import parametrizations, parametrize
        self.a = parametrizations.weight_norm(nn.Linear(4, 6))
        self.b = parametrizations.spectral_norm(nn.Linear(6, 6))
        self.c = parametrizations.orthogonal(nn.Linear(6, 6))

        class Symmetric(nn.Module):
            def forward(self, w):
                return w.triu() + w.triu(1).transpose(-1, -2)

        self.d = nn.Linear(6, 6)
        parametrize.register_parametrization(self.d, "weight", Symmetric())

    def forward(self, x, scale):
        return self.d(self.c(torch.tanh(self.b(F.elu(self.a(x)))))) * scale[:, None]


@case(real(3, 3), real(3, 3, seed=5), doors=TRACED, free=((0, 0), (1, 0)), other=(real(2, 3), real(2, 3, seed=5)))
class RadianceField(nn.Module):
    """Rays, positional encoding, compositing and samples where the weights are."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3 + 24, 16), nn.Softplus(), nn.Linear(16, 4))

    def encode(self, p):
        bands = 2.0 ** torch.arange(4) * math.pi
        return torch.cat([p, torch.sin(p[..., None] * bands).flatten(-2), torch.cos(p[..., None] * bands).flatten(-2)], -1)

    def forward(self, origin, direction):
        t = torch.linspace(0.5, 2.5, 12).expand(origin.shape[0], 12)
        direction = F.normalize(direction, dim=-1)
        raw = self.net(self.encode(origin[:, None] + t[..., None] * direction[:, None]))
        gaps = torch.cat([t[:, 1:] - t[:, :-1], torch.full_like(t[:, :1], 1e10)], -1)
        alpha = 1 - torch.exp(-F.relu(raw[..., 3]) * gaps)
        weight = alpha * torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        colour = (weight[..., None] * raw[..., :3].sigmoid()).sum(-2)
        pdf = (weight[:, 1:-1] + 1e-5) / (weight[:, 1:-1] + 1e-5).sum(-1, keepdim=True)
        cdf = torch.cat([torch.zeros_like(pdf[:, :1]), pdf.cumsum(-1)], -1)
        u = torch.linspace(0.05, 0.95, 7).expand(origin.shape[0], 7).contiguous()
        above = torch.searchsorted(cdf, u, right=True).clamp(max=10)
        below = (above - 1).clamp(min=0)
        middle = 0.5 * (t[:, 1:] + t[:, :-1])
        low, high = cdf.gather(1, below), cdf.gather(1, above)
        a, b = middle.gather(1, below), middle.gather(1, above)
        span = torch.where(high - low < 1e-5, torch.ones_like(low), high - low)
        return colour, a + (u - low) / span * (b - a)


@case(real(6, 3), whole(5, 6), doors=TRACED, free=((1, 0),), other=(real(6, 3), whole(5, 6, seed=3)))
class ContinuousFilters(nn.Module):
    """SchNet: filters of pairwise distances between atoms, whose number the export finds to be fixed."""

    def __init__(self):
        super().__init__()
        self.embed, self.filter, self.out = nn.Embedding(5, 8), nn.Sequential(nn.Linear(10, 8), nn.Softplus(), nn.Linear(8, 8)), nn.Linear(8, 1)

    def forward(self, places, kinds):
        i, j = torch.triu_indices(places.shape[0], places.shape[0], offset=1)
        far = (places[i] - places[j]).norm(dim=-1)
        radial = torch.exp(-10 * (far[:, None] - torch.linspace(0, 3, 10)) ** 2)
        cut = 0.5 * (torch.cos(far * math.pi / 3) + 1) * (far < 3)
        w = self.filter(radial) * cut[:, None]
        x = self.embed(kinds)
        y = torch.zeros_like(x).index_add_(0, i, x[j] * w).index_add_(0, j, x[i] * w)
        return self.out(x + y).sum(0)


@case(real(12, 8), doors=TRACED, free=((0, 0),), other=(real(17, 8),))
class CapacityExperts(nn.Module):
    """Tokens to experts of limited room: places by cumsum, tokens moved by scatter and back by gather."""

    def __init__(self):
        super().__init__()
        self.router, self.up, self.down = nn.Linear(8, 4), nn.Parameter(torch.randn(4, 8, 16) * 0.3), nn.Parameter(torch.randn(4, 16, 8) * 0.3)

    def forward(self, x):
        share, expert = self.router(x).softmax(-1).max(-1)
        mask = F.one_hot(expert, 4)
        place = (mask.cumsum(0) * mask).sum(-1) - 1
        kept = place < 5
        slot = torch.where(kept, expert * 5 + place, torch.full_like(place, 20))
        room = x.new_zeros(21, 8).index_copy(0, slot, x)[:20].view(4, 5, 8) if not torch.compiler.is_exporting() else x.new_zeros(21, 8).scatter(0, slot[:, None].expand(-1, 8), x)[:20].view(4, 5, 8)
        done = torch.bmm(F.gelu(torch.bmm(room, self.up), approximate="tanh"), self.down).reshape(20, 8)
        done = torch.cat([done, done.new_zeros(1, 8)])
        return done[slot] * (share * kept)[:, None] + x * (~kept)[:, None]


@case(whole(20, 14), torch.tensor([0, 3, 3, 9]), torch.rand(14, generator=torch.Generator().manual_seed(1)), doors=TRACED)
class SparseTable(nn.Module):
    """Bags with weights, an entry that pads, and a sparse gradient."""

    def __init__(self):
        super().__init__()
        self.weighted, self.mean = nn.EmbeddingBag(20, 6, mode="sum", sparse=True, padding_idx=2), nn.EmbeddingBag(20, 6, mode="mean", include_last_offset=False, padding_idx=0)
        self.best = nn.EmbeddingBag(20, 6, mode="max")

    def forward(self, words, begins, weights):
        return self.weighted(words, begins, per_sample_weights=weights), self.mean(words, begins), self.best(words, begins)


@case(real(3, 2, 4), doors=EXPORTED)
class Ensemble(nn.Module):
    """One call for three networks: stacked weights under vmap."""

    def __init__(self):
        super().__init__()
        nets = [nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(3)]
        parameters, _ = torch.func.stack_module_state(nets)
        self.names = list(parameters)
        self.stacked = nn.ParameterList([nn.Parameter(parameters[n].detach()) for n in self.names])
        self.skeleton = [nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to("meta")]

    def forward(self, x):
        def one(parameters, x):
            return torch.func.functional_call(self.skeleton[0], parameters, (x,))
        return torch.func.vmap(one, in_dims=(0, None))(dict(zip(self.names, self.stacked)), x).std(0)


@case(real(4, 3), doors=EXPORTED, free=((0, 0),), other=(real(2, 3),))
class FixedPoint(nn.Module):
    """A deep equilibrium: a loop until nothing changes, or thirty steps."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 3) * 0.2)

    def forward(self, x):
        from torch._higher_order_ops import while_loop

        def go(i, z, change):
            return (i < 30) & (change > 1e-5)

        def step(i, z, change):
            new = torch.tanh(z @ self.w + x)
            return i + 1, new, (new - z).abs().max()

        i, z, _ = while_loop(go, step, (torch.tensor(0), torch.zeros_like(x), torch.tensor(1.0)))
        return z, i


@case(real(2, 3, 8, 8), torch.tensor(True), doors=EXPORTED)
class ChosenBranch(nn.Module):
    """torch.cond with weights of its own in each branch, one inside the other."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(3, 4, 1)

    def forward(self, x, deep):
        def inner(x):
            return torch.cond(x.mean() > 0, lambda x: self.a(x).relu(), lambda x: self.a(x).neg(), (x,))
        return torch.cond(deep, inner, lambda x: self.b(x), (x,))


@case(real(2, 8, 16), doors=TRACED)
class MixedPrecision(nn.Module):
    """A region in bfloat16 with a softmax in float32."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.b(F.gelu(self.a(x)))
        return (y.float().softmax(-1) * 8).round(), y.dtype == torch.bfloat16 and x * 2


@case(whole(9, 3), real(9, 9, seed=3), doors=SCRIPTED)
class Sampler(nn.Module):
    """Texts that end at different times: a loop with a break, lists of lists of tokens, and a dictionary."""

    def forward(self, first, table):
        done: List[torch.Tensor] = []
        for row in range(first.size(0)):
            token = first[row]
            scores: List[torch.Tensor] = []
            for _ in range(6):
                line = table[token].log_softmax(0)
                best, token = line.max(0)
                scores.append(best)
                if bool(token == 0):
                    break
            done.append(torch.stack(scores).sum() / len(scores))
        return torch.stack(done)
