# SPDX-License-Identifier: Apache-2.0
"""Memory pools that a C program provides for a model: relay.build(..., workspace_memory_pools=, constant_memory_pools=), docs/aot.md. A
pool's name becomes a member of the interface struct, and size_hint_bytes is its capacity; the other fields are informational."""
from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


class PoolInfoProperties:
    def __init__(self, size_hint_bytes: int = -1, clock_frequency_hz: int = -1, read_bandwidth_bytes_per_cycle: int = -1, write_bandwidth_bytes_per_cycle: int = -1,
                 read_latency_cycles: int = 0, write_latency_cycles: int = 0, target_burst_bytes: Any = None):
        self.size_hint_bytes, self.clock_frequency_hz = size_hint_bytes, clock_frequency_hz
        self.read_bandwidth_bytes_per_cycle, self.write_bandwidth_bytes_per_cycle = read_bandwidth_bytes_per_cycle, write_bandwidth_bytes_per_cycle
        self.read_latency_cycles, self.write_latency_cycles = read_latency_cycles, write_latency_cycles
        self.target_burst_bytes = dict(target_burst_bytes or {})


class PoolInfo:
    """A pool's name, the targets that can access it, and its properties."""

    READ_WRITE_ACCESS, READ_ONLY_ACCESS = "rw", "ro"

    def __init__(self, pool_name: str, targets: Sequence[Any] = (), properties: PoolInfoProperties | None = None):
        self.pool_name, self.targets, self.properties = pool_name, list(targets), properties or PoolInfoProperties()
        for name, value in vars(self.properties).items():
            setattr(self, name, value)

    def _said(self) -> dict[str, Any]:
        """What it is, in JSON's values."""
        more = {**vars(self.properties), "target_burst_bytes": {str(t): n for t, n in self.properties.target_burst_bytes.items()}}
        return {"kind": type(self).__name__, "pool_name": self.pool_name, "targets": [str(t) for t in self.targets], **more}

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, PoolInfo) and self._said() == other._said()

    def __hash__(self) -> int:
        return hash(self.pool_name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pool_name!r})"


class WorkspacePoolInfo(PoolInfo):
    def __init__(self, pool_name: str, targets: Sequence[Any] = (), pool_info_properties: PoolInfoProperties | None = None):
        super().__init__(pool_name, targets, pool_info_properties)


class ConstantPoolInfo(PoolInfo):
    def __init__(self, pool_name: str, targets: Sequence[Any] = (), constant_info_arr: Sequence[Any] | None = None, pool_info_properties: PoolInfoProperties | None = None):
        super().__init__(pool_name, targets, pool_info_properties)
        self.constant_info_array = list(constant_info_arr or [])


class WorkspaceMemoryPools:
    def __init__(self, pools: Sequence[PoolInfo]):
        self.pools = list(pools)


class ConstantMemoryPools:
    def __init__(self, pools: Sequence[PoolInfo]):
        self.pools = list(pools)


def pools_as_text(pools: Sequence[PoolInfo]) -> str:
    """Pools as the annotation of a statement, which is a text."""
    return json.dumps([p._said() for p in pools])


def pools_from_text(text: str) -> list[PoolInfo]:
    """The pools that pools_as_text wrote: equal to those that it was given."""
    from ..target import Target
    out: list[PoolInfo] = []
    for said in json.loads(text):
        kind, name, targets = (said.pop(key) for key in ("kind", "pool_name", "targets"))
        said["target_burst_bytes"] = {Target(t): n for t, n in said["target_burst_bytes"].items()}
        kinds: dict[str, Any] = {"WorkspacePoolInfo": WorkspacePoolInfo, "ConstantPoolInfo": lambda n, t, p: ConstantPoolInfo(n, t, None, p)}
        out.append(kinds.get(kind, PoolInfo)(name, [Target(t) for t in targets], PoolInfoProperties(**said)))
    return out


__all__ = ["ConstantMemoryPools", "ConstantPoolInfo", "PoolInfo", "PoolInfoProperties", "WorkspaceMemoryPools", "WorkspacePoolInfo", "pools_as_text", "pools_from_text"]
