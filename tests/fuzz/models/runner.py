# SPDX-License-Identifier: Apache-2.0
"""The compiler in a child process that may crash or hang: build/model_runner, and what its answers mean."""
import importlib.util
import json
import multiprocessing
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

import ml_dtypes  # noqa: F401  names bfloat16 to numpy
import numpy as np
import onnx
from equivalents import with_kernels
from maps import parts, plain, rows_of_maps
from onnx import numpy_helper

RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}  # every engine has its own numbers
UNITS = {"float64": 2.0 ** -52, "float32": 2.0 ** -23, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}


class Runner:
    def __init__(self, program, timeout):
        self.program, self.timeout, self.child = str(program), timeout, None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="models_"))

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        if self.child:
            self.child.kill()
            self.child.wait()
            self.child = None

    def ask(self, verb, model):
        """The answer as a dictionary; {"status": "crash" or "hang"} when there is none."""
        if not self.child:
            self.child = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            self.child.stdin.write(f"{verb} {model} {self.folder}\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass
        end = time.time() + self.timeout
        line = ""
        while time.time() < end:
            if select.select([self.child.stdout], [], [], 1.0)[0]:
                line = self.child.stdout.readline()
                break
            if self.child.poll() is not None:
                break
        if line.strip():
            return json.loads(line)
        code = self.child.poll()
        if code is None and not line:
            time.sleep(0.2)
            code = self.child.poll()
        self.stop()
        return {"status": "hang", "message": f"no answer in {self.timeout} s"} if code is None else {"status": "crash", "message": f"the compiler ended with code {code}"}

    def run(self, model, inputs):
        """Compiles and runs; the answer, with arrays under "ours" and "truth" (doubles or int64, or None)."""
        for old in self.folder.iterdir():
            old.unlink()
        path = self.folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        for i, (name, array) in enumerate(parts(inputs).items()):
            (self.folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())
        answer = self.ask("run", path)
        if answer["status"] == "ok":
            answer["ours"] = [self.tensor(f"ours_{i}", o) for i, o in enumerate(answer.get("outputs", []))]
            answer["truth"] = [self.number(f"reference_{i}", o) for i, o in enumerate(answer["reference"])] if "reference" in answer else None
        return answer

    def tensor(self, name, described):
        if described["dtype"] == "string":
            return np.array(described["strings"], object).reshape(described["shape"])
        return np.fromfile(self.folder / name, described["dtype"]).reshape(described["shape"])

    def number(self, name, described):
        kind = np.float64 if "float" in described["dtype"] else np.int64
        return np.fromfile(self.folder / name, kind).reshape(described["shape"])

    def spread(self):
        """How far the reference's elements move when values on the way are off by units in the last place."""
        answer = self.ask("spread", self.folder / "model.onnx")
        if answer["status"] != "ok":
            return None
        files = sorted(self.folder.glob("spread_*"), key=lambda p: int(p.name.split("_")[1]))
        return [np.fromfile(f, np.float64) for f in files]


def serve_onnxruntime(pipe):
    """Answers (model, inputs) with the outputs of onnxruntime without optimisations; None where it does not run the model."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    while True:
        try:
            model, inputs = pipe.recv()
        except EOFError:
            return
        try:
            model = with_kernels(onnx.load_model_from_string(model)).SerializeToString()
            session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            outputs = session.run(None, inputs)
        except Exception:  # onnxruntime's errors have no common type
            outputs = None
        pipe.send(outputs)


class Onnxruntime:
    """In a process of its own: a model may end it, or the format's shape inference on it."""
    process = pipe = None

    def outputs(self, model, inputs, timeout=60):
        if importlib.util.find_spec("onnxruntime") is None:
            return None
        if not self.process:
            self.pipe, other = multiprocessing.Pipe()
            self.process = multiprocessing.get_context("spawn").Process(target=serve_onnxruntime, args=(other,), daemon=True)
            self.process.start()
            other.close()
        try:
            self.pipe.send((model, inputs))
            if self.pipe.poll(timeout):
                return self.pipe.recv()
        except (EOFError, OSError):
            pass
        self.process.kill()
        self.process.join()
        self.process = None
        return None


ONNXRUNTIME = Onnxruntime()


def onnxruntime_outputs(model, inputs):
    """What onnxruntime gives without optimisations; None where it does not run the model, or is not installed."""
    outputs = ONNXRUNTIME.outputs(model.SerializeToString(), {n: plain(v) for n, v in inputs.items()})
    return outputs and [rows_of_maps(value) for value in outputs]


def is_float(array):
    return array.dtype.kind in "fV"  # V: bfloat16


def far(ours, other, unit, spread=None):
    """Where two results differ by more than rounding explains: a mask. `spread` says how far rounding on the way goes."""
    a, b = np.asarray(ours), np.asarray(other)
    if a.dtype.kind in "OUT":
        return np.asarray(a != b)
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        with np.errstate(all="ignore"):
            same = a.astype(np.int64) == b.astype(np.int64)
        slack = np.zeros(a.shape) if spread is None else spread.reshape(a.shape)
        return ~same & (slack == 0)
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        largest = np.max(np.abs(b[np.isfinite(b)]), initial=0)
        slack = 16 * unit * np.abs(b) + (1e-5 if unit <= 2.0 ** -23 else 8 * unit) * largest
        if unit < 2.0 ** -30:
            slack = 64 * unit * np.abs(b) + 1e-12 * largest
        if spread is not None:
            s = spread.reshape(a.shape)
            slack = slack + 16 * s
        slack = slack + {2.0 ** -7: 2e-38, 2.0 ** -10: 1e-7, 2.0 ** -23: 2e-38}.get(unit, 1e-300)  # below the smallest normal numbers
        limit = {2.0 ** -7: 3.38e38, 2.0 ** -10: 65504, 2.0 ** -23: 3.4e38}.get(unit, np.inf)
        over = (np.abs(b) >= limit * (1 - 8 * unit)) & (np.isinf(a) | np.isinf(b)) & (np.sign(a) == np.sign(b))
        close = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= slack) | over
        if spread is not None:  # beside a pole a value moves by its own size
            close |= ~np.isfinite(s) | (np.isinf(a) & (s > 0.5 * np.abs(b)))
    return ~close


def imprecise(ours, other):
    """Where another engine rounds more than we do: what we computed is as the reference has it already."""
    if is_float(ours):
        a, b = ours.astype(np.float64), other.astype(np.float64)
        with np.errstate(all="ignore"):
            return np.abs(a - b) <= 5e-3 * (np.abs(a) + np.max(np.abs(a[np.isfinite(a)]), initial=0))
    if ours.dtype.kind in "OUT":
        return np.zeros(ours.shape, bool)
    if ours.dtype.itemsize == 1 and ours.dtype.kind in "iu":  # a quantised value at a tie
        return np.abs(ours.astype(np.int64) - other.astype(np.int64)) <= 1
    return np.zeros(ours.shape, bool)


def judge(runner, model, inputs):
    """None when all is well, or (kind, what); kinds: crash, hang, internal, refused, differs, apart, onnxruntime."""
    found = compare(runner, model, inputs)
    given = list(parts(inputs).values()) + [numpy_helper.to_array(t) for t in model.graph.initializer]
    if found and found[0] in ("differs", "onnxruntime"):
        if any(is_float(a) and not np.isfinite(a).all() for a in given):
            return found[0], found[1] + "; an input is not finite"
        if any(a.size == 0 for a in given):
            return found[0], found[1] + "; an input is empty"
    return found


def compare(runner, model, inputs):
    answer = runner.run(model, inputs)
    if answer["status"] == "hang":  # or a machine that was busy with something else
        answer = runner.run(model, inputs)
    if answer["status"] in ("crash", "hang"):
        return answer["status"], answer["message"]
    if answer["status"] != "ok" and answer["code"] == 901:
        return "internal", answer["message"]
    theirs = onnxruntime_outputs(model, inputs)
    if answer["status"] != "ok":
        return ("refused", answer["message"]) if theirs is not None else None
    if RANDOM & {n.op_type for n in model.graph.node}:
        theirs = None
    if answer.get("taken_apart"):
        return "apart", answer["taken_apart"][0]
    if len(answer["ours"]) != len(model.graph.output):
        return "differs", "another number of outputs"
    truth, spread = answer["truth"], None
    for what, others in (("differs", truth), ("onnxruntime", theirs)):
        for i, ours in enumerate(answer["ours"]) if others is not None else ():
            other = np.asarray(others[i])
            if ours.shape != other.shape:
                return what, f"output {i} is {ours.shape}, not {other.shape}"
            if what == "onnxruntime" and ours.dtype != other.dtype and ours.dtype.kind not in "OUT":
                return what, f"output {i} is {ours.dtype}, not {other.dtype}"
            unit = UNITS.get(str(ours.dtype), 1)
            wrong = far(ours, other, unit)
            if what == "onnxruntime" and (truth is not None or not is_float(ours)):
                wrong &= ~imprecise(ours, other)
            if wrong.any() and spread is None and truth is not None:
                spread = runner.spread()
                if spread is None:
                    return what, f"output {i} differs, and the disturbed reference fails"
            if wrong.any() and spread is not None:
                wrong = far(ours, other, unit, spread[i])
            if wrong.any() and truth is None and is_float(ours):
                wrong = far(ours, other, unit, 1e-5 + 1e-4 * np.abs(np.asarray(other, np.float64)))
            if wrong.any():
                at = tuple(int(k) for k in np.argwhere(wrong)[0])
                return what, f"output {i} at {at} is {ours[at]!r}, not {other[at]!r} ({int(wrong.sum())} of {wrong.size} elements)"
    return None


def checked(model):
    onnx.checker.check_model(model, full_check=True)
    return model


def default_program(root):
    return pathlib.Path(os.environ.get("TILEWRIGHT_BUILD", pathlib.Path(root) / "build")) / "model_runner"
