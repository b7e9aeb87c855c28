# SPDX-License-Identifier: Apache-2.0
"""Runs the small programs of classic_programs/: what users of the classic interface read, write and expect, one behaviour each.

    test_classic_programs.py [FILE.py...] [-k WORD]      all of them, or those of a file or with a word in their name
    test_classic_programs.py --part 1/2                  the first, third... of the files"""
import importlib
import os
import sys
import time
import traceback

import tilewright.as_tvm  # noqa: F401  makes `import tvm` mean Tilewright

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "classic_programs")
AT_LEAST = 7911  # programs; the suite may only grow


def failure(error):
    """Where in the program, and what."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(FOLDER)]
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: {frames[-1].line}" if frames else "?"
    return f"    {place}\n    {type(error).__name__}: {str(error)[:600]}"


def main(arguments):
    word = arguments[arguments.index("-k") + 1] if "-k" in arguments else ""
    part, parts = map(int, arguments[arguments.index("--part") + 1].split("/")) if "--part" in arguments else (1, 1)
    files = [os.path.basename(a) for a in arguments if a.endswith(".py")]
    sys.path.insert(0, FOLDER)
    harness = importlib.import_module("harness")
    programs = {}
    for name in files or sorted(n for n in os.listdir(FOLDER) if n.endswith(".py") and n != "harness.py"):
        harness.PROGRAMS.clear()
        importlib.import_module(name.removesuffix(".py"))
        programs[name] = list(harness.PROGRAMS)
    failed, total = 0, 0
    for name in list(programs)[part - 1::parts]:
        start, bad = time.time(), 0
        chosen = [p for p in programs[name] if word in p[0]]
        for title, function, case in chosen:
            try:
                function(*case)
            except Exception as error:
                bad += 1
                print(f"FAILED {name} {title}\n{failure(error)}", flush=True)
        print(f"{name}: {len(chosen)} programs, {bad} failed, {time.time() - start:.1f} s", flush=True)
        failed, total = failed + bad, total + len(chosen)
    print(f"{total} programs, {failed} failed")
    if not files and not word and sum(map(len, programs.values())) < AT_LEAST:
        print(f"there were at least {AT_LEAST} programs")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
