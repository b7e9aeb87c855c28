# SPDX-License-Identifier: Apache-2.0
"""Methods of IRModule beyond functions by name: data types, the prelude, updates."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ... import _core
from ..error import InvalidValue
from ..runtime.container import Map
from ..tir.function import LoopModule, PrimFunc
from .ty import GlobalTypeVar

_Graph = _core.IRModule


def _function_of(value: Any) -> Any:
    from ..relay.expr import as_function
    if not isinstance(value, _core.Expr) and not hasattr(value, "astuple"):
        raise TypeError(f"an IRModule holds functions, not a {type(value).__name__}")
    return as_function(value)


def _setitem(self: Any, key: Any, value: Any) -> None:
    from ..relay.adt import TypeData
    if isinstance(value, PrimFunc):
        self.__dict__.setdefault("_loops", LoopModule())[key] = value
    elif isinstance(value, TypeData):
        name = key if isinstance(key, str) else key.name_hint
        self._set_type(name, value.type_vars, value.constructors)
        for mine, theirs in zip(value.constructors, self._type(name)[1]):
            mine.bound_tag = theirs.tag  # what get_constructor knows it by
    else:
        self._set_function(key, _function_of(value))


def _type_data(self: Any, name: Any) -> Any:
    from ..relay.adt import TypeData
    name = name if isinstance(name, str) else name.name_hint
    return TypeData(GlobalTypeVar(name), *self._type(name))


_core_getitem, _core_contains, _core_global_vars = _Graph.__getitem__, _Graph.__contains__, _Graph.get_global_vars
_core_functions = _Graph.functions


def _getitem(self: Any, key: Any) -> Any:
    loops = self.__dict__.get("_loops")
    if loops is not None and key in loops:
        return loops[key]
    return self._type_data(key) if isinstance(key, GlobalTypeVar) else _core_getitem(self, key)


def _update(self: Any, other: Any) -> None:
    """Adds the functions and types of another module or a dict, replacing those of the same name."""
    self._update(other if isinstance(other, _Graph) else _Graph(dict(other)))


def _update_func(self: Any, var: Any, func: Any) -> None:
    self._set_function(var, _function_of(func))


def _get_type(self: Any, name: str) -> list[Any]:
    """[the type, its constructors...]"""
    return [GlobalTypeVar(name), *self._type(name)[1]]


def _get_constructor(self: Any, tag: int) -> Any:
    """The constructor with a tag."""
    for name in self._type_names:
        for made in self._type(name)[1]:
            if made.tag == tag:
                return made
    raise InvalidValue(f"There is no constructor with the tag {tag}")


_GRADIENT = """#[version = "0.0.5"]
type GradCell[T] {
  Raw(T),
  One(fn () -> T),
  Zero(fn () -> T),
}

def @FromGradCell[T](%g: GradCell[T]) -> T {
  match (%g) {
    Raw(%x) => %x,
    One(%x) => %x(),
    Zero(%x) => %x(),
  }
}
"""


def _import_from_std(self: Any, file_to_import: str) -> None:
    """Imports a standard file. prelude.rly: List, Option, Tree and their functions. nat.rly: natural numbers. gradient.rly: the data
    type of gradients that may be none. core.rly adds nothing: operators need no aliases."""
    if file_to_import == "nat.rly":
        from ..relay.testing.nat import TEXT
        self._update(_from_text(TEXT))
        return
    if file_to_import == "gradient.rly":
        self._update(_from_text(_GRADIENT))
        return
    if file_to_import not in ("prelude.rly", "core.rly"):
        raise FileNotFoundError(f"there is no standard library file '{file_to_import}'; there are prelude.rly, nat.rly and gradient.rly")
    if file_to_import == "prelude.rly":
        self._update(self._with_prelude())


def _from_expr(expr: Any, functions: Mapping[Any, Any] | None = None, type_defs: Mapping[Any, Any] | None = None) -> Any:
    """The module of a function, or of an expression over its free variables. A function of loops gives a module of loops."""
    if isinstance(expr, PrimFunc):
        return LoopModule({str(expr.attrs["global_symbol"]): expr, **(functions or {})})
    module = _Graph()
    for name, data in (type_defs or {}).items():
        module[name] = data
    for name, function in (functions or {}).items():
        module[name] = function
    module["main"] = expr
    return module


def _from_text(source: str, source_path: str = "") -> Any:
    from ..relay.expr import fromtext
    return fromtext(source, source_path)


def _items(self: Any) -> Any:
    return self.functions.items()


def _iter(self: Any) -> Iterator[Any]:
    return iter(self.functions)


def _type_definitions(self: Any) -> dict[Any, Any]:
    return Map({GlobalTypeVar(name): self._type_data(name) for name in self._type_names})


def _with_attr(self: Any, attr_key: str, attr_value: Any) -> Any:
    """A copy with an attribute. String values are kept in the module's text and in libraries; others only in this object and its copies."""
    out = self.copy()
    out.__dict__["_attributes"] = dict(self.__dict__.get("_attributes", {}))
    if isinstance(attr_value, str):
        out._set_metadata(attr_key, attr_value)
    else:
        from ..runtime.container import convert_to_object
        out.__dict__["_attributes"][attr_key] = convert_to_object(attr_value)
    return out


def _attrs(self: Any) -> Any:
    from ..relay.expr import DictAttrs
    return DictAttrs({**self.metadata, **self.__dict__.get("_attributes", {})})


for _name, _value in {
    "__setitem__": _setitem, "__getitem__": _getitem, "__iter__": _iter, "__len__": lambda self: len(self.functions), "_type_data": _type_data,
    "__contains__": lambda self, name: _core_contains(self, name) or name in self.__dict__.get("_loops", ()),
    "get_global_vars": lambda self: [*_core_global_vars(self), *(self.__dict__["_loops"].get_global_vars() if "_loops" in self.__dict__ else [])],
    "update": _update, "update_func": _update_func, "add": _update_func, "get_type": _get_type, "get_constructor": _get_constructor, "import_from_std": _import_from_std,
    "from_expr": staticmethod(_from_expr), "from_text": staticmethod(_from_text), "items": _items, "functions_items": _items,
    "shallow_copy": lambda self: self.copy(), "clone": lambda self: self.copy(), "type_definitions": property(_type_definitions),
    "get_global_type_var": lambda self, name: (self._type(name), GlobalTypeVar(name))[1],
    "get_global_type_vars": lambda self: [GlobalTypeVar(n) for n in self._type_names],
    "with_attr": _with_attr, "get_attr": lambda self, key: _attrs(self).get(key), "attrs": property(_attrs),
    "functions": property(lambda self: Map({**_core_functions.__get__(self), **getattr(self.__dict__.get("_loops"), "functions", {})})),
    "__str__": lambda self: self.astext(show_meta_data=False).removeprefix('#[version = "0.0.5"]\n'),
    "script": lambda self: self.astext(show_meta_data=False), "show": lambda self: print(self),
}.items():
    setattr(_Graph, _name, _value)

class _Kind(type):
    """Makes `isinstance(x, IRModule)` true for graph modules and for modules of loop functions."""

    def __call__(cls, functions: Any = None, type_definitions: Any = None, attrs: Mapping[str, Any] | None = None) -> Any:
        if isinstance(functions, Mapping) and any(isinstance(f, PrimFunc) for f in functions.values()):
            return LoopModule({getattr(name, "name_hint", name): f for name, f in functions.items()}, attrs)
        made = _Graph() if functions is None and type_definitions is None else _Graph(functions, type_definitions)
        for key, value in (attrs or {}).items():
            made = made.with_attr(key, value)
        return made

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (_Graph, LoopModule))

    def __getattr__(cls, name: str) -> Any:
        return getattr(_Graph, name)


class IRModule(metaclass=_Kind):
    """Functions by name: graph functions, or loops (tir.PrimFunc)."""


__all__ = ["IRModule"]
