# SPDX-License-Identifier: Apache-2.0
"""More small modules for tests/torch/operators.py: matrices, special functions, statistics, losses, signals and what moves elements."""
import torch
import torch.nn.functional as F


def matrices(Case, real, whole, truth):
    a, b = real(2, 5, 5), real(2, 5, 3)
    s = a @ a.mT + torch.eye(5)
    zero_pivot = torch.tensor([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0], [2.0, 1.0, 0.0]])
    yield Case("linalg.inv", torch.linalg.inv, [a])
    yield Case("linalg.inv.exchanged", lambda m: (torch.linalg.inv(m), torch.inverse(m), torch.linalg.det(m)), [zero_pivot])
    yield Case("linalg.inv_ex", torch.linalg.inv_ex, [a])
    yield Case("linalg.det", lambda m: (torch.linalg.det(m), torch.det(m[0])), [a])
    yield Case("linalg.det.zero", torch.linalg.det, [torch.ones(3, 3)])
    yield Case("linalg.slogdet", lambda m: (*torch.linalg.slogdet(m), *torch.slogdet(m)), [a])
    yield Case("logdet", torch.logdet, [s])
    yield Case("linalg.solve", torch.linalg.solve, [a, b])
    yield Case("linalg.solve.vector", lambda m, v: (torch.linalg.solve(m, v), torch.linalg.solve(m[0], v[0])), [a, real(2, 5)])
    yield Case("linalg.solve.right", lambda m, v: torch.linalg.solve(m, v, left=False), [a, real(2, 3, 5)])
    yield Case("linalg.solve.batches", torch.linalg.solve, [a[0], b])
    yield Case("linalg.cholesky", lambda m: (torch.linalg.cholesky(m), torch.linalg.cholesky(m, upper=True), *torch.linalg.cholesky_ex(m)), [s])
    yield Case("cholesky_solve", lambda m, v: (torch.cholesky_solve(v, torch.linalg.cholesky(m)), torch.cholesky_solve(v, torch.linalg.cholesky(m).mT, upper=True)), [s, b])
    yield Case("cholesky_inverse", lambda m: torch.cholesky_inverse(torch.linalg.cholesky(m)), [s])
    for upper in (False, True):
        yield Case(f"solve_triangular.{upper}", lambda m, v, u=upper: torch.linalg.solve_triangular(m, v, upper=u), [a + 3 * torch.eye(5), b])
        yield Case(f"solve_triangular.right.{upper}", lambda m, v, u=upper: torch.linalg.solve_triangular(m, v, upper=u, left=False, unitriangular=True), [a, real(2, 3, 5)])
    yield Case("linalg.qr", torch.linalg.qr, [real(2, 6, 4)])
    yield Case("linalg.qr.wide", torch.linalg.qr, [real(3, 5)])
    yield Case("linalg.qr.complete", lambda m: torch.linalg.qr(m, mode="complete"), [real(5, 3)])
    yield Case("linalg.qr.r", lambda m: torch.linalg.qr(m, mode="r")[1], [real(5, 3)])
    yield Case("linalg.lu", torch.linalg.lu, [real(2, 4, 6)])
    yield Case("linalg.lu.tall", lambda m: (*torch.linalg.lu(m), *torch.linalg.lu_factor(m), *torch.linalg.lu_factor_ex(m), *torch.lu_unpack(*torch.linalg.lu_factor(m))), [real(6, 4)])
    for left in (False, True):
        for adjoint in (False, True):
            yield Case(f"linalg.lu_solve.{left}.{adjoint}", lambda m, v, l=left, a=adjoint: torch.linalg.lu_solve(*torch.linalg.lu_factor(m), v, left=l, adjoint=a), [a, real(2, 5, 3) if left else real(2, 3, 5)])
    # As large as people have them: each of these took a graph of thousands of nodes when every step was one.
    large = real(64, 64).double()
    yield Case("linalg.large", lambda m, v: (torch.linalg.inv(m), torch.linalg.solve(m, v), *torch.linalg.slogdet(m), torch.linalg.cholesky(m @ m.T + torch.eye(64)), *torch.linalg.qr(m)),
               [large, real(64, 3).double()])


def spectra(Case, real, whole, truth):
    a, tall, wide = real(2, 5, 5).double(), real(7, 4).double(), real(2, 3, 6).double()
    thin = (real(6, 2) @ real(2, 5)).double()
    yield Case("linalg.eigh", lambda m: [(torch.linalg.eigvalsh(m, u), torch.linalg.eigh(m, u)[0], (lambda w, v: (v * w.unsqueeze(-2)) @ v.mT)(*torch.linalg.eigh(m, u))) for u in "LU"], [a])
    # The order of the eigenvalues is nobody's promise, nor is the turn of a vector: sums of powers, and what is made again.
    powers = lambda w: torch.view_as_real(torch.stack([(w ** k).sum(-1) for k in range(1, 5)]))  # noqa: E731
    again = lambda w, v: torch.view_as_real(v @ torch.diag_embed(w) @ torch.linalg.inv(v))  # noqa: E731
    yield Case("linalg.eig", lambda m: (powers(torch.linalg.eigvals(m)), again(*torch.linalg.eig(m)), powers(torch.linalg.eig(m)[0])), [a])
    yield Case("linalg.eig.complex", lambda x, y: (lambda m: (powers(torch.linalg.eigvals(m)), again(*torch.linalg.eig(m))))(torch.complex(x, y)), [a, real(2, 5, 5).double()])
    yield Case("linalg.eig.special", lambda x: [powers(torch.linalg.eigvals(m)) for m in (x * 0, torch.tril(x), torch.eye(5, dtype=x.dtype)[[1, 2, 3, 4, 0]] + 0.3 * torch.eye(5), x + x.mT)], [a[0]])
    yield Case("linalg.complex", lambda x, y, b: (lambda m: (torch.view_as_real(torch.linalg.inv(m)), torch.view_as_real(torch.linalg.solve(m, torch.complex(b, -b))), torch.view_as_real(torch.linalg.det(m))))(torch.complex(x, y)),
               [a, real(2, 5, 5).double(), real(2, 5, 3).double()])
    yield Case("linalg.svdvals", lambda m, n, k: (torch.linalg.svdvals(m), torch.linalg.svdvals(n), torch.linalg.svdvals(k)), [a, tall, wide])
    # Vectors have no sign of their own: what they make is compared.
    made = lambda u, s, v: ((u[..., :s.shape[-1]] * s.unsqueeze(-2)) @ v[..., :s.shape[-1], :], s, u.mT @ u, v @ v.mT)  # noqa: E731
    for name, m in {"square": a, "tall": tall, "wide": wide, "thin": thin, "zero": torch.zeros(3, 2)}.items():
        yield Case(f"linalg.svd.{name}", lambda x: (*made(*torch.linalg.svd(x)), *made(*torch.linalg.svd(x, full_matrices=False))), [m])
    yield Case("svd", lambda x: (lambda u, s, v: (u * s) @ v.mT)(*torch.svd(x)), [tall])
    yield Case("linalg.pinv", lambda x, y, z: (torch.linalg.pinv(x), torch.linalg.pinv(y), torch.linalg.pinv(z, rtol=1e-3), torch.pinverse(x), torch.linalg.pinv(z, 1e-3)), [tall, wide, thin])
    yield Case("linalg.matrix_rank", lambda x, y, z: (torch.linalg.matrix_rank(x), torch.linalg.matrix_rank(y), torch.linalg.matrix_rank(z, rtol=1e-4), torch.linalg.matrix_rank(x, tol=100.0)), [tall, wide, thin])
    yield Case("linalg.matrix_norm", lambda x: [torch.linalg.matrix_norm(x, p) for p in ("fro", "nuc", 1, -1, 2, -2, float("inf"), float("-inf"))], [wide])
    yield Case("linalg.matrix_norm.axes", lambda x: [torch.linalg.matrix_norm(x, p, dim=(2, 0), keepdim=True) for p in ("fro", "nuc", 1, 2)], [wide])
    yield Case("linalg.norm", lambda x, y: (torch.linalg.norm(x), torch.linalg.norm(x, 1), torch.linalg.norm(x, "nuc"), torch.linalg.norm(y[0, 0], 1), torch.linalg.norm(y, dim=1), torch.linalg.norm(y, 2, dim=(0, 1)), torch.norm(x, "nuc")), [tall, wide])
    yield Case("linalg.cond", lambda x, y: (torch.linalg.cond(x), torch.linalg.cond(x, -2), torch.linalg.cond(y, 1), torch.linalg.cond(y, "fro"), torch.linalg.cond(y, "nuc")), [tall, a])
    yield Case("matrix_power", lambda x: [torch.linalg.matrix_power(x, n) for n in (-2, 0, 1, 2, 5, 9)], [a])
    yield Case("matrix_exp", torch.matrix_exp, [a])


def special(Case, real, whole, truth):
    x = torch.linspace(-7.3, 9.1, 50)
    positive = torch.cat([torch.linspace(0.01, 12, 40), torch.tensor([30.0, 1e3, 1e6])])
    for name in "lgamma digamma".split():
        yield Case(name, getattr(torch, name), [positive])
        yield Case(f"{name}.left", getattr(torch, name), [x - 0.003])
    for n in (1, 2, 3, 6):
        yield Case(f"polygamma.{n}", lambda a, n=n: torch.polygamma(n, a), [positive])
    yield Case("polygamma.left", lambda a: (torch.polygamma(1, a), torch.polygamma(2, a), torch.polygamma(5, a)), [(x - 0.003)[:36].double()])
    yield Case("mvlgamma", lambda a: torch.mvlgamma(a + 2, 3), [positive[:40]])
    for name in "i0 i0e i1 i1e erfc erfcx ndtr log_ndtr".split():
        yield Case(f"special.{name}", getattr(torch.special, name), [x * 2 if name.startswith("i") else x])
    yield Case("special.i0e.far", torch.special.i0e, [positive])
    yield Case("special.entr", torch.special.entr, [torch.tensor([0.0, 0.2, 1.0, 3.0, -1.0])])
    yield Case("logaddexp2", torch.logaddexp2, [x, x.flip(0)])
    yield Case("float_power", lambda a: torch.float_power(a, 1.5), [positive[:40]])


def statistics(Case, real, whole, truth):
    x = real(4, 6)
    gaps = torch.where(truth(4, 6), torch.tensor(float("nan")), x)
    yield Case("nansum", lambda a: (torch.nansum(a), torch.nansum(a, 1), torch.nanmean(a, 0, keepdim=True)), [gaps])
    yield Case("nanmedian", lambda a: (torch.nanmedian(a), torch.nanmedian(a, 1).values, torch.nanmedian(a, 0, keepdim=True).values, torch.nanmedian(a * float("nan"))), [gaps])
    yield Case("gradient", lambda a: (*torch.gradient(a), *torch.gradient(a, dim=1, spacing=0.5), *torch.gradient(a, dim=(0, 1), spacing=[2.0, 0.25])), [x])
    yield Case("quantile", lambda a: (torch.quantile(a, 0.3), torch.quantile(a, 0.6, dim=1), torch.quantile(a, 0.5, dim=0, keepdim=True)), [x])
    yield Case("quantile.several", lambda a, q: (torch.quantile(a, q, dim=1), torch.quantile(a, q, dim=0, keepdim=True), torch.quantile(a, q)), [x, torch.tensor([0.1, 0.5, 0.95])])
    for how in "lower higher nearest midpoint".split():
        yield Case(f"quantile.{how}", lambda a, h=how: torch.quantile(a, 0.37, dim=1, interpolation=h), [x])
    yield Case("quantile.nan", lambda a: torch.quantile(a, 0.5, dim=1), [gaps])
    for name in "cummax cummin".split():
        yield Case(name, lambda a, n=name: (*getattr(torch, n)(a, 0), *getattr(torch, n)(a, 1)), [x])
        yield Case(f"{name}.equal", lambda a, n=name: getattr(torch, n)(a, 1), [whole(3, 11, low=0, high=3)])
        yield Case(f"{name}.nan", lambda a, n=name: getattr(torch, n)(a, 1).values, [gaps])
    yield Case("logcumsumexp", lambda a: (torch.logcumsumexp(a * 20, 1), torch.logcumsumexp(a, 0)), [x])
    yield Case("mode", lambda a: torch.mode(a, 1).values, [whole(4, 9, low=0, high=3)])
    yield Case("trapezoid", lambda a, p: (torch.trapezoid(a), torch.trapezoid(a, dx=0.5, dim=0), torch.trapezoid(a, p), torch.cumulative_trapezoid(a, p)), [x, real(6).cumsum(0)])
    yield Case("dist", lambda a, b: (torch.dist(a, b), torch.dist(a, b, 1)), [x, real(4, 6)])
    for how in "amax amin mean prod".split():
        yield Case(f"index_reduce.{how}", lambda a, i, s, h=how: (a.index_reduce(1, i, s, h), a.index_reduce(1, i, s, h, include_self=False)), [x, torch.tensor([0, 5, 0]), real(4, 3)])
    yield Case("other_names", lambda a, b: (torch.arcsin(a * 0.1), torch.arccos(a * 0.1), torch.arctan(a), torch.arcsinh(a), torch.arccosh(a.abs() + 1), torch.arctanh(a * 0.1), torch.arctan2(a, b), a.absolute(),
                                            torch.greater_equal(a, b), torch.less_equal(a, b), torch.special.erf(a), torch.special.exp2(a), torch.special.expm1(a), torch.special.log1p(a.abs()), torch.special.round(a),
                                            torch.row_stack((a, b)), torch.linalg.matmul(a, b.mT), a.unsafe_split_with_sizes([2, 4], 1)), [x, real(4, 6)])
    yield Case("products_of_vectors", lambda a, b: (torch.inner(a, b), torch.inner(a, b[0, 0]), torch.linalg.vecdot(a, b[:1]), torch.linalg.vecdot(a, b[:, :3], dim=1), torch.msort(a), torch.diagflat(a[0], 1)), [real(2, 3, 4), real(5, 3, 4)[:2]])
    yield Case("renorm", lambda a: torch.renorm(a, 2, 0, 1.5), [x])


def losses(Case, real, whole, truth):
    x, y, t = real(4, 5), real(4, 5), whole(4, low=0, high=5)
    side = y.sign()
    for how in "none mean sum".split():
        yield Case(f"soft_margin.{how}", lambda a, b, r=how: F.soft_margin_loss(a, b, reduction=r), [x, side])
        yield Case(f"margin_ranking.{how}", lambda a, b, s, r=how: F.margin_ranking_loss(a, b, s, margin=0.3, reduction=r), [x, y, side])
        yield Case(f"hinge_embedding.{how}", lambda a, s, r=how: F.hinge_embedding_loss(a, s, reduction=r), [x, side])
        yield Case(f"cosine_embedding.{how}", lambda a, b, s, r=how: F.cosine_embedding_loss(a, b, s, margin=0.1, reduction=r), [x, y, side[:, 0]])
        yield Case(f"multilabel_margin.{how}", lambda a, k, r=how: F.multilabel_margin_loss(a, k, reduction=r), [x, torch.tensor([[1, 2, -1, 0, 0], [4, -1, -1, -1, -1], [0, 1, 2, 3, 4], [-1, 1, 1, 1, 1]])])
        yield Case(f"multi_margin.{how}", lambda a, k, r=how: F.multi_margin_loss(a, k, reduction=r), [x, t])
        yield Case(f"poisson.{how}", lambda a, b, r=how: F.poisson_nll_loss(a, b, reduction=r), [x, y.abs() * 3])
    yield Case("multi_margin.weights", lambda a, k, w: F.multi_margin_loss(a, k, p=2, weight=w), [x, t, torch.rand(5)])
    yield Case("poisson.full", lambda a, b: F.poisson_nll_loss(a.abs() + 0.1, b, log_input=False, full=True), [x, y.abs() * 3])


def signals(Case, real, whole, truth):
    x = real(2, 40)
    yield Case("windows", lambda a: a.sum() + torch.cat([torch.hann_window(9), torch.hamming_window(8, periodic=False), torch.blackman_window(7), torch.bartlett_window(6, periodic=False), torch.kaiser_window(10)]), [x])
    yield Case("frequencies", lambda a: a.sum() + torch.cat([torch.fft.fftfreq(7), torch.fft.fftfreq(8, 0.5), torch.fft.rfftfreq(9), torch.logspace(-1, 2, 5)]), [x])
    yield Case("fftshift", lambda a: (torch.fft.fftshift(a), torch.fft.ifftshift(a[:, :7], dim=1), torch.fft.fftshift(torch.fft.fft(a), dim=-1).real), [x])
    yield Case("istft", lambda a, w: torch.istft(torch.stft(a, 16, 4, window=w, return_complex=True), 16, 4, window=w), [x, torch.hann_window(16)])
    yield Case("istft.longer", lambda a, w: torch.istft(torch.stft(a, 16, 4, 12, window=w, return_complex=True, normalized=True), 16, 4, 12, window=w, normalized=True, length=44), [x, torch.hann_window(12)])
    yield Case("istft.alone", lambda a: torch.istft(torch.stft(a[0], 8, 2, window=torch.ones(8), return_complex=True), 8, 2, window=torch.ones(8)), [x])
    z = lambda a: torch.complex(a, a.flip(-1))
    yield Case("complex.products", lambda a, b: torch.view_as_real(z(a) @ z(b)), [real(3, 4), real(4, 2)])
    yield Case("complex.sums", lambda a: (torch.view_as_real(z(a).sum(1)), torch.view_as_real(z(a).mean()), torch.view_as_real(z(a).exp()), torch.view_as_real(1 / (z(a) + 3))), [real(3, 4)])
    r = lambda t: torch.view_as_real(t.resolve_conj())  # noqa: E731
    yield Case("complex.functions", lambda a: [r(f(z(a))) for f in (torch.log, torch.log2, torch.log10, torch.sqrt, torch.rsqrt, torch.square, torch.sin, torch.cos, torch.tan, torch.sinh, torch.cosh, torch.tanh, torch.sigmoid, torch.sgn)], [real(3, 4)])
    yield Case("complex.powers", lambda a: [r(z(a) ** 2), r(z(a) ** 5), r(z(a) ** -3), r(z(a) ** 0.5), r(z(a) ** 1.5), r(z(a) ** z(a)), r(2.0 ** z(a)), r(z(a) ** 0), r((z(a) * 0) ** 2.5)], [real(3, 4)])
    yield Case("complex.along_axes", lambda a: [r(z(a).prod(1)), r(z(a).prod()), r(z(a).cumsum(-1)), r(z(a).cumprod(0)), r(torch.diff(z(a)))], [real(3, 4)])
    yield Case("complex.places", lambda a, i: [r(z(a)[:, [0, 1, 3, 2]]), r(z(a).gather(1, i)), r(z(a).tril()), r(torch.diag_embed(z(a))), r(z(a).diagonal()), r(z(a).repeat(2, 1)), r(z(a).index_add(0, i[:, 0], z(a))), r(z(a).masked_fill(a > 0, 1 + 2j)), r(torch.eye(3, dtype=torch.complex64) @ z(a)), r(z(a).unflatten(1, (2, 2)))],
               [real(3, 4), whole(3, 4, low=0, high=3)])
    yield Case("complex.vectors", lambda a, b: [r(torch.mv(z(a), z(b))), r(torch.dot(z(b), z(a)[0])), r(torch.vdot(z(b), z(a)[0])), r(torch.outer(z(a)[0], z(b))), r(z(a).mH), r(z(a).adjoint()), torch.linalg.norm(z(a)), torch.linalg.vector_norm(z(a), dim=1), r(torch.addmm(z(a)[:, :3], z(a), z(a).mT)), z(a) == z(a).conj(), z(a) != z(a)],
               [real(3, 4), real(4)])

    def written(a):
        x = torch.zeros(3, 4, dtype=torch.complex64)
        x[:, 0] = 1
        x[1, 1:3] = z(a)[0, :2]
        x[2].mul_(2j)
        x.view(-1)[5:7] += 1j
        return r(x)

    yield Case("complex.written", written, [real(3, 4)])
    yield Case("complex.where", lambda a: torch.view_as_real(torch.where(a > 0, z(a), z(a) * 0)), [real(3, 4)])
    yield Case("complex.parts_of_axis", lambda a: [torch.view_as_real(p) for p in (*z(a).chunk(2, -1), *z(a).unbind(0))], [real(3, 4)])


def rearranged(Case, real, whole, truth):
    x = real(3, 4)
    yield Case("diag", lambda a: (torch.diag(a), torch.diag(a, 1), torch.diag(a[0]), torch.diag(a[0], -1)), [x])
    yield Case("block_diag", lambda a, b: torch.block_diag(a, b, a[0]), [x, real(2, 2)])
    yield Case("fill_diagonal", lambda a: a.clone().fill_diagonal_(2.5), [real(4, 3)])
    for offset in (0, 1, -1):
        yield Case(f"diagonal_scatter.{offset}", lambda a, k=offset: torch.diagonal_scatter(a, torch.arange(a.diagonal(k).numel()).float(), k), [real(4, 5)])
    yield Case("diagonal_scatter.axes", lambda a: torch.diagonal_scatter(a, a.diagonal(0, 0, 2) * 3, 0, 0, 2), [real(3, 4, 3)])
    yield Case("triangle_indices", lambda a: (a.sum() + torch.tril_indices(3, 4).float(), torch.triu_indices(4, 3, 1)), [x])
    yield Case("cartesian_prod", lambda a, b: torch.cartesian_prod(a, b, a), [real(3), real(2)])
    yield Case("isin", lambda a, b: (torch.isin(a, b), torch.isin(a, b, invert=True)), [whole(4, 5), whole(3)])
    yield Case("vander", lambda a: (torch.vander(a), torch.vander(a, 3, increasing=True)), [real(4)])
    yield Case("stacks", lambda a, b: (torch.column_stack([a, b]), torch.dstack([a, a]), torch.dstack([b, b]), torch.column_stack([b, b])), [x, real(3)])
    yield Case("splits", lambda a: (*torch.hsplit(a, 2), *torch.vsplit(a, [1]), *torch.dsplit(a, 3)), [real(2, 4, 6)])
    yield Case("flips", lambda a: (torch.fliplr(a), torch.flipud(a)), [x])
    yield Case("max_unpool", lambda a: F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2), [real(2, 3, 6, 8)])
    yield Case("addr", lambda a, v, w: torch.addr(a, v, w, beta=0.5, alpha=2), [x, real(3), real(4)])
    yield Case("multi_dot", lambda a, b: torch.linalg.multi_dot([a, b, a]), [real(3, 4), real(4, 3)])
    yield Case("ldexp", lambda a, k: torch.ldexp(a, k), [x, whole(3, 4)])


FAMILIES = (matrices, spectra, special, statistics, losses, signals, rearranged)
