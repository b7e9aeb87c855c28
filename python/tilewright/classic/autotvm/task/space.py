# SPDX-License-Identifier: Apache-2.0
"""Configuration spaces: those that templates define knob by knob, and those of the built-in kernels."""
from __future__ import annotations

import itertools
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .entities import AnnotateEntity, OtherOptionEntity, ReorderEntity, SplitEntity, entity_from_json, entity_to_json


class InstantiationError(ValueError):
    """Raised by a template that rejects a configuration."""


class ConfigEntity:
    """One configuration: knobs by name."""

    def __init__(self, index: int | None, code_hash: str | None, entity_map: Mapping[str, Any], constraints: Sequence[Any] = ()):
        self.index, self.code_hash = index, code_hash
        self._entity_map: OrderedDict[str, Any] = OrderedDict(entity_map)
        self.workload: Any = None  # its workload, if known
        self.flop: float | None = None
        self.errors: list[str] = []

    is_fallback = False

    def valid(self) -> bool:
        return not self.errors

    def raise_error(self, msg: str) -> None:
        self.errors.append(msg)

    def add_flop(self, flop: float) -> None:
        self.flop = (self.flop or 0) + float(flop)

    def __getitem__(self, name: str) -> Any:
        return self._entity_map[name]

    def __setitem__(self, name: str, entity: Any) -> None:
        self._entity_map[name] = entity

    def __contains__(self, name: str) -> bool:
        return name in self._entity_map

    def __len__(self) -> int:
        return 1

    # A template runs its define_* calls again when it is built; knobs that exist already keep their values.
    def define_split(self, name: str, axis: Any, policy: str = "factors", **kwargs: Any) -> list[VirtualAxis]:
        return [VirtualAxis(None)] * int(kwargs.get("num_outputs", 2))

    def define_reorder(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> list[Any]:
        return list(axes)

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> list[Any]:
        return list(axes)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        pass

    def multi_filter(self, filter: Callable[[ConfigEntity], bool]) -> None:
        pass

    @staticmethod
    def axis(var: Any) -> Any:
        return VirtualAxis(var)

    reduce_axis = axis

    def get_other_option(self) -> dict[str, Any]:
        return {name: e.val for name, e in self._entity_map.items() if isinstance(e, OtherOptionEntity)}

    def get_flatten_feature(self) -> np.ndarray:
        """Numeric features of the knobs, in order."""
        out: list[float] = []
        for entity in self._entity_map.values():
            _, value = entity_to_json(entity)
            out += [float(v) for v in (value if isinstance(value, list) else [value]) if isinstance(v, (int, float))]
        return np.array(out, "float32")

    def to_json_dict(self) -> dict[str, Any]:
        return {"index": self.index, "code_hash": self.code_hash,
                "entity": [[name, *entity_to_json(entity)] for name, entity in self._entity_map.items()]}

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Any]) -> ConfigEntity:
        """Errors: KeyError or ValueError if the dictionary is not a configuration."""
        entities = OrderedDict((name, entity_from_json(kind, value)) for name, kind, value in json_dict["entity"])
        return ConfigEntity(json_dict["index"], json_dict.get("code_hash"), entities)

    def __repr__(self) -> str:
        return f"{str(list(self._entity_map.items()))[1:-1]},{self.code_hash},{self.index}"


class _Space:
    """Common part of all spaces: configurations by index."""

    def __len__(self) -> int:
        raise NotImplementedError

    def get(self, index: int) -> ConfigEntity:
        raise NotImplementedError

    def is_index_valid(self, index: int) -> bool:
        return 0 <= index < len(self)

    def sample_ints(self, m: int) -> np.ndarray:
        """At most m different indices of valid entities, by chance (np.random.seed)."""
        out: dict[int, None] = {}
        for _ in range(100 * m):  # of some spaces few indices are valid
            index = int(np.random.randint(0, len(self)))
            if len(out) == m:
                break
            if self.is_index_valid(index):
                out[index] = None
        return np.array(list(out), "int64")

    @property
    def range_length(self) -> int:
        return len(self)


class Options(list):  # type: ignore[type-arg]
    """The values of one knob, and how they were made."""

    def __init__(self, values: Iterable[Any], made: str):
        super().__init__(values)
        self._made = made

    @property
    def entities(self) -> list[Any]:
        return list(self)

    def __repr__(self) -> str:
        return f"{self._made} len={len(self)}"


class KernelSpace(_Space):
    """The configurations of the built-in kernels for a workload. An index may be invalid (is_index_valid): tiles that do not fit the
    registers are excluded."""

    def __init__(self, core: Any, workload: Any):
        self._core, self._workload = core, workload
        self.space_map = OrderedDict((name, _of_kernels([entity_from_json(kind, json.loads(v)) for v in values]))
                                     for _, knobs in core.branches for name, kind, values in knobs)
        self.dims = [len(v) for v in self.space_map.values()]

    def __len__(self) -> int:
        return int(self._core.size)

    def is_index_valid(self, index: int) -> bool:
        return 0 <= index < len(self) and bool(self._core.legal(index))

    def get(self, index: int) -> ConfigEntity:
        if not 0 <= index < len(self):
            raise IndexError(f"Index out of range: size {len(self)}, got index {index}")
        config = ConfigEntity.from_json_dict({"index": index, "entity": json.loads(self._core.entity(index))})
        config.workload = self._workload
        if not self._core.legal(index):
            config.raise_error("these tiles are no kernel")
        return config

    def __repr__(self) -> str:
        return _listed(self)


def _of_kernels(values: list[Any]) -> Options:
    return Options(values, f"OtherOption({values[:8]}{'...' if len(values) > 8 else ''})")


def _listed(space: Any) -> str:
    rows = [f"{i:4d} {name}: {values!r}" for i, (name, values) in enumerate(space.space_map.items())]
    return f"ConfigSpace (len={len(space)}, space_map=\n" + "\n".join(rows) + "\n)"


class VirtualAxis:
    """An axis of a template's space: a length and an optional name."""

    def __init__(self, length: Any, name: str | None = None):
        self.length, self.name = _length(length), name

    num_output = 1


def _length(axis: Any) -> int:
    if axis is None:
        return 0
    if isinstance(axis, VirtualAxis):
        return axis.length
    extent = getattr(getattr(axis, "dom", None), "extent", axis)
    return int(getattr(extent, "value", extent))


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _powers(n: int) -> list[int]:
    return [2 ** i for i in range(n.bit_length() + 1) if 2 ** i < 2 * n] or [1]


def _splits(length: int, num_outputs: int, policy: str, kwargs: Mapping[str, Any]) -> list[SplitEntity]:
    if policy == "candidate":
        return [SplitEntity(size) for size in kwargs["candidate"]]
    if policy not in ("factors", "power2", "verbose"):
        raise ValueError(f"there is no policy '{policy}' of a split; there are factors, power2, verbose and candidate")
    most, fits = kwargs.get("max_factor", 1 << 31), kwargs.get("filter")
    factors = sorted({*(_divisors(length) if policy != "power2" else []), *(_powers(length) if policy != "factors" else [])})
    factors = [f for f in factors if f <= most]
    no_tail = kwargs.get("no_tail", policy == "factors")
    out = []
    for sizes in itertools.product(factors, repeat=num_outputs - 1):
        product = 1
        for size in sizes:
            product *= size
        if (length % product if no_tail else product >= 2 * length):
            continue
        entity = SplitEntity([-1, *sizes])
        if fits is None or fits(SplitEntity([-(-length // product), *sizes])):
            out.append(entity)
    return out


def _merged(chains: list[list[int]]) -> list[list[int]]:
    """All interleavings of the chains that keep the order of each."""
    chains = [c for c in chains if c]
    if not chains:
        return [[]]
    return [[chain[0], *rest] for i, chain in enumerate(chains) for rest in _merged([*chains[:i], chain[1:], *chains[i + 1:]])]


class ConfigSpace(_Space):
    """The space that a template defines. While it is being defined each knob has its first option."""

    is_fallback = False

    def __init__(self) -> None:
        self.space_map: OrderedDict[str, Options] = OrderedDict()
        self._entity_map: OrderedDict[str, Any] = OrderedDict()  # values returned to the template during definition
        self._products: dict[str, int] = {}  # lengths of split axes
        self.errors: list[str] = []
        self.flop: float | None = None
        self.code_hash: str | None = None
        self._filters: list[Callable[[ConfigEntity], bool]] = []

    @staticmethod
    def axis(var: Any) -> VirtualAxis:
        return VirtualAxis(var)

    reduce_axis = axis

    def _define(self, name: str, options: list[Any], made: str) -> Options:
        if not options:
            raise ValueError(f"the knob '{name}' has no value")
        self._entity_map.setdefault(name, options[0])
        return self.space_map.setdefault(name, Options(options, made))

    def define_split(self, name: str, axis: Any, policy: str = "factors", **kwargs: Any) -> list[VirtualAxis]:
        """policy: "factors", "power2", "verbose" or "candidate"; further options: num_outputs, max_factor, filter, no_tail, candidate.
        Errors: ValueError."""
        self._products.setdefault(name, _length(axis))
        parts = kwargs.get("num_outputs", 2)
        options = self._define(name, _splits(_length(axis), parts, policy, kwargs), f"Split(policy={policy}, product={_length(axis)}, num_outputs={parts})")
        return [VirtualAxis(s if s > 0 else _length(axis)) for s in options[0].size]

    def define_reorder(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> list[Any]:
        """policy: "identity", "all", "interval_all" (interval=(left, right)), "candidate" (candidate: lists of axes), "interleave" (spatial and
        reduce: chains of axes, each of which keeps its order). Errors: ValueError."""
        places = list(range(len(axes)))
        if policy == "identity":
            options = [places]
        elif policy == "all":
            options = [list(p) for p in itertools.permutations(places)]
        elif policy in ("interval_all", "interval"):
            left, right = kwargs["interval"]
            options = [places[:left] + list(p) + places[right + 1:] for p in itertools.permutations(places[left:right + 1])]
        elif policy == "candidate":
            options = [[list(axes).index(a) for a in candidate] for candidate in kwargs["candidate"]]
        elif policy == "interleave":
            spatial, reduce = ([[list(axes).index(a) for a in chain] for chain in kwargs[kind]] for kind in ("spatial", "reduce"))
            options = [outer + inner for outer in _merged([c[:-1] for c in spatial]) for inner in _merged([c[-1:] for c in spatial] + reduce)]
        else:
            raise ValueError(f"there is no policy '{policy}' of an order; there are identity, all, interval_all, candidate and interleave")
        order = self._define(name, [ReorderEntity(o) for o in options], f"Reorder(policy={policy})")[0]
        return [axes[i] for i in order.perm]

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str, **kwargs: Any) -> list[Any]:
        """policy: "none", or "try_unroll", "try_vec", "try_unroll_vec". At most one axis becomes a vector. Errors: ValueError."""
        words = policy.split("_")
        if words[0] not in ("none", "try") or not set(words[1:]) <= {"unroll", "vec"}:
            raise ValueError(f"there is no policy '{policy}' of annotations here; there are none, try_unroll, try_vec and try_unroll_vec")
        marks = ["none", *words[1:]]
        options = [list(p) for p in itertools.product(marks, repeat=len(axes)) if p.count("vec") <= 1]
        self._define(name, [AnnotateEntity(o) for o in options], f"Annotate(policy={policy})")
        return list(axes)

    def define_knob(self, name: str, candidate: Sequence[Any]) -> None:
        options = [OtherOptionEntity(c) for c in candidate]
        self._define(name, options, f"OtherOption({options})")

    def multi_filter(self, filter: Callable[[ConfigEntity], bool]) -> None:
        """A predicate over configurations; those that it rejects are invalid (is_index_valid)."""
        self._filters.append(filter)

    def add_flop(self, flop: float) -> None:
        self.flop = (self.flop or 0) + float(flop)

    def raise_error(self, msg: str) -> None:
        self.errors.append(msg)

    def valid(self) -> bool:
        return not self.errors

    def __getitem__(self, name: str) -> Any:
        return self._entity_map[name]

    def __contains__(self, name: str) -> bool:
        return name in self._entity_map

    def __len__(self) -> int:
        out = 1
        for options in self.space_map.values():
            out *= len(options)
        return out

    @property
    def dims(self) -> list[int]:
        return [len(v) for v in self.space_map.values()]

    def is_index_valid(self, index: int) -> bool:
        return 0 <= index < len(self) and all(f(self._at(index)) for f in self._filters)

    def _at(self, index: int) -> ConfigEntity:
        entities: OrderedDict[str, Any] = OrderedDict()
        rest = index
        for name, options in self.space_map.items():
            entities[name] = options[rest % len(options)]
            rest //= len(options)
        return ConfigEntity(index, self.code_hash, entities)

    def get(self, index: int) -> ConfigEntity:
        if not 0 <= index < len(self):
            raise IndexError(f"Index out of range: size {len(self)}, got index {index}")
        return self._at(index)

    def __iter__(self) -> Iterator[ConfigEntity]:
        return (self.get(i) for i in range(len(self)) if self.is_index_valid(i))

    def __repr__(self) -> str:
        return _listed(self)


class FallbackConfigEntity(ConfigSpace):
    """The configuration of a workload without a record: each knob's first option, or what the template sets. For built-in kernels the
    cost model's choice."""
    is_fallback = True

    def __init__(self) -> None:
        super().__init__()
        self.index, self.cost = 0, None

    def __setitem__(self, name: str, entity: Any) -> None:
        self._entity_map[name] = entity

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Chooses, from the innermost part outwards, the largest factor within its constraint (-1: any). ValueError: wrong number of
        parts."""
        if name not in self._products:
            raise ValueError(f"no split is called '{name}'")
        size = list(self._entity_map[name].size)
        if len(constraints) != len(size):
            raise ValueError(f"the split '{name}' has {len(size)} parts, not {len(constraints)}")
        left = self._products[name]
        for i in reversed(range(len(size))):
            size[i] = max(f for f in _divisors(left) if constraints[i] < 0 or f <= max(1, constraints[i]))
            left //= size[i]
        self._entity_map[name] = SplitEntity(size)

    def fallback_with_reference_log(self, ref_log: Any) -> None:
        """Uses the configuration of the first reference record."""
        for inp, _ in ref_log:
            self._entity_map.update(inp.config._entity_map)
            return

    def to_json_dict(self) -> dict[str, Any]:
        return {"index": None, "code_hash": self.code_hash, "entity": [[name, *entity_to_json(e)] for name, e in self._entity_map.items()]}

    def __repr__(self) -> str:
        return f"{str(list(self._entity_map.items()))[1:-1]},{self.code_hash},None"


__all__ = ["AnnotateEntity", "ConfigEntity", "ConfigSpace", "FallbackConfigEntity", "InstantiationError", "KernelSpace", "OtherOptionEntity",
           "ReorderEntity", "SplitEntity", "VirtualAxis"]
