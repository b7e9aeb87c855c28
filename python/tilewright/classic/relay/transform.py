# SPDX-License-Identifier: Apache-2.0
"""Every pass of the compiler under its classic name, with its classic arguments: `relay.transform.FoldConstant()(mod)`."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import _core
from ..error import InvalidValue
from ..ir.ty import TensorType
from ..transform import (FunctionPass, ModulePass, Pass, PassContext, PassInfo, PrintIR, Sequential, function_pass, module_pass,
                         named_pass)
from .expr import Call, Expr, Function, GlobalVar, Op, Var, infer_type
from .expr_functor import ExprMutator

# Classic passes that are not available, and what to use instead.
_INSTEAD = {
    "MemoryPlan": "the compiler plans memory itself",
    "RemoveStandaloneReshapes": "reshapes take no kernel and no copy",
    "SimplifyExplicitPad": "FoldExplicitPadding", "ExtractOperators": "relay.analysis.list_op_freqs",
    "MetaScheduleLayoutRewrite": "weights are packed for the chosen kernels", "AutoSchedulerLayoutRewrite": "weights are packed for the chosen kernels",
}


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Groups operators into primitive functions. 0: each operator by itself; -1: decided by the context's level. Concatenations join
    groups as others do; a build leaves out those that cost nothing (relay.FuseOps.in_place)."""
    return named_pass("FuseOps", options={"relay.FuseOps.in_place": False}, opt_level=None if fuse_opt_level < 0 else fuse_opt_level)


def FoldConstant(fold_qnn: bool = False) -> Pass:
    """Evaluates calls with constant operands; quantised operators only with fold_qnn."""
    return named_pass("FoldConstant", options={"relay.FoldConstant.fold_qnn": bool(fold_qnn)})


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:
    """Merges at least min_num_branches convolutions of one input into one."""
    return named_pass("CombineParallelConv2D", {"min_num_branches": min_num_branches})


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> Pass:
    """Merges dense layers of one input into one batched product or, with to_batch=False, into one wide layer, which is faster."""
    return named_pass("CombineParallelDense", {"min_num_branches": min_num_branches, "to_batch": to_batch})


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:
    return named_pass("CombineParallelBatchMatmul", {"min_num_branches": min_num_branches})


def BatchingOps() -> Pass:
    """All three CombineParallel passes."""
    return Sequential([CombineParallelConv2D(), CombineParallelDense(), CombineParallelBatchMatmul()], name="BatchingOps")


def EliminateCommonSubexpr(fskip: Callable[[Expr], bool] | None = None) -> Pass:
    """Merges equal expressions; calls for which fskip returns true are kept."""
    return named_pass("EliminateCommonSubexpr", {"fskip": fskip} if fskip else {})


class LayoutConfig:
    """`with LayoutConfig(skip_layers=[0]): mod = ConvertLayout(...)(mod)`: the convolutions (nn.conv2d) with these indices, counted from
    the first, keep their layout."""

    current: "LayoutConfig | None" = None

    def __init__(self, skip_layers: Sequence[int] | None = None):
        self.skip_layers = list(skip_layers or [])
        self._outer: LayoutConfig | None = None

    def __enter__(self) -> "LayoutConfig":
        self._outer, LayoutConfig.current = LayoutConfig.current, self
        return self

    def __exit__(self, *_: object) -> None:
        LayoutConfig.current = self._outer


class _Fence(ExprMutator):
    """Protects convolutions, by index, from passes by making them fused functions; `open_fences` inlines them again."""

    def __init__(self, layers: Sequence[int]):
        super().__init__()
        self._layers, self._next = frozenset(layers), 0

    def visit_call(self, call: Call) -> Any:
        args = [self.visit(a) for a in call.args]
        made = Call(call.op if isinstance(call.op, Op) else self.visit(call.op), args, call.attrs)
        if not (isinstance(call.op, Op) and call.op.name == "nn.conv2d"):
            return made
        self._next += 1
        if self._next - 1 not in self._layers:
            return made
        params = [Var(f"p{i}", a.checked_type) for i, a in enumerate(call.args)]
        return Call(Function(params, Call(call.op, params, call.attrs), attrs={"Primitive": 1, "LayoutFence": 1}), args)


class _Open(ExprMutator):
    def visit_call(self, call: Call) -> Any:
        args = [self.visit(a) for a in call.args]
        if isinstance(call.op, Function) and call.op.attrs.get("LayoutFence"):
            return Call(call.op.body.op, args, call.op.body.attrs)
        return Call(call.op if isinstance(call.op, Op) else self.visit(call.op), args, call.attrs)


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """`ConvertLayout({"nn.conv2d": ["NHWC", "default"]})`. Error 101: unsupported operator or layout, or a convolution without a layout for
    each of its operands."""
    for op, layouts in desired_layouts.items():
        if "conv" in str(op) and not isinstance(layouts, str) and len(layouts) != 2:
            raise InvalidValue(f"A desired layout is expected for both of {op}'s inputs, not {list(layouts)}")

    def run(mod: Any, context: PassContext) -> Any:
        skipped = LayoutConfig.current.skip_layers if LayoutConfig.current else []
        if not skipped:
            return convert(mod, context)
        fenced = mod._completed()
        fence = _Fence(skipped)
        for g, function in fenced.functions.items():
            fenced[g] = fence.visit(function)
        out = convert(fenced, context).copy()
        for g, function in out.functions.items():
            out[g] = _Open().visit(function)
        return out

    def convert(mod: Any, context: PassContext) -> Any:
        from .op.registrations import convert_layouts
        mod, rest = convert_layouts(mod, {op: [layouts] if isinstance(layouts, str) else list(layouts) for op, layouts in desired_layouts.items()})
        wanted = [f"{op}={','.join(layouts)}" for op, layouts in rest.items()]
        return named_pass("ConvertLayout", options={"relay.ConvertLayout.desired_layouts": wanted})._run(mod, context) if wanted else mod
    return ModulePass(PassInfo(3, "ConvertLayout", ["InferType", "CanonicalizeOps"]), run)


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> Pass:
    """Computes in a narrower float type where that is safe, by the rules of register_mixed_precision_conversion if there are any. All
    other operators have a rule of the compiler, so that missing_op_mode (0 error, 1 warning, 2 silent) has no effect."""
    if mixed_precision_type not in ("float16", "bfloat16"):
        raise ValueError(f"mixed precision is float16 or bfloat16, not {mixed_precision_type}")
    if missing_op_mode not in (0, 1, 2):
        raise ValueError("Missing op mode is either 0, 1, or 2")

    def run(mod: Any, context: PassContext) -> Any:
        from .mixed_precision import rules
        keep = bool(context.config.get("relay.ToMixedPrecision.keep_orig_output_dtype", False))
        return named_pass("ToMixedPrecision", {"dtype": mixed_precision_type, "keep": keep, "rules": rules(mixed_precision_type)})._run(mod, context)
    return ModulePass(PassInfo(0, "ToMixedPrecision"), run)


def FakeQuantizationToInteger(hard_fail: bool = False, use_qat: bool = False) -> Pass:
    """Replaces real arithmetic between dequantize and quantize by integer arithmetic. An operator without an integer form is error 204
    with hard_fail; otherwise its region stays real. With use_qat, operators on dequantized operands become integer operators even if
    no quantize follows."""
    def run(mod: Any, context: PassContext) -> Any:
        from .fake_quantization import rules
        return named_pass("FakeQuantizationToInteger", {"hard_fail": hard_fail, "use_qat": use_qat, "rules": rules()})._run(mod, context)
    return ModulePass(PassInfo(1, "FakeQuantizationToInteger"), run)


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> Pass:
    """Removes unused bindings; those with side effects only with ignore_impurity. With inline_once, values used once are inlined."""
    return named_pass("DeadCodeElimination", {"inline_once": inline_once, "ignore_impurity": ignore_impurity})


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> Pass:
    """Removes global functions that are not reachable from main (or `entry_functions`)."""
    if entry_functions in (None, ["main"]):
        return named_pass("RemoveUnusedFunctions")

    def run(mod: Any, context: PassContext) -> Any:
        reached, waiting = set(), [name for name in entry_functions or [] if name in mod]
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += [e.name_hint for e in _core.post_order(mod[name]) if isinstance(e, GlobalVar)]
        out = mod.copy()
        for g in mod.get_global_vars():
            if g.name_hint not in reached:
                out._remove(g.name_hint)
        return out
    return ModulePass(PassInfo(1, "RemoveUnusedFunctions"), run)


def SplitArgs(max_function_args: int = -1) -> Pass:
    """Splits a concatenate with more fields into several."""
    return named_pass("SplitArgs", options={"relay.SplitArgs.max_function_args": max_function_args})


def SimplifyFCTranspose(target_weight_name: Sequence[str]) -> Pass:
    """Dense layers whose weight is the transpose of a listed parameter take a new parameter NAME.T instead; new parameters come last."""
    return named_pass("SimplifyFCTranspose", options={"relay.SimplifyFCTranspose.target_weight_name": [str(n) for n in target_weight_name]})


def _weights(names: Sequence[str], shapes: Sequence[Sequence[int]]) -> list[str]:
    if len(names) != len(shapes):
        raise ValueError(f"{len(names)} weights and the shapes of {len(shapes)}")
    return [f"{name}={','.join(str(int(d)) for d in shape)}" for name, shape in zip(names, shapes)]


def DenseToSparse(weight_name: Sequence[str], weight_shape: Sequence[Sequence[int]]) -> Pass:
    """Dense layers of the listed parameters become nn.sparse_dense of NAME.data, NAME.indices and NAME.indptr. weight_shape has the
    sizes of the three for each, concatenated; relay.analysis.sparse_dense.process_params makes both lists. Error 101: the sizes do
    not fit the weight."""
    return named_pass("DenseToSparse", options={"relay.DenseToSparse.weights": _weights(weight_name, weight_shape)})


def Conv2dToSparse(weight_name: Sequence[str], weight_shape: Sequence[Sequence[int]], layout: str, kernel_size: int) -> Pass:
    """As DenseToSparse, for convolutions of one layout and kernel size (1, or 3 with padding 1) without strides."""
    return named_pass("Conv2dToSparse", options={"relay.Conv2dToSparse.weights": _weights(weight_name, weight_shape), "relay.Conv2dToSparse.layout": layout,
                                                 "relay.Conv2dToSparse.kernel_size": int(kernel_size)})


def Conv2dToSparse2(layout: str, kernel_size: int, blocksize: Sequence[int], sparsity_threshold: float) -> Pass:
    """Converts convolutions with a constant weight whose share of zero blocks is at least the threshold."""
    key = "relay.Conv2dToSparse2."
    return named_pass("Conv2dToSparse2", options={key + "layout": layout, key + "kernel_size": int(kernel_size), key + "blocksize": [str(int(b)) for b in blocksize],
                                                  key + "sparsity_threshold": float(sparsity_threshold)})


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> Pass:
    """Applies the rules registered by scripts (register_legalize, or another attribute's), then the compiler's own."""
    from .op.rules import apply_rules
    if legalize_map_attr_name == "FTVMLegalize":
        return named_pass("Legalize")
    return ModulePass(PassInfo(1, "Legalize"), lambda mod, context: apply_rules(mod, legalize_map_attr_name))


def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> Pass:
    """Wraps constructors, globals or both in functions where they are used as values."""
    return named_pass("EtaExpand", {"expand_constructor": expand_constructor, "expand_global_var": expand_global_var})


def PlanDevices(config: Any = None) -> Pass:
    """Assigns a device to every value. With a target.CompilationConfig the devices are kept in the module: as virtual_device_ of
    functions and parameters, with on_device and device_copy inside; without one, device_copy calls are inserted where the device
    changes."""
    return named_pass("PlanDevices", {} if config is None else {"virtual_devices": config.device_texts})


def ManifestAlloc(cpu_virtual_device: Any = None, targets: Any = None) -> Pass:
    """Gives results of fused functions explicit storage and tensors. There is a single memory, so that the arguments have no effect."""
    return named_pass("ManifestAlloc")


def LambdaLift() -> Pass:
    return named_pass("LambdaLift")


def MergeComposite(pattern_table: Sequence[tuple[Any, ...]]) -> Pass:
    """[(name, pattern) or (name, pattern, check)]: every match becomes a call of a function with attribute Composite."""
    def run(mod: Any, context: PassContext) -> Any:
        out = mod._completed()
        for name, pattern, *check in pattern_table:
            for g, function in out.functions.items():
                if not function.attrs.get("Primitive"):
                    out[g] = pattern.partition(function, {"Composite": name}, check[0] if check else None)
        return out
    return ModulePass(PassInfo(0, "MergeComposite"), run)


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> Pass:
    """Encloses each operator in compiler_begin and compiler_end of the first code generator that supports it: its attribute
    `target.<name>` is true for the call (True, or a predicate of it), or its composite pattern matched. The others are annotated
    "default"."""
    from .op.contrib.register import load_rules
    names = [targets] if isinstance(targets, str) else [str(t) for t in targets]
    for name in names:
        load_rules(name)

    def takes(target: str, call: Call) -> bool:
        from .op.registry import attribute_of
        rule = attribute_of(call.op.name, f"target.{target}")
        return bool(rule(call) if callable(rule) else rule)
    return named_pass("AnnotateTarget", {"targets": names, "include_non_call_ops": bool(include_non_call_ops), "takes": takes})


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> Pass:
    """Moves annotated regions to global functions of external code generators, named tvmgen_<mod_name>_<generator>_<function>_<number>.
    Error 101: a region depends on itself."""
    return named_pass("PartitionGraph", options={"relay.PartitionGraph.mod_name": str(mod_name), "relay.PartitionGraph.bind_constants": bool(bind_constants)})


def InlineCompilerFunctionsBoundTo(global_vars: Sequence[GlobalVar]) -> Pass:
    """Inlines functions of external code generators, including their composites."""
    return named_pass("InlineCompilerFunctionsBoundTo", options={"relay.InlineCompilerFunctionsBoundTo.global_vars": [g.name_hint for g in global_vars]})


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> Pass:
    """Makes function literals with Compiler and global_symbol global functions of that name. Error 101: two of them differ."""
    return named_pass("OutlineCompilerFunctionsWithExistingGlobalSymbols", options={"relay.OutlineCompilerFunctions.compiler_filter": compiler_filter})


def MarkCompilerFunctionsAsExtern(compiler_filter: str = "") -> Pass:
    """Leaves functions of external code generators only the attribute Extern: their code comes from an imported module."""
    return named_pass("MarkCompilerFunctionsAsExtern", options={"relay.MarkCompilerFunctionsAsExtern.compiler_filter": compiler_filter})


def gradient(expr: Expr, mod: Any = None, mode: str = "higher_order") -> Function:
    """The function that returns (result, (gradient with respect to each parameter)), in either mode; higher derivatives are not
    supported. Error 301: an operator without a gradient."""
    if mode not in ("first_order", "higher_order"):
        raise Exception("unknown mode")
    module = _core.IRModule() if mod is None else mod.copy()
    module["main"] = expr
    return named_pass("FirstOrderGradient")._run(module, PassContext.current())["main"]


def Defunctionalization(func: Function | None = None, mod: Any = None) -> Any:
    """Replaces function values by data types with an apply function each. `Defunctionalization(func, mod)` returns the converted
    function and adds what it calls to mod; without a function it is a pass over main. Error 204: not possible."""
    return named_pass("Defunctionalization") if func is None else _with_globals("Defunctionalization", func, mod)


def to_cps(func: Function, mod: Any = None) -> Function:
    """Continuation-passing style: the function passes its result to a function, its additional last argument. Functions of mod that it
    calls are converted and added as NAME_cps."""
    return _with_globals("ToCPS", func, mod)


def ToCPS(expr: Function | None = None, mod: Any = None) -> Any:
    """to_cps of a function; without one a pass over main."""
    return named_pass("ToCPS") if expr is None else to_cps(expr, mod)


def un_cps(func: Function) -> Function:
    """Undoes to_cps at the outermost level: the function returns its result again. Function-valued parameters and results stay in
    continuation-passing style."""
    return _on_expression("UnCPS", func)


def _with_globals(name: str, func: Function, mod: Any) -> Function:
    module = _core.IRModule() if mod is None else mod.copy()
    module["main"] = func
    out = named_pass(name)._run(module, PassContext.current())
    if mod is not None:
        others = out.copy()
        others._remove("main")
        mod._update(others)
    return out["main"]


def InferTypeLocal(expr: Expr) -> Any:
    """The inferred type of an expression."""
    return infer_type(expr).checked_type


def ToANormalFormExpr(expr: Expr) -> Expr:
    return _on_expression("ToANormalForm", expr)


def ToBasicBlockNormalFormExpr(expr: Expr) -> Expr:
    return _on_expression("ToBasicBlockNormalForm", expr)


def FoldConstantExpr(expr: Expr, mod: Any = None, fold_qnn: bool = False) -> Expr:
    return _on_expression("FoldConstant", expr, mod)


def _on_expression(name: str, expr: Expr, mod: Any = None) -> Expr:
    module = _core.IRModule() if mod is None else mod.copy()
    module["main"] = expr
    out = named_pass(name, {"alone": True} if mod is None else {})._run(module, PassContext.current())["main"]
    return out if isinstance(expr, Function) else out.body


class ChangeBatch:
    """`ChangeBatch({x: 0}, batch_size=16)`: sets the batch size of these variables, given the index of their batch dimension."""

    def __new__(cls, data: Mapping[Any, int], batch_size: int = 16) -> Any:
        names = {v if isinstance(v, str) else v.name_hint: axis for v, axis in data.items()}

        def transform_function(func: Function, mod: Any, ctx: PassContext) -> Any:
            values: dict[Any, Any] = {}
            for p in func.params:
                if p.name_hint in names:
                    shape = list(p.type_annotation.shape)
                    shape[names[p.name_hint]] = batch_size
                    values[p] = Var(p.name_hint, TensorType(shape, p.type_annotation.dtype))
            return _Untyped(values).visit(func)
        return function_pass(transform_function, opt_level=0, name="ChangeBatch")


class _Untyped(ExprMutator):
    """Substitutes variables, and clears the types of expressions that depend on them."""

    def __init__(self, values: Mapping[Any, Any]):
        super().__init__()
        self._values = values

    def visit_var(self, var: Var) -> Any:
        return self._values.get(var, var)


class FlexibleShapeDispatch:
    """`FlexibleShapeDispatch(buckets=[1, 8])(mod)`: main accepts any size of an axis. Each size in `buckets` has a specialised function,
    other sizes use a dynamic one; with auto_pad they are padded to the next bucket and the padding is cut off the result. All inputs
    of input_indices (default: the first) share the axis; affects_output tells whether the result has it too."""

    def __init__(self, buckets: Sequence[int], axis: int = 0, auto_pad: bool = False, pad_value: float = 0, input_indices: Sequence[int] | None = None,
                 affects_output: bool = True):
        self.buckets, self.axis, self.auto_pad, self.pad_value = list(buckets), axis, auto_pad, pad_value
        self.input_indices, self.affects_output = input_indices, affects_output

    def __call__(self, mod: Any) -> Any:
        from .flexible_shape import flexible_dispatch
        return flexible_dispatch(mod, self.buckets, self.axis, self.auto_pad, self.pad_value, self.input_indices, self.affects_output)


def recast(expr: Function, dtype: str, out_dtype: str, ops: Sequence[str] = ("nn.conv2d",), skip_layers: Sequence[int] = ()) -> Function:
    """Casts the operands of `ops` to dtype, and their results (out_dtype) back. Layers in skip_layers are left alone; negative indices
    count from the last one."""
    typed = infer_type(expr)
    total = sum(1 for e in _core.post_order(typed) if isinstance(e, Call) and isinstance(e.op, Op) and e.op.name in ops)
    skipped = {n if n >= 0 else total + n for n in skip_layers}

    class Recast(ExprMutator):
        layer = -1

        def visit_call(self, call: Call) -> Any:
            args = [self.visit(a) for a in call.args]
            if not (isinstance(call.op, Op) and call.op.name in ops):
                return Call(call.op, args, call.attrs)
            self.layer += 1
            if self.layer in skipped:
                return Call(call.op, args, call.attrs)
            fields = {**dict(call.attrs.items()), "out_dtype": out_dtype} if call.attrs is not None and "out_dtype" in call.attrs.keys() else call.attrs
            cast = [Call("cast", [a], {"dtype": dtype}) for a in args]
            return Call("cast", [Call(call.op, cast, fields)], {"dtype": call.checked_type.dtype})
    return infer_type(Recast().visit(typed))


def build_config(*args: Any, **kwargs: Any) -> PassContext:
    """The old name of PassContext."""
    return PassContext(*args, **kwargs)


def _factory(name: str) -> Any:
    def make() -> Pass:
        return named_pass(name)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = next((doc for n, _, doc in _core.pass_infos() if n == name), "")
    return make


def __getattr__(name: str) -> Any:
    names = [n for n, _, _ in _core.pass_infos()]
    if name in names:
        return _factory(name)
    if name in _INSTEAD:
        raise AttributeError(f"relay.transform has no pass '{name}'; instead: {_INSTEAD[name]}")
    raise AttributeError(f"relay.transform has no pass '{name}'; there are {', '.join(names)}")


def __dir__() -> list[str]:
    return [*globals(), *(n for n, _, _ in _core.pass_infos())]


__all__ = ["AnnotateTarget", "BatchingOps", "ChangeBatch", "CombineParallelBatchMatmul", "CombineParallelConv2D", "CombineParallelDense", "Conv2dToSparse", "Conv2dToSparse2", "ConvertLayout",
           "DeadCodeElimination", "Defunctionalization", "DenseToSparse", "EliminateCommonSubexpr", "EtaExpand", "FakeQuantizationToInteger", "FlexibleShapeDispatch", "FoldConstant", "FoldConstantExpr", "FunctionPass", "FuseOps", "InferTypeLocal", "InlineCompilerFunctionsBoundTo", "LambdaLift", "LayoutConfig",
           "Legalize", "ManifestAlloc", "MarkCompilerFunctionsAsExtern", "MergeComposite", "ModulePass", "OutlineCompilerFunctionsWithExistingGlobalSymbols", "PartitionGraph", "Pass", "PassContext", "PassInfo", "PlanDevices", "PrintIR", "RemoveUnusedFunctions", "Sequential", "SimplifyFCTranspose",
           "SplitArgs", "ToANormalFormExpr", "ToBasicBlockNormalFormExpr", "ToCPS", "ToMixedPrecision", "build_config", "function_pass", "gradient", "module_pass", "recast", "to_cps", "un_cps"]
