# SPDX-License-Identifier: Apache-2.0
"""Compiles C to LLVM IR for the pragma import_llvm."""
from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import Any


def find_clang(required: bool = True) -> list[str]:
    """Executables named clang, newest version first."""
    names = [f"clang-{v}" for v in range(25, 13, -1)] + ["clang"]
    found = [path for path in map(shutil.which, names) if path]
    if not found and required:
        raise RuntimeError("no clang was found; install one, or give the LLVM IR itself")
    return found


def create_llvm(inputs: Any, output: str | None = None, options: Any = None, cc: str | None = None) -> str:
    """The LLVM IR of one or more programs, given as source texts or file paths; also written to `output` if given."""
    sources = [inputs] if isinstance(inputs, str) else list(inputs)
    program = cc or find_clang()[0]
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        for i, code in enumerate(sources):
            path = code
            if not os.path.isfile(code):
                path = os.path.join(folder, f"input{i}.cc")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(code)
            made = os.path.join(folder, f"output{i}.ll")
            base = [program, "-O3", "-fPIC", "-march=native", "-fno-discard-value-names", "-S", "-emit-llvm", *(options or []), "-o", made, path]
            run = subprocess.run(base, capture_output=True, text=True, check=False)
            if run.returncode != 0:
                raise RuntimeError(f"Compilation error:\n{run.stderr}")
            with open(made, encoding="utf-8") as file:
                text = file.read()
            if "float*" in text or "i8*" in text or "i32*" in text:  # old versions of clang emit typed pointers unless told otherwise
                run = subprocess.run([*base[:1], "-Xclang", "-opaque-pointers", *base[1:]], capture_output=True, text=True, check=False)
                if run.returncode != 0:
                    raise RuntimeError(f"Compilation error:\n{run.stderr}")
                with open(made, encoding="utf-8") as file:
                    text = file.read()
            # Before version 18, clang's data layout lacks the x86-64 ABI's alignment of 128-bit integers; the layout of everything else is
            # the same.
            texts.append(text.replace("-i64:64-f80:128", "-i64:64-i128:128-f80:128", 1))
    if len(texts) != 1:
        raise ValueError("one program is compiled at a time; put the functions into one text")
    if output is not None:
        with open(output, "w", encoding="utf-8") as file:
            file.write(texts[0])
    return texts[0]


__all__ = ["create_llvm", "find_clang"]
