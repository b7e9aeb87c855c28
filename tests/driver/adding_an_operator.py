#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what docs/adding-an-operator.md says, on copies: makes its edits, compiles each file that changed with the build
folder's options, links them before the libraries in place of their own, and runs the test that the page adds.

    adding_an_operator.py --source DIR --build DIR
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

EDIT = re.compile(r"^In `([^`]+)`, (above|below|in place of) `(.+)`:$")
TEST = re.compile(r"^TEST\((\w+), (\w+)\)", re.MULTILINE)
SKIPPED = 77


def edits(page):
    """(file, where, the text that marks one line, what comes there), in the order of the page."""
    lines, found = page.splitlines(), []
    for number, line in enumerate(lines):
        match = EDIT.match(line)
        if not match:
            continue
        if lines[number + 2] != "```cpp":
            sys.exit(f"docs/adding-an-operator.md:{number + 1}: an edit is followed by a block of C++")
        end = lines.index("```", number + 3)
        found.append((*match.groups(), "\n".join(lines[number + 3 : end]) + "\n"))
    return found


def apply(text, where, mark, new, place):
    lines = text.splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if mark in line]
    if len(at) != 1:
        sys.exit(f"{place}: {len(at)} lines have `{mark}`; the page needs one")
    lines[at[0] + (where == "below") : at[0] + (where != "above")] = [new]
    return "".join(lines)


def unit_of(commands, name):
    """The file of the build folder that is compiled for `name`: one that includes it among others, or itself."""
    together = (unit for unit in commands
                if "/Unity/" in unit and f'#include "{name}"' in pathlib.Path(unit).read_text(encoding="utf-8"))
    return next(together, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options = parser.parse_args()
    source, build = options.source.resolve(), options.build.resolve()
    if not (build / "build.ninja").exists():
        print("the build folder is not ninja's: there are no commands to repeat")
        return SKIPPED
    todo = edits((source / "docs/adding-an-operator.md").read_text(encoding="utf-8"))
    changed = {}
    for name, where, mark, new in todo:
        text = changed.get(name) or (source / name).read_text(encoding="utf-8")
        changed[name] = apply(text, where, mark, new, name)
    tests = [f"{suite}.{test}" for edit in todo for suite, test in TEST.findall(edit[3])]
    if not tests:
        sys.exit("docs/adding-an-operator.md adds no test")
    commands = {entry["file"]: entry for entry in json.loads((build / "compile_commands.json").read_text())}
    with tempfile.TemporaryDirectory() as folder:
        folder, objects = pathlib.Path(folder), []
        for name, text in changed.items():
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
        for name in changed:
            entry, copy = commands[unit_of(commands, str(source / name))], folder / name
            words = shlex.split(entry["command"])
            words[words.index("-o") + 1] = str(copy.with_suffix(".o"))
            words[words.index("-c") + 1] = str(copy)
            subprocess.run(words, cwd=entry["directory"], check=True)
            objects.append(str(copy.with_suffix(".o")))
        ninja = subprocess.run(["ninja", "-C", str(build), "-t", "commands", "-s", "test_driver"], check=True,
                               capture_output=True, text=True).stdout
        link = next(line for line in reversed(ninja.splitlines()) if " -o test_driver " in line)
        words = [w for w in shlex.split(link)
                 if w not in (":", "&&") and not w.startswith("CMakeFiles/test_driver.dir/")]
        program = str(folder / "program")
        at = words.index("-o")
        # What an edited file defines is also in the library's object of the files that it is compiled with: the first wins.
        words[at : at + 2] = [*objects, "-Wl,--allow-multiple-definition", "-o", program]
        subprocess.run(words, cwd=build, check=True)
        result = subprocess.run([program, "--gtest_filter=" + ":".join(tests)], capture_output=True, text=True)
        print(result.stdout, result.stderr)
        passed = result.returncode == 0 and f"[  PASSED  ] {len(tests)} test" in result.stdout
        return 0 if passed else 1


if __name__ == "__main__":
    os.environ.pop("GTEST_FILTER", None)
    sys.exit(main())
