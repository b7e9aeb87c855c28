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
