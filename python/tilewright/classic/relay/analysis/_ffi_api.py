# SPDX-License-Identifier: Apache-2.0
"""The analyses' hooks that scripts call by name: the type solver, one question at a time."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import _core
from ...ir.ty import FuncType, IncompleteType, TypeRelation
from ..expr import Call, Var

_PREFIX = "tvm.relay.type_relation."
# Relations without attributes, each by an operator that has it.
_OPERATORS = {"Broadcast": "add", "BroadcastComp": "less", "IdentityCompRel": "logical_not", "BatchFlatten": "nn.batch_flatten", "Where": "where", "CollapseSumLike": "collapse_sum_like",
              "BroadCastToLike": "broadcast_to_like", "ReshapeLike": "reshape_like"}


class TypeSolver:
    """Equations of types and relations between them. `solver("Unify")` is the method; Unify, Resolve, AddConstraint and Solve are there."""

    def __init__(self) -> None:
        self._unifier = _core.Unifier()
        self._relations: list[TypeRelation] = []

    def __call__(self, name: str) -> Callable[..., Any]:
        return {"Unify": self._unify, "Resolve": self._unifier.resolved, "AddConstraint": self._relations.append, "Solve": self._solve}[name]

    def _unify(self, left: Any, right: Any) -> Any:
        if isinstance(left, FuncType) and isinstance(right, FuncType) and (left.type_params or right.type_params):
            return self._unify_polymorphic(*sorted((left, right), key=lambda f: -len(f.type_params)))
        self._unifier.unify(left, right)
        return self._unifier.resolved(left)

    def _unify_polymorphic(self, general: FuncType, special: FuncType) -> FuncType:
        """The variables of the special function stay; those of the other one stand for types, or stay variables of the result."""
        holes = {v: IncompleteType() for v in general.type_params}
        opened = _core.substitute_types(FuncType(general.arg_types, general.ret_type), holes)
        self._unifier.unify(opened, FuncType(special.arg_types, special.ret_type))
        free = [v for v, hole in holes.items() if isinstance(self._unifier.resolved(hole), IncompleteType)]
        for v in free:
            self._unifier.unify(holes[v], v)
        found = self._unifier.resolved(opened)
        return FuncType(found.arg_types, found.ret_type, [*special.type_params, *free])

    def _solve(self) -> bool:
        """Whether all relations hold. Error 301 where one cannot."""
        waiting = self._relations
        while waiting:
            still = [r for r in waiting if not self._holds(r)]
            if len(still) == len(waiting):
                return False
            waiting = still
        return True

    def _holds(self, relation: TypeRelation) -> bool:
        name = relation.func.name.removeprefix(_PREFIX)
        args = [self._unifier.resolved(a) for a in relation.args]
        if name == "Identity":
            for other in args[1:]:
                self._unifier.unify(args[0], other)
            return True
        if name not in _OPERATORS:
            raise NotImplementedError(f"the relation {name} needs the attributes of a call: run_infer_type of one asks it")
        inputs = args[:relation.num_inputs]
        if not all(map(_core.is_complete, inputs)):
            return False
        self._unifier.unify(Call(_OPERATORS[name], [Var("x", i) for i in inputs]).checked_type, args[-1])
        return True


def _test_type_solver() -> TypeSolver:
    return TypeSolver()


__all__ = ["TypeSolver"]
