# SPDX-License-Identifier: Apache-2.0
"""An LSTM unrolled over its time steps (Hochreiter and Schmidhuber 1997), made of dense layers."""
from __future__ import annotations

from typing import Any

from .. import op
from ...ir.ty import TupleType
from ..expr import Function, TensorType, Tuple, TupleGetItem, Var, var
from .init import create_workload, nn


def lstm_cell(num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = "") -> Function:
    """(x, (h, c), i2h weight and bias, h2h weight and bias) -> (h, (h, c)); the four gates are concatenated."""
    state = TensorType((batch_size, num_hidden), dtype)
    x, states = Var(f"{name}inputs", state), Var(f"{name}states", TupleType([state, state]))
    weights = [Var(f"{name}{kind}_{part}", TensorType((4 * num_hidden, num_hidden) if part == "weight" else (4 * num_hidden,), dtype))
               for kind in ("i2h", "h2h") for part in ("weight", "bias")]
    h, c = TupleGetItem(states, 0), TupleGetItem(states, 1)
    gates = nn.bias_add(nn.dense(x, weights[0], units=4 * num_hidden), weights[1], axis=-1) + nn.bias_add(nn.dense(h, weights[2], units=4 * num_hidden), weights[3], axis=-1)
    i, f, g, o = op.split(gates, indices_or_sections=4, axis=1)
    new_c = op.sigmoid(f) * c + op.sigmoid(i) * op.tanh(g)
    new_h = op.sigmoid(o) * op.tanh(new_c)
    return Function([x, states, *weights], Tuple([new_h, Tuple([new_h, new_c])]))


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Function:
    """Calls the cell's function `iterations` times, each time with an input and weights of its own."""
    zeros = op.zeros((batch_size, num_hidden), dtype)
    states: Any = Tuple([zeros, zeros])
    params, out = [], None
    for step in range(iterations):
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{step}_")
        shapes = [p.type_annotation for p in cell.params]
        own = [var("data" if step == 0 else f"data_{step}", shapes[0])] + [var(p.name_hint, t) for p, t in zip(cell.params[2:], shapes[2:])]
        params += own
        result = cell(own[0], states, *own[1:])
        out, states = TupleGetItem(result, 0), TupleGetItem(result, 1)
    return Function(params, out)


def get_workload(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Any:
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))


__all__ = ["get_net", "get_workload", "lstm_cell"]
