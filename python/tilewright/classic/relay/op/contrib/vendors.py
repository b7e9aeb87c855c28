# SPDX-License-Identifier: Apache-2.0
"""The classic modules of vendors' libraries that are not here, `relay.op.contrib.tensorrt` and its kin: scripts ask them what is there.
Their partition_for_* takes out what the library runs (vendor_patterns.py), or what a script has registered under the same name; a build then
asks for the code generator, `relay.ext.<name>`."""
from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ....runtime.ndarray import as_array
from ....transform import Sequential
from ... import transform
from ..registry import registered
from .register import get_pattern_table
from .vendor_patterns import TABLES


class _Vendor(NamedTuple):
    compiler: str  # the name of relay.ext.<compiler>
    runs_on: str
    asked: tuple[str, ...] = ()  # functions that say whether it is there


_VENDORS = {
    "arm_compute_lib": _Vendor("arm_compute_lib", "the Arm Compute Library", ("is_arm_compute_runtime_enabled",)), "bnns": _Vendor("bnns", "Apple's processors"),
    "clml": _Vendor("clml", "Adreno GPUs", ("is_clml_runtime_enabled",)), "cmsisnn": _Vendor("cmsis-nn", "CMSIS-NN", ("enabled",)), "cublas": _Vendor("cublas", "NVIDIA's GPUs"),
    "cudnn": _Vendor("cudnn", "NVIDIA's GPUs"), "cutlass": _Vendor("cutlass", "NVIDIA's GPUs"), "ethosn": _Vendor("ethos-n", "the Ethos-N"), "ethosu": _Vendor("ethos-u", "the Ethos-U"),
    "tensorrt": _Vendor("tensorrt", "NVIDIA's GPUs", ("is_tensorrt_runtime_enabled", "is_tensorrt_compiler_enabled")), "vitis_ai": _Vendor("vitis_ai", "Xilinx's accelerators"),
}


class Available(enum.Enum):
    """What there is of the Ethos-N."""
    UNAVAILABLE, SW_ONLY, SW_AND_HW = range(3)


# Convolutions are put in the layout that the library runs.
_LAYOUTS = {"tensorrt": {"nn.conv1d": ["NCW", "default"], "nn.conv2d": ["NCHW", "default"], "nn.conv3d": ["NCDHW", "default"], "nn.conv2d_transpose": ["NCHW", "default"]}}
_EACH_ALONE = ("arm_compute_lib", "cublas", "cudnn", "cutlass", "ethos-n")  # regions are single operators and chains
_OF_INFERENCE = ("bnns", "cutlass")  # norms are folded


def _steps(compiler: str, table: Any, mod_name: str) -> list[Any]:
    out: list[Any] = [transform.InferType()]
    if compiler in _OF_INFERENCE:
        out += [transform.SimplifyInference(), transform.FoldConstant(), transform.FoldScaleAxis(), transform.FoldConstant()]
    if compiler in _LAYOUTS:
        out += [transform.ConvertLayout(_LAYOUTS[compiler]), transform.FoldConstant()]
    out += [transform.MergeComposite(table)] if table else []
    out.append(transform.AnnotateTarget(compiler, include_non_call_ops=compiler not in _EACH_ALONE))
    out += [] if compiler in _EACH_ALONE else [transform.MergeCompilerRegions()]
    return [*out, transform.PartitionGraph(mod_name), transform.InferType()]


def _partition(name: str, vendor: _Vendor) -> Callable[..., Any]:
    def partition(mod: Any, params: Mapping[str, Any] | None = None, *_: Any, **options: Any) -> Any:
        if name == "vitis_ai" and not options.get("dpu"):
            raise ValueError("partition_for_vitis_ai is for one accelerator: name it, dpu=\"DPUCZDX8G-zcu104\"")
        table = get_pattern_table(vendor.compiler)
        if table is None and not registered(f"target.{vendor.compiler}"):
            raise NotImplementedError(f"partition_for_{name}: what {vendor.runs_on} runs is not known here; build the module as it is for the processor, or "
                                      f"register operators and patterns of a generator of your own for it (docs/external-codegen.md)")
        if params:
            mod = mod.bind_params({key: as_array(value) for key, value in params.items()})
        return Sequential(_steps(vendor.compiler, table, options.get("mod_name", "default")))(mod)
    partition.__name__ = f"partition_for_{name}"
    partition.__doc__ = f"The module with what {vendor.runs_on} runs as functions of '{vendor.compiler}'. NotImplementedError: that is not known."
    return partition


def vendor_module(name: str) -> types.ModuleType | None:
    """The module of a vendor, or None: there is no such vendor."""
    vendor = _VENDORS.get(name)
    if vendor is None:
        return None
    if name not in _made:
        made = types.ModuleType(f"{__package__}.{name}", f"The code generator for {vendor.runs_on}, which is not here")
        setattr(made, f"partition_for_{name}", _partition(name, vendor))
        if vendor.compiler in TABLES:
            setattr(made, "pattern_table", functools.partial(get_pattern_table, vendor.compiler))
        for asked in vendor.asked:
            setattr(made, asked, lambda: False)
        if name == "ethosn":
            made.Available, made.ethosn_available, made.ethosn_api_version = Available, lambda: Available.UNAVAILABLE, lambda: ""  # type: ignore[attr-defined]
        _made[name] = made
    return _made[name]


_made: dict[str, types.ModuleType] = {}

__all__ = ["Available", "vendor_module"]
