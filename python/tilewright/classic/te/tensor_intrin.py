# SPDX-License-Identifier: Apache-2.0
"""Tensor intrinsics: code that computes a tile of a stage."""
from __future__ import annotations

import typing

from ... import _core
from ..tir.buffer import decl_buffer
from ..tir.stmt import evaluate

class TensorIntrin(_core.TensorIntrinsic):
    """A declared intrinsic: the operation `op` that it computes, its tensors `inputs`, the `buffers` of inputs and outputs, and the
    statements `body`, `reduce_init` and `reduce_update` (None: not given)."""

    def __init__(self, name: str, op: typing.Any, inputs: list[typing.Any], ins: list[typing.Any], outs: list[typing.Any], parts: list[typing.Any]):
        super().__init__(_core.te_intrinsic(name, op, ins, outs, *parts))
        self.inputs, self.buffers = inputs, ins + outs
        self.body, self.reduce_init, self.reduce_update = parts


def decl_tensor_intrin(op: typing.Any, fcompute: typing.Callable[..., typing.Any], name: str = "tensor_intrin", binds: typing.Any = None, scalar_params: typing.Any = None,
                       default_buffer_params: typing.Any = None) -> TensorIntrin:
    """Declares statements that compute `op`, a te.compute over placeholders: fcompute(ins, outs) returns the body, or (body, reset,
    update) for reductions with outer loops, where reset initialises the output and update accumulates. `binds`: buffers of the
    tensors, with constant or variable strides."""
    if scalar_params:
        raise ValueError("an intrinsic takes no scalars; take them from a tensor of one element")
    if not hasattr(op, "input_tensors") or not op.input_tensors:
        raise ValueError("an intrinsic is of a te.compute over placeholders")
    given = dict(binds or {})
    more = dict(default_buffer_params or {})
    inputs, outputs = list(op.input_tensors), [op.output(i) for i in range(op.num_outputs)]
    buffers = []
    for t in inputs + outputs:
        found = next((b for key, b in given.items() if key.same_as(t)), None)
        if found is None:
            params = dict(more)
            for key in ("offset_factor", "data_alignment", "scope", "buffer_type", "strides"):
                params.setdefault(key, {"offset_factor": 1, "data_alignment": -1, "scope": "", "buffer_type": "", "strides": None}[key])
            found = decl_buffer(list(t.shape), t.dtype, t.op.name, **params)
        buffers.append(found)
    ins, outs = buffers[:len(inputs)], buffers[len(inputs):]
    made = fcompute(ins, outs)
    parts = list(made) if isinstance(made, (tuple, list)) else [made]
    return TensorIntrin(name, op, inputs, ins, outs, [None if p is None else evaluate(p) for p in (parts + [None, None])[:3]])


__all__ = ["TensorIntrin", "decl_tensor_intrin"]
