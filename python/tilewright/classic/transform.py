# SPDX-License-Identifier: Apache-2.0
"""Pass contexts and single passes, as in the classic stack."""
from __future__ import annotations

import contextvars
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import _core
from ..options import choose_kernels
from .error import InvalidOption, as_tvm_error

_current: contextvars.ContextVar["PassContext | None"] = contextvars.ContextVar("pass_context", default=None)

# Fields of options that are objects, with their types.
_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "tir.UnrollLoop": {"auto_max_step": int, "auto_max_depth": int, "auto_max_extent": int, "explicit_unroll": (bool, int)},
    "tir.LoopPartition": {"partition_const_loop": (bool, int), "no_unroll_loop_with_extent_one": (bool, int)},
    "tir.HoistIfThenElse": {"support_block_scope_hosting": (bool, int)},
    "tir.HoistExpression": {"hoisted_conditionals": int, "hoisted_let_bindings": int},
    "tir.InjectDoubleBuffer": {"split_loop": int},
    "relay.ext.dnnl.options": {"codegen": str},
    "relay.ext.tensorrt.options": {"tensorrt_version": (list, tuple), "use_implicit_batch": bool, "max_workspace_size": int,
                                   "remove_no_mac_subgraphs": bool, "use_fp16": bool, "use_uint8": bool},
    "relay.ext.cmsisnn.options": {"mcpu": str, "mattr": str},
    "relay.ext.verilator.options": {"lib_path": str, "reset_cycles": int, "profiler_enable": bool, "profiler_cycle_counter_id": int},
}


# The classic names of option types.
_CLASSIC_KINDS = {"int": "IntImm", "bool": "IntImm", "float": "FloatImm", "string": "runtime.String", "list of strings": "Array", "object": "DictAttrs"}
# Defaults of the fields of object options.
_DEFAULTS: dict[str, dict[str, Any]] = {"tir.UnrollLoop": {"auto_max_step": 0, "auto_max_depth": 8, "auto_max_extent": 0, "explicit_unroll": True}}


class _Fields(dict):
    """An option that is an object: its fields are also attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"the option has the fields {', '.join(self)}, not {name}")
        return self[name]


def _as_option(key: str, value: Any, kind: str) -> Any:
    """Converts a value for the compiler, which checks keys and plain types itself."""
    if kind == "object":
        if not isinstance(value, Mapping):
            raise AttributeError(f"pass option '{key}' takes a dict, not {type(value).__name__}")
        fields = _FIELDS.get(key)
        for name, field in value.items():
            if fields is not None and name not in fields:
                raise AttributeError(f"pass option '{key}' has no field '{name}'; it has {', '.join(fields)}")
            if fields is not None and not isinstance(field, fields[name]):
                raise AttributeError(f"field '{name}' of pass option '{key}' has the type {type(field).__name__}")
        return json.dumps(value)
    if key == "tir.add_lower_pass":
        return [str(getattr(p, "__name__", p)) for _, p in value]
    if kind == "bool" and type(value) is int and value in (0, 1):
        return bool(value)
    if hasattr(value, "value"):  # IntImm and StringImm
        return value.value
    return value


class _PassInfo(NamedTuple):
    opt_level: int
    name: str
    required: list[str] = []
    traceable: bool = False


class PassInfo(_PassInfo):
    named: set[str] = set()  # all that scripts have made, which contexts may require or disable

    def __new__(cls, opt_level: int, name: str, required: list[str] | None = None, traceable: bool = False) -> "PassInfo":
        cls.named.add(name)
        return super().__new__(cls, opt_level, name, list(required or []), traceable)


class PassContext:
    """`with PassContext(opt_level=3): lib = relay.build(mod)`. Options are checked here (unknown keys and wrong types are errors), pass
    names when they are used (E305). `trace` lists the passes that ran, if enabled by trace=True."""

    def __init__(self, opt_level: int = 2, required_pass: Sequence[str] | None = None, disabled_pass: Sequence[str] | None = None,
                 instruments: Sequence[Any] | None = None, config: Mapping[str, Any] | None = None, trace: Any = None):
        for name, value in (("required_pass", required_pass), ("disabled_pass", disabled_pass), ("instruments", instruments)):
            if value is not None and not isinstance(value, (list, tuple, set)):
                raise TypeError(f"{name} is expected to be the type of list/tuple/set.")
        self.opt_level = int(opt_level)
        self.required_pass = list(required_pass or [])
        self.disabled_pass = list(disabled_pass or [])
        self.instruments = list(instruments or [])
        self.config = dict(config or {})
        self.trace: list[str] | None = [] if trace else None
        kinds = {name: kind for name, kind, _ in _core.config_keys()}
        self._options = {key: _as_option(key, value, kinds.get(key, "")) for key, value in self.config.items()}
        try:
            _core.check_config(self._options)
        except _core.Error as error:
            raise InvalidOption.of(error) from None
        self.config = {key: _Fields({**_DEFAULTS.get(key, {}), **value}) if kinds.get(key) == "object" else value for key, value in self.config.items()}
        self._tokens: list[contextvars.Token] = []

    def same_as(self, other: Any) -> bool:
        return self is other

    def __enter__(self) -> "PassContext":
        self._tokens.append(_current.set(self))
        entered = []
        try:
            for instrument in self.instruments:
                _hook(instrument, "enter_pass_ctx")
                entered.append(instrument)
        except BaseException:  # leave the instruments that were entered, and stay uninstrumented
            for instrument in entered:
                _hook(instrument, "exit_pass_ctx")
            self.instruments = []
            _current.reset(self._tokens.pop())
            raise
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._tokens.pop())
        try:
            for instrument in self.instruments:
                _hook(instrument, "exit_pass_ctx")
        except BaseException:
            self.instruments = []
            raise

    def override_instruments(self, instruments: Sequence[Any] | None) -> None:
        """Replaces the current instruments: exits them and enters the new ones."""
        for instrument in self.instruments:
            _hook(instrument, "exit_pass_ctx")
        self.instruments = list(instruments or [])
        for instrument in self.instruments:
            _hook(instrument, "enter_pass_ctx")

    def pass_enabled(self, info: PassInfo) -> bool:
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level

    @staticmethod
    def current() -> "PassContext":
        return _current.get() or PassContext()

    @staticmethod
    def list_configs() -> dict[str, dict[str, Any]]:
        """Every option by key, with its classic type, its type here, its description, and whether it has an effect or is only accepted."""
        accepted = ("no effect", "always so")
        return {name: {"type": _CLASSIC_KINDS.get(kind, kind), "kind": kind, "doc": doc, "effective": not any(a in doc for a in accepted)} for name, kind, doc in _core.config_keys()}

    def _should_run(self, mod: Any, info: PassInfo) -> bool:
        return all(_hook(i, "should_run", mod, info, otherwise=True) for i in self.instruments)

    def _before(self, mod: Any, info: PassInfo) -> None:
        if self.trace is not None:
            self.trace.append(info.name)
        for instrument in self.instruments:
            _hook(instrument, "run_before_pass", mod, info)

    def _after(self, mod: Any, info: PassInfo) -> None:
        for instrument in self.instruments:
            _hook(instrument, "run_after_pass", mod, info)

    def build_options(self, target: Any) -> Any:
        """The options of a build in this context."""
        from .target import Target
        options = _core.BuildOptions()
        options.target = Target(target).build_text()
        options.opt_level = self.opt_level
        options.required_passes, options.disabled_passes = self.required_pass, self.disabled_pass
        options.set_config(self._options)
        choose_kernels(options, target)
        return options

    def _bridge(self) -> Any:
        from .relay.op.rules import rules_by_pass
        rules = rules_by_pass()
        return _Bridge(self, rules) if self.instruments or self.trace is not None or rules else None


def _hook(instrument: Any, name: str, *args: Any, otherwise: Any = None) -> Any:
    method = getattr(instrument, name, None)
    try:
        return otherwise if method is None else method(*args)
    except Exception as error:
        raise as_tvm_error(error) from error


class _Bridge:
    """Callbacks of the compiler around each pass of a build."""

    def __init__(self, context: PassContext, rules: Mapping[str, Callable[[Any], Any]]):
        self._context = context
        self.rules = dict(rules)  # rewrites to run before a pass, by the pass's name

    def should_run(self, mod: Any, name: str, level: int) -> bool:
        return bool(self._context._should_run(mod, PassInfo(level, name)))

    def before(self, mod: Any, name: str, level: int) -> None:
        self._context._before(mod, PassInfo(level, name))

    def after(self, mod: Any, name: str, level: int) -> None:
        self._context._after(mod, PassInfo(level, name))


class Pass:
    """A function from module to module: `pass_(mod)`. The level and the required and disabled passes of the current context apply."""

    def __init__(self, info: PassInfo, run: Callable[[Any, PassContext], Any]):
        self.info = info
        self._run = run

    @property
    def pass_info(self) -> PassInfo:
        return self.info

    @property
    def name(self) -> str:
        return self.info.name

    def __call__(self, mod: Any) -> Any:
        context = PassContext.current()
        if not context._should_run(mod, self.info):
            return mod
        context._before(mod, self.info)
        result = self._run(mod, context)
        if not isinstance(result, _core.IRModule):
            raise TypeError(f"pass '{self.info.name}' gave a {type(result).__name__}, not an IRModule")
        context._after(result, self.info)
        return result

    _kind = "Module"

    def __repr__(self) -> str:
        return f"Run {self._kind} pass: {self.info.name} at the optimization level {self.info.opt_level}"


class ModulePass(Pass):
    pass


class FunctionPass(Pass):
    _kind = "Function"


class Sequential(Pass):
    """A sequence of passes; those excluded by the context's level or lists are skipped, and passes that another one requires run before
    it."""

    def __init__(self, passes: Sequence[Pass] | None = None, opt_level: int = 0, name: str = "sequential",
                 required: Sequence[str] | None = None, traceable: bool = False):
        self.passes = list(passes or [])
        for p in self.passes:
            if not isinstance(p, Pass):
                raise TypeError("passes must be a list of Pass objects.")
        super().__init__(PassInfo(opt_level, name, list(required or []), traceable), self._run_all)

    def _run_all(self, mod: Any, context: PassContext) -> Any:
        known = {name for name, _, _ in _core.pass_infos()} | PassInfo.named
        for names in (context.required_pass, context.disabled_pass):
            for name in names:
                if name not in known:
                    raise ValueError(f"no pass is called '{name}'; relay.transform lists them")
        for p in self.passes:
            if not context.pass_enabled(p.info):
                continue
            for name in p.info.required:
                mod = named_pass(name)(mod)
            mod = p(mod)
        return mod


# Classic optimisation levels where they differ from the compiler's; a Sequential skips passes above the context's level.
_CLASSIC_LEVELS = {"AlterOpLayout": 3, "BackwardFoldScaleAxis": 3, "CanonicalizeOps": 3, "DefuseOps": 3, "DynamicToStatic": 2, "EliminateCommonSubexpr": 3,
                   "FoldConstant": 2, "FoldScaleAxis": 3, "ForwardFoldScaleAxis": 3, "SimplifyExpr": 0}


@functools.lru_cache(maxsize=None)
def _levels() -> dict[str, int]:
    return {name: _CLASSIC_LEVELS.get(name, level) for name, level, _ in _core.pass_infos()}


def named_pass(name: str, arguments: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None, opt_level: int | None = None) -> Pass:
    """A pass of the compiler by its classic name. `options` and `opt_level` override the context's. Error: 305."""
    from .target import Target

    def run(mod: Any, context: PassContext) -> Any:
        from .relay.op.rules import rules_by_pass
        target = Target.current()
        text = target.build_text() if target and target.makes_code else "llvm"  # other targets only affect graph passes
        rule = rules_by_pass().get(name)
        if rule and name == "AlterOpLayout":  # called alone, this pass consists only of the script's rules
            return rule(mod)
        out = _core.run_pass(rule(mod) if rule else mod, name, context.opt_level if opt_level is None else opt_level, text,
                             {**context._options, **(options or {})}, dict(arguments or {}))
        if name == "InferType":
            from .relay.analysis import check_choices
            check_choices(out)
        return out

    return ModulePass(PassInfo(_levels().get(name, 0), name), run)


def _pass_decorator(kind: type[Pass], make_run: Callable[[Callable[..., Any]], Callable[[Any, PassContext], Any]], method: str) -> Callable[..., Any]:
    def decorate(pass_func: Any = None, opt_level: int | None = None, name: str | None = None,
                 required: Sequence[str] | None = None, traceable: bool = False) -> Any:
        if opt_level is None:
            raise ValueError("Please provide opt_level for the pass.")
        if required is not None and not isinstance(required, (list, tuple)):
            raise TypeError("Required is expected to be the type of list/tuple.")

        def wrap(target: Any) -> Any:
            if not callable(target):
                raise TypeError(f"pass_func must be a callable, not {type(target).__name__}")
            info = PassInfo(opt_level, name or target.__name__, list(required or []), traceable)
            if not isinstance(target, type):
                return kind(info, make_run(target))

            class Made(kind):  # instances of this class are passes
                def __init__(self, *args: Any, **kwargs: Any):
                    self._inner = target(*args, **kwargs)
                    super().__init__(info, make_run(getattr(self._inner, method)))

                def __getattr__(self, attribute: str) -> Any:
                    return getattr(self.__dict__["_inner"], attribute)

            functools.update_wrapper(Made, target, updated=())
            return Made

        return wrap if pass_func is None else wrap(pass_func)

    return decorate


def _function_wise(transform: Callable[..., Any]) -> Callable[[Any, PassContext], Any]:
    def run(mod: Any, context: PassContext) -> Any:
        out = mod.copy()
        for name, function in mod.functions.items():
            attrs = function.attrs or {}
            if "Compiler" in attrs or int(attrs.get("SkipOptimization") or 0):
                continue  # another compiler's, or one that is to stay as it is
            made = transform(function, mod, context)
            if not isinstance(made, _core.Expr):
                raise TypeError(f"a function pass gave a {type(made).__name__} for @{name.name_hint}, not a function")
            out[name] = made
        return out
    return run


module_pass = _pass_decorator(ModulePass, lambda f: lambda mod, context: f(mod, context), "transform_module")
function_pass = _pass_decorator(FunctionPass, _function_wise, "transform_function")


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """Prints the module and returns it unchanged."""
    def run(mod: Any, _: PassContext) -> Any:
        print(f"PrintIR({header}):\n{mod.astext(show_meta_data)}")
        return mod
    return ModulePass(PassInfo(0, "PrintIR"), run)


def ApplyPassToFunction(transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False) -> Pass:
    """Applies the pass to the functions whose whole name matches the regular expression. ValueError: no function matches, if that is
    requested."""
    def run(mod: Any, _: PassContext) -> Any:
        names = [g.name_hint for g in mod.get_global_vars()]
        chosen = [n for n in names if re.fullmatch(func_name_regex, n)]
        if not chosen:
            if error_if_no_function_matches_regex:
                raise ValueError(f"no function of the module matches '{func_name_regex}'; there are {', '.join(names)}")
            return mod
        done, out = transform(mod), mod.copy()
        for g in done.get_global_vars():
            if g.name_hint in chosen or g.name_hint not in names:
                out[g.name_hint] = done[g.name_hint]
        return out
    return ModulePass(PassInfo(0, "ApplyPassToFunction"), run)


def pass_names() -> list[str]:
    return [name for name, _, _ in _core.pass_infos()]


__all__ = ["ApplyPassToFunction", "FunctionPass", "ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential", "function_pass", "module_pass",
           "named_pass", "pass_names"]
