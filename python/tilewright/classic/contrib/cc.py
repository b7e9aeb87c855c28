# SPDX-License-Identifier: Apache-2.0
"""The system compiler as a linker: `lib.export_library("net.so", fcompile=cc.create_shared)`."""
from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any


def get_cc() -> str | None:
    """$CXX, $CC, or the first compiler in PATH."""
    for name in ("CXX", "CC"):
        if os.environ.get(name):
            return os.environ[name]
    return next((found for found in map(shutil.which, ("g++", "gcc", "clang++", "clang", "c++", "cc")) if found), None)


def _package(compiler: str) -> str:
    """The Debian package of a missing cross compiler: g++ for the triple in its name."""
    name = os.path.basename(compiler)
    triple = next((name[:-len(end)] for end in ("-gcc", "-g++", "-c++", "-cc") if name.endswith(end)), "")
    if triple in ("arm-none-eabi", "riscv64-unknown-elf"):
        return f"gcc-{triple}"
    return f"g++-{triple}" if triple else name if name.startswith(("clang", "gcc", "g++")) else "g++"


def _run(output: str, objects: Any, flags: Sequence[str], options: Sequence[str] | None, cc: str | None) -> None:
    compiler = cc or get_cc()
    if not compiler:
        raise ValueError("no C++ compiler was found; set CXX, or leave out fcompile to use the built-in linker")
    objects = [objects] if isinstance(objects, str) else list(objects)
    try:
        done = subprocess.run([compiler, *flags, "-o", output, *objects, *(options or [])], capture_output=True, text=True)
    except FileNotFoundError:
        raise FileNotFoundError(f"the compiler '{compiler}' is not here; on Debian: apt-get install {_package(compiler)}") from None
    if done.returncode != 0:
        raise RuntimeError(f"Compilation error:\n{done.stdout}{done.stderr}\nCommand line: {' '.join(done.args)}")


def create_shared(output: str, objects: Any, options: Sequence[str] | None = None, cc: str | None = None, **_: Any) -> None:
    """Links objects into a shared library. Compilers for bare-metal targets, which have no shared libraries, link them into one
    relocatable object. A finished library is copied; options do not affect it."""
    single = [objects] if isinstance(objects, str) else list(objects)
    if len(single) == 1 and single[0].endswith(".so"):
        shutil.copyfile(single[0], output)
        return
    bare = any(part in os.path.basename(cc or "") for part in ("-none-", "-elf-"))
    _run(output, single, ["-r", "-nostdlib"] if bare else ["-shared", "-fPIC"], options, cc)


create_shared.output_format = "so"  # type: ignore[attr-defined]


def create_executable(output: str, objects: Any, options: Sequence[str] | None = None, cc: str | None = None, **_: Any) -> None:
    _run(output, objects, [], options, cc)


def create_staticlib(output: str, inputs: Any, ar: str | None = None) -> None:
    """An archive of the objects, by $AR or ar."""
    program = ar or os.environ.get("AR") or shutil.which("ar")
    if not program:
        raise ValueError("no archiver was found; set AR")
    inputs = [inputs] if isinstance(inputs, str) else list(inputs)
    done = subprocess.run([program, "rcs", output, *inputs], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"AR error:\n{done.stdout}{done.stderr}\nCommand line: {' '.join(done.args)}")


create_staticlib.output_format = "a"  # type: ignore[attr-defined]


def get_target_by_dump_machine(compiler: str | None) -> Callable[[], str | None]:
    """A function that asks the compiler for its target triple; None if the compiler cannot tell."""
    def get_target_triple() -> str | None:
        if not compiler:
            return None
        try:
            done = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None
    return get_target_triple


create_shared.get_target_triple = get_target_by_dump_machine(os.environ.get("CXX") or get_cc())  # type: ignore[attr-defined]


def cross_compiler(compile_func: Any, options: Sequence[str] | None = None, output_format: str | None = None,
                   get_target_triple: Callable[[], str] | None = None, add_files: Sequence[str] | None = None) -> Callable[..., None]:
    """An fcompile function for another machine, from a compiler's name or a function like create_shared, with fixed options."""
    base, added = list(options or []), list(add_files or [])

    def fcompile(outputs: str, objects: Any, options: Sequence[str] | None = None, **kwargs: Any) -> None:
        all_options = base + list(options or [])
        objects = ([objects] if isinstance(objects, str) else list(objects)) + added
        if callable(compile_func):
            compile_func(outputs, objects, options=all_options, **kwargs)
        else:
            create_shared(outputs, objects, options=all_options, cc=compile_func, **kwargs)

    fcompile.get_target_triple = get_target_triple or (None if callable(compile_func) else get_target_by_dump_machine(compile_func))  # type: ignore[attr-defined]
    fcompile.output_format = output_format or getattr(compile_func, "output_format", "so")  # type: ignore[attr-defined]
    return fcompile


__all__ = ["create_executable", "create_shared", "create_staticlib", "cross_compiler", "get_cc", "get_target_by_dump_machine"]
