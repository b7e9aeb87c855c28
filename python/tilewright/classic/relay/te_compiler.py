# SPDX-License-Identifier: Apache-2.0
"""Queries which kernel a call uses."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..ir import IRModule, structural_hash
from ..ir.ty import TensorType, TupleType
from ..runtime.ndarray import cpu
from ..target import Target
from ..transform import PassContext
from .analysis import post_order_visit
from .build_module import create_executor
from .expr import Call, Function, GlobalVar, Op, Var, infer_type


class ImplementationName(str):
    """An implementation's name: a string with a `name`, as in the classic interface."""

    name = property(str)


def _type_of(value: Any) -> Any:
    """The type of an expression, a type or a te tensor."""
    if hasattr(value, "op") and hasattr(value, "shape"):
        return TensorType([int(d) for d in value.shape], value.dtype)
    return getattr(value, "checked_type", value)


def _own(op: Any, attrs: Any, inputs: Any, out_type: Any, target: Any) -> list[Any]:
    """The implementations that scripts registered for the operator, highest plevel first."""
    from .op.registry import attribute_of
    rule = attribute_of(op if isinstance(op, str) else op.name, "FTVMStrategy")
    if rule is None:
        return []
    with Target(target):
        made = rule(attrs, inputs, out_type, Target(target))
    return sorted((i for i in made.implementations if i.is_own), key=lambda i: -i.plevel)


def select_implementation(op: Any, attrs: Any, inputs: Any, out_type: Any = None, target: Any = "llvm", use_autotvm: bool = True) -> tuple[Any, list[Any]]:
    """(chosen implementation, all applicable ones as (name, configuration, plevel, microseconds on one thread by the cost model)) for an
    operator on inputs of these types, in isolation, without layout changes; for one implemented by a script (implementation, its
    tensors). Error 401 if there is none."""
    if own := _own(op, attrs, inputs, out_type, target):
        return own[0], own[0].compute(attrs, inputs, out_type)
    params = [Var(f"p{i}", _type_of(v)) for i, v in enumerate(inputs)]
    body = Call(op if isinstance(op, (str, Op)) else op.name, params, attrs)
    with PassContext(opt_level=3, disabled_pass=["AlterOpLayout"]) as context:
        built = _core.build(_core.IRModule({"main": Function(params, body)}), context.build_options(Target(target)), None)
    name = body.op.name
    for ops, implementation, _, candidates in built.choices:
        if name in ops:
            return ImplementationName(implementation), candidates
    ops, implementation, _, candidates = built.choices[-1]
    return ImplementationName(implementation), candidates


def get_valid_implementations(op: Any, attrs: Any, inputs: Any, out_type: Any = None, target: Any = "llvm") -> list[Any]:
    if own := _own(op, attrs, inputs, out_type, target):
        return own
    return [ImplementationName(name) for name, *_ in select_implementation(op, attrs, inputs, out_type, target)[1]]


class CachedFunc:
    """A function of a fused operator as compiled for a target; `prim_fn_var` is its name, `inputs` and `outputs` are placeholders of the types
    of its operands and results."""

    def __init__(self, function: Function, target: Target, name: str):
        self.function, self.target, self.prim_fn_var = function, target, GlobalVar(name)

    @property
    def inputs(self) -> list[Any]:
        return _placeholders([p.checked_type for p in infer_type(self.function).params])

    @property
    def outputs(self) -> list[Any]:
        return _placeholders([infer_type(self.function).checked_type.ret_type])

    def same_as(self, other: object) -> bool:
        return self is other


def _placeholders(types: list[Any]) -> list[Any]:
    """One of each tensor, those of tuples one after another."""
    from .. import te
    flat = list(types)
    while any(isinstance(t, TupleType) for t in flat):
        flat = [part for t in flat for part in (t.fields if isinstance(t, TupleType) else [t])]
    return [te.placeholder(t.shape, t.dtype, name=f"p{i}") for i, t in enumerate(flat)]


class TECompiler:
    """The kernel compiler under its classic interface: one result for equal functions and one target."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, str, str], CachedFunc] = {}

    def lower(self, source_func: Function, target: Any = None, mod_name: str = "default") -> CachedFunc:
        place = Target.current() if target is None else Target(target)
        if place is None:
            raise ValueError("Need to specify target when lowering a function outside of a Target's scope")
        key = (structural_hash(source_func), str(place), mod_name)
        if key not in self._made:
            ops: list[str] = []
            post_order_visit(source_func, lambda e: ops.append(e.op.name.replace(".", "_")) if isinstance(e, Call) and isinstance(e.op, Op) else None)
            name = "_".join([f"tvmgen_{mod_name}_fused", *ops])
            same = sum(c.prim_fn_var.name_hint.removesuffix(f"_{i}") == name for i, c in enumerate(self._made.values()))
            self._made[key] = CachedFunc(source_func, place, name + (f"_{same}" if same else ""))
        return self._made[key]

    def jit(self, source_func: Function, target: Any = None) -> Any:
        """The compiled function: it takes the operands' arrays and then the results'."""
        place = self.lower(source_func, target).target
        whole = Function(source_func.params, source_func.body)  # not as a fused operator, which only a call of it is
        run = create_executor("graph", mod=IRModule.from_expr(whole), device=cpu(), target=place).evaluate()
        count = len(source_func.params)

        def call(*arrays: Any) -> None:
            made = run(*arrays[:count])
            for result, array in zip(made if isinstance(made, (list, tuple)) else [made], arrays[count:]):
                array.copyfrom(result)
        return call

    def clear(self) -> None:
        self._made.clear()

    def items(self) -> list[Any]:
        return list(self._made.items())


_compiler = TECompiler()


def get() -> TECompiler:
    return _compiler


__all__ = ["CachedFunc", "TECompiler", "get", "get_valid_implementations", "select_implementation"]
