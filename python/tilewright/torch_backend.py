# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="tilewright"), for inference: PyTorch finds `backend` by the entry point torch_dynamo_backends.

PyTorch traces the model and makes its graph functional; each such graph becomes one library for the sizes and weights that it meets. What
the importer does not know, or what needs gradients, runs in PyTorch, and one line on standard error says so."""
from __future__ import annotations

import contextlib
import itertools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from .options import build_options, cache_folder
from .torch_fx import Writer, decompositions

MOST_PROGRAMS = 16  # specialisations kept per graph: sets of sizes and weights
_numbers = itertools.count()


def backend(module: Any, example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None, mode: str | None = None) -> Callable[..., Any]:
    """A graph of torch.compile as a function. options: target, opt_level, config, jobs and kernel_cache as tilewright.compile has them."""
    import torch
    from torch._dynamo.backends.common import aot_autograd
    known = {"target", "opt_level", "config", "jobs", "kernel_cache"}
    if unknown := sorted(set(options or {}) - known):
        raise ValueError(f"the backend tilewright has no option {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    tensors = [t for t in example_inputs if isinstance(t, torch.Tensor)]
    reason = "gradients are wanted; call it under torch.no_grad()" if torch.is_grad_enabled() and any(t.requires_grad for t in tensors) else _not_on_cpu(tensors)
    if reason:
        _say(next(_numbers), module, reason)
        return module.forward  # type: ignore[no-any-return]

    def compiled(graph: Any, _: Sequence[Any]) -> Callable[..., Any]:
        return Graph(graph, dict(options or {}))

    return aot_autograd(fw_compiler=compiled, inference_compiler=compiled, decompositions=decompositions())(module, example_inputs)  # type: ignore[no-any-return]


def _not_on_cpu(tensors: Sequence[Any]) -> str:
    elsewhere = sorted({str(t.device) for t in tensors if t.device.type != "cpu"})
    return f"it has tensors on {', '.join(elsewhere)}" if elsewhere else ""


def _say(number: int, module: Any, reason: str) -> None:
    operators = sum(n.op == "call_function" for n in module.graph.nodes)
    print(f"tilewright: graph {number} ({operators} operators) runs in PyTorch: {reason}", file=sys.stderr, flush=True)


class Graph:
    """A functional graph of ATen operators, called with the list of its arguments."""

    _boxed_call = True  # PyTorch passes the arguments as one list

    def __init__(self, module: Any, options: dict[str, Any]):
        import torch
        from torch._guards import TracingContext
        self.torch, self.module, self.options, self.number = torch, module, options, next(_numbers)
        context = TracingContext.try_get()
        metadata = context.fw_metadata if context is not None else None
        fixed = set(getattr(metadata, "static_input_indices", None) or ())
        for i, info in enumerate(getattr(metadata, "input_info", ()) or ()):
            if info.mutates_data:
                fixed.discard(i)
        self.placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        # Parameters and buffers are constants, checked in every call; PyTorch counts the writes to each tensor.
        self.constants = sorted(i for i in fixed if i < len(self.placeholders) and isinstance(self.placeholders[i].meta.get("val"), torch.Tensor))
        self.is_symbolic = any(self._is_symbolic(n.meta.get("val")) for n in self.placeholders)
        self.programs: dict[Any, Any] = {}
        self.last: tuple[Any, Any] = (None, None)
        self.refused = False

    def _is_symbolic(self, value: Any) -> bool:
        sizes = value.shape if isinstance(value, self.torch.Tensor) else [value]
        return any(isinstance(s, self.torch.SymInt) for s in sizes)

    def __call__(self, args: list[Any]) -> Any:
        if self.refused:
            return self._in_pytorch(args)
        key = self._key(args)
        program = self.last[1] if key == self.last[0] else self.programs.get(key)
        if program is None:
            program = self._compile(key, args)
            if program is None:
                return self._in_pytorch(args)
        self.last = (key, program)
        return program(args)

    def _in_pytorch(self, args: list[Any]) -> Any:
        held = list(args)
        args.clear()
        return self.module(*held)

    def _key(self, args: Sequence[Any]) -> Any:
        weights = tuple([(args[i].data_ptr(), _version(args[i])) for i in self.constants])
        if not self.is_symbolic:
            return weights
        return weights, tuple([tuple(a.shape) if isinstance(a, self.torch.Tensor) else a for a in args])

    def _compile(self, key: Any, args: Sequence[Any]) -> Any:
        if len(self.programs) >= MOST_PROGRAMS:
            self.programs.pop(next(iter(self.programs)))
        try:
            self.programs[key] = Compiled(self, args)
        except (_core.Error, NotImplementedError) as error:
            _say(self.number, self.module, " ".join(str(error).split("\n  hint:")[0].split()))
            self.refused = True
            return None
        return self.programs[key]


def _version(tensor: Any) -> int:
    return -1 if tensor.is_inference() else tensor._version


class Compiled:
    """A graph for one set of sizes and weights."""

    def __init__(self, graph: Graph, args: Sequence[Any]):
        torch = self.torch = graph.torch
        # keeps their memory from being reused while the key refers to it
        self.held = [args[i] for i in graph.constants]
        writer = Writer(self._symbols(graph, args))
        constants = set(graph.constants)
        self.inputs: list[int] = []
        for i, placeholder in enumerate(graph.placeholders):
            writer.names[placeholder] = placeholder.name
            if i in constants:
                writer.program.add_weight(placeholder.name, placeholder.name, args[i])
            elif isinstance(args[i], torch.Tensor):
                writer.program.add_input(placeholder.name, args[i].dtype, [int(s) for s in args[i].shape])
                self.inputs.append(i)
            elif args[i] is None:  # a token, or what nothing reads
                writer.program.add_token(placeholder.name)
        writer.write_nodes(graph.module)
        self.results: list[Any] = []  # what to return: an output's index, ("input", index) or ("value", constant)
        self.made: list[tuple[Any, list[int], list[int], bool]] = []  # for each output: dtype, sizes, strides, compact
        place = {n: i for i, n in enumerate(graph.placeholders)}
        for value in next(n for n in graph.module.graph.nodes if n.op == "output").args[0]:
            self.results.append(self._result(writer, place, value))
        self.sessions: dict[int, Any] = {}
        self.library = _built(writer.program, graph.options) if self.made else None

    @staticmethod
    def _symbols(graph: Graph, args: Sequence[Any]) -> dict[Any, int]:
        """The values of the free sizes, taken from arguments' shapes."""
        found: dict[Any, int] = {}
        for placeholder, arg in zip(graph.placeholders, args):
            value = placeholder.meta.get("val")
            if arg is None:  # PyTorch passes nothing where nothing reads it
                continue
            pairs = zip(value.shape, arg.shape) if isinstance(value, graph.torch.Tensor) else [(value, arg)]
            for free, size in pairs:
                if isinstance(free, graph.torch.SymInt) and free.node.expr.is_Symbol:
                    found[free.node.expr] = int(size)
        return found

    def _result(self, writer: Writer, place: dict[Any, int], value: Any) -> Any:
        if not isinstance(value, self.torch.fx.Node):
            return ("value", value)
        if value in place:
            return ("input", place[value])
        if (number := writer.known(value)) is not None:
            return ("value", number)
        if _is_token(value):
            return ("value", None)
        meta = value.meta["val"]
        sizes, strides = [writer.size(s) for s in meta.shape], [writer.size(s) for s in meta.stride()]
        compact = all(s == 1 or stride == step for s, stride, step in zip(sizes, strides, _row_major(sizes)))
        self.made.append((meta.dtype, sizes, strides, compact))
        writer.program.add_output(writer.argument(value))
        return len(self.made) - 1

    def __call__(self, args: list[Any]) -> list[Any]:
        torch, outputs = self.torch, []
        if self.library is not None:
            threads = torch.get_num_threads()
            session = self.sessions.get(threads)
            if session is None:
                session = self.sessions[threads] = self.library.session(threads)
            given = [args[i].contiguous() for i in self.inputs]
            if isinstance(self.library, ProgramLibrary):
                outputs = [torch.from_numpy(r) for r in self.library.run(session, [t.numpy() for t in given])]
            else:
                outputs = [torch.empty(sizes, dtype=dtype) for dtype, sizes, _, _ in self.made]
                exchange = torch.utils.dlpack.to_dlpack
                session.run_on([exchange(t) for t in given], [exchange(t) for t in outputs])
            for i, (dtype, sizes, strides, compact) in enumerate(self.made):
                if not compact:  # PyTorch's later computations rely on the strides it was told
                    outputs[i] = torch.empty_strided(sizes, strides, dtype=dtype).copy_(outputs[i])
        results = [outputs[r] if isinstance(r, int) else args[r[1]] if r[0] == "input" else r[1] for r in self.results]
        args.clear()
        return results


def _is_token(value: Any) -> bool:
    """What only keeps operators with effects in order: the first result of each of them."""
    made_by = value.args[0] if value.op == "call_function" and value.target is operator.getitem else None
    return made_by is not None and value.args[1] == 0 and str(made_by.target).endswith("with_effects")


def _row_major(sizes: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


class ProgramLibrary:
    """A graph with control flow that only a run decides, as a program (docs/vm.md)."""

    def __init__(self, program: Any):
        self.program = program

    def session(self, threads: int) -> Any:
        return _core.VMMachine(self.program, threads)

    def run(self, session: Any, arguments: list[Any]) -> list[Any]:
        import numpy as np
        result = session.invoke("main", arguments)
        return [np.asarray(r) for r in (result[1] if len(self.program.outputs) != 1 else [result])]


def _built(program: Any, options: dict[str, Any]) -> Any:
    from .model import Library
    module, _ = program.imported()
    build = build_options(options.get("target", "llvm"), options.get("opt_level", 3), config=options.get("config"))
    build.jobs, build.kernel_cache, build.keep_modules = options.get("jobs", 0), cache_folder(options.get("kernel_cache", True)), False
    try:
        return Library(_core.build(module, build))
    except _core.Error as error:
        if any("as_graph" in argument["arg"] for n in program.nodes for argument in n["inputs"]):
            with contextlib.suppress(_core.Error):
                return ProgramLibrary(_core.vm_compile(module, build.target, build.opt_level, dict(options.get("config") or {})))
        raise error


__all__ = ["Graph", "backend"]
