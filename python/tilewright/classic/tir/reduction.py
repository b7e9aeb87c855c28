# SPDX-License-Identifier: Apache-2.0
"""Axes of computations, and reductions."""
from __future__ import annotations

import typing

from ... import _core
from ..error import InvalidValue
from .range import Range
from .expr import PrimExpr, Var, dtype_of, with_operators
from .op import const, max_value, min_value


@with_operators
class IterVar(_core.IterVar):
    """An axis: its variable `var` and range `dom`. In an expression it is its variable."""
    DataPar, ThreadIndex, CommReduce, Ordered, DimInfo, Unrolled, Vectorized, Parallelized, Tensorized = range(9)
    thread_tag = ""

    def __init__(self, dom: typing.Any, var: typing.Any, iter_type: int = 0, thread_tag: str = "", span: object = None):
        """A description of an axis; computations take those of te.compute and te.reduce_axis."""
        if isinstance(dom, _core.IterVar):
            super().__init__(dom)
            return
        given = dom if isinstance(dom, Range) or dom is None else Range(*dom) if isinstance(dom, (list, tuple)) else Range(0, dom)
        name = var if isinstance(var, str) else var.name
        low, extent = (0, 1) if given is None else (given.min, given.extent)
        super().__init__(_core.te_reduce_axis(low, extent, name) if iter_type == self.CommReduce else _core.te_axis(extent, name))
        self.thread_tag = thread_tag
        self.__dict__.update(_given=(given, _core.IterVar.var.__get__(self) if isinstance(var, str) else var, iter_type))

    def asobject(self) -> typing.Any:
        return self.var

    @property
    def var(self) -> typing.Any:
        return self.__dict__["_given"][1] if "_given" in self.__dict__ else _core.IterVar.var.__get__(self)

    @property
    def dom(self) -> Range | None:
        if "_given" in self.__dict__:
            return self.__dict__["_given"][0]
        return Range.from_min_extent(self._min, self._extent)

    @property
    def iter_type(self) -> int:
        if "_given" in self.__dict__:
            return self.__dict__["_given"][2]
        return self.CommReduce if self.is_reduce else self.DataPar

    @property
    def dtype(self) -> str:
        return self.var.dtype

    def __repr__(self) -> str:
        return f"iter_var({self.var.name}, {self.dom})"


_core._set_loop_class("IterVar", IterVar)


@with_operators
class ThreadAxis:
    """A GPU thread index, to bind a loop to. Bound schedules can be printed but not built."""
    iter_type = IterVar.ThreadIndex

    def __init__(self, dom: Range | None, tag: str, name: str):
        self.dom, self.thread_tag, self.var = dom, tag, Var(name)

    def asobject(self) -> typing.Any:
        return self.var

    @property
    def dtype(self) -> str:
        return self.var.dtype

    def same_as(self, other: typing.Any) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"thread_axis({self.thread_tag})"


class CommReducer:
    """A commutative reducer: how two partial results are combined, and the identity element."""

    def __init__(self, lhs: typing.Any, rhs: typing.Any, result: typing.Any, identity_element: typing.Any, span: object = None):
        self._combiner = _core.Combiner(lhs, rhs, result, identity_element)

    lhs, rhs, result, identity_element = (property(lambda self, n=n: getattr(self._combiner, n)) for n in ("lhs", "rhs", "result", "identity_element"))


class Reduce:
    """A reduction over axes: the whole body of a `te.compute`, or, with `value_index`, one of several reduced together."""

    def __init__(self, combiner: typing.Any, src: typing.Any, rdom: typing.Any, condition: typing.Any, value_index: int, init: typing.Any = None, span: object = None):
        self.combiner = combiner
        self._combiner = combiner._combiner if isinstance(combiner, CommReducer) else combiner
        if init:
            self._combiner = self._combiner.with_identity(list(init))
        self.source, self.axis, self.condition, self.value_index, self.init = list(src), list(rdom), condition, value_index, init or []
        self.dtype = dtype_of(self.source[value_index])

    def asobject(self) -> typing.Any:
        raise InvalidValue("a reduction is the whole body of a compute; compute it in a tensor of its own, and read that")

    def same_as(self, other: typing.Any) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"reduce(combiner={self._combiner.result}, source={self.source}, axis={self.axis}, where={self.condition}, value_index={self.value_index})"


# Arithmetic on a reduction raises an error that tells what to do instead.
for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(Reduce, f"__{_name}__", lambda self, other: self.asobject())


def comm_reducer(fcombine: typing.Callable[..., typing.Any], fidentity: typing.Callable[..., typing.Any], name: str = "reduce") -> typing.Any:
    """Makes a reducer: `fcombine(x, y)` combines two values or two tuples of values; `fidentity(dtype, ...)` returns the identity.

    The result is called as reducer(expression or tuple, axis, where=None, init=None); called with two or more expressions it combines
    them."""

    def make(expr: typing.Any, axis: typing.Any, where: typing.Any, init: typing.Any) -> typing.Any:
        exprs = list(expr) if isinstance(expr, (tuple, list)) else [expr]
        exprs = [_core.prim_expr(e) for e in exprs]
        dtypes = [dtype_of(e) for e in exprs]
        axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
        inits = None if init is None else [_core.prim_cast(d, v) for d, v in zip(dtypes, init if isinstance(init, (tuple, list)) else [init])]
        if fcombine in _BUILT_IN:
            combiner = _core.te_combiner(_BUILT_IN[fcombine], dtypes[0])
        else:
            lhs, rhs = ([Var(f"{side}{i}", d) for i, d in enumerate(dtypes)] for side in ("x", "y"))
            many = isinstance(expr, (tuple, list))
            result = fcombine(tuple(lhs), tuple(rhs)) if many else fcombine(lhs[0], rhs[0])
            identity = fidentity(*dtypes)
            result, identity = ([v] if not isinstance(v, (tuple, list)) else list(v) for v in (result, identity))
            if not len(result) == len(identity) == len(exprs):
                raise ValueError(f"the reducer '{name}' gives {len(result)} values and {len(identity)} identities for {len(exprs)} expressions")
            combiner = _core.Combiner(lhs, rhs, [_core.prim_cast(d, r) for d, r in zip(dtypes, result)], [_core.prim_cast(d, v) for d, v in zip(dtypes, identity)])
        condition = None if where is None else _core.prim_expr(where)
        out = [Reduce(combiner, exprs, axes, condition, i, inits) for i in range(len(exprs))]
        return out[0] if not isinstance(expr, (tuple, list)) else tuple(out)

    def reducer(expr: typing.Any, axis: typing.Any, where: typing.Any = None, init: typing.Any = None, *args: typing.Any) -> typing.Any:
        if isinstance(axis, (IterVar, list, tuple)):
            return make(expr, axis, where, init)
        out = fcombine(expr, axis)
        for more in (where, init, *args):
            if more is not None:
                out = fcombine(out, more)
        return out

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"Combines by {name} over axes: {name}(expression, axis, where=None, init=None)."
    return reducer


def _add(x: typing.Any, y: typing.Any) -> typing.Any:
    return _core.prim_binary("Add", x, y)


def _mul(x: typing.Any, y: typing.Any) -> typing.Any:
    return _core.prim_binary("Mul", x, y)


def _min(x: typing.Any, y: typing.Any) -> typing.Any:
    return _core.prim_binary("Min", x, y)


def _max(x: typing.Any, y: typing.Any) -> typing.Any:
    return _core.prim_binary("Max", x, y)


_BUILT_IN = {_add: "sum", _mul: "prod", _min: "min", _max: "max"}
sum = comm_reducer(_add, lambda t: const(0, t), "sum")  # noqa: A001
prod = comm_reducer(_mul, lambda t: const(1, t), "prod")
min = comm_reducer(_min, max_value, "min")  # noqa: A001
max = comm_reducer(_max, min_value, "max")  # noqa: A001

__all__ = ["CommReducer", "IterVar", "PrimExpr", "Reduce", "ThreadAxis", "comm_reducer", "max", "min", "prod", "sum"]
