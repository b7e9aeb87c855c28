# SPDX-License-Identifier: Apache-2.0
"""Types of expressions, compared structurally."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _core
from .. import tir
from ..runtime.container import Sizes

Type = _core.Type


class TypeKind:
    """Kinds of type variables; all but AdtHandle are accepted and treated as Type."""
    Type, ShapeVar, BaseType, Constraint, AdtHandle, TypeData = range(6)
    Shape = ShapeVar


# Attributes of classic types that have no meaning here: type constraints and source spans.
Type.span = None
Type.type_constraints = []


def _listed(parts: Any) -> str:
    return f"[{', '.join(map(repr, parts))}]"


class TensorType(Type):
    """`TensorType((1, 3, 224, 224), "float32")`; a dimension is an integer, `relay.Any()` or a symbol."""

    def __init__(self, shape: Any = (), dtype: Any = "float32"):
        super().__init__(_core.tensor_type(shape, dtype if isinstance(dtype, str) else np.dtype(dtype).name))

    @property
    def shape(self) -> Sizes:
        return Sizes(self._fields[0])

    @property
    def dtype(self) -> str:
        return self._fields[1]

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as integers. TypeError if a dimension is not constant."""
        return tuple(int(d) for d in self.shape)

    def __repr__(self) -> str:
        return f"TensorType([{', '.join(map(str, self.shape))}], {self.dtype})"


class TupleType(Type):
    def __init__(self, fields: Sequence[Any] = ()):
        super().__init__(_core.tuple_type(list(fields)))

    @property
    def fields(self) -> list[Any]:
        return self._fields[0]

    def __repr__(self) -> str:
        return f"TupleTypeNode({_listed(self.fields)})"


class FuncType(Type):
    def __init__(self, arg_types: Sequence[Any], ret_type: Any, type_params: Sequence[Any] | None = None, type_constraints: Any = None):
        super().__init__(_core.func_type(list(arg_types), ret_type, list(type_params or [])))
        self._constraints = list(type_constraints or [])

    arg_types = property(lambda self: self._fields[0])
    ret_type = property(lambda self: self._fields[1])
    type_params = property(lambda self: self._fields[2])
    type_constraints = property(lambda self: self.__dict__.get("_constraints", []))  # only those given here: inference adds none

    def __repr__(self) -> str:
        return f"FuncType({_listed(self.type_params)}, {_listed(self.arg_types)}, {self.ret_type!r}, {_listed(self.type_constraints)})"


class RelayRefType(Type):
    def __init__(self, value: Any):
        super().__init__(_core.reference_type(value))

    value = property(lambda self: self._fields[0])

    def __repr__(self) -> str:
        return f"RelayRefTypeNode({self.value!r})"


# Kinds of type variables, kept here because the compiler does not use them.
_kinds: dict["TypeVar", int] = {}


class TypeVar(Type):
    """A variable of a polymorphic function or type; each is distinct, even if names are equal."""

    def __init__(self, name_hint: str, kind: int = TypeKind.Type):
        super().__init__(_core.variable_type(name_hint))
        if kind != TypeKind.Type:
            _kinds[self] = kind

    name_hint = property(lambda self: self._fields[0])
    kind = property(lambda self: _kinds.get(self, TypeKind.Type))

    def __eq__(self, other: object) -> bool:
        return self.same_as(other)

    def __hash__(self) -> int:
        return super().__hash__()

    def __call__(self, *args: Any) -> "TypeCall":
        raise TypeError("a type variable takes no arguments")

    def __repr__(self) -> str:
        return f"TypeVar({self.name_hint}, {self.kind})"


class IncompleteType(Type):
    """A type that is not known yet; as in the classic interface each equals only itself."""

    def __init__(self, kind: int = TypeKind.Type):
        super().__init__(_core.incomplete_type())
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class TypeCall(Type):
    """A data type applied to arguments: `List[A]`."""

    def __init__(self, func: Any, args: Sequence[Any]):
        super().__init__(_core.data_type(func if isinstance(func, str) else func.name_hint, list(args)))
        self._called = func if isinstance(func, (GlobalTypeVar, TypeVar)) else None  # its kind is not part of the type itself

    @property
    def func(self) -> "GlobalTypeVar":
        return self.__dict__.get("_called") or GlobalTypeVar(self._fields[0])

    args = property(lambda self: self._fields[1])

    def __repr__(self) -> str:
        return f"TypeCallNode({self.func!r}, {_listed(self.args)})"


class GlobalTypeVar(Type):
    """The name of a data type; calling it applies the type: `List(a)`."""

    def __init__(self, name_hint: str, kind: int = TypeKind.AdtHandle):
        super().__init__(_core.data_type(name_hint, []))
        self.kind = kind

    name_hint = property(lambda self: self._fields[0])

    def __call__(self, *args: Any) -> TypeCall:
        return TypeCall(self, args)

    def same_as(self, other: object) -> bool:
        """Names of data types are compared by name."""
        return isinstance(other, GlobalTypeVar) and self.name_hint == other.name_hint

    def __repr__(self) -> str:
        return f"GlobalTypeVar({self.name_hint}, {self.kind})"


for _kind, _class in (("Tensor", TensorType), ("Tuple", TupleType), ("Func", FuncType), ("Reference", RelayRefType), ("Variable", TypeVar),
                      ("Incomplete", IncompleteType), ("Data", TypeCall)):
    _core._set_class(_kind, _class)


def values_of_variables(signature: FuncType, types: Sequence[Any]) -> list[Any]:
    """What a polymorphic function's type parameters stand for where its arguments, and last its result, have these types."""
    found: dict[Any, Any] = {}

    def match(pattern: Any, given: Any) -> None:
        if isinstance(pattern, TypeVar):
            found.setdefault(pattern, given)
        elif type(pattern) is type(given):
            for p, g in zip(_parts(pattern), _parts(given)):
                match(p, g)
    for pattern, given in zip([*signature.arg_types, signature.ret_type], types):
        match(pattern, given)
    return [found.get(v, v) for v in signature.type_params]


def _parts(t: Any) -> list[Any]:
    if isinstance(t, TupleType):
        return t.fields
    if isinstance(t, FuncType):
        return [*t.arg_types, t.ret_type]
    return t.args if isinstance(t, TypeCall) else [t.value] if isinstance(t, RelayRefType) else []


RefType = RelayRefType  # classic name in relay.ty


def scalar_type(dtype: str) -> TensorType:
    return TensorType((), dtype)


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def type_has_any(tensor_type: TensorType) -> bool:
    return any(isinstance(d, tir.Any) for d in tensor_type.shape)


def is_dynamic(tensor_type: Any) -> bool:
    """Whether a type has an unknown size."""
    return any(map(is_dynamic, tensor_type.fields)) if isinstance(tensor_type, TupleType) else type_has_any(tensor_type)


class PrimType:
    """The type of a scalar in loops: `PrimType("int32")`. Relay scalars are tensors of rank 0."""

    def __init__(self, dtype: str):
        self.dtype = str(dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimType) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("PrimType", self.dtype))

    def same_as(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return self.dtype


class PointerType:
    """A pointer type in loops: element type and storage scope."""

    def __init__(self, element_type: Any, storage_scope: str = ""):
        self.element_type, self.storage_scope = element_type, storage_scope

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerType) and (self.element_type, self.storage_scope) == (other.element_type, other.storage_scope)

    def __hash__(self) -> int:
        return hash((self.element_type, self.storage_scope))


class TypeConstraint:
    """Base of constraints on a function's type variables. Type inference uses only the operators' own rules, so that scripts cannot add
    any."""

    span = None


class TypeRelation(TypeConstraint):
    """A relation between types given by a function; kept as a description, type inference does not solve it."""

    def __init__(self, func: Any, args: Sequence[Any], num_inputs: int, attrs: Any):
        self.func, self.args, self.num_inputs, self.attrs = func, list(args), int(num_inputs), attrs

    def structurally_equals(self, other: Any) -> bool:
        from . import structural_equal
        return isinstance(other, TypeRelation) and (self.func, self.num_inputs) == (other.func, other.num_inputs) and structural_equal(self.args, other.args) \
            and structural_equal(self.attrs, other.attrs)

    def structural_hash(self) -> int:
        return hash((self.func, self.num_inputs, len(self.args)))

    def __eq__(self, other: object) -> bool:
        return self.structurally_equals(other)

    def __hash__(self) -> int:
        return self.structural_hash()

    def same_as(self, other: Any) -> bool:
        return self is other


__all__ = ["FuncType", "GlobalTypeVar", "IncompleteType", "PointerType", "PrimType", "RelayRefType", "ShapeVar", "TensorType", "TupleType", "Type", "TypeCall", "TypeConstraint", "TypeKind", "TypeRelation", "TypeVar",
           "is_dynamic", "scalar_type", "type_has_any"]
