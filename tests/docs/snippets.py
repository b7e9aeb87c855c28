# SPDX-License-Identifier: Apache-2.0
"""Runs every shell, C++, C and Python snippet of README and docs, in one folder per page that holds the files they name.

    snippets.py --build DIR [PAGE...]     one line per snippet; exit 1 where one fails

A snippet follows those before it on its page: Python ones share their names, a C or C++ one is saved as main.c or main.cc for the
shell ones after it. `tests/docs/preludes/PAGE.h`, `.py` hold what a page takes for granted (`pixels`, say). A snippet that
cannot run says why on the line above it: `<!-- not run: REASON -->`; `<!-- compiled only: REASON -->` stops before the run.
"""
import argparse
import json
import os
import pathlib
import re
import select
import shlex
import subprocess
import sys
import tempfile

import stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ("sh", "python", "cpp", "c")
WORD = re.compile(r"^```(\w*)\s*$")
NOTE = re.compile(r"^<!-- (not run|compiled only): (.+) -->$")
ELSEWHERE = {"docs/adding-an-operator.md": "driver.adding_an_operator does what it says"}


class Snippet:
    def __init__(self, page, line, language, text, note):
        self.page, self.line, self.language, self.text = page, line, language, text
        self.note, self.reason = note.groups() if note else (None, None)

    def __str__(self):
        return f"{self.page}:{self.line}: {self.language}"


def snippets(page, text):
    """The fenced blocks of a page, those in lists too."""
    found, lines, begin = [], text.splitlines(), None
    for number, line in enumerate(lines):
        stripped = line.strip()
        if begin is None and stripped.startswith("```"):
            match = WORD.match(stripped)
            above = lines[number - 1].strip() if number else ""
            begin, language, note = number, match[1] if match else "", NOTE.match(above)
        elif begin is not None and stripped == "```":
            found.append(Snippet(page, begin + 1, language, "\n".join(lines[begin + 1 : number]) + "\n", note))
            begin = None
    return found


# Runs the texts that come line by line, [text, page, line] as JSON, one after the other with the same names; says after each whether
# it went through.
INTERPRETER = """
import json, linecache, sys, traceback
names, answers = {"__name__": "__main__"}, open(int(sys.argv[1]), "w")
for order in sys.stdin:
    text, page, line = json.loads(order)
    text = "\\n" * line + text
    linecache.cache[page] = (len(text), None, text.splitlines(True), page)  # functions whose text is asked for (te.hybrid)
    try:
        exec(compile(text, page, "exec"), names)
        went = True
    except BaseException:
        traceback.print_exc()
        went = False
    sys.stdout.flush()
    print(json.dumps(went), file=answers, flush=True)
"""


class Interpreter:
    """One Python process for the snippets of a page."""

    def __init__(self, folder, environment):
        self.answers, write = os.pipe()
        self.said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen([sys.executable, "-c", INTERPRETER, str(write)], cwd=folder, env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=self.said, stderr=self.said, pass_fds=[write])
        os.close(write)

    def run(self, text, page, line):
        """None, or what went wrong."""
        begin = self.said.seek(0, os.SEEK_END)
        try:
            self.process.stdin.write(json.dumps([text, page, line]) + "\n")
            self.process.stdin.flush()
            answer = os.read(self.answers, 100) if select.select([self.answers], [], [], 300)[0] else b"no answer"
        except BrokenPipeError:
            answer = b""
        if answer == b"true\n":
            return None
        if answer == b"no answer":
            self.process.kill()
        self.said.seek(begin)
        return {b"": "Python has ended", b"no answer": "Python has not ended after 300 s"}.get(answer, "") + self.said.read()[-4000:]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        os.close(self.answers)
        self.said.close()


class Page:
    """What the snippets of one page share: a folder, an interpreter of Python, and a prelude."""

    compiled: dict[str, bytes] = {}  # once for all pages

    def __init__(self, page, folder, build):
        self.folder, self.build, self.interpreter = folder, build, None
        self.prelude = ROOT / "tests/docs/preludes" / pathlib.Path(page).stem
        stage.make(folder)
        (folder / "build").symlink_to(build)
        paths = {"PATH": build, "CPATH": f"{ROOT / 'include'}:{ROOT / 'src'}", "LIBRARY_PATH": build, "LD_LIBRARY_PATH": build,
                 "PYTHONPATH": build / "python"}
        before = {"PATH": f":{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.environment = {**os.environ, **{name: str(path) + before.get(name, "") for name, path in paths.items()}}

        for name in ("model", "resnet18", "minilm"):  # which other pages compile
            if name not in self.compiled:
                if problem := self.call(["tilewright", "compile", name + ".onnx"]):
                    sys.exit(problem)
                self.compiled[name] = (folder / (name + ".so")).read_bytes()
            (folder / (name + ".so")).write_bytes(self.compiled[name])

    def run(self, snippet):
        """None, or what went wrong."""
        return getattr(self, "run_" + snippet.language)(snippet)

    def call(self, command, **options):
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300, **options)
        return None if done.returncode == 0 else f"{shlex.join(map(str, command))[:200]}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"

    def run_sh(self, snippet):
        return self.call(["bash", "-euo", "pipefail", "-c", snippet.text])

    def run_python(self, snippet):
        if not self.interpreter:
            self.interpreter = Interpreter(self.folder, self.environment)
            prelude = self.prelude.with_suffix(".py")
            if prelude.exists() and (problem := self.interpreter.run(prelude.read_text(encoding="utf-8"), str(prelude), 0)):
                sys.exit(problem)
        return self.interpreter.run(snippet.text, snippet.page, snippet.line)

    def close(self):
        if self.interpreter:
            self.interpreter.close()

    def run_c(self, snippet):
        return self.compile(snippet, "main.c", ["cc", "-std=c11"])

    def run_cpp(self, snippet):
        return self.compile(snippet, "main.cc", ["c++", "-std=c++20", "-w"])

    def compile(self, snippet, name, compiler):
        """A snippet without a main function becomes one, its includes before it."""
        prelude, text = self.prelude.with_suffix(".h"), snippet.text
        head = prelude.read_text(encoding="utf-8") if prelude.exists() else ""
        if not re.search(r"\bmain\(|^extern ", text, re.MULTILINE):
            head += "".join(line + "\n" for line in text.splitlines() if line.startswith("#include"))
            text = "int main() {\n" + "".join(line + "\n" for line in text.splitlines() if not line.startswith("#include")) + "}\n"
        (self.folder / name).write_text(head + text, encoding="utf-8")
        if snippet.note == "compiled only":
            return self.call([*compiler, "-fsyntax-only", name])
        return self.call([*compiler, name, "-o", "main", "-ltilewright_compiler", "-ltilewright_runtime"]) or self.call(["./main"])


def check_page(page, build):
    """How many of a page's snippets failed, were run, and were not."""
    failed = ran = left = 0
    todo = [s for s in snippets(page, (ROOT / page).read_text(encoding="utf-8")) if s.language in RUN]
    if not todo:
        return 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        place = Page(page, pathlib.Path(folder), build)
        for snippet in todo:
            if page in ELSEWHERE or snippet.note == "not run":
                print(f"{snippet} not run: {snippet.reason or ELSEWHERE[page]}", flush=True)
                left += 1
                continue
            problem = place.run(snippet)
            print(f"{snippet} {'FAILED' if problem else snippet.note or 'ran'}", flush=True)
            ran += 1
            if problem:
                failed += 1
                print(problem)
        place.close()
    return failed, ran, left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args()
    if not stage.possible():
        print("skipped: the Python environment has no onnx; ./dev test makes one that has")
        return 77
    pages = options.pages or ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
    failed, ran, left = (sum(column) for column in zip(*(check_page(page, options.build.resolve()) for page in pages)))
    print(f"{ran} snippets run, {failed} failed, {left} not run for the reasons above")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
