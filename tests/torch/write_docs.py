#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of operators into docs/torch.md from the converters' tables; --check: exit 1 where it is not what is there.

    tests/torch/write_docs.py --models FILE...      also the models that were run: FILEs are what `./dev bench --torch --check --json` writes"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "torch.md"
BEGIN, END = "<!-- operators: tests/torch/write_docs.py -->", "<!-- end of operators -->"
MODELS_BEGIN, MODELS_END = "<!-- models: tests/torch/write_docs.py --models -->", "<!-- end of models -->"
ENTRY = re.compile(r'\{"([a-z_0-9A-Z]+)\.([A-Za-z_0-9.]+)",')


def listing():
    lines = []
    for file in sorted((ROOT / "src/frontend/torch/converters").glob("*.cc")):
        by_space = {}
        tables = file.read_text(encoding="utf-8").partition("constexpr ConverterEntry ")[2]  # what stands before asks for other operators
        for space, name in ENTRY.findall(tables):
            by_space.setdefault(space, set()).add(name)
        for space in sorted(by_space):
            names = " ".join(f"`{n}`" for n in sorted(by_space[space]))
            lines.append(f"- **{file.stem}**, `{space}`: {names}")
    return "\n".join(lines)


def between(page, begin, end, text):
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def models(files):
    """Families by name; a model that does not work at every door it was tried at is listed with what each says."""
    verdicts = {}
    for file in files:
        for r in json.loads(pathlib.Path(file).read_text(encoding="utf-8")):
            verdicts.setdefault(r["model"], {})[r["door"]] = r["verdict"]
    families = {}
    for name, by_door in sorted(verdicts.items()):
        family, short = name.split("/")
        alike = all(verdict == "works" for verdict in by_door.values())
        bad = "" if alike else ", ".join(f"{door}: {verdict}" for door, verdict in sorted(by_door.items()))
        families.setdefault(family, []).append(f"`{short}`" + (f" ({bad})" if bad else ""))
    works = sum(all(v == "works" for v in by_door.values()) for by_door in verdicts.values())
    doors = sorted({door for by_door in verdicts.values() for door in by_door})
    lines = [f"{works} of {len(verdicts)} equal PyTorch's at each of the doors they were tried at ({', '.join(doors)}).", ""]
    return "\n".join(lines + [f"- **{family}**: {' '.join(names)}" for family, names in sorted(families.items())])


def main():
    page = PAGE.read_text(encoding="utf-8")
    new = between(page, BEGIN, END, listing())
    if sys.argv[1:2] == ["--models"]:
        new = between(new, MODELS_BEGIN, MODELS_END, models(sys.argv[2:]))
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
    elif new != page:
        print("docs/torch.md does not list the operators that there are: run tests/torch/write_docs.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
