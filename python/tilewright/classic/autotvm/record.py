# SPDX-License-Identifier: Apache-2.0
"""The classic tuning log: one JSON object per line."""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from ...classic.target import Target
from .measure import MeasureInput, MeasureResult
from .task.space import ConfigEntity
from .task.task import Task

AUTOTVM_LOG_VERSION = 0.2


def _plain(value: Any) -> Any:
    """Converts JSON lists to tuples, as in workloads."""
    return tuple(_plain(v) for v in value) if isinstance(value, (list, tuple)) else value


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """A string key that identifies a measure input."""
    return "".join(str(part) for part in (str(inp.target), inp.task.name, str(inp.task.args), str(inp.config) if include_config else ""))


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """The log line of a record. ValueError: unknown protocol."""
    if protocol != "json":
        raise ValueError(f"logs are JSON; there is no protocol '{protocol}'")
    costs = list(result.costs) if result.error_no == 0 else [1e9]
    return json.dumps({"input": [str(inp.target), inp.task.name, inp.task.args, inp.task.kwargs], "config": inp.config.to_json_dict(),
                       "result": [costs, int(result.error_no), result.all_cost, result.timestamp], "version": AUTOTVM_LOG_VERSION,
                       "tvm_version": "0.9.0"})


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult] | None:
    """The (input, result) of a line; None for a record of the classic stack's first log version. ValueError: not a record."""
    if protocol != "json":
        raise ValueError(f"logs are JSON; there is no protocol '{protocol}'")
    try:
        read = json.loads(row)
        if "v" in read:
            return None
        target, name, args = read["input"][:3]
        config = ConfigEntity.from_json_dict(read["config"])
        costs, error, all_cost, timestamp = read["result"]
        task = Task(str(name), _plain(args))
        task.target = Target(str(target))
        return MeasureInput(task.target, task, config), MeasureResult(tuple(float(c) for c in costs), int(error), all_cost, timestamp)
    except (KeyError, TypeError, IndexError, json.JSONDecodeError) as error:
        raise ValueError(f"this is no tuning record: {row.strip()[:80]}") from error


def load_from_file(filename: str | os.PathLike[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The (input, result) of each line, skipping comments and records of the first version. ValueError: any other line."""
    with open(filename) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#") and (record := decode(line)) is not None:
                yield record


def _workload_key(inp: MeasureInput) -> str:
    return str((inp.task.name, inp.task.args))


def _mean(result: MeasureResult) -> float:
    return sum(result.costs) / len(result.costs) if result.error_no == 0 and result.costs else float("inf")


def pick_best(in_file: str | os.PathLike[str], out_file: str | os.PathLike[str]) -> None:
    """Writes each workload's record with the lowest mean time."""
    best: dict[str, tuple[float, MeasureInput, MeasureResult]] = {}
    for inp, result in load_from_file(in_file):
        key = str(inp.target) + _workload_key(inp)
        if result.error_no == 0 and (key not in best or _mean(result) < best[key][0]):
            best[key] = (_mean(result), inp, result)
    with open(out_file, "w") as out:
        for _, inp, result in best.values():
            out.write(encode(inp, result) + "\n")


def split_workload(in_file: str | os.PathLike[str], clean: bool = True) -> None:
    """Writes one file per workload, IN_FILE.N.wkl, sorted by time; with `clean`, without failed and repeated configurations."""
    groups: dict[str, list[tuple[MeasureInput, MeasureResult]]] = {}
    for inp, result in load_from_file(in_file):
        groups.setdefault(_workload_key(inp), []).append((inp, result))
    for n, records in enumerate(groups.values()):
        seen: set[str] = set()
        with open(f"{os.fspath(in_file)}.{n:03d}.wkl", "w") as out:
            for inp, result in sorted(records, key=lambda r: _mean(r[1])) if clean else records:
                key = measure_str_key(inp)
                if clean and (key in seen or result.error_no != 0):
                    continue
                seen.add(key)
                out.write(encode(inp, result) + "\n")


__all__ = ["decode", "encode", "load_from_file", "measure_str_key", "pick_best", "split_workload"]
