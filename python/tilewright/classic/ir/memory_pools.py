# SPDX-License-Identifier: Apache-2.0
"""Memory pools that a C program provides for a model: relay.build(..., workspace_memory_pools=, constant_memory_pools=), docs/aot.md. A
pool's name becomes a member of the interface struct, and size_hint_bytes is its capacity; the other fields are informational."""
from __future__ import annotations

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


__all__ = ["ConstantMemoryPools", "ConstantPoolInfo", "PoolInfo", "PoolInfoProperties", "WorkspaceMemoryPools", "WorkspacePoolInfo"]
