# SPDX-License-Identifier: Apache-2.0
"""More modules for tests/torch/modules.py: what people tried first and what did not work then."""
import math
from typing import List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from module_cases import case, real, whole

TRACED = ("trace", "export")
EXPORTED = ("export",)


@case(real(1, 2, 16, 8), real(1, 1, 16, 8, seed=4), real(1, 1, 16, 8, seed=5), doors=EXPORTED, free=((0, 2), (1, 2), (2, 2)),
      other=(real(1, 2, 9, 8), real(1, 1, 9, 8, seed=4), real(1, 1, 9, 8, seed=5)))
class FlexAttention(nn.Module):
    """Scores and masks as functions of one score and its places; two heads share the keys of one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("slopes", torch.tensor([0.5, 0.25]))

    def forward(self, q, k, v):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        def by_distance(score, b, h, i, j):
            return score + (j - i) * self.slopes[h]

        n = q.shape[2]
        mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 5), None, None, n, n, device="cpu")
        return flex_attention(q, k, v, score_mod=by_distance, enable_gqa=True), flex_attention(q, k, v, block_mask=mask, enable_gqa=True)


@case(real(6, 3, 4), real(3, 4, seed=5), doors=EXPORTED, free=((0, 0),), other=(real(9, 3, 4), real(3, 4, seed=5)))
class Scan(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x, h):
        from torch._higher_order_ops.scan import scan

        def step(h, x):
            h = torch.tanh(self.step(h) + x)
            return h, h.sum(-1) * 2

        return scan(step, h, x, dim=0)


@case(real(6, 3, 4), real(6, 3, 4, seed=5), doors=EXPORTED)
class AssociativeScan(nn.Module):
    def forward(self, a, b):
        from torch._higher_order_ops.associative_scan import associative_scan
        return associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a.sigmoid(), b), 0, combine_mode="generic")


@case(real(5, 3), doors=EXPORTED, free=((0, 0),), other=(real(2, 3),))
class Mapped(nn.Module):
    def forward(self, x):
        from torch._higher_order_ops.map import map as mapped
        return mapped(lambda row, y: (row * y, row.sum()), x, x.sum(0))


class Squashed(torch.autograd.Function):
    """A function with a gradient of its own, as BLOOM's GELU is one: a trace holds it as one operator of Python."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(factor * x + torch.tensor([0.1, 0.2, 0.3]))

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@case(real(4, 3), doors=TRACED)
class OwnFunction(nn.Module):
    def forward(self, x):
        return Squashed.apply(x, 1.7) + Squashed.apply(x.exp(), 2.0) * x[:1]


@case(real(4, 6), real(2, 6, seed=5), doors=TRACED)
class WrittenViews(nn.Module):
    """Writes through diagonals, windows and strides of one memory."""

    def forward(self, x, y):
        z = x.clone()
        v = z[1:3]
        v[:, ::2] += y[:, ::2]
        w = z.view(2, 2, 6).transpose(0, 1)
        w[0].mul_(2)
        z.diagonal().fill_(0)
        z.unfold(1, 2, 2)[..., 0].neg_()
        z.movedim(0, 1)[2].sub_(1)
        z.as_strided((3, 2), (2, 1), 1).mul_(3)
        return z, v, w, z.as_strided((2, 3), (1, 4), 2), z.unfold(0, 3, 1)


@case(real(6, 5), doors=("script",))
class Viterbi(nn.Module):
    """The best path, found backwards through a list."""

    def __init__(self):
        super().__init__()
        self.moves = nn.Parameter(real(5, 5, seed=3))

    def forward(self, e: Tensor) -> Tuple[Tensor, Tensor]:
        score = e[0]
        history: List[Tensor] = []
        for i in range(1, e.size(0)):
            best, at = (score.unsqueeze(1) + self.moves).max(0)
            score = best + e[i]
            history.append(at)
        top, last = score.max(0)
        path = [last]
        for back in history[::-1]:
            last = back[last]
            path.append(last)
        return torch.stack(path[::-1]), torch.stack(path[4:0:-2])


@case(real(2, 3, 64))
class DiagonalStates(nn.Module):
    """S4D: complex states, whose kernel is a sum of powers, and a convolution by Fourier transforms."""

    def __init__(self):
        super().__init__()
        self.step, self.weights = nn.Parameter(real(3, seed=2) * 0.1 - 2), nn.Parameter(real(3, 4, 2, seed=3))
        self.decay, self.turn = nn.Parameter(torch.full((3, 4), -0.5)), nn.Parameter(math.pi * torch.arange(4.0).expand(3, 4).clone())

    def forward(self, u):
        n = u.size(-1)
        a = torch.complex(-self.decay.exp(), self.turn)
        turned = a * self.step.exp().unsqueeze(-1)
        c = torch.view_as_complex(self.weights) * (torch.exp(turned) - 1.0) / a
        kernel = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(turned.unsqueeze(-1) * torch.arange(n))).real
        return torch.fft.irfft(torch.fft.rfft(u, n=2 * n) * torch.fft.rfft(kernel, n=2 * n), n=2 * n)[..., :n]


@case(real(3, 4), doors=TRACED)
class ComplexNumbers(nn.Module):
    """A number with an imaginary part takes the dtype of the tensor beside it."""

    def forward(self, x):
        z = x + 1j * x.flip(0)
        return torch.view_as_real(z * (0.5 - 2j)), (z * z.conj()).real, torch.view_as_real(torch.einsum("ij,kj->ik", z, z))


@case(real(2, 4, 8).to(torch.bfloat16), doors=EXPORTED)
class WiderNorm(nn.Module):
    """Weights of a normalisation that are wider than what it normalises."""

    def __init__(self):
        super().__init__()
        self.norm, self.block = nn.LayerNorm(8), nn.LayerNorm((4, 8))

    def forward(self, x):
        return self.norm(x).float().round(decimals=1), self.block(x).float().round(decimals=1)


@case(whole(9, 2, 6), doors=TRACED)
class LowestScores(nn.Module):
    """The lowest float32 in place of minus infinity, in what a run decides."""

    def forward(self, ids):
        scores = ids.float() * 0.1
        kept = scores[ids > 2]
        low = torch.full_like(kept, torch.finfo(torch.float32).min)
        return torch.where(kept > 0.5, kept, low).max(), F.softmax(torch.where(kept > 0.4, kept, low), 0)


try:
    import torchvision
except ImportError:
    pass
else:
    @case(real(1, 18, 16, 20), torch.tensor([[0.0, 3, 2, 21, 19], [0, 30, 1, 39, 31], [0, 8.4, 7.7, 9.1, 9.0], [0, -3, -2, 50, 40]]), doors=TRACED)
    class PositionedRegions(nn.Module):
        def forward(self, x, regions):
            ops = torchvision.ops
            return ops.ps_roi_align(x, regions, 3, 0.5, 2), ops.ps_roi_align(x, regions, (3, 2), 0.5), ops.ps_roi_pool(x, regions, 3, 0.5)


# ---- speech, graphs of experts, filters in the frequency domain: programs of other newcomers


@case(real(9, 3, 6), whole(5, 3, 4, low=1), torch.tensor([9, 7, 9]), torch.tensor([4, 2, 0]), doors=("trace",))
class CtcLoss(nn.Module):
    """Which torch.export itself refuses."""

    def forward(self, x, labels, steps, counts):
        y = x.log_softmax(-1)
        return (F.ctc_loss(y, labels, steps, counts), F.ctc_loss(y, labels, steps, counts, reduction="none"), F.ctc_loss(y, labels, steps, counts, reduction="sum", blank=5),
                F.ctc_loss(y[:4, :1], labels[:1] * 0 + 2, torch.tensor([4]), torch.tensor([4]), zero_infinity=True), F.ctc_loss(y[:, :2], labels.flatten()[:5], (9, 8), (3, 2)),
                F.ctc_loss(y[:, 0], labels[0], steps[0], counts[0]))


@case(whole(20, 3, 7, low=1), torch.tensor([5, 7, 2]), doors=("script", "trace"))
class PackedGru(nn.Module):
    """torch.export cannot follow lengths that only a run has."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.gru = nn.GRU(8, 6, 2, batch_first=True, bidirectional=True)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        y, h = self.gru(packed)
        y, n = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return y, h, n


@case(real(2, 3, 12, 12), doors=TRACED)
class SpectralConvolution(nn.Module):
    """A Fourier neural operator's layer: weights of complex numbers, written into a corner of a spectrum."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3, 4, 4, dtype=torch.cfloat) * 0.2)
        self.local = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        spectrum = torch.fft.rfft2(x, norm="ortho")
        out = torch.zeros_like(spectrum)
        out[..., :4, :4] = torch.einsum("bixy,ioxy->boxy", spectrum[..., :4, :4], self.weight)
        return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:], norm="ortho") + self.local(x))


@case(real(2, 3), doors=TRACED)
class Circuit(nn.Module):
    """A simulated quantum circuit: states of complex numbers, written element by element."""

    def forward(self, x):
        state = torch.zeros(x.size(0), 4, dtype=torch.complex64)
        state[:, 0] = 1
        for i in range(3):
            c, s = torch.cos(x[:, i] / 2).to(torch.complex64), -1j * torch.sin(x[:, i] / 2)
            gate = torch.stack([torch.stack([c, s], -1), torch.stack([s, c], -1)], -2)
            both = torch.einsum("bij,kl->bikjl", gate, torch.eye(2, dtype=torch.complex64)).reshape(-1, 4, 4)
            state = torch.einsum("bij,bj->bi", both, state)[:, [0, 1, 3, 2]]
        return state.abs() ** 2


@case(whole(30, 2, 7), doors=TRACED, free=((0, 0), (0, 1)), other=(whole(30, 3, 11),))
class RotaryDecoder(nn.Module):
    """Rotary places by complex numbers of a free length."""

    def __init__(self):
        super().__init__()
        self.embed, self.qkv = nn.Embedding(30, 16), nn.Linear(16, 48)

    def turned(self, x):
        frequencies = 1 / (100 ** (torch.arange(0, x.size(-1), 2).float() / x.size(-1)))
        angles = torch.outer(torch.arange(x.size(-2)).float(), frequencies)
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    def forward(self, ids):
        b, t = ids.shape
        q, k, v = self.qkv(self.embed(ids)).view(b, t, 3, 2, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True)
        return y.transpose(1, 2).reshape(b, t, 16) @ self.embed.weight[:, :16].T


@case(real(2, 5, 4), torch.tensor([[True, True, False, True, True], [False] * 5]), doors=TRACED)
class Gathered(nn.Module):
    """Rows by places that broadcast, padded sequences, sparse matrices, products of bytes."""

    def __init__(self):
        super().__init__()
        self.values = nn.Parameter(torch.randn(4))
        self.register_buffer("bytes", torch.randint(-9, 9, (4, 8), dtype=torch.int8))

    def forward(self, x, mask):
        best = x[..., :1].argsort(1)[:, :2]
        sparse = torch.sparse_coo_tensor(torch.tensor([[0, 1, 2, 2], [1, 0, 2, 2]]), self.values, (3, 5))
        whole_numbers = (x[0].repeat(4, 1) * 10).to(torch.int8)
        return (torch.take_along_dim(x, best, 1), nn.utils.rnn.pad_sequence([x[0, :2], x[1], x[0, :4]], batch_first=True, padding_value=-1), torch.sparse.mm(sparse, x[0]), torch._int_mm(whole_numbers, self.bytes),
                x.as_strided_scatter(mask.float()[:, :2], (2, 2), (20, 4), 1))


@case(whole(30, 4, 6), doors=("trace", "export"), free=((0, 0), (0, 1)), other=(whole(30, 7, 3),))
class FactorizationMachine(nn.Module):
    def __init__(self):
        super().__init__()
        self.pairs, self.alone = nn.Embedding(30, 4, padding_idx=0), nn.EmbeddingBag(30, 1, mode="sum")

    def forward(self, ids):
        e = self.pairs(ids)
        return self.alone(ids).squeeze(1) + (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1) / 2


@case(real(9, 3, 4), real(9, 3, 4, seed=5), doors=EXPORTED, free=((0, 0), (1, 0)), other=(real(14, 3, 4), real(14, 3, 4, seed=5)))
class PointwiseScan(nn.Module):
    """A graph of elements, which PyTorch exports for free lengths, too; eager PyTorch runs it elsewhere."""

    def forward(self, a, b):
        from torch._higher_order_ops.associative_scan import associative_scan
        if not torch.compiler.is_exporting():
            sums, state = [], torch.zeros(3, 4)
            for x, y in zip(a.sigmoid(), b):
                state = x * state + y
                sums.append(state)
            return torch.stack(sums)
        return associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a.sigmoid(), b), 0, combine_mode="pointwise")[1]


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.factor * g, None


@case(real(3, 8), doors=TRACED)
class ReversedGradient(nn.Module):
    """A function of autograd whose graph has names of the one around it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.second(Straight.apply(F.hardtanh(F.linear(x, self.first.weight)), 0.5))


@case(real(2, 3, 20))
class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.turn, self.classes = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU()), nn.Linear(16, 9), nn.Linear(16, 5)

    def forward(self, x):
        m = self.turn(self.features(x).max(2)[0]).view(-1, 3, 3) + torch.eye(3).repeat(x.size(0), 1, 1)
        x = torch.bmm(x.transpose(2, 1), m).transpose(2, 1)
        straight = torch.bmm(m, m.transpose(2, 1)) - torch.eye(3)
        return F.log_softmax(self.classes(torch.max(self.features(x), 2, keepdim=True)[0].view(-1, 16)), -1), torch.mean(torch.norm(straight, dim=(1, 2)))


@case(real(4, 6), real(4, 6, seed=7), free=((0, 0), (1, 0)), other=(real(7, 6), real(7, 6, seed=7)))
class WrittenParts(nn.Module):
    """Complex tensors written through views of their parts, and read through others."""

    def forward(self, x, y):
        z = torch.complex(x, y).clone()
        mirrored, row = z.conj(), z[1:, 2:]
        z.real.copy_(y * 2)
        row.imag[...] = x[1:, 2:] + 1
        z[:, 0].imag.zero_()
        spectrum = torch.fft.fft(x)
        both = torch.view_as_real(spectrum)
        both[..., 0] = y
        spectrum.imag.mul_(0.5)
        pairs = torch.stack([x, y], -1).clone()
        torch.view_as_complex(pairs)[:, 1] *= 2
        return torch.view_as_real(z), torch.view_as_real(mirrored.resolve_conj()), both, spectrum.abs(), pairs
