#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of operators into docs/torch.md from the converters' tables; --check: exit 1 where it is not what is there."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "torch.md"
BEGIN, END = "<!-- operators: tests/torch/write_docs.py -->", "<!-- end of operators -->"
ENTRY = re.compile(r'\{"([a-z_0-9A-Z]+)\.([A-Za-z_0-9.]+)",')


def listing():
    lines = []
    for file in sorted((ROOT / "src/frontend/torch/converters").glob("*.cc")):
        by_space = {}
        for space, name in ENTRY.findall(file.read_text(encoding="utf-8")):
            by_space.setdefault(space, set()).add(name)
        for space in sorted(by_space):
            names = " ".join(f"`{n}`" for n in sorted(by_space[space]))
            lines.append(f"- **{file.stem}**, `{space}`: {names}")
    return "\n".join(lines)


def main():
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    new = f"{before}{BEGIN}\n{listing()}\n{END}{rest.split(END)[1]}"
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    elif new != page:
        print("docs/torch.md does not list the operators that there are: run tests/torch/write_docs.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
