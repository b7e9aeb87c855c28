# SPDX-License-Identifier: Apache-2.0
"""Models in C programs, for tests: `compile_and_run(AOTTestModel(...), runner, "c", True)` builds a model ahead of time, compiles a program
around it with the system's C compiler, runs it and compares its outputs."""
from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tarfile
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..relay.backend import Executor, Runtime
from ..transform import PassContext
from .compare import get_dtype_range

_TOLERANCE = 1e-4  # of floats: C compilers fuse products and sums as they like


class AOTTestModel(NamedTuple):
    """A model with inputs and the outputs to expect, by name. `output_tolerance`: the largest difference, or one for each output."""
    module: Any
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    output_tolerance: Any = None
    name: str = "default"
    params: Mapping[str, Any] | None = None
    extra_memory_in_bytes: int = 0


class AOTCompiledTestModel(NamedTuple):
    model: AOTTestModel
    executor_factory: Any


class AOTDataLinkage(NamedTuple):
    """Where the program's tensors lie: a section of the program, and their alignment."""
    section: str
    alignment: int


class AOTTestRunner(NamedTuple):
    """How a program is made: C statements around the runs, headers, compiler options (`parameters`: macros by name), passes."""
    makefile: str = "default"
    prologue: str = ""
    epilogue: str = ""
    includes: Sequence[str] = ()
    parameters: Mapping[str, str] = {}
    pass_config: Mapping[str, Any] = {}


# Files instead of numbers in the source: tensors may be large.
_HELPERS = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_tensor { void *data; int32_t device_type, device_id, ndim; uint8_t code, bits; uint16_t lanes; int64_t *shape, *strides; uint64_t byte_offset; };
union test_value { int64_t integer; double number; struct test_tensor *tensor; };

static void fill(void *at, size_t bytes, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fread(at, 1, bytes, file) != bytes) printf("no input %s\\n", path), exit(1);
  fclose(file);
}
static void keep(const void *at, size_t bytes, const char *path) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(at, 1, bytes, file) != bytes) printf("no output %s\\n", path), exit(1);
  fclose(file);
}
"""


def generate_ref_data(mod: Any, input_data: Mapping[str, Any], params: Mapping[str, Any] | None = None, target: Any = "llvm") -> "OrderedDict[str, Any]":
    """The outputs by the names that they have in a program: `output`, or `output0`, `output1`, ... or the function's output_tensor_names."""
    from .. import cpu, relay
    from ..contrib import graph_executor
    module = mod if hasattr(mod, "get_global_vars") else relay.expr.to_module(mod)
    with PassContext(opt_level=3):
        executor = graph_executor.GraphModule(relay.build(module, target, params=params)["default"](cpu()))
    executor.run(**input_data)
    values = [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]
    attrs = module["main"].attrs
    named = [str(n) for n in attrs["output_tensor_names"]] if attrs and "output_tensor_names" in attrs.keys() else []
    names = named or (["output"] if len(values) == 1 else [f"output{i}" for i in range(len(values))])
    return OrderedDict(zip(names, values))


def compile_models(models: Any, interface_api: str, use_unpacked_api: bool, workspace_byte_alignment: int = 8, constant_byte_alignment: int = 8,
                   enable_op_fusion: bool = True, pass_config: Mapping[str, Any] | None = None, use_runtime_executor: bool = True, target: Any = "c",
                   workspace_memory_pools: Any = None, constant_memory_pools: Any = None, schedule_name: Any = None, runtime: Any = None) -> list[AOTCompiledTestModel]:
    """Builds each model ahead of time for programs in C."""
    from .. import relay
    executor = Executor("aot", {"workspace-byte-alignment": workspace_byte_alignment, "constant-byte-alignment": constant_byte_alignment,
                                "interface-api": interface_api, "unpacked-api": use_unpacked_api})
    config = {**(pass_config or {}), **({} if enable_op_fusion else {"relay.FuseOps.max_depth": 1})}
    with PassContext(opt_level=3, config=config):
        return [AOTCompiledTestModel(model, relay.build(model.module, target, executor=executor, runtime=runtime or Runtime("crt"), params=model.params,
                                                        workspace_memory_pools=workspace_memory_pools, constant_memory_pools=constant_memory_pools, mod_name=model.name))
                for model in ([models] if isinstance(models, AOTTestModel) else models)]


def _array(name: str, bytes_: int, linkage: AOTDataLinkage | None) -> str:
    placed = f"__attribute__((section(\"{linkage.section}\"), aligned({linkage.alignment})))" if linkage else "__attribute__((aligned(64)))"
    return f"{placed} static uint8_t {name}[{max(1, bytes_)}];"


def _by_structs(about: Mapping[str, Any], prefix: str, at: Mapping[str, list[str]]) -> list[str]:
    """The call of a model that takes structs of addresses."""
    lines, given = [], []
    for role in ("inputs", "outputs", "pools"):
        kind = "workspace_pools" if role == "pools" else role
        if role == "pools" and not about[role]:
            continue
        lines.append(f"struct {prefix}_{kind} {kind};")
        if not about["tensors_in_pools"] or role == "pools":
            lines += [f"{kind}.{entry['member']} = {array};" for entry, array in zip(about[role], at[role])]
            given.append("&" + kind)
    if about["tensors_in_pools"]:
        lines += [f"{role} = {prefix}_map_{role}(&workspace_pools);" for role in ("inputs", "outputs")]
        lines += [f"memcpy(inputs.{entry['member']}, {array}, sizeof {array});" for entry, array in zip(about["inputs"], at["inputs"])]
    lines.append(f"if ({prefix}_run({', '.join(given)}) != 0) return 2;")
    if about["tensors_in_pools"]:
        lines += [f"memcpy({array}, outputs.{entry['member']}, sizeof {array});" for entry, array in zip(about["outputs"], at["outputs"])]
    return lines


def _by_values(prefix: str, arrays: list[str]) -> list[str]:
    """The call of a packed function, whose tensors' shapes nobody looks at."""
    lines = [f"struct test_tensor tensors[{len(arrays)}] = {{{{0}}}};", f"union test_value values[{len(arrays)}];", f"int32_t codes[{len(arrays)}], code = 4;",
             "union test_value result;"]
    for i, array in enumerate(arrays):
        lines.append(f"tensors[{i}].data = {array}, tensors[{i}].device_type = 1, values[{i}].tensor = &tensors[{i}], codes[{i}] = 7;")
    return [*lines, f"if ({prefix}_run(values, codes, {len(arrays)}, &result, &code, NULL) != 0) return 2;"]


class _Program:
    """The source of a program that runs models in turn, and its files."""

    def __init__(self, runner: AOTTestRunner, linkage: AOTDataLinkage | None):
        self.runner, self.linkage = runner, linkage
        self.declared: list[str] = []
        self.steps: list[str] = []

    def add(self, folder: str, compiled: AOTCompiledTestModel, about: Mapping[str, Any]) -> None:
        prefix, model = about["prefix"], compiled.model
        if about["header"]:
            self.declared.append(f'#include "{about["header"]}"')
        else:
            self.declared.append(f"int32_t {prefix}_run(void *, int32_t *, int32_t, void *, int32_t *, void *);")
        at: dict[str, list[str]] = {"inputs": [], "outputs": [], "pools": []}
        fills, keeps = [], []
        wanted = list(model.outputs.values())
        given = {re.sub(r"\W", "_", name): np.ascontiguousarray(value) for name, value in model.inputs.items()}
        for role, entries in (("inputs", about["inputs"]), ("outputs", about["outputs"])):
            for i, entry in enumerate(entries):
                array = f"{prefix}_{role}_{i}"
                at[role].append(array)
                if role == "inputs":
                    value = given[re.sub(r"\W", "_", entry["name"])]
                    value.tofile(os.path.join(folder, array))
                    fills.append(f'fill({array}, {value.nbytes}, "{array}");')
                    self.declared.append(_array(array, value.nbytes, self.linkage))
                else:
                    value = np.asarray(wanted[i])
                    keeps.append(f'keep({array}, {value.nbytes}, "{array}");')
                    self.declared.append(_array(array, value.nbytes, self.linkage))
        for entry in about["pools"]:
            array = f"{prefix}_pool_{entry['member']}"
            at["pools"].append(array)
            self.declared.append(_array(array, entry["bytes"] + model.extra_memory_in_bytes, self.linkage))
            if entry["constant"]:
                macro = f"{prefix.upper()}_{entry['name'].upper()}_CONSTANT_POOL"
                self.declared.append(f"static const uint8_t {array}_data[{macro}_SIZE] = {{{macro}_DATA}};")
                fills.append(f"memcpy({array}, {array}_data, sizeof {array}_data);")
        run = _by_structs(about, prefix, at) if about["api"] == "c" else _by_values(prefix, at["inputs"] + at["outputs"])
        self.steps.append("{\n    " + "\n    ".join([*fills, *run, *keeps]) + "\n  }")

    def text(self) -> str:
        includes = "".join(f'#include "{name}"\n' for name in self.runner.includes)
        return (_HELPERS + includes + "\n".join(self.declared) + f"\nint main(void) {{\n{self.runner.prologue}\n  " + "\n  ".join(self.steps) +
                f"\n{self.runner.epilogue}\n  return 0;\n}}\n")


def _called(command: list[str], folder: str, verbose: bool) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if verbose or done.returncode:
        print(shlex.join(command), done.stdout, done.stderr, sep="\n")
    if done.returncode:
        raise AssertionError(f"'{shlex.join(command)[:200]}' ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")


def _compare(folder: str, prefix: str, model: AOTTestModel) -> None:
    for i, (name, wanted) in enumerate(model.outputs.items()):
        wanted = np.asarray(wanted)
        got = np.fromfile(os.path.join(folder, f"{prefix}_outputs_{i}"), wanted.dtype).reshape(wanted.shape)
        given = model.output_tolerance[i] if isinstance(model.output_tolerance, (list, tuple)) else model.output_tolerance
        loose = _TOLERANCE if wanted.dtype.kind == "f" else 0
        np.testing.assert_allclose(got.astype("float64"), wanted.astype("float64"), rtol=0 if given is not None else loose, atol=loose if given is None else given,
                                   err_msg=f"output '{name}' of the model '{model.name}'")


def run_and_check(models: Sequence[AOTCompiledTestModel], runner: AOTTestRunner, interface_api: str, debug_calculated_workspaces: bool = False,
                  workspace_byte_alignment: int = 8, constant_byte_alignment: int = 8, data_linkage: AOTDataLinkage | None = None, test_dir: str | None = None,
                  verbose: bool = False, use_workspace_io: bool = False, debug_last_error: bool = False, checker: Any = None) -> bool:
    """Compiles one program for all models, runs it, and compares; with `checker` that gets the program's folder instead. An AssertionError says
    what failed. The compiler is $CC or gcc."""
    from ..micro import export_model_library_format
    if runner.makefile != "default":
        raise NotImplementedError(f"programs for '{runner.makefile}' are made and run by micro.generate_project (template mps2-an386)")
    with tempfile.TemporaryDirectory(prefix="tilewright-aot-") as made:
        folder = os.fspath(test_dir) if test_dir else made
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "models.tar")
        export_model_library_format([m.executor_factory for m in models], path)
        with tarfile.open(path) as tar:
            tar.extractall(folder)
        with open(os.path.join(folder, "metadata.json"), encoding="utf-8") as file:
            modules = json.load(file)["modules"]
        program = _Program(runner, data_linkage)
        for compiled in models:
            program.add(folder, compiled, modules[compiled.model.name]["interface"])
        with open(os.path.join(folder, "test.c"), "w", encoding="utf-8") as file:
            file.write(program.text())
        host = os.path.join(folder, "codegen/host")
        sources = sorted(os.path.join(host, "src", name) for name in os.listdir(os.path.join(host, "src")))
        objects = sorted(os.path.join(host, "lib", name) for name in os.listdir(os.path.join(host, "lib"))) if os.path.isdir(os.path.join(host, "lib")) else []
        macros = [f"-D{name}={value}" for name, value in runner.parameters.items()]
        _called([os.environ.get("CC", "gcc"), "-O1", *macros, f"-I{host}/include", "test.c", *sources, *objects, "-o", "test", "-lm"], folder, verbose)
        _called([os.path.join(folder, "test")], folder, verbose)
        if checker is not None:
            return bool(checker(folder))
        for compiled in models:
            _compare(folder, modules[compiled.model.name]["interface"]["prefix"], compiled.model)
    return True


def compile_and_run(models: Any, runner: AOTTestRunner, interface_api: str, use_unpacked_api: bool, debug_calculated_workspaces: bool = False,
                    workspace_byte_alignment: int = 8, constant_byte_alignment: int = 8, enable_op_fusion: bool = True, data_linkage: AOTDataLinkage | None = None,
                    use_runtime_executor: bool = True, target: Any = "c", target_opts: Mapping[str, Any] | None = None, test_dir: str | None = None, verbose: bool = False,
                    schedule_name: Any = None, debug_last_error: bool = False, checker: Any = None) -> bool:
    """compile_models, then run_and_check."""
    text = " ".join([str(target), *(f"-{key}={value}" for key, value in (target_opts or {}).items())])
    compiled = compile_models(models, interface_api, use_unpacked_api, workspace_byte_alignment, constant_byte_alignment, enable_op_fusion, runner.pass_config,
                              use_runtime_executor, text, schedule_name=schedule_name)
    return run_and_check(compiled, runner, interface_api, debug_calculated_workspaces, workspace_byte_alignment, constant_byte_alignment, data_linkage, test_dir,
                         verbose, False, debug_last_error, checker)


__all__ = ["AOTCompiledTestModel", "AOTDataLinkage", "AOTTestModel", "AOTTestRunner", "compile_and_run", "compile_models", "generate_ref_data", "get_dtype_range",
           "run_and_check"]
