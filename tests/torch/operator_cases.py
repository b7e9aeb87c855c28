# SPDX-License-Identifier: Apache-2.0
"""Small modules for tests/torch/operators.py: what each computes, and its inputs."""
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn

import composite_cases


@dataclasses.dataclass
class Case:
    name: str
    function: object
    inputs: list


def real(*shape, dtype=torch.float32):
    return torch.randn(*shape).to(dtype)


def whole(*shape, low=-5, high=6, dtype=torch.int64):
    return torch.randint(low, high, shape).to(dtype)


def truth(*shape):
    return torch.rand(*shape) > 0.5


def elementwise():
    x, y = real(3, 4), real(4)
    positive = torch.rand(3, 4) + 0.1
    for name in ("exp expm1 sin cos tan sinh cosh tanh asinh atan erf erfc sigmoid abs neg sign ceil floor trunc round frac "
                 "square exp2 relu isnan isinf isfinite logical_not sgn nan_to_num").split():
        yield Case(name, getattr(torch, name), [x * 3])
    for name in "log log2 log10 log1p sqrt rsqrt reciprocal".split():
        yield Case(name, getattr(torch, name), [positive])
    for name in "asin acos atanh".split():
        yield Case(name, getattr(torch, name), [torch.rand(3, 4) * 1.8 - 0.9])
    yield Case("acosh", torch.acosh, [positive + 1])
    yield Case("logit", lambda a: torch.logit(a, eps=0.01), [torch.rand(3, 4)])
    for name in "exp sqrt sin sigmoid".split():
        yield Case(f"{name}.int", getattr(torch, name), [whole(3, 4, low=0)])
    for name in ("add sub mul div remainder fmod maximum minimum fmax fmin atan2 hypot logaddexp eq ne lt le gt ge "
                 "logical_and logical_or logical_xor true_divide floor_divide").split():
        yield Case(name, getattr(torch, name), [x, y])
    for name in "add sub mul div remainder fmod maximum minimum floor_divide eq lt ge".split():
        yield Case(f"{name}.int", getattr(torch, name), [whole(3, 4), whole(3, 4, low=1)])
        yield Case(f"{name}.mixed", getattr(torch, name), [whole(3, 4, dtype=torch.int32), real(3, 4) + 3])
    for name in "bitwise_and bitwise_or bitwise_xor".split():
        yield Case(name, getattr(torch, name), [whole(3, 4), whole(3, 4)])
        yield Case(f"{name}.bool", getattr(torch, name), [truth(3, 4), truth(3, 4)])
    yield Case("bitwise_not", torch.bitwise_not, [whole(3, 4)])
    yield Case("shifts", lambda a, b: (a << b, a >> b), [whole(3, 4, low=0), whole(3, 4, low=0, high=4)])
    yield Case("add.alpha", lambda a, b: torch.add(a, b, alpha=2.5), [x, y])
    yield Case("sub.alpha", lambda a, b: torch.sub(a, b, alpha=2), [whole(3), whole(3)])
    yield Case("rsub", lambda a: 2 - a, [x])
    yield Case("add.scalars", lambda a: (a + 1, a * 2.5, a / 2, a // 2, a % 3, -a), [whole(3, 4)])
    yield Case("add.bool", lambda a, b: (a + b, a * b, a + 1, a * 2.5), [truth(3), truth(3)])
    yield Case("promotion.half", lambda a, b: (a + b, a * 2.5, a + 1), [real(3, dtype=torch.float16), real(3)])
    yield Case("promotion.bfloat16", lambda a: (a * 3).float(), [real(3)])
    yield Case("promotion.zero_dim", lambda a, b: (a + b, b + 1.5), [real(3), torch.tensor(2.0, dtype=torch.float64)])
    yield Case("promotion.uint8", lambda a, b: (a + b, a * b), [whole(3, low=0, dtype=torch.uint8), whole(3, dtype=torch.int8)])
    yield Case("div.floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), [whole(3, 4), whole(3, 4, low=1)])
    yield Case("div.trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), [whole(3, 4), whole(3, 4, low=1)])
    yield Case("div.float_floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), [x, y])
    yield Case("div.float_trunc", lambda a, b: torch.div(a, b, rounding_mode="trunc"), [x, y])
    for p in (0, 0.5, 1, 2, 3, 4, -0.5, -1, -2, 2.5):
        yield Case(f"pow.{p}", lambda a, p=p: a ** p, [positive])
    yield Case("pow.tensor", torch.pow, [positive, x])
    yield Case("pow.base", lambda a: 2.0 ** a, [x])
    yield Case("pow.int", lambda a: a ** 2, [whole(3)])
    yield Case("round.decimals", lambda a: torch.round(a * 10, decimals=1), [x])
    yield Case("addcmul", lambda a, b, c: torch.addcmul(a, b, c, value=0.5), [x, x + 1, y])
    yield Case("addcdiv", lambda a, b, c: torch.addcdiv(a, b, c, value=2), [x, x + 1, positive])
    yield Case("lerp", lambda a, b: torch.lerp(a, b, 0.3), [x, x + 2])
    yield Case("where", torch.where, [truth(3, 4), x, y])
    yield Case("where.scalar", lambda c, a: (torch.where(c, a, 0.0), torch.where(c, 1, a)), [truth(3, 4), x])
    yield Case("masked_fill", lambda a, m: a.masked_fill(m, -1e9), [x, truth(3, 4)])
    yield Case("clamp", lambda a: (a.clamp(-0.5, 0.5), a.clamp(min=0.1), a.clamp_max(0.2), a.clamp(0.5, -0.5)), [x])
    yield Case("clamp.int", lambda a: (a.clamp(-2, 2), a.clamp(min=0)), [whole(3, 4)])
    yield Case("clamp.tensor", lambda a, b: torch.clamp(a, min=b), [x, y])
    yield Case("casts", lambda a: (a.to(torch.int32), a.to(torch.float16), a.bool(), a.double(), a.long()), [x * 3])
    yield Case("isclose", lambda a: torch.isclose(a, a + 1e-9), [x])


def activations():
    x = real(2, 6, 4) * 2
    for name in ("relu relu6 elu selu celu gelu silu mish hardswish hardsigmoid hardtanh leaky_relu softplus softsign "
                 "softshrink hardshrink tanhshrink logsigmoid").split():
        yield Case(f"F.{name}", getattr(F, name), [x])
    yield Case("gelu.tanh", lambda a: F.gelu(a, approximate="tanh"), [x])
    yield Case("elu.alpha", lambda a: F.elu(a, 0.4), [x])
    yield Case("celu.alpha", lambda a: F.celu(a, 0.4), [x])
    yield Case("softplus.beta", lambda a: F.softplus(a, 3, 2), [x])
    yield Case("threshold", lambda a: F.threshold(a, 0.2, -3), [x])
    yield Case("prelu", nn.PReLU(6), [x])
    yield Case("prelu.one", nn.PReLU(), [x])
    yield Case("glu", lambda a: F.glu(a, 1), [x])
    for axis in (0, 1, -1):
        yield Case(f"softmax.{axis}", lambda a, d=axis: F.softmax(a, d), [x])
        yield Case(f"log_softmax.{axis}", lambda a, d=axis: F.log_softmax(a, d), [x])
    yield Case("softmax.dtype", lambda a: F.softmax(a, -1, dtype=torch.float32), [x.half()])
    yield Case("relu_inplace", lambda a: F.relu(a + 1, inplace=True) * 2, [x])
    yield Case("dropout", lambda a: F.dropout(a, 0.5, training=False), [x])


def reductions():
    x, n = real(3, 4, 5), whole(3, 4, 5)
    for name in "sum mean prod amax amin var std".split():
        yield Case(f"{name}.all", getattr(torch, name), [x])
        yield Case(f"{name}.dim", lambda a, f=getattr(torch, name): f(a, dim=1), [x])
        yield Case(f"{name}.keepdim", lambda a, f=getattr(torch, name): f(a, dim=-1, keepdim=True), [x])
    yield Case("sum.dims", lambda a: a.sum((0, 2)), [x])
    yield Case("mean.dims", lambda a: a.mean((1, 2), keepdim=True), [x])
    yield Case("sum.int", lambda a: (a.sum(), a.int().sum(1), a.prod(0)), [n])
    yield Case("sum.bool", lambda a: (a.sum(), a.sum(1), a.any(), a.all(0)), [truth(3, 4)])
    yield Case("sum.dtype", lambda a: a.sum(dtype=torch.float64), [x])
    yield Case("max.dim", lambda a: a.max(1), [x])
    yield Case("min.dim", lambda a: a.min(-1, keepdim=True), [x])
    yield Case("max.all", lambda a: (a.max(), a.min(), a.argmax(), a.argmin()), [x])
    yield Case("argmax.dim", lambda a: (a.argmax(1), a.argmin(-1, keepdim=True)), [x])
    yield Case("aminmax", lambda a: torch.aminmax(a, dim=1), [x])
    yield Case("var.options", lambda a: (a.var(1, correction=0), a.std((0, 1), correction=2)), [x])
    yield Case("var_mean", lambda a: torch.var_mean(a, 1), [x])
    yield Case("std_mean", lambda a: torch.std_mean(a, 1), [x])
    yield Case("norm", lambda a: (a.norm(), a.norm(dim=1), a.norm(1, dim=2), a.norm(3.0, dim=0)), [x])
    yield Case("vector_norm", lambda a: (torch.linalg.vector_norm(a, float("inf"), 1), torch.linalg.vector_norm(a, 0, 1)), [x])
    yield Case("normalize", lambda a: F.normalize(a, dim=1), [x])
    yield Case("logsumexp", lambda a: (a.logsumexp(1), a.logsumexp((0, 1), True)), [x])
    yield Case("cumsum", lambda a: (a.cumsum(1), a.cumsum(-1), a.cumprod(0)), [x])
    yield Case("cumsum.int", lambda a: (a.int().cumsum(1), a.bool().cumsum(0)), [n])
    yield Case("topk", lambda a: torch.topk(a, 3, 1), [x])
    yield Case("topk.smallest", lambda a: torch.topk(a, 2, -1, largest=False), [x])
    yield Case("sort", lambda a: torch.sort(a, 1), [x])
    yield Case("sort.descending", lambda a: torch.sort(a, -1, descending=True), [x])
    yield Case("sort.stable", lambda a: torch.sort(a, dim=1, stable=True), [n])
    yield Case("argsort", lambda a: a.argsort(1), [x])
    yield Case("median", lambda a: torch.median(a, 1), [x])
    yield Case("count_nonzero", lambda a: torch.count_nonzero(a, 1), [n])
    yield Case("any.dim", lambda a: (a.any(1), a.bool().all(-1)), [n > 2])
    yield Case("diff", lambda a: (torch.diff(a), torch.diff(a, n=2, dim=1)), [x])


def shapes():
    x = real(2, 3, 4)
    yield Case("view", lambda a: (a.view(6, 4), a.view(-1), a.view(2, -1), a.reshape(4, 6)), [x])
    yield Case("flatten", lambda a: (a.flatten(), a.flatten(1), a.flatten(0, 1), a.unflatten(2, (2, -1))), [x])
    yield Case("permute", lambda a: (a.permute(2, 0, 1), a.transpose(0, -1), a.mT, a.movedim(0, 2), a.swapaxes(0, 1)), [x])
    yield Case("t", lambda a: (a.t(), a.T), [real(2, 3)])
    yield Case("squeeze", lambda a: (a.unsqueeze(0).squeeze(), a.unsqueeze(-1), a.unsqueeze(1).squeeze(1), a.squeeze(0)), [x])
    yield Case("expand", lambda a: (a.expand(5, 3, 4), a.expand(2, 5, -1, -1), a.expand_as(torch.zeros(5, 3, 4))), [real(1, 3, 4)])
    yield Case("repeat", lambda a: (a.repeat(2, 1, 3), a.repeat(2, 1, 1, 2), a.tile(2), a.repeat_interleave(2, 1)), [x])
    yield Case("repeat_interleave.flat", lambda a: a.repeat_interleave(3), [x])
    yield Case("cat", lambda a, b: (torch.cat([a, b], 1), torch.stack([a, a], -1), torch.cat([a, b.double()], 1)), [x, real(2, 2, 4)])
    yield Case("stacks", lambda a: (torch.hstack([a, a]), torch.vstack([a, a])), [x])
    yield Case("split", lambda a: a.split(2, 2) + a.split([1, 2], 1) + a.chunk(3, 2) + a.tensor_split(3, 2), [x])
    yield Case("unbind", lambda a: a.unbind(1), [x])
    yield Case("select", lambda a: (a.select(1, -1), a[0], a[:, 1:], a[..., ::2], a[:, -2:-1], a.narrow(2, 1, 2)), [x])
    yield Case("flip", lambda a: (a.flip(0, 2), a.roll(1, 2), a.roll((1, -1), (0, 2)), a.roll(3)), [x])
    yield Case("tril", lambda a: (a.tril(), a.triu(1), a.tril(-1), (a > 0).triu()), [x])
    yield Case("pad", lambda a: (F.pad(a, (1, 2)), F.pad(a, (1, 1, 0, 2), value=3.0), F.pad(a, (-1, 1))), [x])
    yield Case("pad.modes", lambda a: (F.pad(a, (1, 2), mode="reflect"), F.pad(a, (1, 2), mode="replicate"),
                                       F.pad(a, (1, 2), mode="circular")), [x])
    yield Case("pad.2d", lambda a: (F.pad(a, (1, 2, 1, 0), mode="reflect"), F.pad(a, (1, 2, 0, 3), mode="replicate")), [real(1, 2, 4, 5)])
    yield Case("pixel_shuffle", lambda a: F.pixel_shuffle(a, 2), [real(2, 8, 3, 3)])
    yield Case("pixel_unshuffle", lambda a: F.pixel_unshuffle(a, 2), [real(2, 3, 4, 6)])
    yield Case("channel_shuffle", lambda a: F.channel_shuffle(a, 3), [real(2, 6, 3, 3)])
    yield Case("meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="ij"), [real(3), real(4)])
    yield Case("meshgrid.xy", lambda a, b: torch.meshgrid(a, b, indexing="xy"), [real(3), real(4)])
    yield Case("broadcast_tensors", lambda a, b: torch.broadcast_tensors(a, b), [real(3, 1), real(4)])
    yield Case("unfold", lambda a: a.unfold(2, 2, 1), [x])
    yield Case("diagonal", lambda a: (a.diagonal(dim1=1, dim2=2), a.diagonal(1, 0, 2)), [x])
    yield Case("select_scatter", lambda a: (a.select_scatter(a[0] * 2, 0, 1), a.slice_scatter(a[:, :2] * 2, 1, 1)), [x])
    yield Case("creation", lambda a: (torch.zeros(2, 3), torch.ones_like(a), torch.full((2,), 3.5), a.new_zeros(2), torch.eye(3),
                                      torch.arange(5), torch.arange(1, 2, 0.3), torch.linspace(0, 1, 5), torch.full((2,), 7),
                                      a.new_full((2,), 1.5), torch.arange(5, 0, -2), torch.zeros(2, dtype=torch.int32)), [x])
    yield Case("scalars", lambda a: (a.sum().reshape(1), a.sum().unsqueeze(0), a.mean() + 1), [x])


def slices():
    """Changes in place, seen through views."""
    x = real(3, 4)

    def assign(a):
        b = a.clone()
        b[:, 1] = 5
        b[0] += 1
        b[1:, 2:] = 0
        b[::2, 0] = -1
        return b

    def through_view(a):
        b = a * 1
        c = b.view(4, 3)
        d = b.t()
        c.add_(1)
        d[0].mul_(2)
        return b, c, d

    def masks(a):
        mask = torch.zeros(4, 4)
        for i, part in enumerate((slice(0, 2), slice(2, 4))):
            mask[part, part] = i + 1
        return a + mask[:3]

    def parts(a):
        b = a.clone()
        first, second = b.chunk(2, 1)
        first.copy_(second)
        second.zero_()
        return b

    def chained(a):
        b = a.clone()
        b.unsqueeze(0).transpose(1, 2)[0, 1].fill_(9)
        return b, b.sum()

    for name, f in (("assign", assign), ("through_view", through_view), ("masks", masks), ("parts", parts), ("chained", chained)):
        yield Case(f"inplace.{name}", f, [x])
    yield Case("inplace.relu", lambda a: (a + 0).relu_().add_(1).mul_(2).clamp_(0, 3), [x])
    yield Case("inplace.index_put", lambda a, i: a.clone().index_put_((i,), torch.tensor(1.0)), [x, whole(2, low=0, high=3)])
    yield Case("inplace.masked_fill", lambda a: a.clone().masked_fill_(a > 0, 3), [x])


def put_apart(a, values):
    b = a.clone()
    b[torch.tensor([0, 1]), :, torch.tensor([2, 3])] = values
    return b


def indexing():
    x = real(4, 5, 6)
    i, j = whole(3, low=0, high=4), whole(3, low=0, high=5)
    yield Case("embedding", nn.Embedding(10, 4, padding_idx=0), [whole(2, 3, low=0, high=10)])
    yield Case("index_select", lambda a, b: a.index_select(1, b), [x, j])
    yield Case("gather", lambda a, b: a.gather(1, b), [x, whole(4, 2, 6, low=0, high=5)])
    yield Case("take_along_dim", lambda a, b: torch.take_along_dim(a, b, 1), [x, whole(4, 2, 6, low=0, high=5)])
    yield Case("index", lambda a, b: (a[b], a[:, b], a[b, b]), [x, i])
    yield Case("index.two", lambda a, b, c: (a[b, c], a[:, c, b], a[b, :, c], a[b[:, None], c]), [x, i, j])
    yield Case("index.negative", lambda a: (a[torch.tensor([-1, 0])], a[torch.tensor([-1]), torch.tensor([-2, 1])]), [x])
    yield Case("index.mask", lambda a: a[torch.tensor([True, False, True, False])], [x])
    yield Case("index_put", lambda a, b, v: a.index_put((b,), v), [x, torch.tensor([0, 2]), real(2, 5, 6)])
    yield Case("index_put.accumulate", lambda a, b, v: a.index_put((b,), v, accumulate=True), [x, i, real(3, 5, 6)])
    yield Case("index_put.two", lambda a, v: a.index_put((torch.tensor([0, 1]), torch.tensor([2, 3])), v), [x, real(2, 6)])
    yield Case("index_put.apart", put_apart, [x, real(2, 5)])
    yield Case("scatter", lambda a, b, v: a.scatter(1, b, v), [x, torch.arange(5).repeat(4, 1)[:, :, None].expand(4, 5, 6).contiguous(), real(4, 5, 6)])
    yield Case("scatter.value", lambda a, b: a.scatter(1, b, 3.0), [x, whole(4, 2, 6, low=0, high=5)])
    yield Case("scatter_add", lambda a, b, v: a.scatter_add(0, b, v), [x, whole(3, 5, 6, low=0, high=4), real(3, 5, 6)])
    yield Case("scatter_reduce", lambda a, b, v: (a.scatter_reduce(0, b, v, "amax"), a.scatter_reduce(0, b, v, "prod")),
               [x, whole(3, 5, 6, low=0, high=4), real(3, 5, 6)])
    yield Case("index_add", lambda a, b, v: a.index_add(1, b, v, alpha=2), [x, j, real(4, 3, 6)])
    yield Case("index_copy", lambda a, v: a.index_copy(1, torch.tensor([4, 0, 2]), v), [x, real(4, 3, 6)])
    yield Case("index_fill", lambda a: a.index_fill(1, torch.tensor([0, 2]), 1.5), [x])
    yield Case("one_hot", lambda a: F.one_hot(a, 7), [whole(3, low=0, high=7)])
    yield Case("masked_scatter", lambda a, m, v: a.masked_scatter(m, v), [x, truth(4, 5, 6), real(120)])


def products():
    yield Case("linear", nn.Linear(6, 5), [real(2, 3, 6)])
    yield Case("linear.vector", nn.Linear(6, 5, bias=False), [real(6)])
    for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)),
                 ((2, 1, 3, 4), (5, 4, 2)), ((4,), (2, 4, 3))):
        yield Case(f"matmul.{len(a)}x{len(b)}.{len(str(a))}", torch.matmul, [real(*a), real(*b)])
    yield Case("matmul.int", torch.matmul, [whole(3, 4), whole(4, 5)])
    yield Case("bmm", torch.bmm, [real(2, 3, 4), real(2, 4, 5)])
    yield Case("addmm", lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), [real(5), real(3, 4), real(4, 5)])
    yield Case("baddbmm", lambda a, b, c: torch.baddbmm(a, b, c, alpha=2), [real(2, 3, 5), real(2, 3, 4), real(2, 4, 5)])
    yield Case("outer", torch.outer, [real(3), real(4)])
    yield Case("mv", torch.mv, [real(3, 4), real(4)])
    yield Case("einsum", lambda a, b: (torch.einsum("bij,bjk->bik", a, b), torch.einsum("bij,bjk->ik", a, b)), [real(2, 3, 4), real(2, 4, 5)])
    yield Case("bilinear", nn.Bilinear(3, 4, 5), [real(2, 3), real(2, 4)])
    q = real(2, 3, 5, 8)
    yield Case("sdpa", F.scaled_dot_product_attention, [q, q + 1, q * 2])
    yield Case("sdpa.mask", lambda a, m: F.scaled_dot_product_attention(a, a, a, attn_mask=m), [q, real(5, 5)])
    yield Case("sdpa.bool", lambda a: F.scaled_dot_product_attention(a, a, a, attn_mask=torch.ones(5, 5).tril().bool()), [q])
    yield Case("sdpa.causal", lambda a: F.scaled_dot_product_attention(a, a, a, is_causal=True, scale=0.3), [q])
    yield Case("sdpa.gqa", lambda a, b: F.scaled_dot_product_attention(a, b, b, enable_gqa=True), [real(2, 4, 5, 8), real(2, 2, 5, 8)])
    yield Case("sdpa.3d", lambda a: F.scaled_dot_product_attention(a, a, a), [real(2, 5, 8)])
    yield Case("multihead", nn.MultiheadAttention(8, 2, batch_first=True).eval(), [real(2, 5, 8)] * 3)
    yield Case("lstm", nn.LSTM(4, 6, 2, bidirectional=True, batch_first=True).eval(), [real(2, 5, 4)])
    yield Case("gru", nn.GRU(4, 6, 1).eval(), [real(5, 2, 4)])
    yield Case("rnn", nn.RNN(4, 6, 1, nonlinearity="relu").eval(), [real(5, 2, 4)])


def windows():
    for n, conv, transposed in ((1, nn.Conv1d, nn.ConvTranspose1d), (2, nn.Conv2d, nn.ConvTranspose2d), (3, nn.Conv3d, nn.ConvTranspose3d)):
        x = real(2, 4, *[7, 6, 5][:n])
        yield Case(f"conv{n}d", conv(4, 6, 3, padding=1), [x])
        yield Case(f"conv{n}d.options", conv(4, 6, 3, stride=2, padding=2, dilation=2, groups=2, bias=False), [x])
        yield Case(f"conv{n}d.same", conv(4, 6, 2, padding="same"), [x])
        yield Case(f"conv{n}d.unbatched", conv(4, 6, 3), [x[0]])
        yield Case(f"conv_transpose{n}d", transposed(4, 6, 3, stride=2, padding=1, output_padding=1), [x])
        pool, average = (getattr(F, f"{k}_pool{n}d") for k in ("max", "avg"))
        yield Case(f"max_pool{n}d", lambda a, f=pool: f(a, 2), [x])
        yield Case(f"max_pool{n}d.options", lambda a, f=pool: f(a, 3, 2, 1, ceil_mode=True), [x])
        yield Case(f"avg_pool{n}d", lambda a, f=average: f(a, 2), [x])
        yield Case(f"avg_pool{n}d.options", lambda a, f=average: f(a, 3, 2, 1, ceil_mode=True, count_include_pad=False), [x])
        adaptive = getattr(F, f"adaptive_avg_pool{n}d")
        for size in (1, 3, 5):
            yield Case(f"adaptive_avg_pool{n}d.{size}", lambda a, f=adaptive, s=size: f(a, s), [x])
        yield Case(f"adaptive_max_pool{n}d", lambda a, f=getattr(F, f"adaptive_max_pool{n}d"): f(a, 3), [x])
    x = real(2, 3, 8, 6)
    yield Case("max_pool2d.indices", lambda a: F.max_pool2d(a, 2, return_indices=True), [x])
    yield Case("max_pool2d.dilated", lambda a: F.max_pool2d(a, 2, 1, 0, 2), [x])
    yield Case("avg_pool2d.divisor", lambda a: F.avg_pool2d(a, 2, divisor_override=3), [x])
    yield Case("adaptive_avg_pool2d.none", lambda a: F.adaptive_avg_pool2d(a, (None, 3)), [x])
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        yield Case(f"interpolate.{mode}.size", lambda a, m=mode: F.interpolate(a, (13, 5), mode=m), [x])
        yield Case(f"interpolate.{mode}.scale", lambda a, m=mode: F.interpolate(a, scale_factor=2, mode=m), [x])
        yield Case(f"interpolate.{mode}.odd", lambda a, m=mode: F.interpolate(a, scale_factor=1.3, mode=m), [x])
    for mode in ("bilinear", "bicubic"):
        yield Case(f"interpolate.{mode}.corners", lambda a, m=mode: F.interpolate(a, (13, 5), mode=m, align_corners=True), [x])
        yield Case(f"interpolate.{mode}.antialias", lambda a, m=mode: F.interpolate(a, (4, 3), mode=m, antialias=True), [x])
    yield Case("interpolate.linear", lambda a: F.interpolate(a, 11, mode="linear"), [real(2, 3, 7)])
    yield Case("interpolate.trilinear", lambda a: F.interpolate(a, scale_factor=2, mode="trilinear"), [real(1, 2, 3, 4, 3)])
    yield Case("local_response_norm", lambda a: F.local_response_norm(a, 3), [x])
    yield Case("batch_norm", nn.BatchNorm2d(3).eval(), [x])
    yield Case("batch_norm.1d", nn.BatchNorm1d(3, affine=False).eval(), [real(4, 3)])
    yield Case("batch_norm.no_stats", nn.BatchNorm2d(3, track_running_stats=False).eval(), [x])
    yield Case("layer_norm", nn.LayerNorm(6), [x])
    yield Case("layer_norm.two", nn.LayerNorm((8, 6)), [x])
    yield Case("layer_norm.plain", nn.LayerNorm(6, elementwise_affine=False), [x])
    yield Case("rms_norm", nn.RMSNorm(6), [x])
    yield Case("group_norm", nn.GroupNorm(3, 6), [real(2, 6, 4, 4)])
    yield Case("instance_norm", nn.InstanceNorm2d(3, affine=True), [x])
    yield Case("weight_norm", nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)), [real(2, 4)])


def turned(x, angles):
    """Rotary embedding as a product of complex numbers."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles).unsqueeze(-2)).flatten(-2)


def fourier():
    x = real(2, 6, 5)
    for name in "fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn".split():
        yield Case(f"fft.{name}", lambda a, n=name: torch.view_as_real(getattr(torch.fft, n)(a).resolve_conj()), [x])
    for name in "irfft irfft2 irfftn".split():
        yield Case(f"fft.{name}", lambda a, n=name: getattr(torch.fft, n)(torch.complex(a, a * 2)), [x])
    made = lambda z: (torch.zeros_like(z), torch.ones_like(z) * z, torch.full_like(z, 2.5) + z, z.new_zeros(2, 3) + 1, z.new_ones(3), z.new_full((2, 2), 3.0))  # noqa: E731
    yield Case("complex.alike", lambda a: [torch.view_as_real(z) for z in made(torch.complex(a, a * 2))], [x])
    for norm in "ortho forward".split():
        yield Case(f"fft.{norm}", lambda a, n=norm: torch.fft.irfft(torch.fft.rfft(a, dim=1, norm=n) * 0.5, dim=1, n=6, norm=n), [x])
    yield Case("fft.longer", lambda a: torch.view_as_real(torch.fft.fft(a, n=8, dim=-2)), [x])
    yield Case("fft.shorter", lambda a: torch.view_as_real(torch.fft.rfft(a, n=3)), [x])
    yield Case("fft.irfft.longer", lambda a: torch.fft.irfft(torch.complex(a, a), n=11), [x])
    yield Case("fft.of_both", lambda a: torch.fft.fft(torch.fft.fft(a, dim=-1), dim=-2).real, [x])
    yield Case("stft.complex", lambda a, w: torch.stft(a, 8, 4, window=w, return_complex=True).abs(), [real(2, 32), torch.hann_window(8)])
    yield Case("complex.rotary", turned, [real(2, 5, 3, 4), real(5, 2)])
    yield Case("complex.arithmetic", lambda a, b: torch.view_as_real((torch.complex(a, b) * torch.complex(b, a) - a) / torch.complex(a + 3, b) + 2), [x, real(5)])
    yield Case("complex.parts", lambda a, b: ((z := torch.complex(a, b)).abs(), z.conj().imag, z.angle(), z.real), [x, real(2, 6, 5)])
    yield Case("complex.shapes", lambda a: torch.view_as_real(torch.cat([torch.fft.fft(a)[:, 1:3], torch.fft.fft(a).transpose(1, -1).transpose(-2, -1)[:, :1]], 1).unsqueeze(-1).permute(3, 0, -2, 1)), [x])


def columns():
    x = real(2, 3, 7, 6)
    yield Case("unfold", lambda a: F.unfold(a, (3, 2)), [x])
    yield Case("unfold.all", lambda a: F.unfold(a, 3, dilation=2, padding=(1, 2), stride=(2, 1)), [x])
    yield Case("unfold.alone", lambda a: F.unfold(a, 2, stride=2), [real(3, 6, 6)])
    yield Case("fold", lambda a: F.fold(a, (6, 8), (2, 3), padding=1, stride=(2, 1)), [real(2, 12, 32)])
    yield Case("fold.alone", lambda a: F.fold(a, (4, 4), 2, stride=2), [real(8, 4)])
    yield Case("histc", lambda a: torch.histc(a, 7, -1, 1), [real(40)])
    yield Case("histc.range", lambda a: torch.histc(a, 5), [real(4, 6)])
    yield Case("histc.whole", lambda a: torch.histc(a.float(), 6, 0, 5), [whole(30, low=0)])
    yield Case("unsqueeze_", lambda a: (b := a.clone(), b.unsqueeze_(1), b.mul_(2), b.transpose_(0, 2), b + 1)[-1], [real(3, 4)])


def chosen_by_data():
    """As many results as the data decide; the first is a program that waits for them."""
    x, mask = real(5, 4), truth(5, 4)
    yield Case("mask.index", lambda a, m: (a[m], a[m] * 2 + 1), [x, mask])
    yield Case("mask.rows", lambda a: a[a[:, 0] > 0].sum(0), [x])
    yield Case("mask.chain", lambda a: (y := a[torch.where(a[:, 0] > -0.5)[0]])[y[:, 1] > -1], [x])
    yield Case("mask.middle", lambda a: a[:, a[0] > -0.5], [x])
    yield Case("mask.none", lambda a: a[a > 100].sum(), [x])
    yield Case("mask.put", lambda a: (b := a.clone()).index_put_((a > 0,), a[a > 0] * 3), [x])
    yield Case("mask.put.one", lambda a: (b := a.clone()).index_put_((a > 0,), torch.tensor(7.0)), [x])
    yield Case("masked_select", lambda a, m: torch.masked_select(a, m), [x, mask])
    yield Case("masked_select.broadcast", lambda a, m: torch.masked_select(a, m), [x, truth(4)])
    yield Case("nonzero", lambda a, m: (m.nonzero(), torch.where(m)[1] * 2), [x, mask])
    yield Case("unique", lambda a: torch.unique(a, return_inverse=True, return_counts=True), [whole(4, 5)])
    yield Case("unique.dim", lambda a: torch.unique(a, dim=0), [whole(6, 2, low=0, high=2)])
    yield Case("bincount", lambda a: torch.bincount(a, minlength=3), [whole(9, low=0)])


def cases():
    torch.manual_seed(3)
    for family in (elementwise, activations, reductions, shapes, slices, indexing, products, windows, fourier, columns, chosen_by_data):
        yield from family()
    for family in composite_cases.FAMILIES:
        yield from family(Case, real, whole, truth)
