# SPDX-License-Identifier: Apache-2.0
"""Index expressions as parts of iterators, against all values."""
import itertools

import numpy as np
import tvm
from harness import program, raises
from tvm import arith, tir


def of(**extents):
    """Variables and their ranges."""
    variables = {name: tir.Var(name, "int32") for name in extents}
    return variables, {variables[n]: tvm.ir.Range(0, e) for n, e in extents.items()}


def at(expr, values):
    return int(arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, values))) if not isinstance(expr, int) else int(expr)


def rows(exprs, domain):
    places = itertools.product(*[range(int(r.min), int(r.min) + int(r.extent)) for r in domain.values()])
    return [tuple(at(e, dict(zip(domain, place))) for e in exprs) for place in places]


def scrambled(seed):
    """Iterators split and fused at random: all of them, in another order."""
    source = np.random.RandomState(seed)
    _, domain = of(**{f"i{k}": int(source.choice([2, 3, 4, 6])) for k in range(source.randint(1, 4))})
    parts = [(v, int(r.extent)) for v, r in domain.items()]
    for _ in range(source.randint(1, 4)):
        place = source.randint(len(parts))
        value, extent = parts.pop(place)
        factors = [f for f in range(2, extent) if extent % f == 0]
        if source.rand() < 0.6 and factors:
            factor = int(source.choice(factors))
            parts += [(tir.floordiv(value, factor), extent // factor), (tir.floormod(value, factor), factor)]
        elif parts:
            other, more = parts.pop(source.randint(len(parts)))
            parts.append((value * more + other, extent * more))
        else:
            parts.append((value, extent))
    source.shuffle(parts)
    return domain, [p for p, _ in parts], [e for _, e in parts]


@program(*range(24))
def scrambled_iterators(seed):
    domain, exprs, extents = scrambled(seed)
    found = arith.detect_iter_map(exprs, domain, require_bijective=True)
    assert len(found) == len(exprs), found.errors
    assert [sum_.args[0].extent if sum_.args else 1 for sum_ in found] == extents
    assert rows([arith.normalize_iter_map_to_expr(s) for s in found], domain) == rows(exprs, domain)
    outputs = [tir.Var(f"o{k}", "int32") for k in range(len(exprs))]
    inverse = arith.inverse_affine_iter_map(found, outputs)
    for place, values in zip(itertools.product(*[range(int(r.extent)) for r in domain.values()]), rows(exprs, domain)):
        assert tuple(at(inverse[v], dict(zip(outputs, values))) for v in domain) == place


X, Y = tir.Var("x", "int32"), tir.Var("y", "int32")
BOX = {X: tvm.ir.Range(0, 12), Y: tvm.ir.Range(0, 4)}
FOUND = {"both": ([Y, X], True), "fused": ([X * 4 + Y], True), "moved": ([X + 5, Y - 1], True), "halves": ([tir.floordiv(X, 2), tir.floormod(X, 2), Y], True), "one": ([X], False), "part": ([tir.floordiv(X, 3)], False)}
NONE = {"twice": [X, X], "gap": [X * 5 + Y], "overlap": [X * 2 + Y], "product": [X * Y], "uneven": [tir.floordiv(X, 5)], "same part": [tir.floormod(X, 4), tir.floordiv(X, 2)], "min": [tir.min(X, Y)]}


@program(*FOUND)
def found_maps(name):
    exprs, whole = FOUND[name]
    assert len(arith.detect_iter_map(exprs, BOX)) == len(exprs)
    assert bool(arith.detect_iter_map(exprs, BOX, require_bijective=True)) == whole


@program(*NONE)
def no_maps(name):
    assert len(arith.detect_iter_map(NONE[name], BOX)) == 0


@program
def nodes():
    (found,) = arith.detect_iter_map([X + 3], BOX)
    part = found.args[0]
    assert isinstance(found, arith.IterSumExpr) and isinstance(part, arith.IterSplitExpr) and isinstance(part.source, arith.IterMark) and isinstance(part, arith.IterMapExpr)
    assert found.base == 3 and (part.extent, part.scale, part.lower_factor, part.source.extent) == (12, 1, 1, 12) and part.source.source.same_as(X)
    only, fixed = arith.detect_iter_map([X, 7], BOX)
    assert not fixed.args and fixed.base == 7 and only.base == 0
    (trivial,) = arith.detect_iter_map([X], {X: tvm.ir.Range(0, 1)})
    assert not trivial.args
    (kept,) = arith.detect_iter_map([X], {X: tvm.ir.Range(0, 1)}, simplify_trivial_iterators=False)
    assert kept.args[0].extent == 1


@program(11, 33, 47)
def bounded_by_a_predicate(limit):
    (found,) = arith.detect_iter_map([X * 4 + Y], BOX, X * 4 + Y < limit)
    assert found.args[0].extent == limit
    (found,) = arith.detect_iter_map([X * 4 + Y], BOX, tir.all(X * 4 + Y < limit, X * 4 + Y >= 2))
    assert found.args[0].extent == limit - 2 and found.base == 2
    assert rows([arith.normalize_iter_map_to_expr(found)], BOX) == rows([X * 4 + Y], BOX)


@program
def symbolic_extents():
    n, m = tir.Var("n", "int32"), tir.Var("m", "int32")
    (found,) = arith.detect_iter_map([X * m + Y], {X: tvm.ir.Range(0, n), Y: tvm.ir.Range(0, m)})
    assert tvm.ir.structural_equal(arith.Analyzer().simplify(found.args[0].extent - n * m), 0)


@program
def divided_spaces():
    z = tir.Var("z", "int32")
    domain = {**BOX, z: tvm.ir.Range(0, 5)}
    (outer, inner), (left, right) = arith.subspace_divide([z * 48 + X * 4 + Y], domain, [X, Y])
    assert outer.args[0].extent == 5 and inner.args[0].extent == 48 and left.extent == 1 and right.extent == 1
    assert arith.subspace_divide([z * 48 + X * 4 + Y], domain, [z]) == []
    pairs = arith.subspace_divide([z, X * 4 + Y], domain, [X])
    assert pairs == []
    raises(ValueError, arith.inverse_affine_iter_map, [arith.IterSumExpr([inner.args[0], outer.args[0]], 0)], [X])
