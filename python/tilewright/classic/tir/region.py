# SPDX-License-Identifier: Apache-2.0
"""Regions of buffers, and index maps."""
from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence

from ... import _core
from .expr import Var
from .range import Range


class BufferRegion:
    """A box of a buffer: one range per dimension."""

    def __init__(self, buffer: typing.Any, region: Sequence[Range]):
        if len(region) != len(buffer.shape):
            raise ValueError(f"a region of {len(region)} ranges, of a buffer of {len(buffer.shape)} dimensions")
        self.buffer, self.region = buffer, list(region)

    def structurally_equals(self, other: typing.Any) -> bool:
        return isinstance(other, BufferRegion) and self.buffer == other.buffer and len(self.region) == len(other.region) and all(
            _core.stmt_equal(a.min, b.min, False) and _core.stmt_equal(a.extent, b.extent, False) for a, b in zip(self.region, other.region))

    def __repr__(self) -> str:
        return f"{self.buffer.name}[{', '.join(f'{r.min}:{r.min + r.extent}' for r in self.region)}]"


class IndexMap:
    """A map from indices to indices: `IndexMap.from_func(lambda i: [i // 4, i % 4])`."""

    def __init__(self, initial_indices: Sequence[Var], final_indices: Sequence[typing.Any], inverse_index_map: "IndexMap | None" = None):
        self.initial_indices, self.final_indices, self._inverse = list(initial_indices), [_core.prim_expr(e) for e in final_indices], inverse_index_map

    @staticmethod
    def from_func(mapping_function: Callable[..., typing.Any], ndim: int | None = None, inverse_index_map: typing.Any = None) -> "IndexMap":
        """Makes a map of a function of indices; `ndim`: their number if it takes any."""
        kinds = inspect.Parameter
        parameters = list(inspect.signature(mapping_function).parameters.values())
        names = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
        more = [p for p in parameters if p.kind == kinds.VAR_POSITIONAL]
        if more and ndim is None:
            raise ValueError("a function of any number of indices needs ndim")
        if more:
            names += [f"{more[0].name}_{n}" for n in range(len(names), ndim or 0)]
        variables = [Var(n, "int32") for n in names]
        made = mapping_function(*variables)
        final = list(made) if isinstance(made, (list, tuple)) else [made]
        if isinstance(inverse_index_map, IndexMap) or inverse_index_map is None:
            return IndexMap(variables, final, inverse_index_map)
        return IndexMap(variables, final, IndexMap.from_func(inverse_index_map, ndim=len(final)))

    def map_indices(self, indices: Sequence[typing.Any]) -> list[typing.Any]:
        """The mapped indices."""
        at = self._at(indices)
        return [_core.prim_simplify(e if isinstance(e, int) else _core.prim_substitute(e, at), []) for e in self.final_indices]

    def _at(self, indices: Sequence[typing.Any]) -> dict[typing.Any, typing.Any]:
        if len(indices) != len(self.initial_indices):
            raise ValueError(f"a map of {len(self.initial_indices)} indices is given {len(indices)}")
        return dict(zip(self.initial_indices, indices))

    def map_shape(self, shape: Sequence[typing.Any]) -> list[typing.Any]:
        """The shape that holds all mapped indices of a shape."""
        self._at(shape)
        ranges = [(v, 0, int(size) - 1) for v, size in zip(self.initial_indices, shape)]
        return [_core.prim_simplify(_core.prim_bounds(e, ranges)[1] + 1, []) for e in self.final_indices]

    def inverse(self, shape: Sequence[typing.Any]) -> "IndexMap":
        """The inverse map, if the indices are bijective sums of scaled parts of the variables. ValueError otherwise."""
        if self._inverse is not None:
            return self._inverse
        return _inverted(self, [int(d.extent) if isinstance(d, Range) else int(d) for d in shape])

    def is_equivalent_to(self, other_map: "IndexMap") -> bool:
        """Whether both maps give the same indices."""
        if len(self.initial_indices) != len(other_map.initial_indices) or len(self.final_indices) != len(other_map.final_indices):
            return False
        mapped = other_map.map_indices(self.initial_indices)
        own = self.map_indices(self.initial_indices)
        return all(_core.stmt_equal(a, b, False) for a, b in zip(own, mapped))

    def __repr__(self) -> str:
        return f"index_map({self.initial_indices} -> {self.final_indices})"


def _parts(e: typing.Any, scale: int = 1) -> list[tuple[int, typing.Any, int, int | None]] | None:
    """An index as a sum: (factor, variable, divisor, modulus) for factor * ((variable // divisor) % modulus)."""
    if isinstance(e, Var):
        return [(scale, e, 1, None)]
    kind = getattr(e, "_kind", "")
    if kind == "Add":
        left, right = (_parts(side, scale) for side in e._fields)
        return None if left is None or right is None else left + right
    if kind not in ("Mul", "FloorDiv", "FloorMod") or not isinstance(e._fields[1], int):
        return None
    number = int(e._fields[1])
    if kind == "Mul":
        return _parts(e._fields[0], scale * number)
    inner = _parts(e._fields[0])
    if inner is None or len(inner) != 1 or inner[0][0] != 1:
        return None
    _, var, divisor, modulus = inner[0]
    if kind == "FloorDiv":
        return [(scale, var, divisor * number, None if modulus is None else modulus // number)] if modulus is None or modulus % number == 0 else None
    return [(scale, var, divisor, number if modulus is None else min(number, modulus))] if modulus is None or modulus % number == 0 else None


def _inverted(index_map: IndexMap, shape: Sequence[int]) -> IndexMap:
    """Each part of an original index, expressed by the new index that contains it."""
    new = [Var(f"i{n}", "int32") for n in range(len(index_map.final_indices))]
    back: list[typing.Any] = [0] * len(shape)
    covered = [1] * len(shape)
    for target, e in zip(new, index_map.final_indices):
        e = _core.prim_simplify(e, [])
        if isinstance(e, int):
            continue
        parts = _parts(e)
        if parts is None:
            raise ValueError(f"the map {index_map} has no inverse that is found: {e}")
        reach = 1
        for factor, var, divisor, modulus in sorted(parts, key=lambda p: p[0]):
            place = next(n for n, v in enumerate(index_map.initial_indices) if v.same_as(var))
            size = -(-shape[place] // divisor) if modulus is None else min(modulus, -(-shape[place] // divisor))
            if factor != reach:
                raise ValueError(f"the map {index_map} is not one to one: {e} over {list(shape)}")
            cut = _core.prim_binary("FloorMod", _core.prim_binary("FloorDiv", target, factor), size) if len(parts) > 1 else target
            back[place] = _core.prim_binary("Add", back[place], _core.prim_binary("Mul", cut, divisor))
            covered[place] *= size
            reach = factor * size
    if any(c != s for c, s in zip(covered, shape)):
        raise ValueError(f"the map {index_map} is not one to one over {list(shape)}")
    return IndexMap(new, [_core.prim_simplify(b, []) for b in back])


__all__ = ["BufferRegion", "IndexMap"]
