# SPDX-License-Identifier: Apache-2.0
"""Analyses of expressions and modules."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .... import _core
from ...error import ChoiceError, InvalidValue
from ...ir import ty
from ..adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar, TypeData
from ..expr import Call, Constant, Expr, Function, GlobalVar, If, Let, Op, Tuple, Var, _like, free_vars, infer_type


def post_order_visit(expr: Any, fvisit: Callable[[Expr], None]) -> None:
    """Calls `fvisit` on every expression, operators included, operands before their users."""
    seen: set[str] = set()
    for e in _core.post_order(_like(expr)):
        if isinstance(e, Call) and isinstance(e.op, Op) and e.op.name not in seen:
            seen.add(e.op.name)
            fvisit(e.op)
        fvisit(e)


def _pattern_vars(pattern: Any) -> list[Var]:
    if isinstance(pattern, PatternVar):
        return [pattern.var]
    if isinstance(pattern, (PatternConstructor, PatternTuple)):
        return [v for p in pattern.patterns for v in _pattern_vars(p)]
    return []


def _binders(expr: Any) -> list[Var]:
    """The variable of every binding, repeated if it is bound several times."""
    out: list[Var] = []
    for e in _core.post_order(expr):
        if isinstance(e, Function):
            out += e.params
        elif isinstance(e, Let):
            out.append(e.var)
        elif isinstance(e, Match):
            out += [v for c in e.clauses for v in _pattern_vars(c.lhs)]
    return out


def _visited_vars(expr: Any) -> tuple[list[Var], list[Var]]:
    """(bound variables, all variables), each once, in the order in which a visitor comes to them: binders before what they bind in."""
    bound: dict[Var, None] = {}
    every: dict[Var, None] = {}
    seen: set[Any] = set()
    todo: list[Any] = [expr]
    while todo:
        e = todo.pop()
        if isinstance(e, list):  # binders
            bound.update(dict.fromkeys(e))
            every.update(dict.fromkeys(e))
        elif isinstance(e, Pattern):
            todo.append(_pattern_vars(e))
        elif isinstance(e, Var):
            every[e] = None
        elif e not in seen:
            seen.add(e)
            if isinstance(e, Function):
                todo += [e.body, list(e.params)]
            elif isinstance(e, Let):
                todo += [e.body, e.value, [e.var]]
            elif isinstance(e, Match):
                for clause in reversed(e.clauses):
                    todo += [clause.rhs, clause.lhs]
                todo.append(e.data)
            else:
                todo += reversed(_core.children(e))
    return list(bound), list(every)


def bound_vars(expr: Any) -> list[Var]:
    """The variables that an expression or a pattern binds."""
    return _visited_vars(expr if isinstance(expr, Pattern) else _like(expr))[0]


def all_vars(expr: Any) -> list[Var]:
    return _visited_vars(expr if isinstance(expr, Pattern) else _like(expr))[1]


def _type_vars(t: Any, bound: frozenset[Any], free: dict[Any, None], every: dict[Any, None]) -> None:
    if isinstance(t, ty.TypeVar):
        every[t] = None
        if t not in bound:
            free[t] = None
    elif isinstance(t, ty.FuncType):
        for v in t.type_params:
            every[v] = None
        inner = bound | set(t.type_params)
        for part in [*t.arg_types, t.ret_type]:
            _type_vars(part, frozenset(inner), free, every)
    elif isinstance(t, ty.TupleType):
        for part in t.fields:
            _type_vars(part, bound, free, every)
    elif isinstance(t, ty.TypeCall):
        for part in t.args:
            _type_vars(part, bound, free, every)
    elif isinstance(t, ty.RelayRefType):
        _type_vars(t.value, bound, free, every)


def _type_vars_of(expr: Any, mod: Any = None) -> tuple[list[Any], list[Any], list[Any]]:
    """(free, bound, all) type variables of an expression or a type."""
    free: dict[Any, None] = {}
    every: dict[Any, None] = {}
    bound: dict[Any, None] = {}
    if isinstance(expr, ty.Type):
        _type_vars(expr, frozenset(), free, every)
    else:
        functions = [e for e in _core.post_order(_like(expr)) if isinstance(e, Function)]
        inside = frozenset(v for f in functions for v in f.type_params)
        for e in _core.post_order(_like(expr)):
            if isinstance(e, Var):
                _type_vars(e._type, inside, free, every)
            elif isinstance(e, Function):
                bound.update(dict.fromkeys(e.type_params))
                _type_vars(e.ret_type, inside, free, every)
        every.update(bound)
    return list(free), list(bound) or [v for v in every if v not in free], list(every)


def free_type_vars(expr: Any, mod: Any = None) -> list[Any]:
    return _type_vars_of(expr)[0]


def bound_type_vars(expr: Any, mod: Any = None) -> list[Any]:
    return _type_vars_of(expr)[1]


def all_type_vars(expr: Any, mod: Any = None) -> list[Any]:
    return _type_vars_of(expr)[2]


def well_formed(expr: Any, diag_ctx: Any = None) -> bool:
    """Whether every variable is bound exactly once and used only inside its scope."""
    functions = expr.functions.values() if isinstance(expr, _core.IRModule) else [_like(expr)]
    binders = [v for f in functions for v in _binders(f)]
    if len(set(binders)) != len(binders):
        return False
    return all(_scoped(f, frozenset(free_vars(f))) for f in functions)


def _scoped(root: Any, outside: frozenset[Any]) -> bool:
    """Whether each bound variable is used only inside its binder."""
    waiting = [(root, outside)]
    seen: set[Any] = set()
    while waiting:
        e, known = waiting.pop()
        if (e, known) in seen:
            continue
        seen.add((e, known))
        if isinstance(e, Var):
            if e not in known:
                return False
        elif isinstance(e, Function):
            waiting.append((e.body, known | set(e.params)))
        elif isinstance(e, Let):
            waiting += [(e.value, known | {e.var}), (e.body, known | {e.var})]
        elif isinstance(e, Match):
            waiting.append((e.data, known))
            waiting += [(c.rhs, known | set(_pattern_vars(c.lhs))) for c in e.clauses]
        else:
            waiting += [(c, known) for c in _core.children(e)]
    return True


def check_kind(t: Any, mod: Any = None) -> int:
    """The kind of a type: a variable's own kind, TypeData and Constraint for those, else Type. Error: TVMError (also a ValueError) if parts
    of the type are not types."""
    if isinstance(t, (ty.GlobalTypeVar, ty.TypeVar, ty.IncompleteType)):
        return t.kind
    if isinstance(t, ty.TypeRelation):
        for part in t.args:
            check_kind(part, mod)
        return ty.TypeKind.Constraint
    if isinstance(t, TypeData):
        return _kind_of_data(t, mod)
    if isinstance(t, ty.TypeCall):
        _check_called(t, mod)
    value = [t.value] if isinstance(t, ty.RelayRefType) else []
    result = [t.ret_type] if isinstance(t, ty.FuncType) else []
    for part in [*getattr(t, "fields", []), *getattr(t, "arg_types", []), *result, *value, *getattr(t, "args", [])]:
        if check_kind(part, mod) != ty.TypeKind.Type:
            raise InvalidValue(f"{part} stands in {t} and is no type of values")
    if any(not isinstance(c, ty.TypeRelation) and getattr(c, "kind", 0) != ty.TypeKind.Constraint for c in t.type_constraints):
        raise InvalidValue(f"{t} has constraints that are none")
    return ty.TypeKind.Type


def _check_called(t: Any, mod: Any) -> None:
    """The name that a type call applies is one of a data type, of the module if there is one, with as many parameters."""
    name = t.func.name_hint
    if t.func.kind != ty.TypeKind.AdtHandle:
        raise InvalidValue(f"{name} of {t} is no data type")
    if mod is None:
        return
    if name not in mod._type_names:
        raise InvalidValue(f"the module has no data type {name}")
    if len(mod._type(name)[0]) != len(t.args):
        raise InvalidValue(f"{t} has {len(t.args)} arguments, {name} takes {len(mod._type(name)[0])}")


def _kind_of_data(data: Any, mod: Any) -> int:
    """A data type has a name, parameters that are types, and constructors of values of it."""
    if data.header.kind != ty.TypeKind.AdtHandle or any(v.kind != ty.TypeKind.Type for v in data.type_vars):
        raise InvalidValue(f"{data.header.name_hint} is not the name of a data type over types")
    for made in data.constructors:
        if made.belong_to != data.header or any(check_kind(t, mod) != ty.TypeKind.Type for t in made.inputs):
            raise InvalidValue(f"{made.name_hint} does not make values of {data.header.name_hint}")
    return ty.TypeKind.TypeData


def check_constant(expr: Any) -> bool:
    return isinstance(expr, Constant) or isinstance(expr, Tuple) and all(check_constant(f) for f in expr.fields)


def check_basic_block_normal_form(expr: Any) -> bool:
    """Whether every expression shared between a branch and the code outside it is bound by a let."""
    from ...ir import structural_equal
    from ..transform import ToBasicBlockNormalForm
    whole = expr if isinstance(expr, Function) else Function(free_vars(expr), expr)
    return structural_equal(ToBasicBlockNormalForm()(_core.IRModule({"main": whole}))["main"], infer_type(whole))


def list_op_freqs(mod: Any) -> dict[str, int]:
    """The number of calls of each operator."""
    out: dict[str, int] = {}
    for f in mod.functions.values():
        for e in _core.post_order(f):
            if isinstance(e, Call) and isinstance(e.op, Op):
                out[e.op.name] = out.get(e.op.name, 0) + 1
    return out


def list_fake_quantized_op_freqs(mod: Any) -> dict[str, int]:
    """The number of operators between a dequantize and a quantize, by name: the candidates of FakeQuantizationToInteger."""
    out: dict[str, int] = {}
    for f in mod.functions.values():
        for e in _core.post_order(f):
            if not (isinstance(e, Call) and e.op == "qnn.quantize"):
                continue
            waiting, seen = [e.args[0]], set()
            while waiting:
                x = waiting.pop()
                if x in seen or isinstance(x, Call) and x.op == "qnn.dequantize":
                    continue
                seen.add(x)
                if isinstance(x, Call) and isinstance(x.op, Op):
                    out[x.op.name] = out.get(x.op.name, 0) + 1
                waiting += _core.children(x)
    return out


extract_fake_quantized_ops = list_fake_quantized_op_freqs


def extract_fused_functions(mod: Any) -> dict[str, Function]:
    """The primitive functions of main after FuseOps, by names made of their operators."""
    from ..transform import FuseOps, InferType
    fused = FuseOps()(InferType()(mod))
    out: dict[str, Function] = {}
    for e in _core.post_order(fused["main"]):
        if isinstance(e, Function) and e.attrs.get("Primitive"):
            name = "fused_" + "_".join(c.op.name.rsplit(".", 1)[-1] for c in _core.post_order(e) if isinstance(c, Call) and isinstance(c.op, Op))
            out[name if name not in out else f"{name}_{len(out)}"] = e
    return out


def extract_intermdeiate_expr(mod: Any, expr_id: int) -> Any:
    """A module whose result is the expression with this index in post order."""
    calls = [e for e in _core.post_order(mod["main"]) if isinstance(e, Call)]
    if not 0 <= expr_id < len(calls):
        raise IndexError(f"there are {len(calls)} calls, none has the number {expr_id}")
    return _core.IRModule({"main": Function(free_vars(calls[expr_id]), calls[expr_id])})


def count_layers(expr: Any, valid_ops: Sequence[str]) -> int:
    """The maximum number of calls of `valid_ops` on one path."""
    depth: dict[Any, int] = {}
    for e in _core.post_order(_like(expr)):
        own = isinstance(e, Call) and isinstance(e.op, Op) and e.op.name in valid_ops
        depth[e] = max((depth[c] for c in _core.children(e)), default=0) + own
    return depth[_like(expr)]


class Feature:
    """Language features, by classic number."""
    (fVar, fGlobalVar, fConstant, fTuple, fTupleGetItem, fFunction, fOp, fCall, fLet, fIf, fRefCreate, fRefRead, fRefWrite, fConstructor, fMatch,
     fGraph, fLetRec) = range(17)


_FEATURES = {"Var": Feature.fVar, "GlobalVar": Feature.fGlobalVar, "Constant": Feature.fConstant, "Tuple": Feature.fTuple,
             "TupleGetItem": Feature.fTupleGetItem, "Function": Feature.fFunction, "Op": Feature.fOp, "Call": Feature.fCall, "Let": Feature.fLet,
             "If": Feature.fIf, "RefCreate": Feature.fRefCreate, "RefRead": Feature.fRefRead, "RefWrite": Feature.fRefWrite,
             "Constructor": Feature.fConstructor, "Match": Feature.fMatch}


def detect_feature(a: Any, b: Any = None) -> set[int]:
    """The features used by an expression, or by all functions of a module."""
    if isinstance(a, _core.IRModule):
        a, b = b, a
    roots = list(b.functions.values()) if a is None else [_like(a)]
    out: set[int] = set()
    for root in roots:
        users: dict[Any, int] = {}
        for e in _core.post_order(root):
            out.add(_FEATURES[e._kind])
            if isinstance(e, Call) and isinstance(e.op, Op):
                out.add(Feature.fOp)
            for c in _core.children(e):
                users[c] = users.get(c, 0) + 1
            if isinstance(e, Let) and e.var in _core.post_order(e.value):
                out.add(Feature.fLetRec)
        if any(n > 1 and not isinstance(e, (Var, GlobalVar, Constant, Op)) for e, n in users.items()):
            out.add(Feature.fGraph)
    return out


def unmatched_cases(match: Match, mod: Any = None) -> list[Any]:
    """The values that no clause of a match covers, as patterns with wildcards; empty if the match is complete. Without a module the
    sibling constructors are unknown, and nothing is reported."""
    from ..adt import PatternWildcard
    wildcard, missing, waiting = PatternWildcard, [], [PatternWildcard()]
    parts = lambda p: list(p.patterns) if isinstance(p, (PatternConstructor, PatternTuple)) else []  # noqa: E731
    with_parts = lambda p, new: PatternConstructor(p.constructor, new) if isinstance(p, PatternConstructor) else PatternTuple(new)  # noqa: E731

    def fits(pattern: Any, case: Any) -> bool | None:
        """Whether the pattern covers the case completely; None if partly."""
        if not isinstance(pattern, (PatternConstructor, PatternTuple)):
            return True
        if not isinstance(case, (PatternConstructor, PatternTuple)):
            return None
        if isinstance(pattern, PatternConstructor) and pattern.constructor.name_hint != case.constructor.name_hint:
            return False
        results = [fits(p, c) for p, c in zip(parts(pattern), parts(case))]
        return False if False in results else None if None in results else True

    def opened(pattern: Any, case: Any) -> list[Any]:
        """The case split into constructors as deep as the pattern goes."""
        if not isinstance(pattern, (PatternConstructor, PatternTuple)):
            return [case]
        if isinstance(case, (PatternConstructor, PatternTuple)):
            return [with_parts(case, list(choice)) for choice in itertools.product(*(opened(p, c) for p, c in zip(parts(pattern), parts(case))))]
        if isinstance(pattern, PatternTuple):
            return [PatternTuple([wildcard() for _ in pattern.patterns])]
        return [PatternConstructor(c, [wildcard() for _ in c.inputs]) for c in mod._type(pattern.constructor.belong_to.name_hint)[1]]
    if mod is None:
        return []
    while waiting:
        case = waiting.pop()
        for clause in match.clauses:
            fit = fits(clause.lhs, case)
            if fit is None:
                waiting += opened(clause.lhs, case)
            if fit is not False:
                break
        else:
            missing.append(case)
    return missing


def check_choices(mod: Any) -> None:
    """Error 301 if the branches of an If have different types, or if a match marked complete is not."""
    for name, function in mod.functions.items():
        for e in _core.post_order(function) if isinstance(function, Function) else []:
            if isinstance(e, If):
                a, b = e.true_branch._checked_type_, e.false_branch._checked_type_
                if isinstance(a, ty.TensorType) and isinstance(b, ty.TensorType) and (a.dtype, len(a.shape)) != (b.dtype, len(b.shape)):
                    raise ChoiceError(f"the branches of an If in @{name.name_hint} give {a} and {b}")
            elif isinstance(e, Match) and e.complete:
                missing = unmatched_cases(e, mod)
                if missing:
                    raise ChoiceError(f"a match in @{name.name_hint} has no clause for {', '.join(map(str, missing[:4]))}; `match?` allows that")


def get_calibration_data(mod: Any, data: Any) -> dict[Any, dict[str, list[Any]]]:
    """The inputs and outputs of each function with attribute Compiler when main runs on `data`: {GlobalVar: {"inputs": [...], "outputs":
    [...]}}."""
    from ..build_module import create_executor
    main = mod["main"]
    calls = [e for e in _core.post_order(main) if isinstance(e, Call) and isinstance(e.op, GlobalVar) and "Compiler" in mod[e.op].attrs]
    if not calls:
        return {}
    wanted = [e for c in calls for e in [*c.args, c]]
    probe = mod.copy()
    probe["main"] = Function(main.params, Tuple(wanted))
    values = create_executor("debug", probe).evaluate()(**data)
    out, at = {}, 0
    for c in calls:
        out[c.op] = {"inputs": values[at:at + len(c.args)], "outputs": [values[at + len(c.args)]]}
        at += len(c.args) + 1
    return out


def all_dtypes(expr: Any) -> set[str]:
    """The dtypes of all tensors of an expression."""
    out: set[str] = set()

    def of(t: Any) -> None:
        if isinstance(t, ty.TensorType):
            out.add(str(t.dtype))
        for part in [*getattr(t, "fields", []), *getattr(t, "arg_types", []), *([t.ret_type] if isinstance(t, ty.FuncType) else [])]:
            of(part)
    for e in _core.post_order(infer_type(_like(expr))):
        if not isinstance(e, Op):
            of(e.checked_type)
    return out


class CallGraph:
    """The call graph of a module: `graph.global_call_count("main")`, `graph.is_recursive(var)`; its text lists every function."""

    def __init__(self, module: Any):
        self.module = module
        self._calls: dict[str, list[str]] = {}
        for name, function in module.functions.items():
            self._calls[name.name_hint] = self._called(function)

    @staticmethod
    def _called(function: Any) -> list[str]:
        """The names of the functions used, one entry per use."""
        out = []
        for e in _core.post_order(function):
            out += [c.name_hint for c in _core.children(e) if isinstance(c, GlobalVar)]
        return out

    def _name(self, var: Any) -> str:
        name = var if isinstance(var, str) else var.name_hint
        if name not in self._calls:
            raise ValueError(f"the module has no function '{name}'; there are {', '.join(sorted(self._calls))}")
        return name

    def ref_count(self, var: Any) -> int:
        """The number of uses of a function by others."""
        name = self._name(var)
        return sum(calls.count(name) for calls in self._calls.values())

    def global_call_count(self, var: Any) -> int:
        """The number of uses of other functions in a function."""
        return len(self._calls[self._name(var)])

    def is_recursive(self, var: Any) -> bool:
        """Whether a function calls itself."""
        name = self._name(var)
        return name in self._calls[name]

    def print_var(self, var: Any) -> str:
        name = self._name(var)
        lines = [f"Call graph node: {name} is used by {self.ref_count(name)}"]
        return "\n".join(lines + [f"  calls {c}" for c in self._calls[name]]) + "\n"

    def __str__(self) -> str:
        return "".join(self.print_var(name) for name in sorted(self._calls))


def search_fc_transpose(expr: Any) -> list[str]:
    """The names of weights that are transposed and then used by nn.dense."""
    return [e.args[1].args[0].name_hint for e in _core.post_order(_like(expr))
            if isinstance(e, Call) and e.op == "nn.dense" and isinstance(e.args[1], Call) and e.args[1].op == "transpose" and isinstance(e.args[1].args[0], Var)]


def get_total_mac_number(expr: Any) -> int:
    """The number of multiply-adds in convolutions and dense layers of known sizes."""
    total = 0
    for e in _core.post_order(infer_type(_like(expr))):
        if not (isinstance(e, Call) and isinstance(e.op, Op)):
            continue
        size = lambda t: _product(t.concrete_shape)  # noqa: E731
        if e.op.name.startswith("nn.conv") and not e.op.name.endswith("transpose"):
            weight = e.args[1].checked_type
            total += size(e.checked_type) * size(weight) // int(e.attrs.channels or weight.shape[0])
        elif e.op.name.startswith("nn.conv"):
            data, layout = e.args[0].checked_type, e.attrs.data_layout
            channels = int(data.shape[layout.index("C")])
            total += size(e.checked_type) * _product(e.attrs.kernel_size or e.args[1].checked_type.shape[2:]) * channels // int(e.attrs.groups)
        elif e.op.name == "nn.dense":
            total += size(e.checked_type) * int(e.args[1].checked_type.shape[-1])
        elif e.op.name == "nn.batch_matmul":
            total += size(e.checked_type) * int(e.args[0].checked_type.shape[-1])
    return total


def _product(numbers: Sequence[int]) -> int:
    out = 1
    for n in numbers:
        out *= int(n)
    return out


from . import annotated_regions, sparse_conv2d, sparse_dense  # noqa: E402
from .annotated_regions import AnnotatedRegionSet  # noqa: E402

__all__ = ["AnnotatedRegionSet", "CallGraph", "Feature", "all_dtypes", "all_type_vars", "all_vars", "bound_type_vars", "bound_vars", "check_basic_block_normal_form", "check_constant", "check_kind",
           "annotated_regions", "check_choices", "count_layers", "detect_feature", "extract_fake_quantized_ops", "extract_fused_functions", "extract_intermdeiate_expr", "free_type_vars", "free_vars", "get_calibration_data",
           "get_total_mac_number", "list_fake_quantized_op_freqs", "list_op_freqs", "post_order_visit", "search_fc_transpose", "sparse_conv2d", "sparse_dense", "unmatched_cases", "well_formed"]
