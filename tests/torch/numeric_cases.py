# SPDX-License-Identifier: Apache-2.0
"""More modules for tests/torch/modules.py, by field: graphs and points, losses and metrics, matrices, models of tables and time."""
import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from module_cases import ALL, case, real, whole

TRACED = ("trace", "export")


# ---- graphs and points

@case(real(6, 4), torch.tensor([[0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 3]]), free=((1, 1),), other=(real(6, 4), torch.tensor([[0, 1, 2], [5, 4, 3]])))
class GraphConv(nn.Module):
    """A graph convolution over a list of edges, with degrees."""

    def __init__(self):
        super().__init__()
        self.own, self.near = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        degree = torch.zeros(x.size(0)).scatter_add_(0, target, torch.ones(target.size(0)))
        norm = degree.clamp(min=1).pow(-0.5)
        message = self.near(x)[source] * (norm[source] * norm[target]).unsqueeze(-1)
        return F.relu(self.own(x) + torch.zeros_like(x).index_add_(0, target, message))


@case(real(5, 6), (real(5, 5, seed=8) > 0))
class GraphAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.a = nn.Linear(6, 8, bias=False), nn.Parameter(torch.randn(2, 8))

    def forward(self, x, near):
        h = self.w(x)
        e = F.leaky_relu((h @ self.a[0]).unsqueeze(1) + (h @ self.a[1]).unsqueeze(0), 0.2)
        near = near | torch.eye(5, dtype=torch.bool)
        return F.elu(F.softmax(e.masked_fill(~near, float("-inf")), dim=1) @ h)


@case(real(2, 10, 3))
class EdgeConv(nn.Module):
    """DGCNN: the nearest points and a network of their differences."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(6, 8, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2))

    def forward(self, x):
        b, n, c = x.shape
        inner = -2 * torch.matmul(x, x.transpose(2, 1))
        square = (x ** 2).sum(-1, keepdim=True)
        near = (-square - inner - square.transpose(2, 1)).topk(k=4, dim=-1)[1]
        base = torch.arange(0, b).view(-1, 1, 1) * n
        gathered = x.reshape(b * n, c)[(near + base).view(-1)].view(b, n, 4, c)
        centre = x.unsqueeze(2).expand(-1, -1, 4, -1)
        y = self.net(torch.cat((gathered - centre, centre), 3).permute(0, 3, 1, 2))
        return y.max(dim=-1)[0]


@case(real(2, 12, 3), doors=ALL)
class FarthestPoints(nn.Module):
    """PointNet++: sampling by distance, a loop of three steps."""

    def forward(self, x):
        b, n = x.shape[0], x.shape[1]
        chosen = torch.zeros(b, 4, dtype=torch.long)
        distance = torch.full((b, n), 1e10)
        last = torch.zeros(b, dtype=torch.long)
        rows = torch.arange(b)
        for i in range(4):
            chosen[:, i] = last
            d = ((x - x[rows, last].unsqueeze(1)) ** 2).sum(-1)
            distance = torch.min(distance, d)
            last = torch.max(distance, -1)[1]
        return chosen, x[rows.unsqueeze(1), chosen]


@case(real(5, 3), torch.tensor([0, 0, 1, 1, 2]))
class SegmentPool(nn.Module):
    def forward(self, x, segments):
        index = segments.unsqueeze(1).expand(-1, x.size(1))
        zeros = torch.zeros(3, 3)
        return (zeros.scatter_reduce(0, index, x, reduce="sum"), zeros.scatter_reduce(0, index, x, reduce="amax", include_self=False), torch.bincount(segments, minlength=3),
                (x.exp() / zeros.index_add(0, segments, x.exp())[segments]))


@case(real(4, 5), (real(4, 4, seed=6) > 0).float())
class Laplacian(nn.Module):
    def forward(self, x, a):
        a = ((a + a.T) > 0).float()
        d = a.sum(1)
        inv = torch.where(d > 0, d.rsqrt(), torch.zeros_like(d))
        l = torch.eye(4) - torch.diag(inv) @ a @ torch.diag(inv)
        t = [x, l @ x]
        for _ in range(2):
            t.append(2 * l @ t[-1] - t[-2])
        return torch.cat(t, 1)


# ---- losses and metrics

@case(real(4, 5), whole(5, 4), real(4, 5, seed=9), doors=("trace",))
class MoreLosses(nn.Module):
    def forward(self, x, t, y):
        p = F.softmax(x, -1)
        return (F.multi_margin_loss(x, t), F.soft_margin_loss(x, y.sign()), F.poisson_nll_loss(x, y.abs()), F.gaussian_nll_loss(x, y, y.abs() + 0.1), F.cosine_embedding_loss(x, y, torch.ones(4)),
                F.margin_ranking_loss(x, y, y.sign(), margin=0.1), F.hinge_embedding_loss(x, y.sign()), F.multilabel_soft_margin_loss(x, (y > 0).float()), F.cross_entropy(x, t, weight=torch.linspace(0.1, 1, 5), ignore_index=2),
                F.cross_entropy(x, p), F.l1_loss(x, y, reduction="none"), F.nll_loss(p.log(), t, reduction="sum"))


@case(real(3, 4, 6), (real(3, 4, 6, seed=5) > 0).float())
class DiceFocal(nn.Module):
    def forward(self, logits, target):
        p = logits.sigmoid()
        dice = 1 - (2 * (p * target).sum((1, 2)) + 1) / (p.sum((1, 2)) + target.sum((1, 2)) + 1)
        ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none", pos_weight=torch.tensor(2.0))
        pt = p * target + (1 - p) * (1 - target)
        return dice, (ce * (1 - pt) ** 2 * (0.25 * target + 0.75 * (1 - target))).mean()


@case(real(6, 8), real(6, 8, seed=5), doors=("trace", "export"))
class Contrastive(nn.Module):
    """CLIP's and NT-Xent's losses."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        a, b = F.normalize(a, dim=-1), b / b.norm(dim=-1, keepdim=True)
        logits = self.scale.exp() * a @ b.t()
        labels = torch.arange(logits.size(0))
        clip = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        z = torch.cat([a, b])
        sim = (z @ z.T / 0.5).fill_diagonal_(-1e9)
        positive = torch.cat([torch.arange(6, 12), torch.arange(6)])
        return clip, F.cross_entropy(sim, positive), (logits.argmax(1) == labels).float().mean()


@case(real(2, 1, 16, 16).sigmoid(), real(2, 1, 16, 16, seed=3).sigmoid())
class StructuralSimilarity(nn.Module):
    def __init__(self):
        super().__init__()
        g = torch.exp(-(torch.arange(11) - 5.0) ** 2 / (2 * 1.5 ** 2))
        self.register_buffer("window", torch.outer(g / g.sum(), g / g.sum())[None, None])

    def forward(self, x, y):
        mx, my = F.conv2d(x, self.window, padding=5), F.conv2d(y, self.window, padding=5)
        vx, vy, vxy = F.conv2d(x * x, self.window, padding=5) - mx ** 2, F.conv2d(y * y, self.window, padding=5) - my ** 2, F.conv2d(x * y, self.window, padding=5) - mx * my
        s = ((2 * mx * my + 1e-4) * (2 * vxy + 9e-4)) / ((mx ** 2 + my ** 2 + 1e-4) * (vx + vy + 9e-4))
        return s.mean(), -10 * torch.log10(F.mse_loss(x, y))


@case(real(20), (real(20, seed=4) > 0).long())
class Ranking(nn.Module):
    """Area under the curve and a confusion matrix."""

    def forward(self, scores, labels):
        order = torch.argsort(scores, descending=True)
        hits = labels[order].float()
        tpr, fpr = hits.cumsum(0) / hits.sum(), (1 - hits).cumsum(0) / (1 - hits).sum()
        auc = torch.trapezoid(tpr, fpr)
        said = (scores > 0).long()
        matrix = torch.bincount(labels * 2 + said, minlength=4).reshape(2, 2)
        precision = hits.cumsum(0) / torch.arange(1, 21)
        return auc, matrix, (precision * hits).sum() / hits.sum()


@case(real(3, 8), real(3, 8, seed=5))
class Divergences(nn.Module):
    def forward(self, a, b):
        mu, log_var = a.chunk(2, 1)
        kl = -0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp(), dim=1)
        p, q = a.softmax(1), b.softmax(1)
        m = (p + q) / 2
        js = 0.5 * (F.kl_div(m.log(), p, reduction="none").sum(1) + F.kl_div(m.log(), q, reduction="none").sum(1))
        entropy = -torch.special.xlogy(p, p).sum(1)
        return kl, js, entropy, torch.special.entr(p).sum(1), torch.logcumsumexp(a, dim=1)


# ---- matrices and special functions

@case(real(3, 4, 4), real(3, 4, 2, seed=5))
class LinearAlgebra(nn.Module):
    def forward(self, a, b):
        s = a @ a.mT + 2 * torch.eye(4)
        low = torch.linalg.cholesky(s)
        return (low, torch.linalg.inv(s), torch.linalg.det(a), torch.linalg.solve(s, b), torch.cholesky_solve(b, low), torch.linalg.solve_triangular(low, b, upper=False), torch.logdet(s), torch.linalg.slogdet(a)[0],
                torch.inverse(s), torch.linalg.cond(s, "fro"))


@case(real(8, 3), real(2, 3, seed=4))
class GaussianProcess(nn.Module):
    """The posterior of a Gaussian process and a multivariate normal's log density."""

    def __init__(self):
        super().__init__()
        self.register_buffer("y", torch.randn(8))

    def forward(self, x, at):
        k = torch.exp(-0.5 * torch.cdist(x, x) ** 2) + 0.1 * torch.eye(8)
        ks = torch.exp(-0.5 * (at[:, None] - x[None]).pow(2).sum(-1))
        low = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(self.y[:, None], low)
        v = torch.linalg.solve_triangular(low, ks.t(), upper=False)
        return (ks @ alpha).squeeze(-1), 1 - (v ** 2).sum(0), -0.5 * (self.y @ alpha).sum() - low.diagonal().log().sum() - 4 * math.log(2 * math.pi)


@case(real(4, 5).abs() + 0.1)
class SpecialFunctions(nn.Module):
    def forward(self, x):
        return (torch.lgamma(x), torch.digamma(x), torch.special.i0(x), torch.special.i0e(x), torch.special.i1(x), torch.erfc(x), torch.special.ndtr(x), torch.special.log_ndtr(x), torch.logit(x / 10), torch.special.erfcx(x),
                torch.expm1(x), torch.logaddexp2(x, x * 2), torch.nan_to_num(x.log() / 0), torch.float_power(x, 2.5).float(), torch.mvlgamma(x + 2, 2), torch.special.gammaln(x))


# torch.export does not take torch.cov: it compares values.
@case(real(6, 4), doors=("script", "trace"))
class Statistics(nn.Module):
    def forward(self, x):
        centred = x - x.mean(0, keepdim=True)
        return (torch.cov(x.T), torch.corrcoef(x.T), x.quantile(0.5, dim=0), torch.std_mean(x, dim=1), x.median(), x.mode(0).values, torch.histc(x, bins=5, min=-2, max=2), (centred.T @ centred) / 5, x.cummax(0).values, x.cummin(1).indices,
                x.nanmean(0), x.nansum(1), torch.var_mean(x, 0, correction=0)[0], x.renorm(2, 0, 1.0))


@case(real(2, 3, 4), real(2, 3, 4, seed=5))
class Quaternions(nn.Module):
    """Products of quaternions and the rotation matrices that they are."""

    def forward(self, a, b):
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        aw, ax, ay, az = torch.unbind(a, -1)
        bw, bx, by, bz = torch.unbind(b, -1)
        q = torch.stack((aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by, aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw), -1)
        w, x, y, z = q.unbind(-1)
        m = torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1).reshape(2, 3, 3, 3)
        return q, m, torch.atan2(m[..., 2, 1], m[..., 2, 2]), torch.asin((-m[..., 2, 0]).clamp(-1, 1))


# ---- tables, time, recommenders, control

@case(whole(10, 4, 3), real(4, 2), doors=TRACED, free=((0, 0), (1, 0)), other=(whole(10, 7, 3), real(7, 2)))
class DeepFactors(nn.Module):
    """DeepFM: factors of categories beside a network."""

    def __init__(self):
        super().__init__()
        self.tables, self.first = nn.ModuleList([nn.Embedding(10, 4) for _ in range(3)]), nn.ModuleList([nn.Embedding(10, 1) for _ in range(3)])
        self.net = nn.Sequential(nn.Linear(14, 8), nn.BatchNorm1d(8), nn.PReLU(), nn.Linear(8, 1))

    def forward(self, ids, x):
        e = torch.stack([t(ids[:, i]) for i, t in enumerate(self.tables)], 1)
        linear = sum([t(ids[:, i]) for i, t in enumerate(self.first)])
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(linear + fm + self.net(torch.cat([e.flatten(1), x], 1)))




@case(real(2, 12, 3), free=((0, 0),), other=(real(4, 12, 3),))
class TimeMixer(nn.Module):
    """Reversible normalisation, a moving average and two linear forecasts."""

    def __init__(self):
        super().__init__()
        self.trend, self.season = nn.Linear(12, 5), nn.Linear(12, 5)

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True).detach(), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5).detach()
        y = (x - mean) / std
        padded = torch.cat([y[:, :1].repeat(1, 2, 1), y, y[:, -1:].repeat(1, 2, 1)], 1)
        trend = F.avg_pool1d(padded.transpose(1, 2), 5, stride=1)
        out = self.trend(trend) + self.season(y.transpose(1, 2) - trend)
        return out.transpose(1, 2) * std + mean


@case(real(2, 7, 5), doors=ALL)
class ProjectedLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 8, num_layers=2, proj_size=3, batch_first=True, bidirectional=True)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return y, h, c


@case(real(2, 7, 5), free=((0, 1),), other=(real(2, 4, 5),))
class FreeLengthLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(5, 6, batch_first=True), nn.GRU(6, 4, batch_first=True)

    def forward(self, x):
        y, _ = self.lstm(x)
        z, h = self.gru(y)
        return z[:, -1], h[0]


@case(real(3, 6), real(3, 2, seed=4))
class ActorCritic(nn.Module):
    """A squashed Gaussian policy's log probability, and two critics."""

    def __init__(self):
        super().__init__()
        self.body, self.mu, self.log_std = nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 2), nn.Linear(8, 2)
        self.critics = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)) for _ in range(2)])

    def forward(self, state, noise):
        h = self.body(state)
        mu, log_std = self.mu(h), torch.clamp(self.log_std(h), -20, 2)
        z = mu + noise * log_std.exp()
        action = torch.tanh(z)
        log_p = (-0.5 * ((z - mu) / log_std.exp()) ** 2 - log_std - 0.5 * math.log(2 * math.pi) - torch.log(1 - action.pow(2) + 1e-6)).sum(-1)
        q = torch.min(self.critics[0](torch.cat([state, action], -1)), self.critics[1](torch.cat([state, action], -1)))
        return action, log_p, q


@case(real(8), real(8, seed=4), real(8, seed=5))
class Advantages(nn.Module):
    def forward(self, rewards, values, done):
        mask = (done > 0).float()
        out = torch.zeros_like(rewards)
        last = torch.zeros(())
        for t in range(rewards.shape[0] - 2, -1, -1):
            delta = rewards[t] + 0.99 * values[t + 1] * mask[t] - values[t]
            last = delta + 0.95 * 0.99 * mask[t] * last
            out[t] = last
        return out, (out - out.mean()) / (out.std() + 1e-8)


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


@case(real(2, 3), real(2, 3, seed=4))
class NamedResults(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Pair:
        return Pair(first=x.addcmul(y, x, value=0.5), second=torch.where(x.isnan() | y.isinf(), 0.0, x / y.abs().clamp_min(1e-3)))


@case(real(2, 6), doors=ALL)
class NeuralOde(nn.Module):
    """Runge-Kutta's method with four steps."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(7, 8), nn.Softplus(), nn.Linear(8, 6))

    def slope(self, t: float, x: Tensor) -> Tensor:
        return self.net(torch.cat([x, torch.full((x.shape[0], 1), t)], 1))

    def forward(self, x):
        h = 0.25
        for i in range(4):
            t = i * h
            a = self.slope(t, x)
            b = self.slope(t + h / 2, x + h / 2 * a)
            c = self.slope(t + h / 2, x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + self.slope(t + h, x + h * c))
        return x


@case(real(2, 5, 3), doors=ALL)
class StateSpace(nn.Module):
    """A selective scan, step by step, as Mamba has it."""

    def __init__(self):
        super().__init__()
        self.a, self.bc, self.dt, self.d = nn.Parameter(-torch.rand(3, 4) - 0.1), nn.Linear(3, 8), nn.Linear(3, 3), nn.Parameter(torch.ones(3))

    def forward(self, x):
        b, c = self.bc(x).split(4, dim=-1)
        dt = F.softplus(self.dt(x))
        da = torch.exp(dt.unsqueeze(-1) * self.a)
        dbx = dt.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1)
        h = torch.zeros(x.shape[0], 3, 4)
        ys: List[Tensor] = []
        for t in range(x.shape[1]):
            h = da[:, t] * h + dbx[:, t]
            ys.append((h * c[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(ys, dim=1) + x * self.d


@case(real(2, 4, 6, 6), doors=TRACED)
class SpectralConv(nn.Module):
    """A Fourier neural operator's layer."""

    def __init__(self):
        super().__init__()
        self.real, self.imag = nn.Parameter(torch.randn(4, 4, 3, 3)), nn.Parameter(torch.randn(4, 4, 3, 3))

    def forward(self, x):
        f = torch.fft.rfft2(x)[:, :, :3, :3]
        re = torch.einsum("bixy,ioxy->boxy", f.real, self.real) - torch.einsum("bixy,ioxy->boxy", f.imag, self.imag)
        im = torch.einsum("bixy,ioxy->boxy", f.real, self.imag) + torch.einsum("bixy,ioxy->boxy", f.imag, self.real)
        return torch.fft.irfft2(torch.complex(re, im), s=(6, 6))


@case(whole(256, 5), whole(8, 5, seed=4).to(torch.int32), doors=("trace", "export"))
class Bits(nn.Module):
    def forward(self, x, shift):
        bits = (x.unsqueeze(-1) >> torch.arange(8)) & 1
        packed = (bits << torch.arange(8)).sum(-1)
        return bits.bool(), packed, x ^ 255, torch.bitwise_and(x, 15), ~shift, shift.to(torch.int8) * 2, (x % 7 == 3).any(), torch.all(x >= 0)


@case(real(3, 4), doors=("script",))
class Scripted(nn.Module):
    """What a script may hold: dictionaries, options, texts, while, break and assert."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
        self.scale: Optional[float] = 2.0

    def forward(self, x: Tensor, mode: str = "sum") -> Dict[str, Tensor]:
        out: Dict[str, Tensor] = {}
        for name, layer in self.layers.items():
            out[name] = layer(x)
        scale = self.scale
        if scale is not None:
            out["a"] = out["a"] * scale
        assert x.dim() == 2, "a batch of rows"
        i = 0
        total = torch.zeros(4)
        while True:
            if i >= x.size(0):
                break
            total = total + x[i] if mode == "sum" else torch.maximum(total, x[i])
            i += 1
        out["total"] = total
        return out


@case(real(4, 6), doors=("script",))
class EarlyExit(nn.Module):
    """Layers are run until the result is sure."""

    def __init__(self):
        super().__init__()
        self.layers, self.heads = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)]), nn.ModuleList([nn.Linear(6, 3) for _ in range(3)])

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        y = torch.zeros(x.shape[0], 3)
        used = torch.zeros(1)
        done = False
        for layer, head in zip(self.layers, self.heads):
            if not done:
                x = torch.relu(layer(x))
                y = head(x).softmax(-1)
                used = used + 1
                done = bool(y.max(1).values.min() > 0.36)
        return y, used


# ---- what only a run sizes

@case(real(6, 5), doors=("script", "trace"))
class OnePiece(nn.Module):
    """A list of one part of what a run sizes, as a detector's heads have it for one picture."""

    def forward(self, x):
        kept = x[x[:, 0] > 0]
        parts = kept.softmax(-1).split([kept.shape[0]], 0)
        scores = parts[0]
        labels = torch.arange(scores.shape[1]).view(1, -1).expand_as(scores)
        changed = F.conv1d(F.relu(kept - 0.5, inplace=True).unsqueeze(1), torch.ones(2, 1, 3))
        n, channels, length = changed.shape
        return scores, labels, torch.arange(n * channels + length), torch.where(changed > 0.3)[0]


@case(real(5, 3), real(5, 2, seed=4), doors=("script", "trace"))
class LeastSquares(nn.Module):
    def forward(self, a, b):
        return torch.linalg.lstsq(a, b)[0], torch.linalg.lstsq(a, b[:, :1])[1]
