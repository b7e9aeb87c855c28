# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/relay/op_cases_classic.txt: classic operators of indexing, networks and random numbers, with what numpy computes by their definition.

Needs numpy. Run it from the repository's root after adding a case:
  python3 tests/relay/make_classic_cases.py
"""
import numpy as np

from op_case_file import case, write


def f(*shape, low=-2.0, high=2.0):
    """The same numbers whatever was drawn before, so that new cases leave the others alone."""
    rng = np.random.default_rng([len(shape), *shape])
    return np.round(rng.uniform(low, high, shape), 3).astype(np.float32)


def i64(*values):
    return np.array(values, dtype=np.int64)


def indexing():
    x = f(4, 7)
    windows = np.stack([np.stack([x[:, i:i + 3] for i in range(0, 5, 2)], 1)], 0)[0]
    case("sliding_window", [x], windows, axis=1, window_shape=[3], strides=[2])
    x = f(2, 5, 6)
    both = np.stack([np.stack([x[:, i:i + 2, j:j + 3] for j in range(0, 4)], 1) for i in range(0, 4, 3)], 1)
    case("sliding_window", [x], both, axis=-2, window_shape=[2, 3], strides=[3, 1])
    where = i64(22, 41, 37)
    case("unravel_index", [where, i64(7, 6)], np.stack(np.unravel_index(where, (7, 6))))
    case("unravel_index", [where.reshape(3, 1).astype(np.int32), np.array([3, 4, 6], np.int32)], np.stack(np.unravel_index(where.reshape(3, 1), (3, 4, 6))).astype(np.int32))
    table = f(5, 4, 3)
    a, b = i64(0, 3, 1, 3).reshape(2, 2), i64(1, 2)
    case("adv_index", [table, a, b], table[a, b], tuple_operand=True)
    case("adv_index", [table, a], table[a], tuple_operand=True)
    case("invert_permutation", [i64(3, 4, 0, 2, 1)], i64(2, 4, 3, 0, 1))
    rows = np.sort(f(9))
    values = np.concatenate([f(2, 3).ravel(), rows[2:4]]).reshape(2, 4)
    case("searchsorted", [rows, values], np.searchsorted(rows, values).astype(np.int32))
    case("searchsorted", [rows, values], np.searchsorted(rows, values, "right"), right=True, dtype="int64")
    rows = np.sort(f(3, 6), -1)
    case("searchsorted", [rows, f(3, 2)], np.stack([np.searchsorted(r, v) for r, v in zip(rows, f(3, 2))]).astype(np.int32))
    dense = np.full((3, 5), -1, np.float32)
    dense[[0, 2, 1], [1, 3, 4]] = [5, 6, 7]
    case("sparse_to_dense", [np.array([[0, 1], [2, 3], [1, 4]]), np.float32([5, 6, 7]), np.float32(-1)], dense, output_shape=[3, 5])
    case("sparse_to_dense", [i64(1, 4), np.float32(3), np.float32(0)], np.float32([0, 3, 0, 0, 3]), output_shape=[5])
    case("sparse_to_dense", [np.int64(2), np.float32(3), np.float32(0)], np.float32([0, 0, 3, 0]), output_shape=[4])
    y = f(5, 6).copy()
    y[1:4:2, -1:0:-2] = f(2, 3)
    case("strided_set", [f(5, 6), f(2, 3), i64(1, -1), i64(4, 0), i64(2, -2)], y)
    y = f(5, 6).copy()
    y[2:] = f(6)
    case("strided_set", [f(5, 6), f(6), i64(2), i64(2**31 - 1), i64(1)], y)
    m = f(2, 3, 4)
    y, d = m.copy(), f(2, 3)
    for i in range(3):
        y[:, i, i] = d[:, i]
    case("matrix_set_diag", [m, d], y)
    # Diagonals 1, 0 and -1; the shorter one above at the right end of its row, the one below at the left.
    y, d = m.copy(), f(2, 3, 3)
    for i in range(3):
        y[:, i, i + 1] = d[:, 0, i]
        y[:, i, i] = d[:, 1, i]
        if i:
            y[:, i, i - 1] = d[:, 2, i - 1]
    case("matrix_set_diag", [m, d], y, k1=-1, k2=1)
    y, d = m.copy(), f(2, 2, 2)
    y[:, 0, 2], y[:, 1, 3], y[:, 0, 3] = d[:, 1, 0], d[:, 1, 1], d[:, 0, 0]
    case("matrix_set_diag", [m, d], y, k1=2, k2=3, super_diag_right_align=False)
    data, index, updates = f(3, 4), np.array([[0, 2, 1, 0], [2, 1, 2, 2]]), f(2, 4)
    put, added = data.copy(), data.copy()
    np.put_along_axis(put, index, updates, 0)
    for r in range(2):
        for c in range(4):
            added[index[r, c], c] += updates[r, c]
    case("scatter", [data, index, updates], put)
    case("scatter_add", [data, index, updates], added)
    case("scatter_add", [data, np.array([[1], [3], [1]]), f(3, 1)], data + f(3, 1) * np.eye(4, dtype=np.float32)[[1, 3, 1]], axis=1)
    x, lengths = f(4, 3, 2), np.int32([1, 4, 2])
    inside = np.arange(4)[:, None] < lengths
    case("sequence_mask", [x, lengths], np.where(inside[..., None], x, 0))
    case("sequence_mask", [x.transpose(1, 0, 2), lengths.astype(np.float32)], np.where(inside.T[..., None], x.transpose(1, 0, 2), np.float32(-0.5)), mask_value=-0.5, axis=1)
    case("contrib_reverse_reshape", [f(2, 3, 4)], f(2, 3, 4).reshape(6, 4), newshape=[-1, 0])
    case("contrib_reverse_reshape", [f(2, 3, 4)], f(2, 3, 4).reshape(2, 3, 4), newshape=[-1, 0, 0])


def sparse():
    places = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]])
    flat = np.ravel_multi_index(places.T, (2, 3, 6))
    case("sparse_reshape", [places, i64(2, 3, 6), i64(9, -1)], [np.stack(np.unravel_index(flat, (9, 4)), 1), i64(9, 4)])
    case("sparse_reshape", [places.astype(np.int32), i64(2, 3, 6), i64(36)], [flat[:, None].astype(np.int32), i64(36)])
    places, values = np.array([[0, 1], [0, 3], [2, 0], [3, 1]]), i64(1, 2, 3, 4)
    case("sparse_fill_empty_rows", [places, values, i64(6, 5), np.int64(9)],
         [np.array([[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0], [5, 0]]), i64(1, 2, 9, 3, 4, 9, 9), np.array([False, True, False, False, True, True])])


def arithmetic():
    x = f(3, 5, low=-5, high=5)
    case("hardswish", [x], x * np.clip(x + 3, 0, 6) / 6)
    x = np.int32([[5, -7, 1 << 20], [-(1 << 20), 3, -3]])
    real = x.astype(np.float64) * 1395864371 * 2.0 ** (1 - 31)
    case("fixed_point_multiply", [x], np.floor(real + 0.5).astype(np.int32), multiplier=1395864371, shift=1)
    case("fixed_point_multiply", [x], np.floor(x * 2.0 ** -2 + 0.5).astype(np.int32), multiplier=1 << 30, shift=-1)
    re, im = f(2, 7), f(7, 2).T.copy()
    z = np.fft.fft(re + 1j * im)
    case("dft", [re, im], [z.real.astype(np.float32), z.imag.astype(np.float32)])
    z = np.fft.ifft(re + 1j * im)
    case("dft", [re, im], [z.real.astype(np.float32), z.imag.astype(np.float32)], inverse=True)
    x, window = f(2, 20), f(6, low=0.1)
    frames = np.stack([x[:, i:i + 8] for i in range(0, 13, 4)], 1) * np.pad(window, 1)
    z = np.fft.rfft(frames).transpose(0, 2, 1)
    case("stft", [x, window], np.stack([z.real, z.imag], -1).astype(np.float32), n_fft=8, hop_length=4, win_length=6)
    frames = np.stack([x[:, i:i + 8] for i in range(0, 13, 2)], 1) * f(8)
    z = np.fft.fft(frames).transpose(0, 2, 1) / np.sqrt(8)
    case("stft", [x, f(8)], np.stack([z.real, z.imag], -1).astype(np.float32), n_fft=8, normalized=True, onesided=False)
    case("debug", [f(2, 3)], f(2, 3))
    for name in ("checkpoint", "bitpack_start", "bitpack_end", "with_funcid"):
        case(f"annotation.{name}", [f(2, 3)], f(2, 3))
    case("annotation.cast_hint", [f(2, 3)], f(2, 3), dtype="float16")


def pool_gradients(grad, x, k, s, pad, dilation=(1, 1), include=False):
    """By the definition: (of the maxima, of the means) of windows over (N, C, H, W), one at a time."""
    t, l, b, r = pad
    wide = np.pad(x, [(0, 0), (0, 0), (t, b), (l, r)], constant_values=-np.inf)
    of_max, of_mean = np.zeros((x.shape[0], x.shape[1], *(d + 64 for d in wide.shape[2:])), np.float64), None
    of_mean = of_max.copy()
    for n, c, y, z in np.ndindex(grad.shape):
        taps = [(y * s[0] + i * dilation[0], z * s[1] + j * dilation[1]) for i in range(k[0]) for j in range(k[1])]
        real = [(i, j) for i, j in taps if t <= i < t + x.shape[2] and l <= j < l + x.shape[3]]
        counted = [(i, j) for i, j in taps if i < wide.shape[2] and j < wide.shape[3]] if include else real
        best = max(real, key=lambda p: (wide[n, c, p[0], p[1]], -p[0], -p[1]))
        of_max[n, c, best[0], best[1]] += grad[n, c, y, z]
        for p in real:
            of_mean[n, c, p[0], p[1]] += grad[n, c, y, z] / len(counted)
    cut = np.s_[:, :, t:t + x.shape[2], l:l + x.shape[3]]
    return of_max[cut].astype(np.float32), of_mean[cut].astype(np.float32)


def training():
    x = f(2, 3)
    y = np.full((3, 7), 0.25, np.float32)
    y[::2, ::3] = f(2, 3)
    case("nn.dilate", [x], y, strides=[2, 3], dilation_value=0.25)
    case("nn.dilate", [x], np.insert(x, 1, 0, 0), strides=[2, 1])
    p, w = f(4, 3, 2), f(3, low=0.2)
    t = np.int64([[0, 2], [1, -100], [2, 2], [1, 0]])
    picked = np.take_along_axis(p, np.where(t < 0, 0, t)[:, None], 1)[:, 0]
    weight = np.where(t < 0, 0, w[np.where(t < 0, 0, t)])
    case("nn.nll_loss", [p, t, w], np.float32(-(picked * weight).sum() / weight.sum()))
    case("nn.nll_loss", [p, t, w], np.float32(-(picked * weight).sum()), reduction="sum")
    case("nn.nll_loss", [p, np.where(t < 0, 1, t), w], -(np.take_along_axis(p, np.where(t < 0, 1, t)[:, None], 1)[:, 0] * np.where(t == 2, 0, w[np.where(t < 0, 1, t)])).astype(np.float32),
         reduction="none", ignore_index=2)
    p, y = f(4, 5, low=0.1), f(5, 4, low=0).T.copy()
    case("nn.cross_entropy", [p, y], np.float32(-(np.log(p) * y).sum() / 4))
    case("nn.cross_entropy_with_logits", [p, y], np.float32(-(p * y).sum() / 4))
    case("nn.fifo_buffer", [f(2, 1, 3), f(2, 4, 3)], np.concatenate([f(2, 4, 3)[:, 1:], f(2, 1, 3)], 1), axis=1)
    case("nn.fifo_buffer", [f(6, 3), f(4, 3)], f(6, 3)[2:])
    a, b = f(1, 3, 6, 5), f(3, 1, 5, 6).transpose(1, 0, 3, 2).copy()
    for k, pads, stride1, stride2, multiply in ((1, [2], 1, 1, True), (3, [3, 3], 2, 2, False)):
        far, half = 2, (k - 1) // 2
        t = pads[0]
        u, v = (np.pad(x, [(0, 0), (0, 0), (t, t), (t, t)]) for x in (a, b))
        border = far + half
        rows, cols = (-(-(d - 2 * border) // stride1) for d in u.shape[2:])
        steps = range(-(far // stride2) * stride2, far + 1, stride2)
        out = np.zeros((1, len(steps) ** 2, rows, cols), np.float32)
        for channel, (dy, dx) in enumerate((dy, dx) for dy in steps for dx in steps):
            for y, x in np.ndindex(rows, cols):
                at = (y * stride1 + far, x * stride1 + far)
                p = u[0, :, at[0]:at[0] + k, at[1]:at[1] + k]
                q = v[0, :, at[0] + dy:at[0] + dy + k, at[1] + dx:at[1] + dx + k]
                out[0, channel, y, x] = ((p * q) if multiply else abs(p - q)).sum() / (k * k * 3)
        case("nn.correlation", [a, b], out, kernel_size=k, max_displacement=far, stride1=stride1, stride2=stride2, padding=pads, is_multiply=multiply)
    for groups, stride in ((1, 2), (2, 1)):
        x, size = f(2, 4, 7, 6), [3, 2]
        wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0)])
        oh, ow = (wide.shape[2] - 3) // stride + 1, (wide.shape[3] - 2) // stride + 1
        g = f(2, 6, oh, ow)
        dw = np.zeros((6, 4 // groups, 3, 2), np.float32)
        for o, i, ky, kx in np.ndindex(dw.shape):
            part = wide[:, o // (6 // groups) * (4 // groups) + i, ky:ky + oh * stride:stride, kx:kx + ow * stride:stride][:, :oh, :ow]
            dw[o, i, ky, kx] = (part * g[:, o]).sum()
        case("nn.conv2d_backward_weight", [g, x], dw, strides=[stride, stride], padding=[1, 0, 1, 0], groups=groups, channels=6, kernel_size=size, data_layout="NCHW",
             kernel_layout="NCHW", out_layout="OIHW")
    x = f(2, 3, 7, 6)
    x[0, 0] = np.round(x[0, 0])  # equal elements in a window
    for k, s, pad, shape, more in (((3, 3), (2, 2), (1, 1, 1, 1), (4, 3), {}), ((2, 3), (1, 2), (0, 1, 0, 0), (6, 3), {}), ((2, 2), (2, 2), (0, 0, 0, 0), (4, 3), {"ceil_mode": True}),
                                   ((2, 2), (1, 1), (0, 0, 0, 0), (5, 3), {"dilation": [2, 3]})):
        g = f(2, 3, *shape)
        attrs = dict(pool_size=k, strides=s, padding=pad, **more)
        dilation = more.get("dilation", (1, 1))
        of_max, of_mean = pool_gradients(g, x, k, s, pad, dilation)
        case("nn.max_pool2d_grad", [g, x], of_max, **attrs)
        case("nn.avg_pool2d_grad", [g, x], of_mean, **attrs)
    g = f(2, 3, 4, 3)
    case("nn.avg_pool2d_grad", [g, x], pool_gradients(g, x, (3, 3), (2, 2), (1, 1, 1, 1), include=True)[1], pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], count_include_pad=True)
    v = f(1, 2, 2, 3, 2)
    case("nn.upsampling3d", [v], v.repeat(2, 2).repeat(3, 3).repeat(2, 4), scale_d=2, scale_h=3, scale_w=2)
    case("nn.upsampling3d", [v.transpose(0, 2, 3, 4, 1)], v.repeat(2, 2).transpose(0, 2, 3, 4, 1), scale_d=2, layout="NDHWC")
    line = v[:, :, :, :, :1]
    mixed = np.stack([line[:, :, 0], line[:, :, 0] * 0.75 + line[:, :, 1] * 0.25, line[:, :, 0] * 0.25 + line[:, :, 1] * 0.75, line[:, :, 1]], 2)
    case("nn.upsampling3d", [line], mixed, scale_d=2, method="trilinear")


def dynamic():
    x = f(2, 5)
    order = np.argsort(-x, 1, kind="stable")[:, :3]
    case("dyn.topk", [x, i64(3)], [np.take_along_axis(x, order, 1), order.astype(np.int32)], axis=1, ret_type="both")
    case("dyn.topk", [x, i64(2)], np.sort(x, 1)[:, :2], axis=1, ret_type="values", is_ascend=True)
    dense = np.full((3, 4), -1, np.float32)
    dense[[0, 2], [1, 3]] = [5, 6]
    case("dyn.sparse_to_dense", [np.array([[0, 1], [2, 3]]), i64(3, 4), np.float32([5, 6]), np.float32(-1)], dense)
    case("dyn.nn.pad", [x, np.array([[0, 1], [2, 0]]), np.float32(9)], np.pad(x, ((0, 1), (2, 0)), constant_values=9))
    image, volume = f(1, 2, 3, 4), f(1, 2, 2, 3, 2)
    case("dyn.nn.upsampling", [image, np.float32(2), np.float32(3)], image.repeat(2, 2).repeat(3, 3))
    case("dyn.nn.upsampling3d", [volume, np.float32(1), np.float32(2), np.float32(3)], volume.repeat(2, 3).repeat(3, 4))
    case("dyn.image.resize2d", [image, i64(6, 8), np.zeros(0, np.float32)], image.repeat(2, 2).repeat(2, 3), method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
         rounding_method="floor")


MASK = (1 << 64) - 1


def threefry(key, counter):
    """Threefry-4x64, 20 rounds, by its definition (Salmon et al. 2011)."""
    k = [*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = list(counter)
    for r in range(20):
        if r % 4 == 0:
            x = [(v + k[(r // 4 + i) % 5] + (r // 4 if i == 3 else 0)) & MASK for i, v in enumerate(x)]
        for i, by in zip((0, 2), ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))[r % 8]):
            x[i] = (x[i] + x[i + 1]) & MASK
            x[i + 1] = ((x[i + 1] << by | x[i + 1] >> (64 - by)) & MASK) ^ x[i]
        x[1], x[3] = x[3], x[1]
    return x


# Random123's known answer; it adds the key once more after the last round, which the classic stack does not.
assert threefry([0] * 4, [0] * 4) == [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B - 5]


def generated(state, count):
    """(the state afterwards, count words): block i adds i to each word of path and counter, as the classic stack does."""
    s = list(state)
    if not s[7] < MASK - count:
        bit = s[8] << 64 | s[9]
        if not bit:
            s = [*threefry(s[:4], [MASK] * 4), 0, 0, 0, 0, 1 << 63, 0]
        else:
            s = [*s[:4], s[4] | s[8], s[5] | s[9], 0, 0, bit >> 65, bit >> 1 & MASK]
    words = [w for i in range(count // 4) for w in threefry(s[:4], [(v + i) & MASK for v in s[4:8]])]
    if count % 4:
        s[7] = (s[7] + count // 4 * 4) & MASK
        words += threefry(s[:4], s[4:8])[:count % 4]
    s[6], s[7] = 0, (s[7] + (4 if count % 4 else count)) & MASK
    return s, words


def random():
    u = lambda words: np.array(words, np.uint64)  # noqa: E731
    start = [7, 0, 0, 0, 0, 0, 0, 0, 1 << 63, 0]
    fresh = [11, 2**63 + 5, 3, MASK, 1 << 63, 0, 0, MASK - 5, 1, 0]
    full = [11, 12, 13, 14, 1 << 63, 77, 0, MASK, 0, 0]
    for state, shape in ((start, [2, 6]), (start, [7]), (start, [2]), (fresh, [5]), (full, [3, 3])):
        after, words = generated(state, int(np.prod(shape)))
        case("random.threefry_generate", [u(state)], [u(after), u(words).reshape(shape)], out_shape=shape)
    for state in (start, fresh, [1, 2, 3, 4, 5, 6, 0, 9, 0, 4]):
        bit = (state[8] << 64 | state[9]) >> 1
        left = [*state[:8], bit >> 64, bit & MASK]
        case("random.threefry_split", [u(state)], [u(left), u([*state[:4], state[4] | state[8], state[5] | state[9], *state[6:8], *left[8:]])])
    key = threefry(full[:4], full[4:8])
    case("random.threefry_split", [u(full)], [u([*key, 0, 0, 0, 0, 1 << 62, 0]), u([*key, 1 << 63, 0, 0, 0, 1 << 62, 0])])
    after, words = generated(start, 10)
    unit = np.array([(w & 0xFFFFFFFF) >> 9 for w in words]) * 2.0 ** -23
    case("random.uniform", [u(start), np.float32(-1), np.float32(3)], [u(after), (unit * 4 - 1).astype(np.float32).reshape(2, 5)], out_shape=[2, 5])
    unit = np.array([w >> 12 for w in words]) * 2.0 ** -52
    case("random.uniform", [u(start), np.float64(0), np.float64(2)], [u(after), unit * 2], out_shape=[10], out_dtype="float64")
    after, words = generated(start, 12)
    unit = (np.array([(w & 0xFFFFFFFF) >> 9 for w in words]) * 2.0 ** -23).reshape(2, 6)
    case("random.normal", [u(start), np.float32(1), np.float32(2)],
         [u(after), (np.sqrt(-2 * np.log(1 - unit[0])) * np.sin(2 * np.pi * unit[1]) * 2 + 1).astype(np.float32)], out_shape=[6])


for make in (indexing, sparse, arithmetic, training, dynamic, random):
    make()
write("op_cases_classic.txt", "tests/relay/make_classic_cases.py with numpy")
