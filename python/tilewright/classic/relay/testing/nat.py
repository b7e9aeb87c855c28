# SPDX-License-Identifier: Apache-2.0
"""Peano numbers as a data type, for small programs with recursion and pattern matching."""
from __future__ import annotations

from typing import Any

from ...runtime.container import ADT

TEXT = """#[version = "0.0.5"]
type nat {
  Z,
  S(nat),
}
def @nat_double(%x: nat) -> nat {
  match (%x) { Z => Z, S(%y) => S(S(@nat_double(%y))) }
}
def @nat_add(%x: nat, %y: nat) -> nat {
  match (%x) { Z => %y, S(%a) => S(@nat_add(%a, %y)) }
}
def @nat_iterate[A](%f: fn (A) -> A, %n: nat) -> fn (A) -> A {
  match (%n) {
    Z => fn (%x: A) -> A { %x },
    S(%m) => fn (%x: A) -> A { %f(@nat_iterate(%f, %m)(%x)) },
  }
}
"""


def get_type(prelude: Any, name: str) -> tuple[Any, ...]:
    """(the type, its constructors...)"""
    return tuple(prelude.mod.get_type(name))


def add_nat_definitions(prelude: Any) -> None:
    """Defines the type and its functions in the prelude's module: nat, nat_double, nat_add, nat_iterate."""
    prelude.mod.import_from_std("nat.rly")


def count(prelude: Any, n: Any) -> int:
    """The integer represented by a value."""
    _, z, s = prelude.mod.get_type("nat")
    total = 0
    while n.tag == s.tag:
        n, total = n.fields[0], total + 1
    if n.tag != z.tag:
        raise ValueError(f"a value with the tag {n.tag} is no natural number")
    return total


def make_nat_value(prelude: Any, n: int) -> ADT:
    """The value that represents an integer."""
    _, z, s = prelude.mod.get_type("nat")
    out = ADT(z.tag, [], z)
    for _ in range(n):
        out = ADT(s.tag, [out], s)
    return out


def make_nat_expr(prelude: Any, n: int) -> Any:
    """The expression that represents an integer."""
    if n < 0:
        raise ValueError(f"{n} is no natural number")
    _, z, s = prelude.mod.get_type("nat")
    out = z()
    for _ in range(n):
        out = s(out)
    return out


__all__ = ["add_nat_definitions", "count", "get_type", "make_nat_expr", "make_nat_value"]
