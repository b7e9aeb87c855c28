# SPDX-License-Identifier: Apache-2.0
"""What can be said of integer expressions: bounds, multiples, sets, simpler forms, bounds of variables."""
import tvm
import tvm.testing
from harness import program, raises
from tvm import te, tir

X, Y, Z = te.var("x"), te.var("y"), te.var("z")
FLD, FLM, TDIV, TMOD = tvm.te.floordiv, tvm.te.floormod, tvm.tir.truncdiv, tvm.tir.truncmod
INF = tvm.arith.ConstIntBound.POS_INF
NEG = tvm.arith.ConstIntBound.NEG_INF


def bounds(expr, **known):
    a = tvm.arith.Analyzer()
    for name, (low, high) in known.items():
        a.update({"x": X, "y": Y, "z": Z}[name], tvm.arith.ConstIntBound(low, high))
    b = a.const_int_bound(expr)
    return b.min_value, b.max_value


@program((X + Y, dict(x=(0, 10), y=(5, 9)), (5, 19)), (X - Y, dict(x=(0, 10), y=(5, 9)), (-9, 5)), (X * Y + 20, dict(x=(-2, 4), y=(4, 10)), (0, 60)), (X * Y, dict(x=(-2, 4), y=(-8, 10)), (-32, 40)),
         (X * Y, dict(x=(NEG, 4), y=(1, 10)), (NEG, 40)), (TDIV(X, Y), dict(x=(-9, 4), y=(4, 10)), (-2, 1)), (TDIV(X, Y), dict(x=(-9, 4), y=(-2, 0)), (-4, 9)),
         (TMOD(X, Y), dict(x=(-9, 4), y=(4, 10)), (-9, 4)), (TMOD(X, Y), dict(x=(NEG, INF), y=(4, 10)), (-9, 9)), (TMOD(X, Y), dict(x=(1, INF), y=(4, 10)), (0, 9)),
         (FLD(X, Y), dict(x=(-9, 4), y=(4, 10)), (-9 // 4, 1)), (FLD(X, Y), dict(x=(-9, 4), y=(-2, 0)), (-4, 9)), (FLD(X, Y), dict(x=(NEG, 4), y=(-5, -1)), (-4, INF)),
         (FLM(X, Y), dict(x=(-9, 4), y=(4, 10)), (0, 9)), (FLM(X, Y), dict(x=(NEG, INF), y=(4, 10)), (0, 9)), (FLM(X, Y), dict(x=(1, 4), y=(10, 20)), (1, 4)),
         (tir.Min(X, Y), dict(x=(-9, 11), y=(4, 10)), (-9, 10)), (tir.Min(X, Y), dict(x=(NEG, INF), y=(4, 10)), (NEG, 10)), (tir.Max(X, Y), dict(x=(-9, 11), y=(4, 10)), (4, 11)),
         (tir.Max(X, Y), dict(x=(NEG, INF), y=(4, 10)), (4, INF)), (tir.Select(X > 1, (Y < 0).astype("int32"), Y + 1), dict(x=(-9, 11), y=(4, 10)), (0, 11)),
         (X << Y, dict(x=(2, 2), y=(0, 10)), (2, 2 * 2 ** 10)), (X >> Y, dict(x=(-9, 11), y=(4, 10)), (-1, 0)), (X & Y, dict(x=(-9, 11), y=(4, 10)), (0, 10)),
         (X & Y, dict(x=(10, 20), y=(0, 6)), (0, 6)), ((X % 8) * 4 + (Y % 4), {}, (0, 31)), (X.astype("int64"), dict(x=(3, 9)), (3, 9)), (X - X, {}, (0, 0)))
def bound_of(expr, known, expected):
    assert bounds(expr, **known) == expected, bounds(expr, **known)


@program(("int8", -128, 127), ("uint8", 0, 255), ("int32", -2 ** 31, 2 ** 31 - 1), ("bool", 0, 1), ("uint32", 0, 2 ** 32 - 1), ("int64", NEG, INF))
def bound_of_a_dtype(dtype, low, high):
    b = tvm.arith.Analyzer().const_int_bound(te.var("v", dtype=dtype))
    assert (b.min_value, b.max_value) == (low, high), b
    if dtype in ("int8", "uint8", "bool"):
        b = tvm.arith.Analyzer().const_int_bound(te.var("v", dtype=dtype).astype("int32"))
        assert (b.min_value, b.max_value) == (low, high)


@program
def bounds_after_binding():
    a, m = tvm.arith.Analyzer(), te.var("m")
    a.bind(X, tvm.ir.Range(0, 10))
    assert (a.const_int_bound(X + 1).min_value, a.const_int_bound(X + 1).max_value) == (1, 10)
    a.bind(m, X * 2)
    b = a.const_int_bound(m + 1)
    assert (b.min_value, b.max_value) == (1, 19)
    a.update(Y, tvm.arith.ConstIntBound(-4, 4))
    assert a.const_int_bound(Y).max_value == 4
    a.update(Y, tvm.arith.ConstIntBound(-2, 2), True)
    assert a.const_int_bound(Y).min_value == -2
    with a.constraint_scope(Y >= 1):
        assert a.const_int_bound(Y).min_value == 1
    assert a.const_int_bound(Y).min_value == -2


@program((X, (1, 0)), (X * 4 + 2, (4, 2)), (X * 4 - X * 0 + 1, (4, 1)), (X * 4 + Y * 6, (2, 0)), (X * 4 + Y * 6 + 1, (2, 1)), (6 - X * 4, (4, 2)), (X * 12 + Y * 8 + 3, (4, 3)),
         ((X * 4 + 2) * (Y * 6 + 1), (4, 2)), (FLD(X * 4 + 2, 2), (2, 1)), (FLM(X * 4 + 2, 8), (4, 2)), (TMOD(X * 4, 8), (4, 0)), (tir.Min(X * 3, Y * 9), (3, 0)), (tir.Max(X * 3 + 1, Y * 9 + 4), (3, 1)),
         (tir.Select(X > 0, X * 3 + 1, Y * 9 + 2), (1, 0)), (tir.Select(X > 0, X * 3 + 1, Y * 9 + 4), (3, 1)), (X.astype("int64") * 4, (4, 0)), (X << 2, (4, 0)), (tir.const(7, "int32"), (0, 7)),
         (X * 2, (2, 0)))
def modular(expr, expected):
    m = tvm.arith.Analyzer().modular_set(expr)
    assert (m.coeff, m.base) == expected, m


@program
def modular_under_constraints():
    a = tvm.arith.Analyzer()
    assert isinstance(a.modular_set(X), tvm.arith.ModularSet)
    with a.constraint_scope(FLM(X, 3) == 2):
        m = a.modular_set(X)
        assert (m.coeff, m.base) == (3, 2)
        m = a.modular_set(X + 1)
        assert (m.coeff, m.base) == (3, 0)
        with a.constraint_scope(FLM(X, 4) == 3):
            m = a.modular_set(X)
            assert (m.coeff, m.base) == (12, 11)
    m = a.modular_set(X)
    assert (m.coeff, m.base) == (1, 0)
    m = tvm.arith.Analyzer().modular_set(X * 3 % 4)
    assert (m.coeff, m.base) == (1, 0)


SIMPLE = [(X - X, 0), (X + Y - Y, X), (X * 4 - X * 4 + 2, 2), ((X + 1) * 3 - X * 3, 3), (FLD(X * 4 + 2, 4), X), (FLM(X * 4 + 3, 4), 3), (FLD(X * 8 + Y * 4, 4), X * 2 + Y), (FLM(X * 8 + 1, 4), 1), (X * 2 + X, X * 3),
          (tir.Min(X + 1, X + 10), X + 1), (tir.Max(X + 1, X + 10), X + 10), (tir.Max(X, X), X), (tir.Min(3, 5), 3), (tir.Select(tir.const(1, "bool"), Y, Z), Y),
          (tir.Max(tir.Min(X, Y), tir.Min(X, Y)), tir.Min(X, Y)), (X * 1 + 0, X), (X * 0, 0), (FLD(X, 1), X), (FLM(X, 1), 0), (FLD(FLD(X, 3), 4), FLD(X, 12)), (X + 3 - 3, X), (Y - (Y - X), X),
          (X * 3 + Y * 3 - (X + Y) * 3, 0), (FLM(X, 4) + FLD(X, 4) * 4, X), (FLD(X, 4) * 4 + FLM(X, 4), X), (FLD(X * 6 + 3, 6), X), (0 - X * -1, X), (X + X, X * 2), (X < X, False), (X <= X, True), (X == X + 1, False),
          (X + 1 > X, True), (tir.any(X > X, Y == Y), True), (tir.all(X > X, Y > 1), False), (X.equal(X), True), (FLM(FLM(X, 8), 4), FLM(X, 4)), (FLM(X + 8, 4), FLM(X, 4)), (FLD(X + 8, 4), FLD(X, 4) + 2),
          (FLM(X * 10 + Y, 5), FLM(Y, 5)), (FLM(X * 10 + 1 + Y * 2 + 2, 2), 1), (FLM(X * 2 + 1, 2), 1),
          (tir.Min(tir.Max(X, 11), 10), 10), (tir.Max(tir.Min(X, 10), 11), 11), (tir.Max(X * 2, X * 2 + 1), X * 2 + 1), (2 * X + 3 < 2 * X + 4, True),
          (tir.Max(X, Y) - tir.Max(Y, X), 0), (tir.Min(X, Y) - tir.Min(Y, X), 0)]


@program(*SIMPLE)
def simplest(expr, expected):
    a = tvm.arith.Analyzer()
    made = a.simplify(expr)
    assert tvm.ir.structural_equal(made, tir.const(expected, "bool") if isinstance(expected, bool) else tir.const(expected, "int32") if isinstance(expected, int) else expected), made


@program((FLD(X, 10), (0, 9), 0), (FLM(X, 10), (0, 9), X), (FLD(X * 4 + FLM(Y, 4), 4), (0, 9), X), (FLD(X + 10, 10), (0, 9), 1), (tir.Max(X, 0), (0, 9), X), (tir.Min(X, 10), (0, 9), X), (X < 10, (0, 9), True),
         (X >= 10, (0, 9), False), (TDIV(X, 10), (0, 9), 0), (TMOD(X, 10), (0, 9), X), (TDIV(X * 3 + 2, 3), (0, 100), X), (TMOD(X * 3 + 2, 3), (0, 100), 2), (tir.Select(X > 20, Y, Z), (0, 9), Z),
         (tir.if_then_else(X > 20, Y, Z), (0, 9), Z), (FLD(X * 8 + 7, 8), (0, 9), X), (tir.any(X > 3, X > 20), (4, 9), True), (tir.all(X < 10, X > -1), (0, 9), True), (X == 12, (0, 9), False), (X.equal(5), (5, 5), True))
def simplest_in_ranges(expr, known, expected):
    a = tvm.arith.Analyzer()
    a.update(X, tvm.arith.ConstIntBound(*known))
    made = a.simplify(expr)
    assert tvm.ir.structural_equal(made, tir.const(expected, "bool") if isinstance(expected, bool) else tir.const(expected, "int32") if isinstance(expected, int) else expected), made


@program
def rewrite_and_canonical_agree():
    a = tvm.arith.Analyzer()
    assert tvm.ir.structural_equal(a.rewrite_simplify(X + Y - X), Y)
    assert tvm.ir.structural_equal(a.canonical_simplify(X * 2 + Y * 0 - X), X)
    assert a.can_prove(X + 1 > X) and not a.can_prove(X > Y)
    assert a.can_prove_equal(X * 4 + 4, (X + 1) * 4)
    a.bind(Y, X + 1)
    assert a.can_prove(Y > X)
    with a.constraint_scope(X > 5):
        assert a.can_prove(X > 4)
    assert not a.can_prove(X > 4)


@program
def vectors_simplify():
    a = tvm.arith.Analyzer()
    assert tvm.ir.structural_equal(a.rewrite_simplify(tir.Ramp(X, 1, 4) + tir.Ramp(Y, 2, 4)), tir.Ramp(X + Y, 3, 4))
    assert tvm.ir.structural_equal(a.rewrite_simplify(tir.Ramp(X, 1, 2) + tir.Broadcast(Y, 2)), tir.Ramp(X + Y, 1, 2))
    assert tvm.ir.structural_equal(a.rewrite_simplify(tir.Broadcast(X, 2) + tir.Broadcast(Y, 2)), tir.Broadcast(X + Y, 2))
    assert tvm.ir.structural_equal(a.rewrite_simplify(tir.Broadcast(X, 2) * tir.Broadcast(Y, 2)), tir.Broadcast(X * Y, 2))


def is_interval(made, low, high):
    a = tvm.arith.Analyzer()
    return a.can_prove_equal(made.min_value, low) and a.can_prove_equal(made.max_value, high)


@program
def interval_objects():
    s = tvm.arith.IntervalSet(1, 9)
    assert s.min_value.value == 1 and s.max_value.value == 9
    s = tvm.arith.IntSet.vector(tir.Ramp(1, 2, 4))
    assert (s.min_value.value, s.max_value.value) == (1, 7)
    s = tvm.arith.IntSet.single_point(X)
    assert s.min_value.same_as(X) and s.is_single_point()
    assert not s.is_nothing() and not tvm.arith.IntervalSet(0, 3).is_single_point()


@program((X + Y, {X: (0, 10)}, lambda: (Y, Y + 10)), (X - Y, {X: (0, 10), Y: (1, 11)}, lambda: (-11, 9)), (X * Y, {X: (0, 10)}, None), (X * 4, {X: (1, 5)}, lambda: (4, 20)), (X * -4, {X: (1, 5)}, lambda: (-20, -4)),
         (FLD(X, 4), {X: (0, 10)}, lambda: (0, 2)), (FLM(X, 4), {X: (0, 10)}, lambda: (0, 3)), (tir.Max(X, 4), {X: (0, 10)}, lambda: (4, 10)), (tir.Min(X, 4), {X: (0, 10)}, lambda: (0, 4)),
         (X + 1, {X: (0, 10)}, lambda: (1, 11)), (X + Z * 2, {X: (0, 3)}, lambda: (Z * 2, Z * 2 + 3)), (tir.Select(X > 0, X + 1, X - 1), {X: (0, 10)}, lambda: (-1, 11)), (FLM(X, 10), {X: (3, 5)}, lambda: (3, 5)),
         (TMOD(X, 10), {X: (3, 5)}, lambda: (3, 5)), (TDIV(X, 2), {X: (3, 5)}, lambda: (1, 2)), (Y, {X: (0, 1)}, lambda: (Y, Y)))
def set_of(expr, known, expected):
    made = tvm.arith.Analyzer().int_set(expr, {v: tvm.arith.IntervalSet(low, high) for v, (low, high) in known.items()})
    if expected is None:
        assert made is not None
        return
    low, high = expected()
    assert is_interval(made, low, high), (made.min_value, made.max_value)


@program((X, lambda b: X < b, 1), (X + 1, lambda b: X + 1 > b, 1))
def deduced_bound_kinds(expr, condition, _):
    b = te.var("b")
    made = tvm.arith.deduce_bound(X, condition(b), {b: tvm.arith.IntervalSet(0, 10)}, {})
    assert made.max_value is not None and made.min_value is not None


@program
def deduced_bounds():
    a, b, c, d = (te.var(n) for n in "abcd")
    bs, cs, ds = tvm.arith.IntervalSet(2, 3), tvm.arith.IntervalSet(8, 9), tvm.arith.IntervalSet(-3, -1)
    same = lambda p, q: tvm.testing.assert_prim_expr_equal(p, q)  # noqa: E731
    r = tvm.arith.deduce_bound(a, (-b) * a + c - d >= 0, {b: bs, c: cs, d: ds}, {})
    same(r.max_value, tir.floordiv(d - c, b * -1))
    r = tvm.arith.deduce_bound(a, a + 4 * b - c >= 0, {b: bs, c: cs}, {})
    same(r.min_value, c - 4 * b)
    r = tvm.arith.deduce_bound(a, a * 4 + 20 < 100, {}, {})
    same(r.max_value, 19)
    r = tvm.arith.deduce_bound(a, a - 10 >= 0, {}, {})
    same(r.min_value, 10)
    r = tvm.arith.deduce_bound(a, tir.const(100, "int32") < a * 4, {}, {})
    same(r.min_value, 26)
    r = tvm.arith.deduce_bound(a, 10 - a > 0, {}, {})
    same(r.max_value, 9)


@program
def touched():
    i, j, n, m = te.var("i"), te.var("j"), te.size_var("n"), te.size_var("m")
    a = tvm.tir.decl_buffer((n, m), name="a")
    body = tir.For(i, 0, 10, 0, tir.For(j, 0, 20, 0, tir.BufferStore(a, tir.BufferLoad(a, [i + 1, j]) + 1.0, [i, j])))
    read = tvm.arith._ffi_api.DomainTouched(body, a, True, False)
    assert (read[0].min.value, read[0].extent.value, read[1].min.value, read[1].extent.value) == (1, 10, 0, 20)
    both = tvm.arith._ffi_api.DomainTouched(body, a, True, True)
    assert (both[0].min.value, both[0].extent.value) == (0, 11)


@program((X * 4 + Y * 2 + 3, [X, Y], [4, 2, 3]), (X, [X], [1, 0]), (X + X, [X], [2, 0]), (Y * 3, [X], [0, None]), (X * Y, [X], None), (X * X, [X], []), (X - Y, [Y], [-1, None]), (7 + X * 0, [X], [0, 7]))
def linear(expr, variables, expected):
    made = tvm.arith.detect_linear_equation(expr, variables)
    if expected is None:
        return
    assert len(made) == len(expected)
    for got, want in zip(made, expected):
        if want is not None:
            tvm.testing.assert_prim_expr_equal(got, want)


@program
def clip_bounds():
    a, b, n = te.var("a"), te.var("b"), te.var("n")
    m = tvm.arith.detect_clip_bound(tir.all(a * 1 < b * 6, a - 1 > 0), [a])
    assert m[0].value == 2
    tvm.testing.assert_prim_expr_equal(m[1], b * 6 - 1)
    m = tvm.arith.detect_clip_bound(tir.all(a >= 1, a < n), [a])
    assert m[0].value == 1
    tvm.testing.assert_prim_expr_equal(m[1], n - 1)
    assert len(tvm.arith.detect_clip_bound(tir.all(a * a < 3), [a])) == 0


@program
def mistakes():
    a = tvm.arith.Analyzer()
    raises(Exception, a.simplify, "x + 1")
    raises(Exception, a.update, X, 5)
    a.update(X, tvm.arith.ConstIntBound(0, 1))
    raises(Exception, a.update, X, tvm.arith.ConstIntBound(0, 2))
