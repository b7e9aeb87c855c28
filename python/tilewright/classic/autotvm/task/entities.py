# SPDX-License-Identifier: Apache-2.0
"""Values of a template's knobs, and how each is applied to a schedule."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class SplitEntity:
    """Factors of a split, the first one derived from the extent: [-1, 4, 8]."""

    def __init__(self, size: Sequence[int]):
        self.size = list(size)

    def apply(self, sch: Any, op: Any, axis: Any) -> list[Any]:
        """Splits the axis, innermost factor first; returns the axes, outermost first."""
        inner: list[Any] = []
        for factor in reversed(self.size[1:]):
            axis, part = sch[op].split(axis, int(factor))
            inner.append(part)
        return [axis, *reversed(inner)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SplitEntity) and self.size == other.size

    def __hash__(self) -> int:
        return hash(tuple(self.size))

    def __repr__(self) -> str:
        return str(self.size)


class ReorderEntity:
    """A permutation of axes: indices of the given axes, outermost first."""

    def __init__(self, perm: Sequence[int]):
        self.perm = list(perm)

    def apply(self, sch: Any, op: Any, axes: Sequence[Any]) -> list[Any]:
        """Reorders the axes of the stage."""
        ordered = [axes[i] for i in self.perm]
        sch[op].reorder(*ordered)
        return ordered

    def __repr__(self) -> str:
        return str(self.perm)


class AnnotateEntity:
    """The annotation of each axis: "none", "unroll" or "vec"."""

    def __init__(self, anns: Sequence[str]):
        self.anns = list(anns)

    def apply(self, sch: Any, op: Any, axes: Sequence[Any], axis_lens: Sequence[int] | None = None, max_unroll: int | None = None,
              vec_size: Sequence[int] | None = None, cfg: Any = None, source: Any = None) -> list[Any]:
        """Annotates the axes of the stage. Loops longer than max_unroll and vectors whose length is not in vec_size are left alone."""
        stage = sch[op]
        for i, (axis, what) in enumerate(zip(axes, self.anns)):
            length = axis_lens[i] if axis_lens else None
            if what == "unroll" and (max_unroll is None or length is None or length <= max_unroll):
                stage.unroll(axis)
            elif what == "vec" and (vec_size is None or length is None or length in vec_size):
                stage.vectorize(axis)
        return list(axes)

    def __repr__(self) -> str:
        return str(self.anns)


class OtherOptionEntity:
    """A plain value."""

    def __init__(self, val: Any):
        self.val = val

    def __eq__(self, other: object) -> bool:
        return self.val == (other.val if isinstance(other, OtherOptionEntity) else other)

    def __hash__(self) -> int:
        return hash(self.val)

    def __repr__(self) -> str:
        return str(self.val)


def entity_to_json(entity: Any) -> tuple[str, Any]:
    """The (kind, value) pair of a record."""
    if isinstance(entity, SplitEntity):
        return "sp", entity.size
    if isinstance(entity, ReorderEntity):
        return "re", entity.perm
    if isinstance(entity, AnnotateEntity):
        return "an", entity.anns
    return "ot", entity.val if isinstance(entity, OtherOptionEntity) else entity


def entity_from_json(kind: str, value: Any) -> Any:
    """The entity of a record. ValueError: unknown kind."""
    known = {"sp": SplitEntity, "re": ReorderEntity, "an": AnnotateEntity, "ot": OtherOptionEntity}
    if kind not in known:
        raise ValueError(f"a record's knob is of the kind '{kind}'; there are {', '.join(known)}")
    return known[kind](value)


__all__ = ["AnnotateEntity", "OtherOptionEntity", "ReorderEntity", "SplitEntity", "entity_from_json", "entity_to_json"]
