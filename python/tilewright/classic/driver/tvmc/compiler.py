# SPDX-License-Identifier: Apache-2.0
"""Compiles modules to packages."""
from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ...target import Target
from .common import TVMCException, parse_configs
from .composite_target import get_codegen_by_target
from .model import TVMCModel, TVMCPackage
from .target import target_from_cli

_LAYOUTS = {"NCHW": ["nn.conv2d=NCHW,OIHW"], "NHWC": ["nn.conv2d=NHWC,HWIO"]}


def compile_model(tvmc_model: Any, target: Any = "llvm", opt_level: int = 3, executor: Any = None, runtime: Any = None, tuning_records: str | None = None,
                  package_path: str | None = None, cross: Any = None, cross_options: str | None = None, output_format: str = "so", dump_code: Any = "",
                  target_host: Any = None, desired_layout: str | None = None, disabled_pass: Any = None, pass_context_configs: Sequence[str] | None = None,
                  additional_target_options: Mapping[str, Mapping[str, Any]] | None = None, use_vm: bool = False, mod_name: str = "default",
                  workspace_pools: Any = None, instruments: Sequence[Any] | None = None, desired_layout_ops: Sequence[str] | None = None) -> TVMCPackage:
    """Compiles, writes the package, and returns it. Without package_path it is a temporary file that is deleted with the model.

    target: "dnnl, llvm" takes out what a code generator runs (composite_target.py) before the kind compiles the rest.
    tuning_records: a log whose records override the default kernel choice. Errors: TVMCException, tilewright.Error."""
    from ... import autotvm, relay, transform
    if not isinstance(tvmc_model, TVMCModel):
        tvmc_model = TVMCModel(tvmc_model, {})
    if use_vm:
        raise TVMCException("use_vm is not supported; tilewright.compile decides by itself whether a model needs the VM")
    if tuning_records and not os.path.exists(tuning_records):
        raise TVMCException(f"the tuning records '{tuning_records}' do not exist")
    records = autotvm.apply_history_best(tuning_records) if tuning_records else contextlib.nullcontext()
    chosen, generators = target_from_cli(target, additional_target_options) if isinstance(target, str) else (Target(target), [])
    chosen = Target(chosen, target_host) if target_host is not None else chosen
    disabled = [p for p in disabled_pass.split(",") if p] if isinstance(disabled_pass, str) else list(disabled_pass or [])
    config = parse_configs(pass_context_configs)
    module = tvmc_model.mod
    if desired_layout:
        module = convert_graph_layout(module, desired_layout, desired_layout_ops)
    for generator in generators:
        found = get_codegen_by_target(generator["name"])
        config |= {found["config_key"]: generator["opts"]} if found["config_key"] else {}
        with transform.PassContext(config=config):
            module = found["pass_pipeline"](module, tvmc_model.params, mod_name=mod_name, **_options_of(found, generator["opts"]))
    with records, transform.PassContext(opt_level=opt_level, config=config, disabled_pass=disabled, instruments=instruments):
        factory = relay.build(module, chosen, executor=executor or relay.backend.Executor("graph"), runtime=runtime or relay.backend.Runtime("cpp"),
                              params=tvmc_model.params, mod_name=mod_name, workspace_memory_pools=workspace_pools)
    path = tvmc_model.export_package(factory, package_path, cross, cross_options, output_format)
    for form in [d for d in (dump_code.split(",") if isinstance(dump_code, str) else dump_code or []) if d]:
        forms = ["relay", *({"llvm": ["asm", "ll"], "c": ["c"]}.get(chosen.kind.name, []))]
        if form not in forms:
            raise TVMCException(f"code of the target {chosen.kind.name} cannot be dumped as '{form}', only as {' or '.join(forms)}; 'tilewright compile --dump-ir' shows kernels")
        with open(f"{path}.{form}", "w", encoding="utf-8") as file:
            file.write(factory.optimized.astext() if form == "relay" else factory.get_lib().get_source(form))
    return TVMCPackage(path)


def _options_of(generator: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that the partitioning takes itself, where the generator has all of them from the pass context."""
    parameters = inspect.signature(generator["pass_pipeline"]).parameters
    takes_all = not generator["config_key"] or any(p.kind == inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    return {name: value for name, value in options.items() if takes_all or name in parameters}


def convert_graph_layout(mod: Any, desired_layout: str, ops: Sequence[str] | None = None) -> Any:
    """The module with its convolutions in NCHW or NHWC. Error: TVMCException."""
    from ... import relay, transform
    if desired_layout not in _LAYOUTS:
        raise TVMCException(f"the layout '{desired_layout}' is not known; there are {', '.join(_LAYOUTS)}")
    if ops and list(ops) != ["nn.conv2d"]:
        raise TVMCException(f"layouts are converted for nn.conv2d, not for {', '.join(ops)}")
    with transform.PassContext(opt_level=3, config={"relay.ConvertLayout.desired_layouts": _LAYOUTS[desired_layout]}):
        return transform.named_pass("ConvertLayout")(mod)


__all__ = ["compile_model", "convert_graph_layout"]
