# SPDX-License-Identifier: Apache-2.0
"""Regions between compiler_begin and compiler_end annotations."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .... import _core
from ..expr import Call, Op


class AnnotatedRegion:
    """One region: `args` are its compiler_begin calls, `rets` its compiler_end calls, `nodes` all expressions."""

    def __init__(self, number: int, target: str):
        self.id, self.target = number, target
        self.args: list[Any] = []
        self.rets: list[Any] = []
        self.nodes: list[Any] = []


class AnnotatedRegionSet:
    """The regions of an expression. ValueError: an end without a begin."""

    def __init__(self, expr: Any, region_begin_op: Op, region_end_op: Op):
        self._of: dict[Any, AnnotatedRegion] = {}
        self._regions: list[AnnotatedRegion] = []
        for e in _core.post_order(expr):
            name = e.op.name if isinstance(e, Call) and isinstance(e.op, Op) else ""
            if name == region_begin_op.name:
                self._regions.append(AnnotatedRegion(len(self._regions), str(e.attrs.compiler)))
                self._regions[-1].args.append(e)
                self._put(e, self._regions[-1])
            elif name == region_end_op.name:
                region = self.get_region(e.args[0])
                if region is None:
                    raise ValueError(f"a {name} of {e.attrs.compiler} has no beginning")
                region.rets.append(e)
                self._put(e, region)
            else:
                self._join(e, [c for c in _core.children(e) if not self._is_end(c, region_end_op)])

    @staticmethod
    def _is_end(e: Any, end: Op) -> bool:
        return isinstance(e, Call) and isinstance(e.op, Op) and e.op.name == end.name

    def _put(self, e: Any, region: AnnotatedRegion) -> None:
        region.nodes.append(e)
        self._of[e] = region

    def _join(self, e: Any, operands: list[Any]) -> None:
        """Merges the regions of a call's operands."""
        regions = sorted({r.id: r for r in map(self.get_region, operands) if r is not None}.values(), key=lambda r: r.id)
        for other in regions[1:]:
            for part in ("args", "rets", "nodes"):
                getattr(regions[0], part).extend(getattr(other, part))
            self._of.update(dict.fromkeys(other.nodes, regions[0]))
            self._regions.remove(other)
        if regions:
            self._put(e, regions[0])

    def get_region(self, expr: Any) -> AnnotatedRegion | None:
        return self._of.get(expr)

    def __len__(self) -> int:
        return len(self._regions)

    def __iter__(self) -> Iterator[AnnotatedRegion]:
        return iter(self._regions)


__all__ = ["AnnotatedRegion", "AnnotatedRegionSet"]
