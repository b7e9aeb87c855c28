# SPDX-License-Identifier: Apache-2.0
"""Systems of equations and inequalities of integers, against all values."""
import itertools

import numpy as np
import tvm
from harness import program, raises
from tvm import arith, te, tir
from tvm.testing import check_bool_expr_is_true, check_int_constraints_trans_consistency


def random_system(seed, equal):
    source = np.random.RandomState(seed)
    variables = [te.var(n) for n in "xyz"[:source.randint(1, 4)]]
    ranges = {v: tvm.ir.Range.from_min_extent(int(source.randint(-6, 3)), int(source.randint(1, 9))) for v in variables}

    def side():
        total = int(source.randint(-6, 7))
        for v in variables:
            total = total + v * int(source.randint(-3, 4))
        return total
    kinds = [tir.EQ] if equal else [tir.LE, tir.GE, tir.LT, tir.GT, tir.EQ]
    return variables, ranges, [kinds[source.randint(len(kinds))](variables[0] * 0 + side(), variables[-1] * 0 + side()) for _ in range(source.randint(1, 4))]


def solutions(variables, ranges, relations):
    places = itertools.product(*[range(int(ranges[v].min), int(ranges[v].min) + int(ranges[v].extent)) for v in variables])
    simplify = arith.Analyzer().simplify
    return {p for p in places if all(int(simplify(tir.stmt_functor.substitute(r, dict(zip(variables, p))))) if not isinstance(r, int) else r for r in relations)}


@program(*[(seed, equal, deskew) for seed in range(10) for equal, deskew in ((True, False), (False, False), (False, True))])
def random_systems(seed, equal, deskew):
    variables, ranges, relations = random_system(seed, equal)
    want = solutions(variables, ranges, relations)
    if equal:
        found = arith.solve_linear_equations(relations, variables, ranges)
    else:
        found = arith.solve_linear_inequalities(relations, variables, ranges, deskew_range=deskew)
    if not equal and not deskew:
        if not found.variables:
            assert not want
            return
        got = solutions(variables, {v: found.ranges.get(v, ranges[v]) if isinstance(getattr(found.ranges.get(v), "min", None), int) else ranges[v] for v in variables},
                        [*found.relations, *[c for v, r in found.ranges.items() for c in (v >= r.min, v < r.min + r.extent)]])
        assert got == want
        return
    if not found.src_to_dst:
        assert not want
        return
    check_int_constraints_trans_consistency(found)
    new = found.dst.variables
    assert len(solutions(new, found.dst.ranges, found.dst.relations)) == len(want)


@program
def one_solution():
    x, y = te.var("x"), te.var("y")
    found = arith.solve_linear_equations([tir.EQ(x + y, 20), tir.EQ(x - y, 10)], [x, y])
    assert list(found.dst.variables) == [] and found.src_to_dst[x].value == 15 and found.src_to_dst[y].value == 5
    assert isinstance(found, arith.IntConstraintsTransform) and isinstance(found.src, arith.IntConstraints)


@program
def fewer_equations_than_variables():
    x, y, z = te.var("x"), te.var("y"), te.var("z")
    found = arith.solve_linear_equations([tir.EQ(x + y + z, 15), tir.EQ(x + y, 10)], [x, y, z])
    (n,) = found.dst.variables
    assert tvm.ir.structural_equal(found.src_to_dst[x], n + 10) and tvm.ir.structural_equal(found.src_to_dst[y], -n) and found.src_to_dst[z] == 5


@program
def ranges_of_new_variables():
    x, y = te.var("x"), te.var("y")
    found = arith.solve_linear_equations([tir.EQ(x + y, 0)], [x, y], {x: tvm.ir.Range.from_min_extent(-5, 10), y: tvm.ir.Range.from_min_extent(0, 10)})
    (n,) = found.dst.variables
    assert found.dst.ranges[n].min == -9 and found.dst.ranges[n].extent == 10
    (left,) = found.dst.relations
    assert isinstance(left, tir.LE) and left.a == -5 and left.b.same_as(n)


@program
def equations_with_parameters():
    x, a = te.var("x"), te.var("a")
    found = arith.solve_linear_equations([tir.EQ(x * 2, a)], [x])
    assert tvm.ir.structural_equal(found.src_to_dst[x], tir.floordiv(a, 2)) and len(found.dst.relations) == 1
    found = arith.solve_linear_equations([tir.EQ(x + a, 3)], [x])
    assert tvm.ir.structural_equal(found.src_to_dst[x], arith.Analyzer().simplify(3 - a)) and not found.dst.relations


@program
def nothing_solves():
    x, y = te.var("x"), te.var("y")
    for found in (arith.solve_linear_equations([tir.EQ(x + y, 0), tir.EQ(x - y, 0), tir.EQ(x, 5)], [x, y], {}), arith.solve_linear_equations([tir.EQ(x * 2, 3)], [x]),
                  arith.solve_linear_inequalities([x + 1 <= 0, x >= 2], [x], {}, deskew_range=True)):
        (never,) = found.dst.relations
        assert not found.dst.variables and not found.src_to_dst and not found.dst_to_src and tvm.ir.structural_equal(never, tir.const(False))
    none = arith.solve_linear_inequalities([x + 1 <= 0, x >= 2], [x])
    assert not none.variables and not none.ranges and not none.relations[0]


@program
def bounds_of_two_variables():
    x, y = te.var("x"), te.var("y")
    ranges = {x: tvm.ir.Range(-100, 100), y: tvm.ir.Range(0, 10)}
    problem = [tir.LE(x + y, 20), tir.GE(x - y, 10)]
    said = arith._ffi_api.SolveInequalitiesAsCondition([x, y], ranges, problem)
    assert len(said) == 4 and tvm.ir.structural_equal(said[0], x >= (y + 10)) and tvm.ir.structural_equal(said[2], y >= 0) and tvm.ir.structural_equal(said[3], y <= 5)
    found = arith.solve_linear_inequalities(problem, [x, y], ranges)
    assert (found.ranges[y].min, found.ranges[y].extent, found.ranges[x].extent) == (0, 6, 11) and tvm.ir.structural_equal(found.ranges[x].min, y + 10)
    moved = arith.solve_linear_inequalities(problem, [x, y], ranges, deskew_range=True)
    new_x, new_y = moved.dst.variables
    assert moved.dst.ranges[new_x].min == 0 and moved.dst.ranges[new_x].extent == 11 and moved.dst.ranges[new_y].extent == 6 and len(moved.dst.relations) == 1
    assert tvm.ir.structural_equal(moved.src_to_dst[y], new_y) and tvm.ir.structural_equal(moved.dst_to_src[new_x], x - y - 10)


@program
def bounds_that_meet():
    x, y = te.var("x"), te.var("y")
    problem = [tir.GE(x + y, 10), tir.GE(x - y, 2), tir.LE(x, 6)]
    found = arith.solve_linear_inequalities(problem, [x, y])
    assert (found.ranges[x].min, found.ranges[x].extent, found.ranges[y].min, found.ranges[y].extent) == (6, 1, 4, 1)
    found = arith.solve_linear_inequalities(problem, [x, y], deskew_range=True)
    assert not found.dst.variables and not found.dst.relations and found.src_to_dst[x] == 6 and found.src_to_dst[y] == 4


@program
def groups_of_bounds():
    x, y = te.var("x"), te.var("y")
    best = arith.IntGroupBounds(1, [y, y + 2], [], [y + 5]).find_best_range()
    assert tvm.ir.structural_equal(best.min, y + 2) and best.extent == 4
    same = arith.IntGroupBounds.from_range(tvm.ir.Range.from_min_extent(y, 3))
    assert len(same.lower) == 1 and len(same.upper) == 1 and same.coef == 1 and not same.equal
    assert tvm.ir.Range.from_min_extent(x + 1, 5).extent == 5


@program
def checked_for_all_values():
    x, y = te.var("x"), te.var("y")
    ranges = {x: tvm.ir.Range(0, 10), y: tvm.ir.Range(0, 5)}
    check_bool_expr_is_true(x + y < 14, ranges)
    check_bool_expr_is_true(tir.floordiv(x, 2) < 3, ranges, cond=x < 6)
    assert "x = 9" in str(raises(AssertionError, check_bool_expr_is_true, x < 9, ranges))
    raises(ValueError, check_bool_expr_is_true, te.var("z") < 9, ranges)
    wrong = arith.IntConstraintsTransform(arith.IntConstraints([x], {x: tvm.ir.Range(0, 3)}, []), arith.IntConstraints([y], {y: tvm.ir.Range(0, 3)}, []), {x: y + 1}, {y: x - 1})
    raises(AssertionError, check_int_constraints_trans_consistency, wrong)
