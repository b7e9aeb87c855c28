# SPDX-License-Identifier: Apache-2.0
"""Graphs of torch.fx (an ExportedProgram's, and what torch.compile hands to a backend) as programs of the importer."""
from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from .model import error_of
from .torch_program import Program, literal, node, tensor


def exported(model: Any, example_inputs: Sequence[Any] | None = None) -> Any:
    """An ExportedProgram: the model itself, or what torch.export makes of a module and its inputs."""
    import torch
    if isinstance(model, torch.export.ExportedProgram):
        return model
    if example_inputs is None:
        raise error_of(101, "InvalidArgument", f"a {type(model).__name__} has no shapes of its own", "give the inputs that torch.export is to follow: compile(model, (image,))")
    if model.training:
        raise error_of(101, "InvalidArgument", f"the {type(model).__name__} is in training mode", "call model.eval() first")
    try:
        return torch.export.export(model, tuple(example_inputs), strict=False)
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise error_of(201, "UnsupportedModel", f"torch.export cannot follow the {type(model).__name__}: {first}",
                       "compile what torch.jit.script or torch.jit.trace makes of it, where sizes that data decide may be used") from error


def is_known(target: Any) -> bool:
    """Whether the importer has this operator of PyTorch, or the one that it is in place."""
    name = f"{target.namespace}.{target._opname}"
    return name in _operators() or name.endswith("_") and name[:-1] in _operators()


@functools.lru_cache(maxsize=1)
def _operators() -> frozenset[str]:
    return frozenset(_core.torch_operators())


@functools.lru_cache(maxsize=1)
def decompositions() -> dict[Any, Any]:
    """PyTorch's own definitions, by other operators, of those that the importer does not have."""
    import torch
    tables = {**torch._decomp.decomposition_table, **dict(torch.export.default_decompositions().items())}
    return {target: made for target, made in tables.items() if isinstance(target, torch._ops.OpOverload) and not is_known(target)}


def decomposed(ep: Any) -> Any:
    """The program; where it has operators that only PyTorch knows, a vmap, or weights that are made of other tensors (quantised ones), what
    PyTorch writes for them."""
    import torch
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass
    if any(is_traceable_wrapper_subclass(w) for w in ep.state_dict.values()):
        return ep.run_decompositions(dict(decompositions()))
    for module in ep.graph_module.modules():
        for n in getattr(getattr(module, "graph", None), "nodes", ()):
            target = n.target
            unknown = isinstance(target, torch._ops.OpOverload) and not is_known(target) and target in decompositions()
            if n.op == "call_function" and (unknown or getattr(target, "__module__", "") == "torch._functorch.predispatch"):
                return ep.run_decompositions(dict(decompositions()))
    return ep


def program_of(ep: Any) -> Program:
    """Of an ExportedProgram: its inputs, weights and results in the order of its signature."""
    from torch.export.graph_signature import InputKind
    ep = decomposed(ep)
    signature, writer = ep.graph_signature, Writer()
    program = writer.program
    kinds = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer", InputKind.CONSTANT_TENSOR: "tensor_constant"}
    weights = {**ep.constants, **ep.state_dict}
    placeholders = [n for n in ep.graph.nodes if n.op == "placeholder"]
    for spec, placeholder in zip(signature.input_specs, placeholders):
        writer.names[placeholder] = placeholder.name
        if spec.kind in kinds:
            program.add_weight(placeholder.name, spec.target, weights[spec.target], kinds[spec.kind])
        elif spec.kind == InputKind.USER_INPUT:
            writer.user_input(placeholder)
        elif spec.kind == InputKind.TOKEN:
            program.add_token(placeholder.name)
        else:
            raise error_of(201, "UnsupportedModel", f"the exported program's input '{placeholder.name}' is a {spec.kind.name.lower()}", "export without it")
    writer.write_nodes(ep.graph_module)
    results = next(n for n in ep.graph.nodes if n.op == "output").args[0]
    for spec, result in zip(signature.output_specs, results):
        writer.result(result, spec)
    for symbol, span in ep.range_constraints.items():
        bounds = [None if "oo" in str(b) else int(b) for b in (span.lower, span.upper)]
        program.ranges[str(symbol)] = {"min_val": bounds[0], "max_val": bounds[1]}
    return program


def names_of_inputs(ep: Any) -> list[str]:
    return [str(s.arg.name) for s in ep.graph_signature.input_specs if s.kind.name == "USER_INPUT"]


class Writer:
    """One graph. `symbols`: values of the sizes that are free in it; with them every size is a number."""

    def __init__(self, symbols: Mapping[Any, int] | None = None, program: Program | None = None):
        self.program = program or Program()
        self.names: dict[Any, str] = {}  # of nodes; each part of a tuple result has its own name
        self.symbols = symbols

    # ---- inputs and results

    def user_input(self, placeholder: Any) -> None:
        value = placeholder.meta.get("val")
        if hasattr(value, "dtype"):
            self.program.add_input(placeholder.name, value.dtype, [self.size(s) for s in value.shape])
        elif type(value).__name__ in ("SymInt", "SymFloat", "SymBool"):
            self.program.inputs.append({"as_sym_int": {"as_name": placeholder.name}})
            self.program.input_specs.append({"user_input": {"arg": {"as_sym_int": {"as_name": placeholder.name}}}})
        else:  # a number, string or None that the export specialised
            self.program.input_specs.append({"constant_input": {"name": placeholder.name, "value": literal(value)}})
            self.program.inputs.append(literal(value) or {"as_none": True})

    def size(self, value: Any) -> Any:
        """A number, or the text of an expression over the free sizes."""
        if isinstance(value, int):
            return value
        if self.symbols is not None:
            return int(value.node.expr.xreplace(self.symbols))
        return str(value.node.expr)

    def result(self, value: Any, spec: Any) -> None:
        if spec.kind.name == "TOKEN":
            return
        argument = self.argument(value)
        self.program.outputs.append(argument)
        kind = spec.kind.name
        if kind == "USER_OUTPUT":
            written = {"user_output": {"arg": argument}}
        elif kind == "BUFFER_MUTATION":
            written = {"buffer_mutation": {"arg": argument["as_tensor"], "buffer_name": spec.target}}
        elif kind == "USER_INPUT_MUTATION":
            written = {"user_input_mutation": {"arg": argument["as_tensor"], "user_input_name": spec.target}}
        elif kind == "PARAMETER_MUTATION":
            written = {"parameter_mutation": {"arg": argument["as_tensor"], "parameter_name": spec.target}}
        else:
            raise error_of(201, "UnsupportedModel", f"the exported program's result '{value}' is a {kind.lower()}", "export the model for inference: model.eval()")
        self.program.output_specs.append(written)

    # ---- nodes

    def write_nodes(self, module: Any) -> None:
        for n in module.graph.nodes:
            if n.op == "get_attr":
                self.attribute(module, n)
            elif n.op == "call_function":
                self.call(module, n)
            elif n.op not in ("placeholder", "output"):
                raise error_of(201, "UnsupportedModel", f"the graph's node '{n.name}' is a {n.op}", "export it with torch.export")

    def attribute(self, module: Any, n: Any) -> None:
        import torch
        value: Any = module
        for part in str(n.target).split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor):
            self.names[n] = n.name
            self.program.add_weight(n.name, str(n.target), value, "tensor_constant")
        else:
            self.names[n] = str(n.target)  # a graph, written inline where it is used

    def known(self, n: Any) -> int | float | bool | None:
        """The value of a size computation if all sizes are known."""
        value = n.meta.get("val")
        if self.symbols is None or type(value).__name__ not in ("SymInt", "SymFloat", "SymBool"):
            return value if self.symbols is not None and isinstance(value, (int, float, bool)) else None
        found = value.node.expr.xreplace(self.symbols)
        return bool(found) if type(value).__name__ == "SymBool" else float(found) if type(value).__name__ == "SymFloat" else int(found)

    def call(self, module: Any, n: Any) -> None:
        import torch
        if n.target is operator.getitem and n.args[0] in self.names and isinstance(n.args[0].meta.get("val"), (list, tuple)):
            self.names[n] = f"{self.names[n.args[0]]}#{n.args[1]}"
            return
        if self.known(n) is not None:
            return  # its users have the value
        self.names[n] = n.name
        if isinstance(n.target, torch._ops.OpOverload):
            parameters = n.target._schema.arguments
            inputs = [(p.name, self.argument(a)) for p, a in zip(parameters, n.args)] + [(k, self.argument(a)) for k, a in n.kwargs.items()]
            target = f"torch.ops.{n.target}"
        elif isinstance(n.target, torch._ops.HigherOrderOperator):
            inputs = [("", self.operand(module, a)) for a in n.args] + [(k, self.operand(module, a)) for k, a in n.kwargs.items()]
            target = f"torch.ops.higher_order.{n.target.name()}"
        else:
            try:
                names = list(inspect.signature(n.target).parameters)
            except (TypeError, ValueError):
                names = []
            inputs = [(names[i] if i < len(names) else str(i), self.argument(a)) for i, a in enumerate(n.args)]
            target = f"{getattr(n.target, '__module__', '')}.{getattr(n.target, '__name__', n.target)}"
        self.program.nodes.append(node(target, inputs, self.outputs(n), n.name))

    def outputs(self, n: Any) -> list[dict[str, Any]]:
        value, name = n.meta.get("val"), self.names[n]
        if isinstance(value, (list, tuple)):
            parts = [self.output(v, f"{name}#{i}") for i, v in enumerate(value)]
            returns = getattr(getattr(n.target, "_schema", None), "returns", ())
            return [{"as_tensors": [p["as_tensor"] for p in parts]}] if len(returns) == 1 and all("as_tensor" in p for p in parts) else parts
        return [] if value is None else [self.output(value, name)]

    @staticmethod
    def output(value: Any, name: str) -> dict[str, Any]:
        for kind, key in (("SymInt", "as_sym_int"), ("SymFloat", "as_sym_float"), ("SymBool", "as_sym_bool")):
            if type(value).__name__ == kind:
                return {key: {"as_name": name}}
        return {"as_none": True} if value is None else tensor(name) if hasattr(value, "dtype") else {"as_value": {"name": name}}

    # ---- arguments

    def operand(self, module: Any, value: Any) -> dict[str, Any]:
        """An operand of a higher-order operator, which may be a graph or hold some. Options of a kernel are none of ours."""
        import torch
        if isinstance(value, Mapping):
            return {"as_none": True}
        if isinstance(value, (list, tuple)) and any(isinstance(v, torch.fx.Node) and v.op == "get_attr" for v in value):
            return {"as_list": [self.operand(module, v) for v in value]}
        if isinstance(value, torch.fx.Node) and value.op == "get_attr":
            part: Any = module
            for step in str(value.target).split("."):
                part = getattr(part, step)
            if isinstance(part, torch.fx.GraphModule):
                return {"as_graph": {"name": str(value.target), "graph": self.inner(part)}}
        return self.argument(value)

    def inner(self, module: Any) -> dict[str, Any]:
        writer = Writer(self.symbols)
        for n in module.graph.nodes:
            if n.op == "placeholder":
                writer.names[n] = n.name
                writer.user_input(n)
        writer.write_nodes(module)
        results = next(n for n in module.graph.nodes if n.op == "output").args[0]
        for value in results if isinstance(results, (list, tuple)) else [results]:
            writer.program.outputs.append(writer.argument(value))
        if writer.program.weights:
            raise error_of(201, "UnsupportedModel", "a graph of the exported program's control flow has constants of its own", "export them as buffers")
        return {**writer.program.graph(), "is_single_tensor_return": not isinstance(results, (list, tuple))}

    def argument(self, value: Any) -> dict[str, Any]:
        import torch
        if isinstance(value, torch.fx.Node):
            return self.reference(value)
        if isinstance(value, (list, tuple)) and any(isinstance(v, torch.fx.Node) for v in value):
            return self.list_of([self.argument(v) for v in value])
        written = literal(value)
        if isinstance(value, torch._ops.OpOverload):
            written = {"as_operator": f"torch.ops.{value}"}
        elif isinstance(value, torch._ops.HigherOrderOperator):
            written = {"as_operator": f"torch.ops.higher_order.{value.name()}"}
        if written is None and isinstance(value, torch.SymInt):
            written = literal(self.size(value)) if self.symbols is not None else {"as_sym_int": {"as_name": str(value.node.expr)}}
        if written is None:
            raise error_of(201, "UnsupportedModel", f"an operator's argument is a {type(value).__name__}: {value}", "export the model without it")
        return written

    def reference(self, n: Any) -> dict[str, Any]:
        if (number := self.known(n)) is not None:
            return literal(number) or {}
        return self.output(n.meta.get("val"), self.names[n])

    @staticmethod
    def list_of(items: list[dict[str, Any]]) -> dict[str, Any]:
        keys = {next(iter(item)) for item in items}
        if keys == {"as_tensor"}:
            return {"as_tensors": [item["as_tensor"] for item in items]}
        if keys == {"as_tensor", "as_none"}:
            return {"as_optional_tensors": items}
        if keys == {"as_int"}:
            return {"as_ints": [item["as_int"] for item in items]}
        if keys == {"as_int", "as_sym_int"} or keys == {"as_sym_int"}:
            return {"as_sym_ints": [item.get("as_sym_int", item) for item in items]}
        return {"as_list": items}


__all__ = ["Writer", "exported", "names_of_inputs", "program_of"]
