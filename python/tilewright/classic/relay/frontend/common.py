# SPDX-License-Identifier: Apache-2.0
"""Helpers for operator converters: renaming and checking attributes, known values, padding computed from strides."""
from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .... import _core
from ...error import OpNotImplemented
from ...runtime.ndarray import NDArray
from .. import analysis
from ..expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, TupleWrapper, Var, const, to_module, var
from ..expr import infer_type as _infer

logger = logging.getLogger("Common")


class RequiredAttr:
    """Marks a required attribute."""


class StrAttrsDict:
    """Attributes given as text, with typed accessors: `attrs.get_int_tuple("shape")`. AttributeError if one is missing."""

    def __init__(self, attrs: Mapping[str, Any]):
        self.attrs = attrs

    def has_attr(self, key: str) -> bool:
        return key in self.attrs

    def _get(self, key: str, default: Any, read: Callable[[str], Any]) -> Any:
        if key in self.attrs:
            return read(self.attrs[key])
        if isinstance(default, RequiredAttr):
            raise AttributeError(f"Required attribute {key} not found.")
        return default

    @staticmethod
    def _items(text: str) -> list[str]:
        return [item for item in text.strip("()[] ").replace(" ", "").split(",") if item]

    def get_float(self, key: str, default: Any = RequiredAttr()) -> Any:
        return self._get(key, default, float)

    def get_int(self, key: str, default: Any = RequiredAttr()) -> Any:
        return self._get(key, default, lambda v: None if v == "None" else int(v))

    def get_str(self, key: str, default: Any = RequiredAttr()) -> Any:
        return self._get(key, default, str)

    def get_int_tuple(self, key: str, default: Any = RequiredAttr()) -> Any:
        return self._get(key, default, lambda v: tuple(None if i == "None" else int(i) for i in self._items(v)))

    def get_float_tuple(self, key: str, default: Any = RequiredAttr()) -> Any:
        return self._get(key, default, lambda v: tuple(float(i) for i in self._items(v)))

    def get_tuple_tuple_int(self, key: str, default: Any = RequiredAttr()) -> Any:
        return self._get(key, default, lambda v: tuple(tuple(int(i) for i in self._items(part)) for part in v[1:-1].split("),") if part.strip("() ")))

    def get_int_list(self, key: str, default: Any = RequiredAttr()) -> Any:
        return self._get(key, default, lambda v: [int(i) for i in self._items(v)])

    def get_bool(self, key: str, default: Any = RequiredAttr()) -> Any:
        return self._get(key, default, lambda v: str(v).strip().lower() in ("true", "1", "t", "y", "yes"))


class ExprTable:
    """Expressions by name, including parameters."""

    def __init__(self) -> None:
        self.exprs: dict[str, Any] = {}
        self.params: dict[str, Any] = {}
        self.const_ctr = 1
        self.in_padding = False

    def new_const(self, value: Any, shape: Any = None, dtype: str = "float32", source_name: Any = None) -> Var:
        name = f"_param_{self.const_ctr}" if source_name is None else f"{source_name}_param_{self.const_ctr}"
        self.const_ctr += 1
        self.params[name] = value
        self.exprs[name] = var(name, shape=np.asarray(value).shape if shape is None else shape, dtype=dtype)
        return self.exprs[name]

    def get_expr(self, name: str) -> Any:
        return self.exprs[name]

    def set_expr(self, name: str, expr: Any, force_override: bool = False) -> None:
        if force_override or name not in self.exprs:
            self.exprs[name] = expr

    def has_expr(self, name: str) -> bool:
        return name in self.exprs

    def set_padding(self, paddings: Any) -> None:
        self.paddings, self.in_padding = paddings, True

    def get_padding(self) -> Any:
        self.in_padding = False
        return self.paddings

    def clear_padding(self) -> None:
        self.in_padding = False


class AttrCvt:
    """A converter that renames attributes: `AttrCvt("relu", transforms={"a": "alpha", "b": ("beta", 1.0)})(inputs, attrs)`.

    transforms: new name, (name, default) or (name, default, function); excludes: attributes that are rejected; disables, ignores:
    attributes that are dropped; extras: attributes that are added; custom_check: (predicate of the attributes, message)."""

    def __init__(self, op_name: Any, transforms: Mapping[str, Any] | None = None, excludes: Sequence[str] | None = None, disables: Sequence[str] | None = None,
                 ignores: Sequence[str] | None = None, extras: Mapping[str, Any] | None = None, custom_check: Any = None):
        self._op_name, self._transforms = op_name, dict(transforms or {})
        self._excludes, self._disables, self._ignores = list(excludes or []), list(disables or []), list(ignores or [])
        self._extras, self._custom_check = dict(extras or {}), custom_check

    def __call__(self, inputs: Sequence[Any], attrs: Mapping[str, Any], *args: Any) -> Any:
        if self._custom_check and not self._custom_check[0](attrs):
            raise RuntimeError(f"Check failed: {self._custom_check[1]}")
        name = self._op_name if isinstance(self._op_name, str) else self._op_name(attrs)
        out = dict(self._extras)
        for key, value in attrs.items():
            if key in self._excludes:
                raise NotImplementedError(f"Attribute {key} in operator {name} is not supported.")
            if key in self._disables or key in self._ignores or key == "tvm_custom":
                continue
            rule = self._transforms.get(key, key)
            if isinstance(rule, str):
                out[rule] = value
            else:
                out[rule[0]] = rule[2](value) if len(rule) > 2 else value
        for key, rule in self._transforms.items():
            if key not in attrs and not isinstance(rule, str) and rule[1] is not None:
                out[rule[0]] = rule[1]
        return get_relay_op(name)(*inputs, **out)


class Renamer:
    """A converter that calls an operator without changes."""

    def __init__(self, new_name: str):
        self._new_name = new_name

    def __call__(self, inputs: Sequence[Any], attrs: Mapping[str, Any], *args: Any) -> Any:
        return get_relay_op(self._new_name)(*inputs, **{k: v for k, v in attrs.items() if k != "tvm_custom"})


def get_relay_op(op_name: str) -> Callable[..., Any]:
    """The function of an operator, by its name with or without its namespace."""
    from .. import op
    found: Any = op
    try:
        for part in op_name.split("."):
            found = getattr(found, part)
        return found
    except AttributeError:
        for namespace in (op.nn, op.image, op.vision):
            try:
                return getattr(namespace, op_name)
            except AttributeError:
                continue
    raise OpNotImplemented(f"Unable to map op_name {op_name} to relay")


def get_name(node: Any) -> str:
    return str(getattr(node, "name_hint", "") or getattr(node, "name", ""))


def infer_type(node: Any, mod: Any = None) -> Any:
    """The expression with inferred types."""
    return _infer(node.astuple() if isinstance(node, TupleWrapper) else node, mod)


def infer_shape(inputs: Any, mod: Any = None) -> tuple[Any, ...]:
    """The shape, or () if the type is not a tensor's."""
    type_ = infer_type(inputs, mod)._type if not isinstance(inputs, Var) else inputs.checked_type
    return tuple(getattr(type_, "shape", ()))


def infer_channels(inputs: Any, transpose: bool = False) -> Any:
    """The number of output channels, from a convolution's weights."""
    return infer_shape(inputs)[1 if transpose else 0]


def infer_value(input_val: Any, params: Mapping[str, Any], mod: Any = None) -> NDArray:
    """Evaluates an expression of the parameters. AssertionError if it has other free variables."""
    from ..build_module import create_executor
    free = analysis.free_vars(input_val)
    missing = [v.name_hint for v in free if v.name_hint not in params]
    if missing:
        raise AssertionError(f"All inputs to infer must be available in params: {', '.join(missing)}")
    module = to_module(input_val) if mod is None else mod
    if mod is not None:
        mod["main"] = Function(free, input_val)
    return create_executor("debug", module).evaluate()(*[params[v.name_hint] for v in free])


def infer_value_simulated(input_val: Any, params: Mapping[str, Any]) -> NDArray:
    """The value, with ones substituted for variables that are not parameters."""
    values = {v.name_hint: np.ones([int(d) for d in v.checked_type.shape], v.checked_type.dtype) for v in analysis.free_vars(input_val) if v.name_hint not in params}
    return infer_value(input_val, {**values, **params})


def try_infer_value(val: Any, on_success: Any = None, on_failure: Any = None, parameters: Mapping[str, Any] | None = None) -> tuple[Any, bool]:
    """(the value as a numpy array, True), or (the expression, False) if it cannot be evaluated."""
    try:
        value = infer_value(val, parameters or {}).numpy()
        return (on_success(value) if on_success else value), True
    except Exception:  # any failure means that the value is unknown
        return (on_failure() if on_failure else val), False


def shape_of(x: Any, dtype: str = "int64", start: Any = None, end: Any = None) -> Any:
    """The shape, as a constant if it is known."""
    shape = infer_shape(x)[start:end]
    try:
        return const(np.array([int(d) for d in shape], dtype))
    except (TypeError, ValueError):
        whole = Call("shape_of", [x], {"dtype": dtype})
        from .. import op
        return whole if start is None and end is None else op.strided_slice(whole, [start or 0], [len(infer_shape(x)) if end is None else end])


def fold_constant(node: Any, mod: Any = None) -> Any:
    """The expression after constant folding."""
    from ..transform import FoldConstantExpr
    return FoldConstantExpr(node, _core.IRModule() if mod is None else mod)


def new_var(name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32") -> Var:
    return var(name_hint, type_annotation, shape, dtype)


def to_int_list(np_array: Any) -> list[int]:
    return [int(x) for x in np_array]


def unbind(data: Any, axis: int = 0) -> Any:
    """The slices along an axis, without that axis."""
    from .. import op
    shape = infer_shape(data)
    if axis >= len(shape):
        raise AttributeError("Please check input dim, it shouldn't be greater than or equal to rank.")
    parts = op.split(data, indices_or_sections=int(shape[axis]), axis=axis)
    return TupleWrapper(Tuple([op.squeeze(part, axis=[axis]) for part in parts]), int(shape[axis]))


def autopad(data: Any, strides: Sequence[int], kernel_shape: Sequence[int], dilations: Sequence[int] = (1, 1), pad_type: str = "constant", deconv: bool = False,
            mode: str = "SAME_UPPER", pad_value: float = 0.0) -> Any:
    """Pads data so that a window with these strides has ceil(size / stride) positions; an odd element goes after (SAME_UPPER) or before the data."""
    from .. import op
    shape = [int(d) for d in infer_shape(data)]
    pads = []
    for size, stride, kernel, dilation in zip(shape[2:], strides, kernel_shape, list(dilations) * len(strides)):
        wide = (kernel - 1) * dilation + 1
        total = max(0, wide - stride if size % stride == 0 else wide - size % stride) if not deconv else max(0, wide - stride)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if "LOWER" not in mode else (large, small))
    return op.nn.pad(data, ((0, 0), (0, 0), *pads), pad_value, pad_type)


def lstm_cell(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("recurrent layers are imported from ONNX (LSTM, GRU, RNN) by from_onnx")


gru_cell = rnn_cell = lstm_cell


def ensure_scalar_shape(x: Any) -> Any:
    """Converts a one-element tensor to a scalar."""
    from .. import op
    shape = infer_shape(x)
    return x if not shape else op.squeeze(x) if all(int(d) == 1 for d in shape) else x


def try_resolve_var_to_const(x: Any, graph_params: Mapping[str, Any]) -> Any:
    return const(graph_params[x.name_hint]) if isinstance(x, Var) and x.name_hint in graph_params else x


def set_span(sym: Any, node_name: str) -> Any:
    """Sets the node's name as span on every expression that lacks one."""
    return sym


__all__ = ["AttrCvt", "Constant", "Expr", "ExprTable", "Renamer", "RequiredAttr", "StrAttrsDict", "TupleGetItem", "autopad", "ensure_scalar_shape", "fold_constant",
           "get_name", "get_relay_op", "gru_cell", "infer_channels", "infer_shape", "infer_type", "infer_value", "infer_value_simulated", "logger", "lstm_cell",
           "new_var", "rnn_cell", "set_span", "shape_of", "to_int_list", "try_infer_value", "try_resolve_var_to_const", "unbind"]
