# SPDX-License-Identifier: Apache-2.0
"""Parses Python functions to functions over buffers. Statements come from the syntax tree; expressions are evaluated by Python with
overloaded operators."""
from __future__ import annotations

import ast
import inspect
import textwrap
import typing

import numpy as np

from ... import _core
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import FloatImm, IntImm, Var, dtype_of
from ..tir.function import LoopModule, PrimFunc
from ..tir.stmt import Address, address_value, evaluate, loop_kind, noted, write
from .syntax import LOGIC, Expressions, ScriptError, source_of

_WITH = "T.block, T.init, T.let, T.allocate, T.attr and T.launch_thread"
_LOOPS = {"serial": "serial", "parallel": "parallel", "vectorized": "vectorized", "unroll": "unrolled", "unrolled": "unrolled", "thread_binding": "serial", "range": "serial"}


def _is_t(node: ast.AST, *names: str) -> bool:
    """Whether the node is T.axis.spatial or similar, by the last parts of its dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return isinstance(node, ast.Name) and parts == list(names)


def _t_name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""


class _Block:
    """What is declared of a block before its body."""

    def __init__(self, name: str):
        self.name, self.axes, self.predicate, self.init, self.memory, self.notes = name, [], None, None, [], {}  # type: ignore[var-annotated]
        self.lets: list[typing.Any] = []  # what makes those that are open, around what a T.init reads, too


class _Reader:
    def __init__(self, function: ast.FunctionDef, environment: dict[str, typing.Any], first_line: int):
        self._function, self._line = function, first_line
        self._names = dict(environment)
        self._names.update(LOGIC)
        self._blocks: list[_Block] = []
        self._root = _Block("root")
        self._attributes: dict[str, typing.Any] = {}
        self._threads: dict[typing.Any, str] = {}

    def _fail(self, node: ast.AST, what: str) -> typing.NoReturn:
        raise ScriptError(f"{self._function.name}, line {self._line + getattr(node, 'lineno', 1)}: {what}")

    def _value(self, node: ast.expr) -> typing.Any:
        tree = ast.Expression(Expressions().visit(node))
        try:
            return eval(compile(ast.fix_missing_locations(tree), "<script>", "eval"), self._names)  # noqa: S307  the script is the caller's own code
        except (_core.Error, ScriptError):
            raise
        except Exception as error:
            self._fail(node, f"{type(error).__name__}: {error}")

    def read(self) -> PrimFunc:
        params, waiting = [], {}
        for arg in self._function.args.args:
            kind = self._value(arg.annotation) if arg.annotation is not None else "handle"
            if hasattr(kind, "shape"):
                made: typing.Any = decl_buffer(list(kind.shape), kind.dtype, arg.arg)
            elif "handle" in (kind, getattr(kind, "dtype", "")):
                made = Var(arg.arg, "handle")  # it stays one unless T.match_buffer says its buffer
                waiting[arg.arg] = len(params)
            elif hasattr(kind, "dtype"):
                made = Var(arg.arg, kind.dtype)
            else:
                self._fail(arg, f"the parameter '{arg.arg}' is a T.Buffer, a T.handle or a T.int32")
            params.append(made)
            self._names[arg.arg] = made
        self._params, self._waiting = params, waiting
        self._blocks.append(self._root)
        body = self._body(self._function.body)
        blocks: list[str] = []
        _core.stmt_visit(body, lambda part: blocks.append(part._fields[0]) if getattr(part, "_kind", "") == "Block" else None, False)
        if not self._root.memory and (not blocks or (body._kind == "Block" and not body._fields[1] and body._fields[0] == "root")):
            whole = body  # loops without blocks have no block around them
        else:
            whole = _core.stmt_block("root", [], None, None, body, self._root.memory, None)
        name = str(self._attributes.get("global_symbol", self._function.name))
        function = PrimFunc._of(function=_core.BlockFunction(name, params, whole))
        return function._with({"global_symbol": name, **self._attributes})._named([a.arg for a in self._function.args.args])

    # ---- statements ----

    def _body(self, nodes: list[ast.stmt]) -> typing.Any:
        parts = []
        for i, node in enumerate(nodes):
            around = self._opened(node)
            if around is not None:
                parts.append(around(self._body(nodes[i + 1:])))
                break
            let = self._open_let(node)
            if let is not None:  # the remaining statements are its body
                variable, value = let
                parts.append(_core.stmt_let(variable, value, self._body(nodes[i + 1:])))
                break
            made = self._statement(node)
            if made is not None:
                parts.append(made)
        return _core.stmt_seq(parts)

    def _opened(self, node: ast.stmt) -> typing.Any:
        """For memory and threads of the rest of the body, `C = T.allocate(...)` and `T.launch_thread(...)`: what makes the statement of it."""
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call) and any(
                _is_t(node.value.func, name) for name in ("allocate", "allocate_const")):
            return self._around(node, node.value, node.targets[0].id)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call) and _is_t(node.value.func, "match_buffer"):
            first = node.value.args[0]
            if isinstance(first, ast.Subscript) or isinstance(self._value(first), Buffer):
                return self._region(node, node.value, node.targets[0].id)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and any(_is_t(node.value.func, name) for name in ("attr", "launch_thread")):
            return self._around(node, node.value, "")
        return None

    def _around(self, node: ast.AST, call: ast.Call, name: str) -> typing.Any:
        """From a body to the statement around it. Attributes have no effect but that of GPU threads, which are loops."""
        args, options = [self._value(a) for a in call.args], {k.arg: self._value(k.value) for k in call.keywords if k.arg}
        if _is_t(call.func, "allocate"):
            extents, dtype, *scope = args
            buffer = decl_buffer(list(extents) if isinstance(extents, (list, tuple)) else [extents], dtype, name, scope=str((scope or [options.get("scope", "")])[0]).removeprefix("global"))
            self._names[name] = buffer
            return lambda body: _core.stmt_block("", [], None, None, body, [buffer], noted(options.get("annotations")))
        if _is_t(call.func, "allocate_const"):
            values, dtype, extents = args
            buffer = decl_buffer(list(extents), dtype, name)
            self._names[name] = buffer
            filled = [_core.stmt_write(buffer, [int(i) for i in np.unravel_index(at, list(extents))], FloatImm(dtype, value) if "float" in dtype else IntImm(dtype, value))
                      for at, value in enumerate(np.ravel(values).tolist())]
            return lambda body: _core.stmt_block("", [], None, None, _core.stmt_seq([*filled, body]), [buffer], None)
        if _is_t(call.func, "attr") and args[1] != "thread_extent":
            return lambda body: body
        thread, extent = args[0], args[-1]
        if not isinstance(thread, Var) or thread not in self._threads:
            self._fail(node, "a thread is one that T.env_thread made")
        return lambda body: _core.stmt_for(thread, 0, extent, loop_kind("serial"), body, {"thread": self._threads[thread]})

    def _region(self, node: ast.AST, call: ast.Call, name: str) -> typing.Any:
        """For `B = T.match_buffer(A[i:i + 4, j], ...)`: what makes the statement around the rest of the body, in which B's elements are
        those of A's region; variables that are given as its strides or elem_offset have their values there."""
        first = call.args[0]
        source = self._value(first.value if isinstance(first, ast.Subscript) else first)
        parts = [ast.Slice()] * len(source.shape) if not isinstance(first, ast.Subscript) else first.slice.elts if isinstance(first.slice, ast.Tuple) else [first.slice]
        options = {k.arg: self._value(k.value) for k in call.keywords if k.arg}
        given = [*map(self._value, call.args[1:]), *([options["shape"]] if "shape" in options else [])]
        shape = list(given[0]) if isinstance(given[0], (list, tuple)) else [given[0]]
        dtype = given[1] if len(given) > 1 else options.get("dtype", source.dtype)
        if not isinstance(source, Buffer) or len(parts) != len(source.shape) or len(shape) > len(parts) or dtype != source.dtype:
            self._fail(node, f"'{name}' is no region of '{getattr(source, 'name', source)}': T.match_buffer gives all its dimensions, and its dtype")
        minus = lambda a, b: _core.prim_simplify(_core.prim_binary("Sub", a, b), [])  # noqa: E731
        lows, extents = [], []
        for part, whole in zip(parts, source.shape):
            low = (0 if part.lower is None else self._value(part.lower)) if isinstance(part, ast.Slice) else self._value(part)
            lows.append(low)
            extents.append(1 if not isinstance(part, ast.Slice) else minus(whole if part.upper is None else self._value(part.upper), low))
        leading = len(parts) - len(shape)
        for d, (extent, size) in enumerate(zip(extents, [1] * leading + shape)):
            if not isinstance(minus(extent, size), int) or minus(extent, size) != 0:
                self._fail(node, f"the buffer '{name}' has {size} where its region of '{source.name}' has {extent} in dimension {d}")
        strides: list[typing.Any] = [1]
        for size in reversed(list(source.shape)[1:]):
            strides.insert(0, _core.prim_simplify(_core.prim_binary("Mul", strides[0], size), []))
        view = self._names[name] = decl_buffer(shape, dtype, name, strides=strides[leading:] if shape else [1])
        wanted = [*zip(options.get("strides") or [], strides[leading:]), (options.get("elem_offset"), source.offset_of(lows)[0])]
        lets = [(v, value) for v, value in wanted if isinstance(v, Var)]
        lets.insert(0, (view.data, address_value(source._element(lows, source.dtype))))

        def around(body: typing.Any) -> typing.Any:
            for variable, value in lets:
                body = _core.stmt_let(variable, value, body)
            return body
        self._blocks[-1].lets.append(around)
        return around

    def _open_let(self, node: ast.stmt) -> typing.Any:
        """A let that is open until the end of the body: `x: T.int32 = value`, or `x = value` for an expression."""
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            value = self._value(node.value)
            value = address_value(value.element) if isinstance(value, Address) else value
            kind = self._value(node.annotation)
            variable = Var(node.target.id, getattr(kind, "dtype", None) or dtype_of(value))
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and not isinstance(node.value, ast.Call):
            value = self._value(node.value)
            if isinstance(value, (Buffer, Var)):
                self._names[node.targets[0].id] = value
                return None
            variable = Var(node.targets[0].id, dtype_of(value))
        else:
            return None
        self._names[variable.name] = variable
        return variable, value

    def _statement(self, node: ast.stmt) -> typing.Any:
        if isinstance(node, ast.For):
            return self._loop(node)
        if isinstance(node, ast.With):
            return self._with(node)
        if isinstance(node, ast.If):
            condition = self._value(node.test)
            if isinstance(condition, (bool, int)) and not hasattr(condition, "dtype"):
                return self._body(node.body if condition else node.orelse)
            return _core.stmt_if(condition, self._body(node.body), self._body(node.orelse) if node.orelse else None)
        if isinstance(node, ast.Assert) and isinstance(self._value(node.test), (bool, int)) and self._value(node.test):
            return None
        if isinstance(node, ast.While):
            return _core.stmt_while(self._value(node.test), self._body(node.body))
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self._assign(node, node.targets[0], node.value)
        if isinstance(node, ast.AugAssign):
            read = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
            return self._assign(node, node.target, read)
        if isinstance(node, ast.Expr):
            return self._call(node)
        if isinstance(node, ast.AnnAssign) or isinstance(node, ast.Pass):
            return None
        self._fail(node, f"a {type(node).__name__} is no statement of a script; there are for, with T.block, if, assignments and calls of T")

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> typing.Any:
        if isinstance(target, ast.Subscript):
            buffer = self._value(target.value)
            if not isinstance(buffer, Buffer):
                self._fail(node, "an element is assigned of something that is no buffer")
            indices = self._value(ast.copy_location(ast.Subscript(ast.Name("__index", ast.Load()), target.slice, ast.Load()), target))
            indices = list(indices) if isinstance(indices, tuple) else [indices]
            return _core.stmt_write(buffer, indices, self._value(value))
        if isinstance(value, ast.Call) and isinstance(target, (ast.Name, ast.Tuple)):
            return self._declare(node, target, value)
        self._fail(node, "a script assigns elements of buffers, variables, and what T makes")

    def _declare(self, node: ast.stmt, target: ast.expr, call: ast.Call) -> None:
        names = [t.id for t in target.elts if isinstance(t, ast.Name)] if isinstance(target, ast.Tuple) else [typing.cast(ast.Name, target).id]
        args = lambda: [self._value(a) for a in call.args]  # noqa: E731
        options = {k.arg: self._value(k.value) for k in call.keywords if k.arg}
        function = call.func
        if _is_t(function, "match_buffer"):
            handle, shape, *more = args()
            if not isinstance(handle, Var) or handle.name not in self._waiting:
                self._fail(node, "T.match_buffer is of a parameter that is a T.handle")
            made = decl_buffer(list(shape) if isinstance(shape, (list, tuple)) else [shape], more[0] if more else options.get("dtype", "float32"), names[0], scope=options.get("scope", ""))
            self._params[self._waiting.pop(handle.name)] = made
        elif _is_t(function, "alloc_buffer"):
            shape, *more = args()
            made = decl_buffer(list(shape) if isinstance(shape, (list, tuple)) else [shape], more[0] if more else options.get("dtype", "float32"), names[0], scope=options.get("scope", ""))
            self._blocks[-1].memory.append(made)
        elif _is_t(function, "var"):
            made = Var(names[0], *args(), **options)
        elif _is_t(function, "axis", "remap"):
            kinds, loops = args()
            for kind, name, loop in zip(kinds, names, loops):
                extent = self._extents.get(loop)
                if extent is None:
                    self._fail(node, f"T.axis.remap is given '{loop}', which is no loop's variable")
                self._axis(name, kind == "R", 0, extent, loop)
            return
        elif any(_is_t(function, name) for name in ("buffer_decl", "Buffer", "decl_buffer")):
            made = self._other_name(node, names[0], args(), options)
        elif _is_t(function, "env_thread"):
            made = Var(names[0], "int32")
            self._threads[made] = args()[0]
        elif any(_is_t(function, "axis", k) for k in ("spatial", "S", "reduce", "R", "opaque", "O")):
            dom, value = args()
            low, high = dom if isinstance(dom, (tuple, list)) else (0, dom)
            extent = high if isinstance(low, int) and low == 0 else high - low
            self._axis(names[0], function.attr in ("reduce", "R"), low, extent, value)  # type: ignore[attr-defined]
            return
        else:
            value = self._value(call)
            made = value if isinstance(value, (Buffer, Var)) else self._fail(node, f"'{names[0]}' = a {type(value).__name__}: values of elements are assigned to buffers, or annotated: {names[0]}: T.float32 = ...")
        self._names[names[0]] = made

    def _other_name(self, node: ast.stmt, name: str, args: list[typing.Any], options: dict[str, typing.Any]) -> Buffer:
        """The buffer whose memory `T.buffer_decl(shape, dtype, data=buffer.data)` names again. Without data a buffer of its own, whose
        `data` a T.let makes an address."""
        given = args[0] if args else options["shape"]
        shape = list(given) if isinstance(given, (list, tuple)) else [given]
        dtype = args[1] if len(args) > 1 else options.get("dtype", "float32")
        if "data" not in options:
            return decl_buffer(shape, dtype, name)
        for buffer in self._names.values():
            if isinstance(buffer, Buffer) and buffer.data.name == getattr(options.get("data"), "name", None) and buffer.dtype == dtype and [str(d) for d in buffer.shape] == [str(d) for d in shape]:
                return buffer
        self._fail(node, "T.buffer_decl is of another buffer's data, with its shape and dtype")

    def _axis(self, name: str, reduces: bool, low: typing.Any, extent: typing.Any, value: typing.Any) -> None:
        dtype = next((str(e.dtype) for e in (extent, value) if hasattr(e, "dtype") and "int" in str(e.dtype)), "int32")
        variable = Var(name, dtype)
        self._names[name] = variable
        self._blocks[-1].axes.append((variable, low, extent, reduces, value))

    _extents: dict[typing.Any, typing.Any] = {}

    def _loop(self, node: ast.For) -> typing.Any:
        call = node.iter
        if not isinstance(call, ast.Call):
            self._fail(node, "a loop is over T.serial, T.grid, T.parallel, T.vectorized, T.unroll, T.thread_binding or range")
        kind = _t_name(call.func)
        names = [t.id for t in node.target.elts] if isinstance(node.target, ast.Tuple) else [node.target.id]  # type: ignore[attr-defined]
        args = [self._value(a) for a in call.args]
        options = {k.arg: self._value(k.value) for k in call.keywords}
        notes = dict(options.get("annotations") or {})
        if kind == "grid":
            ranges = [(0, extent) for extent in args]
        elif kind in _LOOPS and 1 <= len(args) <= 2:
            low, high = args if len(args) == 2 else (0, args[0])
            ranges = [(low, high if isinstance(low, int) and low == 0 else high - low)]
        else:
            self._fail(node, f"there is no loop over '{kind}' of {len(args)} arguments")
        if len(ranges) != len(names):
            self._fail(node, f"{len(names)} variables for {len(ranges)} loops")
        if kind == "thread_binding":
            notes["thread"] = options.get("thread", "")
        variables = []
        self._extents = dict(self._extents)
        for name, (low, extent) in zip(names, ranges):
            dtype = next((str(e.dtype) for e in (extent, low) if hasattr(e, "dtype") and "int" in str(e.dtype)), "int32")
            variables.append(Var(name, dtype))
            self._names[name] = variables[-1]
            self._extents[variables[-1]] = extent
        body = self._body(node.body)
        number = loop_kind(_LOOPS.get(kind, "serial"))
        for variable, (low, extent) in reversed(list(zip(variables, ranges))):
            body = _core.stmt_for(variable, low, extent, number, body, notes)
        return body

    def _with(self, node: ast.With) -> typing.Any:
        call = node.items[0].context_expr
        if not isinstance(call, ast.Call):
            self._fail(node, f"with is of {_WITH}")
        if _is_t(call.func, "init"):
            init = self._body(node.body)
            for around in reversed(self._blocks[-1].lets):
                init = around(init)
            self._blocks[-1].init = init
            return None
        if _is_t(call.func, "let"):
            variable, value = [self._value(a) for a in call.args]
            value = address_value(value.element) if isinstance(value, Address) else value
            self._blocks[-1].lets.append(lambda body: _core.stmt_let(variable, value, body))
            body = self._body(node.body)
            self._blocks[-1].lets.pop()
            return _core.stmt_let(variable, value, body)
        if any(_is_t(call.func, name) for name in ("allocate", "allocate_const", "attr", "launch_thread")):
            target = node.items[0].optional_vars
            return self._around(node, call, target.id if isinstance(target, ast.Name) else "")(self._body(node.body))
        if not _is_t(call.func, "block"):
            self._fail(node, f"with is of {_WITH}")
        block = _Block(self._value(call.args[0]) if call.args else "root")
        self._blocks.append(block)
        body = self._body(node.body)
        self._blocks.pop()
        return _core.stmt_block(block.name, block.axes, block.predicate, block.init, body, block.memory, block.notes)

    def _call(self, node: ast.Expr) -> typing.Any:
        call = node.value
        if isinstance(call, ast.Constant):
            return None
        if not isinstance(call, ast.Call):
            self._fail(node, "an expression by itself does nothing")
        if any(_is_t(call.func, name) for name in ("reads", "writes", "preflattened_buffer")):
            return None  # inferred from the statements; buffers have their shapes
        if _is_t(call.func, "store"):
            buffer, index, value = [self._value(a) for a in call.args[:3]]
            buffer = getattr(buffer, "_memory", buffer)  # of a buffer's data
            if not isinstance(buffer, Buffer):
                self._fail(node, f"T.store is of a buffer or its data, and '{getattr(buffer, 'name', buffer)}' is none")
            return write(buffer, [index], value)
        if _is_t(call.func, "func_attr"):
            self._attributes.update(self._value(call.args[0]))
            return None
        if _is_t(call.func, "block_attr"):
            self._blocks[-1].notes.update(self._value(call.args[0]))
            return None
        if _is_t(call.func, "where"):
            self._blocks[-1].predicate = self._value(call.args[0])
            return None
        if _is_t(call.func, "evaluate"):
            value = self._value(call.args[0])
            return None if isinstance(value, int) else evaluate(value)
        return evaluate(self._value(call))


def _loaded(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def _environment(frame: typing.Any) -> dict[str, typing.Any]:
    from . import tir
    names: dict[str, typing.Any] = {"T": tir}
    while frame is not None:
        for name, value in {**frame.f_globals, **frame.f_locals}.items():
            names.setdefault(name, value) if name != "T" else None
        if frame.f_code.co_name == "<module>":
            break
        frame = frame.f_back
    return names


def _functions(tree: ast.AST, environment: dict[str, typing.Any], first: int) -> dict[str, PrimFunc]:
    return {node.name: _Reader(node, environment, first).read() for node in getattr(tree, "body", []) if isinstance(node, ast.FunctionDef)}


def prim_func(input_func: typing.Any) -> typing.Any:
    """`@T.prim_func` on a function. Inside a class, `ir_module` parses it."""
    frame = inspect.currentframe()
    outer = frame.f_back if frame else None
    if outer is not None and "__qualname__" in outer.f_locals and "__module__" in outer.f_locals:
        return input_func
    text, first = source_of(input_func)
    return next(iter(_functions(ast.parse(text), {**_environment(outer), **_closure(input_func)}, first).values()))


def _closure(function: typing.Any) -> dict[str, typing.Any]:
    found = inspect.getclosurevars(function)
    return {k: v for k, v in {**found.globals, **found.nonlocals}.items() if k != "T"}


def ir_module(input_module: type) -> LoopModule:
    """`@tvm.script.ir_module` on a class of prim_funcs."""
    frame = inspect.currentframe()
    text, first = source_of(input_module)
    made = _functions(ast.parse(text).body[0], _environment(frame.f_back if frame else None), first)
    return LoopModule({name: f.with_attr("global_symbol", f.attrs.get("global_symbol", name)) for name, f in made.items()})


def from_source(input_func: typing.Any, tir_prefix: typing.Any = None) -> typing.Any:
    """A function or a module from a script's text, as written by `mod.script()`, or from a Python function or class with source."""
    frame = inspect.currentframe()
    environment = _environment(frame.f_back if frame else None)
    if not isinstance(input_func, str):
        return ir_module(input_func) if isinstance(input_func, type) else prim_func(input_func)
    try:
        tree = ast.parse(textwrap.dedent(input_func))
    except SyntaxError as error:
        raise ScriptError(f"line {error.lineno}: {error.msg}") from None
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            return LoopModule(_functions(node, environment, 0))
    functions = _functions(tree, environment, 0)
    if not functions:
        raise ScriptError("the text has no function")
    return next(iter(functions.values())) if len(functions) == 1 else LoopModule(functions)


__all__ = ["ScriptError", "from_source", "ir_module", "prim_func"]
