# SPDX-License-Identifier: Apache-2.0
"""Profiling reports in the classic form."""
from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple


class Duration(NamedTuple):
    microseconds: float

    def __str__(self) -> str:
        return f"{self.microseconds:,.2f}"


class Count(NamedTuple):
    value: int

    def __str__(self) -> str:
        return f"{self.value:,}"


class Percent(NamedTuple):
    percent: float

    def __str__(self) -> str:
        return f"{self.percent:.2f}"


class Ratio(NamedTuple):
    ratio: float

    def __str__(self) -> str:
        return f"{self.ratio:.3f}"


# Keys of value types in the JSON form.
_JSON = {Duration: "microseconds", Count: "count", Percent: "percent", Ratio: "ratio"}


_LEFT = ("Name", "Device", "Argument Shapes", "Operators", "Hash")


def _to_json(value: Any) -> dict[str, Any]:
    kind = _JSON.get(type(value))
    return {"string": str(value)} if kind is None else {kind: value[0] if kind == "count" else float(value[0])}


def _from_json(value: dict[str, Any]) -> Any:
    (kind, plain), = value.items()
    return next((made(plain) for made, name in _JSON.items() if name == kind), plain)


def _hash(*parts: str) -> str:
    """What tells kernels of a name apart, and is the same in every process."""
    return hashlib.blake2b("|".join(parts).encode(), digest_size=8).hexdigest()


class Report:
    """`calls`: one row per kernel call in execution order; `device_metrics`: totals; `configuration`."""

    def __init__(self, calls: list[dict[str, Any]], device_metrics: dict[str, dict[str, Any]], configuration: dict[str, Any], trace: str = "",
                 text: str = ""):
        self.calls = calls
        self.device_metrics = device_metrics
        self.configuration = configuration
        self._trace = trace
        self._text = text

    @classmethod
    def of_profile(cls, text: str, table: str = "", trace: str = "") -> "Report":
        """From a profile's JSON (docs/runtime.md)."""
        given = json.loads(text)
        total = given["total_us"] or 1.0
        calls = [{"Name": step["kernel"], "Duration (us)": Duration(step["mean_us"]), "Percent": Percent(100 * step["mean_us"] / total), "Device": "cpu0",
                  "Count": Count(1), "Argument Shapes": step["shapes"], "Operators": step["name"], "Nodes": step["source"], "Hash": _hash(step["kernel"], step["shapes"], step["implementation"]),
                  "Implementation": step["implementation"], "FLOPs": Count(int(step["flops"])),
                  "GFLOP/s": Ratio(step["flops"] / step["min_us"] * 1e-3 if step["min_us"] else 0.0)} for step in given["steps"]]
        metrics = {"cpu0": {"Duration (us)": Duration(given["total_us"]), "Percent": Percent(100.0), "Device": "cpu0", "Count": Count(1)}}
        return cls(calls, metrics, {"Number of threads": Count(given["threads"]), "Executor": "Graph", "Target": given["target"],
                                    "Repeats": Count(given["repeats"])}, trace, table)

    @classmethod
    def of_steps(cls, steps: list[tuple[str, str, int]], threads: int, target: str, table: str = "", trace: str = "") -> "Report":
        """From the steps of a VM program in execution order: name, source, nanoseconds."""
        total = sum(ns for *_, ns in steps) / 1e3
        calls = [{"Name": name, "Duration (us)": Duration(ns / 1e3), "Percent": Percent(100 * ns / 1e3 / (total or 1.0)), "Device": "cpu0", "Count": Count(1),
                  "Nodes": source, "Hash": _hash(name, source)} for name, source, ns in steps]
        metrics = {"cpu0": {"Duration (us)": Duration(total), "Percent": Percent(100.0), "Device": "cpu0", "Count": Count(1)}}
        known = {"Number of threads": Count(threads)} if threads else {}  # 0: one per core
        return cls(calls, metrics, {**known, "Executor": "VM", "Target": target}, trace, table)

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """One row per kernel and shapes, longest first, then sums and totals."""
        rows = [dict(call) for call in self.calls]
        if aggregate:
            merged: dict[tuple[str, str], dict[str, Any]] = {}
            for row in rows:
                key = str(row["Name"]), str(row.get("Argument Shapes", ""))
                if key in merged:
                    first = merged[key]
                    for name in ("Duration (us)", "Percent", "Count", "FLOPs"):
                        if name in first:
                            first[name] = type(first[name])(first[name][0] + row[name][0])
                else:
                    merged[key] = row
            rows = list(merged.values())
        if sort:
            rows.sort(key=lambda row: -row["Duration (us)"].microseconds)
        if col_sums and rows:
            sums: dict[str, Any] = {"Name": "Sum"}
            for name in ("Duration (us)", "Percent", "Count", "FLOPs"):
                if name in rows[0]:
                    sums[name] = type(rows[0][name])(sum(row[name][0] for row in rows))
            rows += [sums, *({"Name": "Total", **{k: v for k, v in m.items() if k != "Name"}} for m in self.device_metrics.values())]
        columns = ["Name", "Duration (us)", "Percent", "Device", "Count", "Argument Shapes", "Operators", "Hash", "GFLOP/s"]
        columns = [c for c in columns if any(c in row for row in rows)]
        cells = [columns, *([str(row.get(c, "")) for c in columns] for row in rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
        lines = ["  ".join(f"{cell:<{w}}" if columns[i] in _LEFT else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(line, widths))).rstrip() for line in cells]
        return "\n".join(lines + ["", "Configuration", "-------------", *(f"{k}: {v}" for k, v in self.configuration.items())])

    def csv(self) -> str:
        columns = list(dict.fromkeys(name for call in self.calls for name in call))

        def cell(value: Any) -> str:
            text = str(value[0]) if type(value) in _JSON else str(value)
            return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text

        return "\n".join([",".join(columns), *(",".join(cell(call.get(c, "")) for c in columns) for call in self.calls)]) + "\n"

    def json(self) -> str:
        """{"calls": [...], "device_metrics": {...}, "configuration": {...}}; each value is an object with its unit."""
        def typed(row: dict[str, Any]) -> dict[str, Any]:
            return {key: _to_json(value) for key, value in row.items()}
        return json.dumps({"calls": [typed(c) for c in self.calls], "device_metrics": {name: typed(m) for name, m in self.device_metrics.items()},
                           "configuration": typed(self.configuration)})

    @classmethod
    def from_json(cls, text: str) -> "Report":
        """ValueError if the text is not a report."""
        try:
            given = json.loads(text)
            plain = [[{k: _from_json(v) for k, v in row.items()} for row in rows]
                     for rows in (given["calls"], given["device_metrics"].values(), [given["configuration"]])]
        except (KeyError, TypeError, AttributeError, ValueError):
            raise ValueError("the text is no JSON form of a report") from None
        return cls(plain[0], dict(zip(given["device_metrics"], plain[1])), plain[2][0])

    def trace(self) -> str:
        """The report in Chrome's trace event format, for chrome://tracing and Perfetto."""
        return self._trace

    def roofline(self) -> str:
        """The table with achieved rates relative to the machine's peaks."""
        return self._text

    def __str__(self) -> str:
        return self.table()


class MetricCollector:
    """Base class of hardware event counters. None are available here: reports only have durations."""


class DeviceWrapper:
    """A device as an object."""

    def __init__(self, dev: Any):
        self.device = dev


def profile_function(mod: Any, dev: Any, collectors: Any = None, func_name: str | None = None, warmup_iters: int = 10) -> Any:
    """A function that runs a function of the module and returns its metrics by name: the duration."""
    function = mod[func_name or mod.entry_name]

    def run(*args: Any) -> dict[str, Any]:
        import time
        for _ in range(warmup_iters):
            function(*args)
        start = time.perf_counter()
        function(*args)
        return {"Duration (us)": Duration(1e6 * (time.perf_counter() - start))}
    return run


__all__ = ["Count", "DeviceWrapper", "Duration", "MetricCollector", "Percent", "Ratio", "Report", "profile_function"]
