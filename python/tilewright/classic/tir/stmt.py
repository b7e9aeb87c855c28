# SPDX-License-Identifier: Apache-2.0
"""Statements of the loop IR: those that scripts construct over buffers, and those of the kernels that `tvm.lower` shows."""
from __future__ import annotations

import typing

from ... import _core
from .expr import Call, IntImm, OpName, PrimExpr, StringImm, dtype_of

_EVALUATE = "tir.evaluate"  # the call that C++ keeps for it
_KINDS = ("serial", "vectorized", "unrolled", "parallel")  # in the order of the C++ enumeration


class ForKind:
    """Execution kinds of loops."""
    SERIAL, PARALLEL, VECTORIZED, UNROLLED, THREAD_BINDING = range(5)


_CLASSIC = {"serial": ForKind.SERIAL, "vectorized": ForKind.VECTORIZED, "unrolled": ForKind.UNROLLED, "parallel": ForKind.PARALLEL}
_NAMES = {"serial": 0, "vectorize": 1, "vectorized": 1, "unroll": 2, "unrolled": 2, "parallel": 3, ForKind.SERIAL: 0, ForKind.PARALLEL: 3, ForKind.VECTORIZED: 1, ForKind.UNROLLED: 2,
          ForKind.THREAD_BINDING: 0}


def loop_kind(kind: typing.Any) -> int:
    """The C++ number of a loop kind, from its name or a ForKind."""
    if kind not in _NAMES:
        raise ValueError(f"there is no kind of loop '{kind}'; there are serial, parallel, vectorize and unroll")
    return _NAMES[kind]


class Stmt(_core.Stmt):
    """Base class of statements."""

    def __str__(self) -> str:
        return self._text()

    __repr__ = __str__

    def _field(self, i: int) -> typing.Any:
        return self._fields[i]


def _field(i: int) -> typing.Any:
    return property(lambda self: self._fields[i])


class For(Stmt):
    """for loop_var in [min, min + extent)."""

    def __init__(self, loop_var: typing.Any, min_val: typing.Any, extent: typing.Any, kind: typing.Any, body: Stmt, thread_binding: typing.Any = None, annotations: typing.Any = None, span: object = None):
        notes = dict(annotations or {})
        if thread_binding is not None:
            notes["thread"] = thread_binding.thread_tag
        super().__init__(_core.stmt_for(loop_var, min_val, extent, loop_kind(kind), body, notes))

    loop_var, min, extent, body = (_field(i) for i in (0, 1, 2, 4))

    @property
    def annotations(self) -> dict[str, typing.Any]:
        """Loops keep them as texts; those of numbers are numbers."""
        return {k: IntImm("int32", int(v)) if str(v).lstrip("-").isdigit() else v for k, v in self._fields[5].items()}

    @property
    def kind(self) -> int:
        return ForKind.THREAD_BINDING if "thread" in self.annotations else _CLASSIC[_KINDS[self._fields[3]]]


# The annotation of memory that names the pools it may lie in (tvm.tir.usmp); statements keep annotations as texts.
CANDIDATE_MEMORY_POOLS = "candidate_memory_pools"


def noted(annotations: typing.Any) -> dict[str, typing.Any]:
    """Annotations as statements keep them."""
    from ..ir.memory_pools import pools_as_text
    return {k: pools_as_text(v) if k == CANDIDATE_MEMORY_POOLS and not isinstance(v, str) else v for k, v in dict(annotations or {}).items()}


def _lanes(value: typing.Any) -> int:
    return int(dtype_of(value).partition("x")[2] or 1)


def write(buffer: typing.Any, indices: typing.Any, value: typing.Any) -> Stmt:
    """A checked store buffer[indices] = value."""
    at = list(indices)
    for i in at:
        if "int" not in dtype_of(i):
            raise ValueError(f"'{buffer.name}' is indexed with {dtype_of(i)}; index with integers")
    value = value.asobject() if hasattr(value, "asobject") else value
    wide = max([_lanes(i) for i in at], default=1)
    if wide > 1 and _lanes(value) not in (1, wide):
        raise ValueError(f"{_lanes(value)} values are stored at {wide} places of '{buffer.name}'")
    return _core.stmt_write(buffer, at, value)


class BufferStore(Stmt):
    """buffer[indices] = value."""

    def __init__(self, buffer: typing.Any, value: typing.Any, indices: typing.Any, span: object = None):
        super().__init__(write(buffer, indices, value))

    buffer, value = _field(0), _field(1)
    indices = property(lambda self: list(self._fields[2]))


class LetStmt(Stmt):
    def __init__(self, var: typing.Any, value: typing.Any, body: Stmt, span: object = None):
        super().__init__(_core.stmt_let(var, value, body))

    var, value, body = (_field(i) for i in range(3))


class IfThenElse(Stmt):
    def __init__(self, condition: typing.Any, then_case: Stmt, else_case: typing.Any = None, span: object = None):
        super().__init__(_core.stmt_if(condition, then_case, else_case))

    condition, then_case, else_case = (_field(i) for i in range(3))


class While(Stmt):
    """Repeats the body as long as the condition, evaluated before each iteration, holds."""

    def __init__(self, condition: typing.Any, body: Stmt, span: object = None):
        super().__init__(_core.stmt_while(condition, body))

    condition, body = _field(0), _field(1)


class SeqStmt(Stmt):
    """A sequence of statements."""

    def __init__(self, seq: typing.Any, span: object = None):
        super().__init__(_core.stmt_seq(list(seq)))

    @property
    def seq(self) -> list[Stmt]:
        return list(self._fields[0])

    @property
    def value(self) -> IntImm:
        """Of one that is an Evaluate."""
        if len(self):
            raise AttributeError("a sequence of statements has no value")
        return IntImm("int32", 0)

    def __getitem__(self, i: int) -> Stmt:
        return self.seq[i]

    def __len__(self) -> int:
        return len(self.seq)


class Prefetch(Stmt):
    buffer = _field(0)


class _Allocated(Stmt):
    """A buffer that is live in `body`."""

    def __init__(self, buffer_var: typing.Any, dtype: str, extents: typing.Any, condition: typing.Any, body: Stmt, annotations: typing.Any = None, span: object = None):
        from .buffer import decl_buffer
        memory = getattr(buffer_var, "_memory", None)
        if memory is None or memory.dtype != dtype or [str(d) for d in memory.shape] != [str(d) for d in extents]:
            memory = decl_buffer(list(extents), dtype, buffer_var.name, data=buffer_var)
        super().__init__(_core.stmt_block("", [], None, None, body, [memory], noted(annotations)))
        self.__dict__.update(buffer_var=buffer_var, condition=condition, _body=body, _memory=memory)

    @property
    def buffer(self) -> typing.Any:
        return self.__dict__.get("_memory") or self._fields[0]

    @property
    def body(self) -> typing.Any:
        return self.__dict__.get("_body") or self._fields[1]

    @property
    def annotations(self) -> dict[str, typing.Any]:
        return _notes_of(self)

    @property
    def alloc_buffers(self) -> list[typing.Any]:
        return [self.buffer]

    @property
    def dtype(self) -> str:
        return self.buffer.dtype

    @property
    def extents(self) -> list[typing.Any]:
        return list(self._memory.shape) if "_memory" in self.__dict__ else [self.buffer.size]


def _notes_of(block: typing.Any) -> dict[str, typing.Any]:
    from ..ir.memory_pools import pools_from_text
    return {k: pools_from_text(v) if k == CANDIDATE_MEMORY_POOLS else v for k, v in (block._fields[6] if block._kind == "Block" else {}).items()}


class _AllocateKind(type):
    """Makes `isinstance(s, Allocate)` true also for what an ir_builder's allocate makes: a block of nothing but its memory."""

    def __call__(cls, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return _Allocated(*args, **kwargs)

    def __instancecheck__(cls, instance: typing.Any) -> bool:
        return isinstance(instance, _Allocated) or isinstance(instance, Block) and not instance.name_hint and not instance.iter_vars and len(instance.alloc_buffers) == 1


class Allocate(metaclass=_AllocateKind):
    """`Allocate(buffer_var, dtype, extents, condition, body)`: memory that is live in the body."""


class ExternCall:
    """A call statement of a C function with memory arguments, or of a runtime function; it has no value. For isinstance it is a Call."""

    def __init__(self, name: str, args: typing.Any, packed: bool, dtype: str = "int32"):
        self.name, self.dtype = name, dtype
        self._given = list(args)
        self._args = [_argument(name, a, packed) for a in args]
        self.packed = packed

    __class__ = property(lambda self: Call)  # type: ignore[assignment]

    @property
    def op(self) -> OpName:
        return OpName("tir.tvm_call_packed" if self.packed else "tir.call_extern")

    @property
    def args(self) -> list[typing.Any]:
        """The function's name and what it is given."""
        return [StringImm(self.name), *self._given]

    def asobject(self) -> typing.Any:
        raise ValueError(f"the call of '{self.name}' is given memory: it is a statement (ib.emit, Evaluate), not a value; take its result from that memory")

    def statement(self) -> Stmt:
        return _core.stmt_call(self.name, self._args, self.packed)

    def __repr__(self) -> str:
        return str(self.statement())


class Address:
    """The address of a buffer element: `buffer.access_ptr("r")`, `address_of(buffer[i])`. For isinstance it is a Call, with `op` and `args`."""

    dtype = "handle"
    __class__ = property(lambda self: Call)  # type: ignore[assignment]

    def __init__(self, element: typing.Any, mask: int | None = None, offset: typing.Any = 0, extent: typing.Any = None):
        self.element, self._access = element, (mask, offset, extent)

    def asobject(self) -> typing.Any:
        raise ValueError("an address is an argument of call_extern, no value of an expression")

    @property
    def op(self) -> OpName:
        return OpName("tir.address_of" if self._access[0] is None else "tir.tvm_access_ptr")

    @property
    def args(self) -> list[typing.Any]:
        """As of the classic call: the element; or of access_ptr a value of the elements' type, the memory, the offset and the count of
        elements, and what is done with it."""
        buffer, (mask, offset, extent) = self.element._fields[0], self._access
        if mask is None:
            return [self.element]
        if extent is None:
            whole = buffer.strides[0] * buffer.shape[0] if len(buffer.strides) else buffer.get_flattened_buffer().shape[0]
            extent = whole if isinstance(offset, int) and offset == 0 else whole - offset
        return [_Annotation(buffer.dtype), buffer.data, _number(offset), _number(_core.prim_simplify(extent, [])), IntImm("int32", mask)]

    def __repr__(self) -> str:
        return f"@{self.op}({', '.join(str(a) for a in self.args)}, dtype=handle)"


def address_value(element: typing.Any) -> typing.Any:
    """The address of an element as the value of a variable, which stands for memory from there on."""
    return _core.extern_value("handle", "tir.address_of", [element])


class _Annotation:
    """A type among the arguments of a call."""

    def __init__(self, dtype: str):
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"@tir.type_annotation(, dtype={self.dtype})"


def _number(value: typing.Any) -> typing.Any:
    return IntImm("int32", value) if type(value) is int else value


def _argument(name: str, value: typing.Any, packed: bool) -> typing.Any:
    if isinstance(value, Address):
        return ("address", value.element)
    value = getattr(value, "_memory", value)  # a buffer's data
    if isinstance(value, _core.Array):
        return ("address", value._element([0] * len(value.shape), value.dtype))
    if isinstance(value, str):
        raise ValueError(f"'{name}' is given the text '{value}': functions called from loops take numbers and buffers")
    return value


class _EvaluateKind(type):
    """Makes `isinstance(s, Evaluate)` true also for a statement without effect, which is all that is left of an unused value."""

    def __call__(cls, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return _Evaluated(*args, **kwargs)

    def __instancecheck__(cls, instance: typing.Any) -> bool:
        return isinstance(instance, _Evaluated) or isinstance(instance, SeqStmt) and not len(instance)


class Evaluate(metaclass=_EvaluateKind):
    """`Evaluate(tvm.tir.call_extern(...))`: evaluates a call for its side effects."""


class _Evaluated(Stmt):
    """Evaluates a call for its side effects."""

    def __init__(self, value: typing.Any, span: object = None):
        super().__init__(evaluate(value))

    @property
    def value(self) -> typing.Any:
        if self._kind == "Seq":  # the value is unused
            return IntImm("int32", 0)
        name, args, packed = self._fields
        if name == _EVALUATE:
            return args[0]
        return ExternCall(name, [Address(a[1]._element(a[2], a[1].dtype)) if isinstance(a, tuple) and isinstance(a[1], _core.Array) else a for a in args], packed)


def evaluate(value: typing.Any) -> Stmt:
    """An expression as a statement, evaluated for its effects; 0 is the statement that does nothing."""
    if isinstance(value, _core.Stmt):
        return value
    if isinstance(value, ExternCall):
        return value.statement()
    if isinstance(value, _core.PrimExpr) and value._kind == "Extern":
        return _core.stmt_call(value._fields[0], list(value._fields[1]), False)
    made = _core.prim_expr(value)
    return _core.stmt_seq([]) if isinstance(made, int) and made == 0 else _core.stmt_call(_EVALUATE, [made], False)


class BlockAxis(typing.NamedTuple):
    """A block variable: its range, whether it is a reduction axis, and its bound value."""
    var: typing.Any
    min: typing.Any
    extent: typing.Any
    reduces: bool
    value: typing.Any


class Block(Stmt):
    """A block instance: `body`, preceded by `init` in the first iteration of all reduction axes."""

    def __init__(self, name_hint: str, axes: typing.Any, body: Stmt, init: typing.Any = None, predicate: typing.Any = None, alloc_buffers: typing.Any = (), annotations: typing.Any = None):
        super().__init__(_core.stmt_block(name_hint, [tuple(a) for a in axes], predicate, init, body, list(alloc_buffers), annotations))

    name_hint, predicate, init, body = (_field(i) for i in (0, 2, 3, 4))
    annotations = property(_notes_of)

    @property
    def iter_vars(self) -> list[BlockAxis]:
        return [BlockAxis(*a) for a in self._fields[1]]

    @property
    def iter_values(self) -> list[typing.Any]:
        return [a[4] for a in self._fields[1]]

    @property
    def alloc_buffers(self) -> list[typing.Any]:
        return list(self._fields[5])

    @property
    def reads(self) -> list[typing.Any]:
        """The regions that the body reads."""
        from .analysis import get_block_access_region
        return get_block_access_region(self)[0]

    @property
    def writes(self) -> list[typing.Any]:
        """The regions that the body writes."""
        from .analysis import get_block_access_region
        return get_block_access_region(self)[1]

    block = property(lambda self: self)
    # Of one that is an Allocate:
    buffer_var = property(lambda self: self.alloc_buffers[0].data)
    dtype = property(lambda self: self.alloc_buffers[0].dtype)
    extents = property(lambda self: list(self.alloc_buffers[0].shape))
    condition = property(lambda self: IntImm("bool", 1))


BlockRealize = Block


class BufferLoad(PrimExpr):
    """buffer[indices]."""

    def __init__(self, buffer: typing.Any, indices: typing.Any, span: object = None):
        super().__init__(buffer._element(list(indices), buffer.dtype))

    buffer = property(lambda self: self._fields[0])

    @property
    def indices(self) -> list[typing.Any]:
        made = self._fields[1]
        return list(made) if isinstance(made, (list, tuple)) else [made]


class AttrStmt(Stmt):
    """An attribute of a statement, without effect: loops keep the statement only."""

    def __init__(self, node: typing.Any, attr_key: str, value: typing.Any, body: Stmt, span: object = None):
        super().__init__(body)
        self.node, self.attr_key, self.value, self.body = node, attr_key, IntImm("int32", value) if isinstance(value, int) and not hasattr(value, "dtype") else value, body


def visit_accesses(node: typing.Any, see: typing.Callable[[bool, typing.Any, typing.Any], None]) -> None:
    """Calls see(whether it writes, the buffer, the indices) for each access to a buffer in a statement or expression."""
    def visit(part: typing.Any) -> None:
        kind = getattr(part, "_kind", "")
        if kind == "Write":
            see(True, part.buffer, part.indices)
        elif kind == "Read" and isinstance(part._fields[0], _core.Array):
            see(False, part._fields[0], part._fields[1])
    _core.stmt_visit(node, visit, True)


def statements_in(node: Stmt) -> list[Stmt]:
    """The statements directly in another."""
    out = []
    for field in node._fields:
        out += [part for part in (field if isinstance(field, (list, tuple)) else [field]) if isinstance(part, _core.Stmt)]
    return out


def stmt_seq(*args: typing.Any) -> Stmt:
    """A sequence of statements, or of expressions evaluated for their side effects."""
    return _core.stmt_seq([evaluate(a) for a in args])


def stmt_list(stmt: Stmt) -> list[Stmt]:
    return stmt.seq if isinstance(stmt, SeqStmt) else [stmt]


for _kind, _class in {"For": For, "Store": BufferStore, "Write": BufferStore, "Prefetch": Prefetch, "LetStmt": LetStmt, "If": IfThenElse, "While": While, "Seq": SeqStmt, "Allocate": _Allocated,
                      "CallExtern": _Evaluated, "Block": Block, "Load": BufferLoad}.items():
    _core._set_loop_class(_kind, _class)

__all__ = ["Allocate", "AttrStmt", "Block", "BlockRealize", "BufferLoad", "BufferStore", "Evaluate", "For", "ForKind", "IfThenElse", "LetStmt", "Prefetch", "SeqStmt", "Stmt", "While", "stmt_list", "stmt_seq"]
