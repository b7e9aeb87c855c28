# SPDX-License-Identifier: Apache-2.0
"""Scalar expressions in text, each variable with its type where it is first named; operators of loops by name."""
import tvm
from harness import program, raises, refusing
from tvm import te, tir

X, Y, F = te.var("x"), te.var("y"), te.var("f", "float32")
TEXTS = {
    "(x: int32 + y: int32)": lambda: X + Y, "((x: int32*2) + x)": lambda: X * 2 + X, "((x: int32*2) - 1)": lambda: X * 2 - 1, "(x: int32 - y: int32)": lambda: X - Y,
    "@tir.shift_left(x: int32, y: int32, dtype=int32)": lambda: X << Y, "@tir.shift_right(x: int32, y: int32, dtype=int32)": lambda: X >> Y,
    "@tir.bitwise_and(x: int32, y: int32, dtype=int32)": lambda: X & Y, "@tir.bitwise_or(x: int32, y: int32, dtype=int32)": lambda: X | Y,
    "@tir.bitwise_xor(x: int32, y: int32, dtype=int32)": lambda: X ^ Y, "@tir.shift_left(10, x: int32, dtype=int32)": lambda: 10 << X,
    "@tir.bitwise_not(x: int32, dtype=int32)": lambda: ~X, "floormod(10, x: int32)": lambda: 10 % X, "floordiv(x: int32, 2)": lambda: X // 2, "(x: int32 / 2)": lambda: tir.truncdiv(X, 2),
    "inff16": lambda: tir.infinity("float16"), "inff32": lambda: tir.infinity("float32"), "inff64": lambda: tir.infinity("float64"),
    "@tir.isnan(f: float32, dtype=bool)": lambda: tir.isnan(F), "False": lambda: tir.isnan(te.var("z")), "cast(float32, x: int32)": lambda: tir.Cast("float32", X),
    "((x: int32 > 0) && (y: int32 > 0))": lambda: tir.all(X > 0, Y > 0), "((x: int32 > 0) || (y: int32 > 0))": lambda: tir.any(X > 0, Y > 0),
    "select((x: int32 > 0), x, y: int32)": lambda: tir.Select(X > 0, X, Y), "@tir.if_then_else((x: int32 > 0), x, y: int32, dtype=int32)": lambda: tir.if_then_else(X > 0, X, Y),
    "(cast(float32, x: int32) + 1.5f32)": lambda: X.astype("float32") + 1.5, "(x: int32 == y: int32)": lambda: tir.EQ(X, Y), "max(x: int32, y: int32)": lambda: tir.max(X, Y),
    "@tir.exp(f: float32, dtype=float32)": lambda: tir.exp(F), "(1f32 - f: float32)": lambda: 1.0 - F, "True": lambda: tir.const(True, "bool"), "ramp(x: int32, 1, 4)": lambda: tir.Ramp(X, 1, 4),
    "broadcast(x: int32, 4)": lambda: tir.Broadcast(X, 4), '@tir.call_extern("g", x: int32, dtype=int32)': lambda: tir.call_extern("int32", "g", X),
}


@program(*TEXTS)
def as_text(text):
    assert str(TEXTS[text]()) == text, str(TEXTS[text]())


@program(("x", X), ("(x + y)", X + Y), ("(x*2)", X * 2), ("floordiv(x, y)", X // Y), ("float32(x)", tir.Cast("float32", X)), ("tir.exp(f)", tir.exp(F)), ("select((x > 1), x, y)", tir.Select(X > 1, X, Y)))
def without_types(text, e):
    assert repr(e) == text


@program
def two_variables_of_a_name():
    assert str(te.var("n") + te.var("n")) == "(n: int32 + n_1: int32)" and str(X + X) == "(x: int32 + x)"


@program
def operators_of_loops_by_name():
    exp = tvm.ir.Op.get("tir.exp")
    assert exp.name == "tir.exp" and tir.exp(F).op.same_as(exp) and tir.exp(F).op == exp and not tir.exp(F).op.same_as(tvm.ir.Op.get("tir.log"))
    made = tir.Call("float32", "tir.exp", [F])
    tvm.ir.assert_structural_equal(made, tir.exp(F))
    assert made.dtype == "float32" and made.args[0].same_as(F) and tir.Call("float32", exp, [F]).op == exp
    assert tir.Call("int32", "tir.call_extern", ["g", X]).dtype == "int32"
    with refusing((tvm.TVMError, ValueError)):
        tvm.ir.Op.get("tir.nothing_of_this_name")


@program("<<", ">>")
def shifts_stay_within_their_bits(sign):
    shift = (lambda a, b: a << b) if sign == "<<" else (lambda a, b: a >> b)
    for by in (-1, 32):
        raises((tvm.TVMError, ValueError), shift, X, by)
    for by in (0, 16, 31):
        assert shift(X, by).dtype == "int32"
    raises((tvm.TVMError, TypeError), shift, tir.const(1.5, "float32"), 10.0)
