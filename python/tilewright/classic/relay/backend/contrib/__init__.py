# SPDX-License-Identifier: Apache-2.0
"""External code generators: those that scripts register as relay.ext.NAME, and those that come with the compiler (docs/external-
codegen.md)."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..... import _core
from ....registry import register_for_objects, registered_in_python
from ....runtime.module import KERNEL_LIBRARIES, CSourceModule, Module, create_module, kernel_library, load_plugin
from ....runtime.ndarray import as_array
from ....transform import PassContext

_PREFIX = "relay.ext."
_HOOKS = (".constant_updater", ".optimize")  # suffixes of a generator's registered name


def symbol_of(function: Any) -> str:
    """The symbol of an external function in its module. ValueError: the function has no external code generator."""
    attrs = getattr(function, "attrs", None)
    symbol = attrs.get("global_symbol") if attrs is not None else None
    if not symbol:
        raise ValueError("an external code generator takes a function with the attribute global_symbol, as PartitionGraph makes them")
    return str(symbol)


def _wanted(module: Module, symbol: str) -> list[str]:
    """The names of the constants that the module's __init_<symbol> expects."""
    if isinstance(module, CSourceModule) or not module.implements_function("get_const_vars"):
        return []
    return [str(name) for name in module.get_function("get_const_vars")()]


def _generator(name: str, generate: Callable[[Any], Any]) -> Callable[[str, Any], tuple[str, bytes, list[str]]]:
    def run(symbol: str, function: Any) -> tuple[str, bytes, list[str]]:
        made = generate(function)
        module = made if isinstance(made, Module) else Module(made) if isinstance(made, _core.ModuleHandle) else None
        if module is None:
            raise TypeError(f"relay.ext.{name} gives a module, not a {type(made).__name__}")
        return module.type_key, bytes(module.save_to_bytes()), _wanted(module, symbol)
    return run


def _constants(update: Callable[[Any, str], Any]) -> Callable[[str, Any], dict[str, Any]]:
    return lambda symbol, function: {str(name): as_array(value) for name, value in dict(update(function, symbol)).items()}


def _compilers(module: Any) -> set[str]:
    return {str(f.attrs["Compiler"]) for f in module.functions.values() if getattr(f, "attrs", None) and "Compiler" in f.attrs}


def add_generators(options: Any, module: Any) -> None:
    """Passes the registered code generators to a build: relay.ext.NAME(function) returns a module,
    relay.ext.NAME.constant_updater(function, symbol) its constants by name. Generators in shared libraries are loaded if the module
    has functions for them. Errors: 102, 403."""
    registered = registered_in_python(_PREFIX)
    for name, generate in registered.items():
        if not name.endswith(_HOOKS):
            update = registered.get(name + ".constant_updater")
            options.add_external(name[len(_PREFIX):], _generator(name[len(_PREFIX):], generate), None if update is None else _constants(update))


    for name in sorted(_compilers(module) & set(KERNEL_LIBRARIES.values())):
        if _PREFIX + name not in registered:  # its library was not there when this module was imported
            options.load_plugin(kernel_library(name))


def optimized(module: Any) -> Any:
    """The module after relay.ext.NAME.optimize of every generator that has functions in it."""
    compilers = _compilers(module)
    for name, run in registered_in_python(_PREFIX).items():
        if name.endswith(".optimize") and name[len(_PREFIX):-len(".optimize")] in compilers:
            module = run(module)
    return module


def own(name: str) -> Callable[[Any], Module]:
    """A code generator that comes with the compiler, by name: function -> module."""
    def generate(function: Any) -> Module:
        key, data, constants = _core.generate_external(name, symbol_of(function), function)
        return module_of_bytes(key, data, symbol_of(function), constants)
    return generate


def kernel_generator(name: str) -> Callable[[Any], Module]:
    """A code generator in libtilewright_<name>.so: function -> module. With the option relay.ext.<name>.options={"codegen": "c_src"} of the
    PassContext it makes C source."""
    def generate(function: Any) -> Module:
        options = PassContext.current().config.get(f"{_PREFIX}{name}.options") or {}
        variant = {"json": name, "c_src": f"{name}_c_src"}.get(kind := str(options.get("codegen", "json")))
        if variant is None:
            raise ValueError(f"relay.ext.{name}.options: the codegen is json or c_src, not {kind!r}")
        load_plugin(kernel_library(name))
        key, data, constants = _core.generate_external(variant, symbol_of(function), function, kernel_library(name))
        return CSourceModule.from_bytes(data) if key == "c" else Module(_core.load_module_binary(key, data))
    return generate


def module_of_bytes(key: str, data: bytes, symbol: str, constants: list[str]) -> Module:
    """The module in serialised form: it records its symbol and constants, and is loaded with the library."""
    if key == "c":
        return CSourceModule.from_bytes(data)
    return create_module(key, {"get_symbol": lambda: symbol, "get_const_vars": lambda: list(constants)}, data)


register_for_objects("relay.ext.ccompiler", own("ccompiler"))
for _name in sorted(set(KERNEL_LIBRARIES.values())):
    if os.path.exists(kernel_library(_name)):
        register_for_objects(_PREFIX + _name, kernel_generator(_name))

__all__ = ["add_generators", "module_of_bytes", "optimized", "own", "symbol_of"]
