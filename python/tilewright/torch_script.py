# SPDX-License-Identifier: Apache-2.0
"""Graphs of TorchScript (traced or scripted modules) as programs of the importer: methods inlined, attributes resolved to weights with
their names in the model, constants to literals; blocks of `prim::If` and `prim::Loop` are graphs that see the names around them."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .model import error_of
from .torch_program import C10_DTYPES, Program, literal, node, tensor

_KINDS_OF_INPUT = {"IntType": "int64", "FloatType": "float64", "BoolType": "bool"}


# Operators on Python numbers by their Python names, which the importer also uses for sizes.
_NUMBER_OPERATORS = {"aten::add": "_operator.add", "aten::sub": "_operator.sub", "aten::mul": "_operator.mul", "aten::floordiv": "_operator.floordiv", "aten::div": "_operator.truediv",
                     "aten::remainder": "_operator.mod", "aten::pow": "_operator.pow", "aten::neg": "_operator.neg", "aten::eq": "_operator.eq", "aten::ne": "_operator.ne", "aten::lt": "_operator.lt",
                     "aten::le": "_operator.le", "aten::gt": "_operator.gt", "aten::ge": "_operator.ge", "aten::__and__": "_operator.and_", "aten::__or__": "_operator.or_",
                     "aten::__not__": "_operator.not_", "aten::floor": "math.floor", "aten::ceil": "math.ceil", "aten::sqrt": "math.sqrt", "aten::exp": "math.exp", "aten::log": "math.log",
                     "prim::max": "torch.sym_max", "prim::min": "torch.sym_min"}
_NUMBERS = {"IntType", "FloatType", "BoolType", "NumberType"}


# What may be done to an object of a class of the script's own besides reading its attributes.
_OBJECT_OPERATORS = {"aten::__is__", "aten::__isnot__", "prim::unchecked_unwrap_optional", "prim::unchecked_cast", "aten::_unwrap_optional"}


class Schema:
    """An operator's argument names, and which of them are dtypes (numbers in TorchScript)."""

    known: dict[str, Schema] = {}

    def __init__(self, text: str):
        import torch
        self.names = [a.name for a in torch._C.parse_schema(text).arguments]
        self.dtypes = set(re.findall(r"ScalarType\??\s+(\w+)", text))
        self.name = text.split("(", 1)[0]

    @classmethod
    def of(cls, text: str) -> Schema | None:
        if text.startswith("(no schema"):
            return None
        if text not in cls.known:
            cls.known[text] = cls(text)
        return cls.known[text]


def inlined(module: Any) -> Any:
    """The module's graph with all calls inlined."""
    import torch
    if not hasattr(module, "graph"):
        raise TypeError(f"from_pytorch takes a module that torch.jit.trace or torch.jit.script made, not a {type(module).__name__}")
    graph = module.graph.copy()
    torch._C._jit_pass_inline(graph)
    torch._C._jit_pass_dce(graph)
    return graph


def is_object(kind: Any, value: Any) -> bool:
    """Whether an attribute that may be None is an object of a class of the script's own."""
    return value is not None and kind.kind() == "OptionalType" and kind.getElementType().kind() == "ClassType"


def as_object(value: Any) -> dict[str, Any] | None:
    """An object of a class of the script's own: a dictionary of its attributes."""
    attributes = {name: literal(each) for name, each in getattr(value, "__dict__", {}).items()}
    if not attributes or None in attributes.values():
        return None
    return {"as_list": [{"as_list": [{"as_string": name}, each]} for name, each in attributes.items()]}


def names_set(block: Any) -> set[str]:
    """The attributes that a graph assigns."""
    found = {n.s("name") for n in block.nodes() if n.kind() == "prim::SetAttr"}
    return found.union(*(names_set(inner) for n in block.nodes() for inner in n.blocks()))


def default_arguments(module: Any, count: int) -> dict[int, dict[str, Any]]:
    """The default arguments of a scripted forward, by input index."""
    schema = getattr(getattr(module, "forward", None), "schema", None)
    arguments = list(schema.arguments)[-count:] if schema is not None and count else []
    written = {i: literal(a.default_value) for i, a in enumerate(arguments) if a.has_default_value()}
    return {i: value for i, value in written.items() if value is not None}


class Script:
    """One module's walk. `inputs`: (name, shape, dtype) for each input of the graph; `renamed`: what a weight is called."""

    def __init__(self, module: Any, inputs: Sequence[tuple[str, Sequence[Any], str]], renamed: Callable[[str], str] = str, keep_quantized_weight: bool = True):
        import torch
        self.torch = torch
        self.program, self.renamed, self.keep_quantized_weight = Program(), renamed, keep_quantized_weight
        self.objects: dict[str, tuple[Any, str]] = {}    # modules by the value that refers to them: (module, path)
        self.literals: dict[str, dict[str, Any]] = {}    # known values, as arguments
        self.weights: dict[str, dict[str, Any]] = {}     # by path
        self.names: dict[str, str] = {}                  # of inputs
        self.inside = ""                                 # the function whose graph is written, and a mark that no name has
        # by module path: attributes that the graph sets, with their current values
        self.states: dict[str, dict[str, Any]] = {}
        graph = inlined(module)
        values = list(graph.inputs())
        if values and values[0].type().kind() == "ClassType":
            self.objects[values[0].debugName()] = (module, "")
            values = values[1:]
        defaults = default_arguments(module, len(values))
        if len(inputs) < len(values) and all(i in defaults for i in range(len(inputs), len(values))):
            for i in range(len(inputs), len(values)):
                self.literals[values[i].debugName()] = defaults[i]
            values = values[:len(inputs)]
        if len(values) != len(inputs):
            raise error_of(101, "InvalidArgument", f"the module takes {len(values)} inputs ({', '.join(v.debugName() for v in values)}), {len(inputs)} are described")
        for value, (name, shape, dtype) in zip(values, inputs):
            self.input(value, name, shape, dtype)
        self.set_names = names_set(graph)
        nodes = self.nodes(graph)
        self.program.nodes = [self.initial(path, pairs) for path, pairs in self.states.items()] + nodes
        for result in graph.outputs():
            self.result(result)

    # ---- inputs and results

    def input(self, value: Any, name: str, shape: Sequence[Any], dtype: str) -> None:
        kind = value.type().kind()
        self.names[value.debugName()] = name
        if kind == "OptionalType":
            kind = value.type().getElementType().kind()
        if kind in _KINDS_OF_INPUT:
            self.program.inputs.append({"as_sym_int": {"as_name": name}})
            self.program.input_specs.append({"user_input": {"arg": {"as_sym_int": {"as_name": name}}}})
            self.program.sym_int_values[name] = {"as_expr": {"expr_str": name, "hint": None}}
        elif kind == "TensorType":
            self.program.add_input(name, dtype, [s if isinstance(s, int) else str(s) for s in shape])
        else:
            raise error_of(201, "UnsupportedModel", f"the module's input '{name}' is a {value.type()}", "wrap the module in one whose forward takes tensors and numbers")

    def result(self, value: Any) -> None:
        maker = value.node()
        if maker.kind() in ("prim::TupleConstruct", "prim::ListConstruct") and value.type().kind() == "TupleType":
            for part in maker.inputs():
                self.result(part)
        else:
            self.program.add_output(self.argument(value))

    # ---- nodes

    def nodes(self, block: Any) -> list[dict[str, Any]]:
        written = []
        for n in block.nodes():
            kind = n.kind()
            if kind == "prim::GetAttr":
                written += self.attribute(n)
            elif kind == "prim::Constant":
                self.constant(n)
            elif n.inputsSize() and next(n.inputs()).debugName() in self.objects and kind in _OBJECT_OPERATORS:
                self.of_object(n)
            elif kind == "prim::SetAttr":
                written.append(self.set_attribute(n))
            elif kind == "prim::PythonOp" and n.hasAttribute("Subgraph"):
                written += self.function(n)
            elif kind == "prim::CreateObject":
                written.append(node("prim.DictConstruct", [], [self.reference(n.output())], n.output().debugName()))
            elif kind in ("prim::CallMethod", "prim::CallFunction", "prim::fork"):
                raise error_of(201, "UnsupportedModel", f"the module's graph has a {kind}{self.place(n)}", "write forward without it: a model that is compiled keeps no state and calls no other function")
            elif kind != "prim::Print":
                written.append(self.call(n))
        return written

    def function(self, n: Any) -> list[dict[str, Any]]:
        """What a trace followed inside of a torch.autograd.Function, whose names are its own."""
        graph, outputs = n.g("Subgraph"), list(n.outputs())
        given = {inner.debugName(): self.argument(v) for inner, v in zip(graph.inputs(), n.inputs())}
        around = self.objects, self.literals, self.names, self.inside
        self.objects, self.literals, self.names, self.inside = {}, given, {}, f"{self.inside}{outputs[0].debugName()}/"
        written = self.nodes(graph)
        results = [self.argument(v) for v in graph.outputs()]
        self.objects, self.literals, self.names, self.inside = around
        self.literals |= {v.debugName(): result for v, result in zip(outputs, results)}
        return written

    @staticmethod
    def place(n: Any) -> str:
        found = re.search(r"([^/\s]+\.py:\d+)", n.sourceRange())
        return f" at {found.group(1)}" if found else ""

    def attribute(self, n: Any) -> list[dict[str, Any]]:
        """Nodes that read it, where it is not known."""
        name, output, known = n.s("name"), n.output().debugName(), self.objects.get(n.input().debugName())
        kept = known is not None and not isinstance(getattr(known[0], name), (self.torch.Tensor, self.torch.nn.Module))
        if known is None or (name in self.set_names and kept):
            source = self.state(*known, name, n) if known else self.argument(n.input())
            return [node("torch.ops.aten.__getitem__.Dict_str", [("self", source), ("key", {"as_string": name})], [self.reference(n.output())], output)]
        owner, path = known
        value = getattr(owner, name)
        path = f"{path}.{name}" if path else name
        if isinstance(value, self.torch.Tensor):
            self.literals[output] = self.weight(path, value)
        elif n.output().type().kind() == "ClassType" and isinstance(value, self.torch.ScriptObject):
            self.literals[output] = self.packed(path, value, str(n.output().type()))
        elif n.output().type().kind() in ("ClassType", "InterfaceType") or is_object(n.output().type(), value):
            self.objects[output] = (value, path)
        else:
            self.literals[output] = self.value(path, value, n)
        return []

    def of_object(self, n: Any) -> None:
        """What is asked of an attribute that is an object or None."""
        owner, output = next(n.inputs()).debugName(), n.output().debugName()
        if n.kind() in ("aten::__is__", "aten::__isnot__"):
            self.literals[output] = {"as_bool": n.kind() == "aten::__isnot__"}  # beside it is None
        else:
            self.objects[output] = self.objects[owner]

    def state(self, owner: Any, path: str, name: str, n: Any) -> dict[str, Any]:
        """The dictionary of a module's attributes that the graph sets, initialised with their current values."""
        pairs = self.states.setdefault(path, {})
        if name not in pairs:
            pairs[name] = self.value(f"{path}.{name}" if path else name, getattr(owner, name), n)
        return {"as_value": {"name": f"%state {path}"}}

    @staticmethod
    def initial(path: str, pairs: dict[str, dict[str, Any]]) -> dict[str, Any]:
        given = [argument for name, value in pairs.items() for argument in ((f"key {name}", {"as_string": name}), (f"value {name}", value))]
        return node("prim.DictConstruct", given, [{"as_value": {"name": f"%state {path}"}}], f"state {path}")

    def set_attribute(self, n: Any) -> dict[str, Any]:
        """Sets an attribute of an object made by the graph, or of a module, where the change lasts for the call."""
        owner, value = n.inputs()
        name = n.s("name")
        known = self.objects.get(owner.debugName())
        if known and value.type().kind() == "TensorType":
            raise error_of(201, "UnsupportedModel", f"the module keeps the tensor '{known[1]}.{name}' for its next call{self.place(n)}", "pass it in and out as an argument and a result of forward")
        target = self.state(*known, name, n) if known else self.argument(owner)
        return node("torch.ops.aten._set_item.str", [("l", target), ("idx", {"as_string": name}), ("v", self.argument(value))], [], f"set {name}")

    def constant(self, n: Any) -> None:
        output = n.output()
        value = None if n.mustBeNone() else output.toIValue()
        self.literals[output.debugName()] = self.value(f"constant_{self.inside}{output.debugName()}", value, n)

    def value(self, path: str, value: Any, n: Any) -> dict[str, Any]:
        if isinstance(value, self.torch.Tensor):
            return self.weight(path, value)
        if isinstance(value, self.torch.ScriptObject):
            return self.packed(path, value, str(n.output().type()))
        if isinstance(value, (list, tuple)) and any(isinstance(v, (self.torch.Tensor, list, tuple)) for v in value):
            return {"as_list": [self.value(f"{path}.{i}", v, n) for i, v in enumerate(value)]}
        if isinstance(value, dict):
            return {"as_list": [{"as_list": [literal(k) or {}, self.value(f"{path}.{k}", v, n)]} for k, v in value.items()]}
        written = literal(value) or as_object(value)
        if written is None:
            raise error_of(201, "UnsupportedModel", f"the module's attribute or constant '{path}' is a {type(value).__name__}{self.place(n)}", "keep tensors, numbers, texts and lists of them in the module")
        return written

    def weight(self, path: str, value: Any, kind: str = "parameter") -> dict[str, Any]:
        if path not in self.weights:
            name = self.renamed(path)
            if value.is_quantized:
                self.weights[path] = {"as_list": self.quantized_weight(name, value)}
            else:
                self.program.add_weight(f"@{name}", name, value, kind)
                self.weights[path] = tensor(f"@{name}")
        return self.weights[path]

    def quantized_weight(self, name: str, value: Any) -> list[dict[str, Any]]:
        """[integers or floats, scales, zero points, axis] of a quantised tensor."""
        torch = self.torch
        per_channel = value.qscheme() in (torch.per_channel_affine, torch.per_channel_symmetric)
        scales = value.q_per_channel_scales().to(torch.float32) if per_channel else torch.tensor(value.q_scale(), dtype=torch.float32)
        zeros = value.q_per_channel_zero_points().to(torch.int32) if per_channel else torch.tensor(value.q_zero_point(), dtype=torch.int32)
        stored = value.int_repr() if self.keep_quantized_weight else value.dequantize()
        parts = []
        for suffix, part in (("", stored), ("_scale", scales), ("_zero_point", zeros)):
            self.program.add_weight(f"@{name}{suffix}", name + suffix, part, "parameter" if not suffix else "tensor_constant")
            parts.append(tensor(f"@{name}{suffix}"))
        return [*parts, {"as_int": value.q_per_channel_axis() if per_channel else 0}]

    def packed(self, path: str, value: Any, kind: str) -> dict[str, Any]:
        """The result of quantized::conv2d_prepack and the like: [weight, bias, stride, padding, dilation, output padding, groups, transposed]; of a
        recurrent layer: [the input's weights, the state's, whether seven bits hold the operands]."""
        if path in self.weights:
            return self.weights[path]
        ops = self.torch.ops.quantized
        prefix = path.rsplit("._packed_params", 1)[0] if "._packed_params" in path else path
        if "CellParams" in kind:
            state: Any = value.__getstate__()[0]
            if state[0] != "quantized_dynamic":
                raise error_of(201, "UnsupportedModel", f"the module's attribute '{path}' is a {kind} of the kind {state[0]}", "quantise the layer with torch.qint8, dynamically")
            linear = [self.packed(f"{path}.{part}", weights, "Linear") for part, weights in zip(("ih", "hh"), state[4])]
            self.weights[path] = {"as_list": [*linear, {"as_bool": bool(state[3][0])}]}
            return self.weights[path]
        if "Linear" in kind:
            weight, bias = ops.linear_unpack(value)
            more: list[Any] = []
        elif (found := re.search(r"Conv(\d)d", kind)):
            conv = f"conv{found.group(1)}d"
            transposed = bool(getattr(ops, f"{conv}_transpose")(value))
            unpack = getattr(ops, f"{conv}_unpack")
            weight, bias = unpack(value)
            more = [list(getattr(ops, f"{conv}_{what}")(value)) for what in ("stride", "padding", "dilation", "output_padding")] + [int(getattr(ops, f"{conv}_groups")(value)), transposed]
        else:
            raise error_of(201, "UnsupportedModel", f"the module's attribute '{path}' is a {kind}", "keep tensors, numbers, texts and lists of them in the module")
        parts = [self.weight(f"{prefix}.weight", weight), self.weight(f"{prefix}.bias", bias.detach()) if bias is not None else {"as_none": True}]
        self.weights[path] = {"as_list": parts + [literal(m) or {} for m in more]}
        return self.weights[path]

    def call(self, n: Any) -> dict[str, Any]:
        kind, schema = n.kind(), Schema.of(n.schema())
        inputs = []
        for i, value in enumerate(n.inputs()):
            name = schema.names[i] if schema and i < len(schema.names) else str(i)
            argument = self.argument(value)
            if schema and name in schema.dtypes and "as_int" in argument:
                argument = {"as_scalar_type": C10_DTYPES.get(argument["as_int"], 0)}
            inputs.append((name, argument))
        if kind == "prim::isinstance":
            inputs.append(("types", {"as_strings": [t.kind() for t in n.tys("types")]}))
        for i, block in enumerate(n.blocks()):
            inputs.append((f"block{i}", {"as_graph": {"name": f"{kind}_{i}", "graph": self.block(block)}}))
        full = schema.name if schema else kind
        if schema and "." not in full:
            full += ".default"
        outputs = [self.reference(o) for o in n.outputs()]
        if kind in _NUMBER_OPERATORS and inputs and all(v.type().kind() in _NUMBERS for v in n.inputs()):
            return node(_NUMBER_OPERATORS[kind], inputs, outputs, n.output().debugName())
        return node("torch.ops." + full.replace("::", ".", 1) if schema else full.replace("::", ".", 1), inputs, outputs, next((o.debugName() for o in n.outputs()), kind))

    def block(self, block: Any) -> dict[str, Any]:
        inputs = [self.reference(v) for v in block.inputs()]
        nodes = self.nodes(block)
        return {"inputs": inputs, "outputs": [self.argument(v) for v in block.outputs()], "nodes": nodes, "tensor_values": {}, "sym_int_values": {}, "sym_bool_values": {}}

    # ---- arguments

    def reference(self, value: Any) -> dict[str, Any]:
        name = self.names.get(value.debugName(), f"%{self.inside}{value.debugName()}")  # a name of the graph's own may be an input's new one
        return tensor(name) if value.type().kind() == "TensorType" else {"as_value": {"name": name}}

    def argument(self, value: Any) -> dict[str, Any]:
        known = self.literals.get(value.debugName())
        if known is not None:
            return known
        if value.debugName() in self.objects:
            raise error_of(201, "UnsupportedModel", f"the module '{self.objects[value.debugName()][1]}' is used as a value", "call it in forward")
        return self.reference(value)


def traced_program(module: Any, examples: Sequence[Any] | None) -> Program:
    """For compile(): the shapes are those of the example inputs."""
    if examples is None:
        raise error_of(101, "InvalidArgument", "a TorchScript module has no shapes of its own", "give example inputs: compile(module, (image,))")
    names = [v.debugName() for v in module.graph.inputs() if v.type().kind() != "ClassType"]
    if len(names) < len(examples):
        raise error_of(101, "InvalidArgument", f"the module takes {len(names)} inputs ({', '.join(names)}), {len(examples)} are given")
    described = [(n.replace(".", "_"), list(getattr(e, "shape", ())), str(getattr(e, "dtype", "int64")).replace("torch.", "")) for n, e in zip(names, examples)]
    return Script(module, described).program


__all__ = ["Script", "inlined", "traced_program"]
