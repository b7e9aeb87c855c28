# SPDX-License-Identifier: Apache-2.0
"""The classic JSON of tensors, of the operations that compute them, and of loop functions, which are embedded as their script."""
from __future__ import annotations

from typing import Any

from ... import _core
from ..tir.expr import Call, Cast, ProducerLoad, Var
from ..tir.reduction import CommReducer, IterVar, Reduce

# A loop function, or a module of them, embedded as TVMScript.
SCRIPT = "tilewright.Script"


def can_save(value: Any) -> bool:
    from ..tir.function import LoopModule, PrimFunc
    return isinstance(value, (_core.Tensor, _core.Operation, IterVar, Reduce, PrimFunc, LoopModule, _core.Schedule))


def node_of(writer: Any, value: Any) -> dict[str, Any] | None:
    """The node of a value, its parts added to the writer's; None for values of other kinds."""
    def add(**fields: Any) -> dict[str, str]:
        return {name: str(writer.add(field)) for name, field in fields.items()}
    from .. import te
    from ..tir.function import LoopModule, PrimFunc
    if isinstance(value, (PrimFunc, LoopModule)):
        return {"type_key": SCRIPT, "repr_str": value.script(), **({"attrs": add(attrs=dict(value.attrs))} if isinstance(value, PrimFunc) else {})}
    if isinstance(value, _core.Schedule):
        from ..te.saved import described
        return {"type_key": "Schedule", "repr_str": described(value), "attrs": add(outputs=value.outputs)}
    if isinstance(value, _core.Tensor):
        return {"type_key": "Tensor", "attrs": {"dtype": value.dtype, **add(shape=list(value.shape), op=value.op), "value_index": str(int(value.value_index))}}
    if isinstance(value, te.PlaceholderOp):
        return {"type_key": "PlaceholderOp", "attrs": {"dtype": value.dtype, "tag": "", **add(name=value.name, shape=list(value.shape))}}
    if isinstance(value, te.ComputeOp):
        axes = add(axis=list(value.axis), reduce_axis=list(value.reduce_axis), body=list(value.body))
        return {"type_key": "ComputeOp", "attrs": {**axes, **add(name=value.name, tag=str(value.tag), attrs=dict(value.attrs))}}
    if isinstance(value, te.ScanOp):
        init, update, state = value._recurrence
        return {"type_key": "ScanOp", "attrs": add(name=value.name, tag=str(value.tag), init=init, update=update, state_placeholder=state)}
    if isinstance(value, (te.ExternOp, te.HybridOp)):
        ins, outs = value._buffers
        script = PrimFunc([*ins, *outs], value.body).script()
        return {"type_key": type(value).__name__, "repr_str": script, "attrs": add(name=value.name, tag=str(value.tag), inputs=list(value.input_tensors))}
    if isinstance(value, IterVar):
        return {"type_key": "IterVar", "attrs": {"iter_type": str(value.iter_type), "span": "0", "thread_tag": "", **add(dom=value.dom, var=value.var)}}
    if isinstance(value, ProducerLoad):
        return {"type_key": "tir.ProducerLoad", "attrs": {"dtype": value.dtype, "span": "0", **add(producer=value.producer, indices=value.indices)}}
    if isinstance(value, Reduce):
        parts = add(combiner=CommReducer(*(list(getattr(value._combiner, n)) for n in _COMBINED)), source=value.source, axis=value.axis, condition=value.condition)
        return {"type_key": "tir.Reduce", "attrs": {"dtype": value.dtype, "span": "0", **parts, "value_index": str(value.value_index)}}
    if isinstance(value, CommReducer):
        return {"type_key": "tir.CommReducer", "attrs": add(**{n: list(getattr(value, n)) for n in _COMBINED})}
    if isinstance(value, Call) and not isinstance(value, Cast):
        return {"type_key": "tir.Call", "attrs": {"dtype": value.dtype, "span": "0", **add(op=str(value.op), args=value.args)}}
    return None


_COMBINED = ("lhs", "rhs", "result", "identity_element")


class TensorReader:
    """Methods of the reader, by type key."""

    def _tensor(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        return self._part(attrs, "op").output(int(attrs["value_index"]))

    def _placeholderop(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        from .. import te
        return te.placeholder(tuple(self._part(attrs, "shape")), attrs["dtype"], str(self._text(attrs, "name"))).op

    def _computeop(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        axes, reduced, body = (list(self._part(attrs, name) or []) for name in ("axis", "reduce_axis", "body"))
        name, tag, more = self._text(attrs, "name"), self._text(attrs, "tag"), dict(self._part(attrs, "attrs") or {})
        if isinstance(body[0], Reduce):
            return _core.te_compute(name, axes, reduced, body[0].source, body[0]._combiner, body[0].condition, tag, more)
        return _core.te_compute(name, axes, [], body, None, None, tag, more)

    def _externop(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        from ..script import from_source
        made, inputs = from_source(node["repr_str"]), list(self._part(attrs, "inputs") or [])
        sizes = [(mine, size) for buffer, tensor in zip(made._function.params, inputs) for mine, size in zip(buffer.shape, tensor.shape) if isinstance(mine, Var)]
        function = made._function.specialized(sizes)
        buffers, body = list(function.params), function.body
        if body._kind == "Block" and body.name_hint == "root" and not body.alloc_buffers:
            body = body.body
        return _core.te_extern(self._text(attrs, "name"), inputs, buffers[:len(inputs)], buffers[len(inputs):], body, node["type_key"] == "HybridOp")

    _hybridop = _externop

    def _scanop(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        return _core.te_scan(self._text(attrs, "name"), *(list(self._part(attrs, name)) for name in ("init", "update", "state_placeholder")))

    def _itervar(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        dom, name = self._part(attrs, "dom"), self._part(attrs, "var").name
        made = _core.te_reduce_axis(dom.min, dom.extent, name) if int(attrs["iter_type"]) == IterVar.CommReduce else _core.te_axis(dom.extent, name)
        self._done[int(attrs["var"])] = made.var  # what reads the variable reads that of the axis
        return made

    def _tir_producerload(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        return self._part(attrs, "producer")(*self._part(attrs, "indices"))

    def _tir_reduce(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        axis = list(self._part(attrs, "axis"))
        return Reduce(self._part(attrs, "combiner"), list(self._part(attrs, "source")), axis, self._part(attrs, "condition"), int(attrs["value_index"]))

    def _tir_commreducer(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        return CommReducer(*(list(self._part(attrs, name)) for name in _COMBINED))

    def _tir_call(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        op = self._part(attrs, "op")
        return Call(attrs["dtype"], str(getattr(op, "name", op)), list(self._part(attrs, "args")))

    def _schedule(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        from ..te.saved import scheduled
        return scheduled(list(self._part(attrs, "outputs")), node["repr_str"])

    def _tilewright_script(self: Any, node: Any, attrs: Any, data: Any) -> Any:
        from ..script import from_source
        made = from_source(node["repr_str"])
        return made.with_attr(dict(self._part(attrs, "attrs"))) if attrs else made


__all__ = ["SCRIPT", "TensorReader", "can_save", "node_of"]
