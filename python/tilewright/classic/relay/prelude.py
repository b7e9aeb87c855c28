# SPDX-License-Identifier: Apache-2.0
"""Lists, options and trees with their functions, and lists of tensors ("tensor arrays"): `p = Prelude(mod); cons, nil = p.cons, p.nil;
p.map(f, xs)`."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import _core
from ..ir.ty import TypeCall
from ..tir import Any as tir_any

_CONSTRUCTORS = {"nil": ("List", "Nil"), "cons": ("List", "Cons"), "some": ("Option", "Some"), "none": ("Option", "None"), "rose": ("Tree", "Rose")}


def _size(dim: Any) -> int:
    """A size, or -1 if it is unknown."""
    return -1 if isinstance(dim, tir_any) or str(dim) in ("?", "any") else int(dim)


def _text(shape: Sequence[Any]) -> str:
    return "_".join("any" if n < 0 else str(n) for n in map(_size, shape))


def _get_name_static(canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None, extra_shapes: Mapping[str, Sequence[Any]] | None = None) -> str:
    """The name in the module of a function or type for tensors of one static shape."""
    sizes = _text(shape) + "".join(f"_{n}_{_text(s)}" for n, s in (extra_shapes or {}).items()) or "scalar"
    if canonical == "tensor_t":
        return f"static_tensor_{dtype}_{sizes}_t"
    single = batch_dim == 1 and canonical not in ("tensor_constructor", "tensor_nil")
    return f"{canonical}_{dtype}_batch1_{sizes}" if single else f"{canonical}_{dtype}_{sizes}"


def get_tensor_array_shape(expr: Any, dtype: str, prelude: "Prelude") -> tuple[Any, ...] | None:
    """The element shape of a tensor array, from its type; None if the rank is not fixed."""
    from . import analysis, transform
    from .expr import Function
    prelude.mod["main"] = Function(analysis.free_vars(expr), expr)
    found = transform.InferType()(prelude.mod)["main"].body.checked_type
    if not isinstance(found, TypeCall):
        raise TypeError(f"a tensor array is a list, not of type {found}")
    name, start = str(found.args[0].func.name_hint), f"static_tensor_{dtype}_"
    if not name.startswith(start):
        return None
    sizes = name[len(start):-len("_t")]
    return () if sizes == "scalar" else tuple(tir_any() if n == "any" else int(n) for n in sizes.split("_"))


class Prelude:
    """Adds the prelude to `mod` (or to a new module); its types, constructors and functions are attributes.

    Types and functions of tensor arrays ("tensor_array", "tensor_t", "tensor1") are added when they are first requested for a dtype."""

    def __init__(self, mod: Any = None):
        self.mod = _core.IRModule() if mod is None else mod
        self.load_prelude()

    def load_prelude(self) -> None:
        self.mod.import_from_std("prelude.rly")

    def get_name(self, canonical: str, dtype: str) -> str:
        return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"

    def get_global_var(self, canonical: str, dtype: str) -> Any:
        TensorArrayOps(self, dtype).register()
        return self.mod.get_global_var(self.get_name(canonical, dtype))

    def get_type(self, canonical: str, dtype: str | None = None) -> Any:
        """With a dtype the tensor array's element type ("tensor_t"); otherwise the type of that name, followed by its constructors."""
        if dtype is None:
            return tuple(self.mod.get_type(canonical))
        TensorArrayOps(self, dtype).register()
        return self.mod.get_global_type_var(self.get_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Any:
        TensorArrayOps(self, dtype).register()
        return self._constructor(ty_name, self.get_name(canonical, dtype))

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Any:
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)

    def get_name_static(self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None) -> str:
        return _get_name_static(canonical, dtype, shape, batch_dim)

    def get_global_var_static(self, canonical: str, dtype: str, shape: Sequence[Any], batch_dim: int | None = None) -> Any:
        return self.mod.get_global_var(self.get_name_static(canonical, dtype, shape, batch_dim))

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[Any]) -> Any:
        return self.mod.get_global_type_var(self.get_name_static(canonical, dtype, shape))

    def get_ctor_static(self, ty_name: str, name: str, dtype: str, shape: Sequence[Any]) -> Any:
        return self._constructor(self.get_name_static(ty_name, dtype, shape), self.get_name_static(name, dtype, shape))

    def get_tensor_ctor_static(self, name: str, dtype: str, shape: Sequence[Any]) -> Any:
        return self.get_ctor_static("tensor_t", name, dtype, shape)

    def _constructor(self, type_name: str, name: str) -> Any:
        for constructor in self.mod.get_type(type_name)[1:]:
            if constructor.name_hint == name:
                return constructor
        raise ValueError(f"the type {type_name} has no constructor {name}")

    def __getattr__(self, name: str) -> Any:
        mod = self.__dict__["mod"]
        wanted = _CONSTRUCTORS.get(name)
        for type_name in mod._type_names:
            if type_name.lower() == name or type_name == name or (name, type_name) == ("l", "List"):
                return mod.get_global_type_var(type_name)
            for c in mod._type(type_name)[1]:
                if (type_name, c.name_hint) == wanted:
                    return c
        if name in mod:
            return mod.get_global_var(name)
        raise AttributeError(f"the prelude has no '{name}'; there are {', '.join(g.name_hint for g in mod.get_global_vars())}")


class TensorArrayOps:
    """Functions of tensor arrays with a dtype and any rank up to 6."""

    def __init__(self, prelude: Prelude, dtype: str):
        self.prelude, self.dtype = prelude, dtype
        self.list, self.cons, self.nil = prelude.mod.get_type("List")

    def register(self) -> None:
        if self.get_name("tensor_array") not in self.prelude.mod:
            self.prelude.mod.update(self.prelude.mod._with_tensor_arrays(self.dtype, {}, None))

    def get_name(self, canonical: str) -> str:
        return self.prelude.get_name(canonical, self.dtype)

    def get_global_var(self, canonical: str) -> Any:
        return self.prelude.get_global_var(canonical, self.dtype)

    def get_type(self, canonical: str) -> Any:
        return self.prelude.get_type(canonical, self.dtype)

    def get_ctor(self, canonical: str) -> Any:
        return self.prelude.get_tensor_ctor(canonical, self.dtype)


class StaticTensorArrayOps:
    """Functions of tensor arrays with a dtype and a static shape, whose sizes may be relay.Any()."""

    def __init__(self, prelude: Prelude, dtype: str, shape: Sequence[Any], batch_dim: int | None = None):
        self.prelude, self.dtype, self.shape, self.batch_dim = prelude, dtype, shape, batch_dim
        self.list, self.cons, self.nil = prelude.mod.get_type("List")

    def register(self) -> None:
        self._add({})

    def _add(self, shapes: Mapping[str, Sequence[Any] | None]) -> None:
        given = {"shape": self.shape, **{name: shape for name, shape in shapes.items() if shape is not None}}
        sizes = {name: [_size(d) for d in shape] for name, shape in given.items()}
        self.prelude.mod.update(self.prelude.mod._with_tensor_arrays(self.dtype, sizes, self.batch_dim))

    def get_name(self, canonical: str, extra_shapes: Mapping[str, Sequence[Any]] | None = None) -> str:
        return _get_name_static(canonical, self.dtype, self.shape, self.batch_dim, extra_shapes)

    def get_global_var(self, canonical: str) -> Any:
        return self.prelude.get_global_var_static(canonical, self.dtype, self.shape, self.batch_dim)

    def get_type(self, canonical: str) -> Any:
        return self.prelude.get_type_static(canonical, self.dtype, self.shape)

    def get_ctor(self, canonical: str) -> Any:
        return self.prelude.get_tensor_ctor_static(canonical, self.dtype, self.shape)

    def define_tensor_array_scatter(self, indices_shape: Sequence[Any] | None = None, force_update: bool = False) -> None:
        """With a shape of indices: a specialised function, named by get_name("tensor_array_scatter", {"indices": shape})."""
        self._add({"indices": indices_shape})

    def define_tensor_array_split(self, value_shape: Sequence[Any] | None = None, lengths_shape: Sequence[Any] | None = None, force_update: bool = False) -> None:
        """With shapes and force_update: a function specialised for these shapes of value and lengths replaces the general one."""
        self._add({"value": value_shape, "lengths": lengths_shape} if force_update else {})


# Each define_* function may be called alone; it adds the whole family.
for _name in ("adt", "take", "concatenate", "expand_dims", "array", "array_read", "array_write", "array_unstack", "array_concat", "array_stack", "array_gather", "get_data"):
    setattr(StaticTensorArrayOps, f"define_tensor_{_name}", lambda self, *_, **__: self.register())


__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape"]
