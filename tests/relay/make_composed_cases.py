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


for make in (like,):
    make()
write("op_cases_composed.txt", "tests/relay/make_composed_cases.py with numpy")
