# SPDX-License-Identifier: Apache-2.0
"""Annotates regions for external code generators. A build sends functions with the attribute Compiler to them (docs/external-
codegen.md)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..expr import Call, Expr, Op, Var
from ..expr_functor import ExprMutator
from ..op import annotation


class WhiteListAnnotator(ExprMutator):
    """Makes every call of a listed operator a region: compiler_begin on its operands, compiler_end on its result."""

    def __init__(self, op_list: Sequence[str], compiler: str):
        super().__init__()
        self.op_list, self.compiler = list(op_list), compiler

    def visit_call(self, call: Any) -> Any:
        if not isinstance(call.op, Op) or call.op.name not in self.op_list:
            return super().visit_call(call)
        begins = [annotation.compiler_begin(self.visit(a), compiler=self.compiler) for a in call.args]
        return annotation.compiler_end(Call(call.op, begins, call.attrs), compiler=self.compiler)


class CcompilerAnnotator(ExprMutator):
    """Makes a multiply and the subtracts and adds that feed it one region of the code generator "ccompiler": compiler_begin on the
    operands of the adds and on variables, compiler_end after the multiply."""

    def __init__(self) -> None:
        super().__init__()
        self.in_compiler = 0

    def visit_call(self, call: Any) -> Any:
        name = call.op.name if isinstance(call.op, Op) else ""
        if name == "multiply":
            self.in_compiler = 1
            made = Call(call.op, [self._entered(a, (Var,)) for a in call.args], call.attrs)
            self.in_compiler = 0
            return annotation.compiler_end(made, compiler="ccompiler")
        if self.in_compiler and name == "subtract":
            return Call(call.op, [self._entered(a, (Var,)) for a in call.args], call.attrs)
        if self.in_compiler and name == "add":
            return Call(call.op, [self._entered(a, (Expr,)) for a in call.args], call.attrs)
        return super().visit_call(call)

    def _entered(self, arg: Any, kinds: tuple[type, ...]) -> Any:
        made = self.visit(arg)
        return annotation.compiler_begin(made, compiler="ccompiler") if isinstance(made, kinds) else made


__all__ = ["CcompilerAnnotator", "WhiteListAnnotator"]
