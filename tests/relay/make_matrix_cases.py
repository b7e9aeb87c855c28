# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/relay/op_cases_matrices.txt: decompositions of matrices with what loops in numpy and LAPACK compute for them.

Needs numpy. Run it from the repository's root after adding a case:
  python3 tests/relay/make_matrix_cases.py
"""
import numpy as np

from op_case_file import case, write

rng = np.random.default_rng(5)


def f(*shape):
    return np.round(rng.uniform(-1, 1, shape), 3).astype(np.float32)


def factors(a):
    """Row by row with the largest pivot, as LAPACK has it."""
    a, pivots = a.astype(np.float64), []
    for k in range(min(a.shape)):
        best = k + int(np.argmax(np.abs(a[k:, k])))
        pivots.append(best)
        a[[k, best]] = a[[best, k]]
        for i in range(k + 1, a.shape[0]):
            if a[k, k] != 0:
                a[i, k] /= a[k, k]
                a[i, k + 1:] -= a[i, k] * a[k, k + 1:]
    return a.astype(np.float32), np.array(pivots, np.int64)


def order(pivots, rows):
    out = list(range(rows))
    for k, p in enumerate(pivots):
        out[k], out[p] = out[p], out[k]
    return np.array(out, np.int64)


for shape in ((4, 4), (5, 3), (3, 5), (1, 1), (2, 3, 3)):
    x = f(*shape)
    made = [factors(m) for m in x.reshape(-1, *shape[-2:])]
    pivots = np.stack([p for _, p in made]).reshape(*shape[:-2], min(shape[-2:]))
    case("linalg.lu", [x], [np.stack([z for z, _ in made]).reshape(shape), pivots])
    case("linalg.row_order", [pivots], np.stack([order(p, shape[-2]) for _, p in made]).reshape(*shape[:-2], shape[-2]), rows=shape[-2])
zeros = np.float32([[0, 1, 2], [0, 0, 1], [0, 0, 0]])
case("linalg.lu", [zeros], list(factors(zeros)))

for shape in ((4, 4), (2, 3, 3)):
    x = f(*shape)
    case("linalg.cholesky", [np.tril(x @ x.swapaxes(-1, -2) + np.eye(shape[-1], dtype="float32"))],
         np.linalg.cholesky((x @ x.swapaxes(-1, -2) + np.eye(shape[-1])).astype(np.float64)).astype(np.float32))

for shape, right in (((4, 4), (4, 3)), ((2, 3, 3), (2, 3, 1))):
    for upper in (False, True):
        for unit in (False, True):
            a, b = f(*shape) + 2 * np.eye(shape[-1], dtype="float32"), f(*right)
            triangle = (np.triu if upper else np.tril)(a)
            if unit:
                triangle = triangle - np.eye(shape[-1]) * triangle + np.eye(shape[-1])
            case("linalg.solve_triangular", [a, b], np.linalg.solve(triangle.astype(np.float64), b).astype(np.float32), upper=upper, unit=unit)

for shape in ((4, 4), (5, 3), (3, 5), (1, 3), (3, 1), (2, 3, 2)):
    x = f(*shape)
    for complete in (False, True):
        case("linalg.qr", [x], [m.astype(np.float32) for m in np.linalg.qr(x.astype(np.float64), "complete" if complete else "reduced")], complete=complete)

# Vectors have no sign of their own; those of other matrices are compared by what they make (tests/driver/matrices_test.cc).
for values in ([-2, 0.5, 3], [1.5]):
    case("linalg.eigh", [np.diag(np.float32(values))], [np.float32(values), np.eye(len(values), dtype="float32")])
case("linalg.eigh", [np.diag(np.float32([3, -1]))], [np.float32([-1, 3]), np.float32([[0, 1], [1, 0]])])

# Of triangles, which no rotation turns: eigenvalues stand on the diagonal. Pairs are complex numbers.
def pairs(z):
    z = np.asarray(z, np.complex64)
    return np.stack([z.real, z.imag], -1)


for triangle in ([[2]], [[1, 2], [0, 3]], [[1j, 0, 0], [0, -2, 0], [0, 0, 1 + 1j]]):
    m = np.asarray(triangle, np.complex128)
    values = np.diag(m)
    columns = np.eye(len(m), dtype=complex)
    if len(m) == 2:  # of 3: (1, 1) over the root of 2
        columns[:, 1] = 1 / np.sqrt(2)
    case("linalg.eig", [pairs(m)], [pairs(values), pairs(columns)])
case("linalg.svd", [np.float32([[3, 0], [0, 2], [0, 0]])], [np.eye(3, 2, dtype="float32"), np.float32([3, 2]), np.eye(2, dtype="float32")])
case("linalg.svd", [np.float32([[2, 0, 0], [0, 0, 0]])], [np.eye(2, dtype="float32"), np.float32([2, 0]), np.float32([[1, 0, 0], [0, 0, 0]])])
case("linalg.svd", [np.float32([[0, 0, 1], [2, 0, 0]])], [np.float32([[0, 1], [1, 0]]), np.float32([2, 1]), np.float32([[1, 0, 0], [0, 0, 1]])])
write("op_cases_matrices.txt", "tests/relay/make_matrix_cases.py with numpy")
