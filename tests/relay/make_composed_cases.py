# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/relay/op_cases_composed.txt: composed operators with what numpy computes for them, by the definition.

Needs numpy. Run it from the repository's root after adding a case:
  python3 tests/relay/make_composed_cases.py
"""
import numpy as np

from op_case_file import case, write


def f(*shape, low=-2.0, high=2.0):
    """The same numbers whatever was drawn before, so that new cases leave the others alone."""
    rng = np.random.default_rng([len(shape), *shape])
    return np.round(rng.uniform(low, high, shape), 3).astype(np.float32)


def i64(*values):
    return np.array(values, dtype=np.int64)


def like():
    x, like = f(2, 3, 4), f(4, 6)
    case("cast_like", [x, i64(1, 2)], x.astype(np.int64))
    case("reshape_like", [x, like], x.reshape(4, 6))
    case("reshape_like", [f(2, 3, 4), f(9, 6, 1)], f(2, 3, 4).reshape(6, 4), lhs_begin=0, lhs_end=2, rhs_begin=1, rhs_end=2)
    case("reshape_like", [f(2, 3, 4), f(4, 3, 9)], f(2, 3, 4).reshape(2, 4, 3), lhs_begin=-2, rhs_end=-1)
    case("broadcast_to_like", [f(3, 1), f(2, 3, 4)], np.broadcast_to(f(3, 1), (2, 3, 4)))
    case("slice_like", [f(5, 4), f(3, 2)], f(5, 4)[:3, :2])
    case("slice_like", [f(5, 4, 3), f(3, 2, 3)], f(5, 4, 3)[:, :2], axes=[-2])
    case("collapse_sum_like", [f(2, 3, 4), f(3, 1)], f(2, 3, 4).sum(0).sum(-1, keepdims=True))
    case("collapse_sum_like", [f(2, 3), f(2, 3)], f(2, 3))
    case("collapse_sum_to", [f(2, 3, 4), i64(1, 4)], f(2, 3, 4).sum((0, 1)).reshape(1, 4))
    case("collapse_sum_to", [f(2, 3, 4), i64(4)], f(2, 3, 4).sum((0, 1)), shape=[4])


def quantization():
    x, number = f(3, 5), lambda v: np.array(v, np.float32)  # noqa: E731
    expected = np.clip(np.round(x / np.float32(0.3)), -4, 5) * np.float32(0.3)
    case("relay.op.annotation.simulated_quantize", [x, number(0.3), number(-4), number(5)], expected)
    case("relay.op.annotation.simulated_quantize", [x, number(0.3), number(-4), number(5)], expected, kind=2, sign=False)


def winograd():
    """Tiles of two outputs by the filter matrix that every text has (points 0, -1, 1 and infinity); results by the definition of a convolution."""
    g = np.array([[1, 0, 0], [0.5, -0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 1]])

    def convolve(x, w, pad):
        spatial = x.ndim - 2
        x = np.pad(x, [(0, 0)] * 2 + [(p, p) for p in pad]).astype(np.float64)
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=tuple(range(2, x.ndim)))
        letters = "xyz"[:spatial]
        return np.einsum(f"nc{letters}{letters.upper()},oc{letters.upper()}->no{letters}", windows, w).astype(np.float32)

    x, w = f(1, 3, 5, 6), f(2, 3, 3, 3)
    points = np.einsum("ea,fb,ocab->efoc", g, g, w).astype(np.float32)
    case("nn.contrib_conv2d_winograd_weight_transform", [w], points, tile_size=2)
    turned = points.transpose(0, 1, 3, 2).copy()
    name = "nn.contrib_conv2d_winograd_without_weight_transform"
    case(name, [x, turned], convolve(x, w, (1, 1)), tile_size=2, padding=[1, 1, 1, 1], channels=2, kernel_size=[3, 3])
    case(name, [x, turned], convolve(x, w, (0, 0)), tile_size=2)
    case(name, [x.transpose(0, 2, 3, 1).copy(), turned], convolve(x, w, (1, 1)).transpose(0, 2, 3, 1).copy(), tile_size=2, padding=[1], kernel_size=[3, 3],
         data_layout="NHWC")
    case(name, [x, points.reshape(4, 4, 1, 2, 3).transpose(0, 1, 2, 4, 3).copy()], convolve(x, w, (1, 1)), tile_size=2, padding=[1, 1], kernel_size=[3, 3])
    x, w = f(1, 2, 4, 5, 4), f(3, 2, 3, 3, 3)
    points = np.einsum("ea,fb,gd,ocabd->efgoc", g, g, g, w).astype(np.float32)
    case("nn.contrib_conv3d_winograd_weight_transform", [w], points, tile_size=2)
    case("nn.contrib_conv3d_winograd_without_weight_transform", [x, points.transpose(0, 1, 2, 4, 3).copy()], convolve(x, w, (1, 1, 1)), tile_size=2,
         padding=[1, 1, 1], channels=3, kernel_size=[3, 3, 3])
    w = f(3, 2, 1, 3, 3)
    points = np.einsum("fb,gd,ocabd->afgoc", g, g, w).astype(np.float32)
    case("nn.contrib_conv3d_winograd_weight_transform", [w], points, tile_size=2)
    case("nn.contrib_conv3d_winograd_without_weight_transform", [x, points.transpose(0, 1, 2, 4, 3).copy()], convolve(x, w, (0, 1, 1)), tile_size=2,
         padding=[0, 1, 1], kernel_size=[1, 3, 3])
    x, w = f(1, 5, 6, 3), f(3, 3, 3, 5)
    flat = np.pad(w.reshape(27, 5), [(0, 5), (0, 3)])
    panels = flat.reshape(4, 8, 2, 4).transpose(2, 0, 3, 1).copy()
    case("nn.contrib_conv2d_gemm_weight_transform", [w], panels, tile_rows=4, tile_cols=8)
    case("nn.contrib_conv2d_gemm_without_weight_transform", [x, panels], convolve(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (1, 1)).transpose(0, 2, 3, 1).copy(),
         padding=[1, 1, 1, 1], channels=5, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO")


def memory():
    case("vm.shape_of", [f(2, 3)], np.array([2, 3]), dtype="int64")
    case("vm.reshape_tensor", [f(2, 3), i64(3, 2)], f(2, 3).reshape(3, 2), newshape=[3, 2])


for make in (like, quantization, winograd, memory):
    make()
write("op_cases_composed.txt", "tests/relay/make_composed_cases.py with numpy")
