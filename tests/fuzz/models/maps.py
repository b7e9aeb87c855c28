# SPDX-License-Identifier: Apache-2.0
"""Maps (ai.onnx.ml) among a model's inputs and outputs: a library takes and gives the tensors that they consist of."""
import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper


def element(a):
    return TensorProto.STRING if a.dtype.kind in "OUT" else helper.np_dtype_to_tensor_dtype(a.dtype)


def sides(value):
    """Keys and values as vectors."""
    return [np.array(list(part), object if isinstance(next(iter(part)), str) else None) for part in (value.keys(), value.values())]


def described(name, value):
    """The type of an input: a tensor, or a map, whose keys and values have one type each."""
    if not isinstance(value, dict):
        return helper.make_tensor_value_info(name, element(value), value.shape)
    made = ValueInfoProto(name=name)
    keys, values = sides(value)
    made.type.map_type.key_type = element(keys)
    made.type.map_type.value_type.tensor_type.elem_type = element(values)
    return made


def parts(inputs):
    """A map as the two vectors that a library takes."""
    out = {}
    for name, value in inputs.items():
        if isinstance(value, dict):
            out[f"{name}.keys"], out[f"{name}.values"] = sides(value)
        else:
            out[name] = value
    return out


def joined(model: ModelProto, tensors):
    """parts() undone: the inputs of a model."""
    out = {}
    for value in model.graph.input:
        name = value.name
        if value.type.HasField("map_type"):
            out[name] = dict(zip(*(list(tensors[f"{name}.{side}"]) for side in ("keys", "values"))))
        elif name in tensors:
            out[name] = tensors[name]
    return out


def plain(value):
    """Maps as onnxruntime takes them: of Python's own numbers."""
    own = lambda v: v.item() if isinstance(v, np.generic) else v
    return {own(k): own(v) for k, v in value.items()} if isinstance(value, dict) else value


def rows_of_maps(value):
    """Maps from classes to scores, one for each row, as the tensor of scores that a library gives."""
    maps = isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    return np.array([list(row.values()) for row in value], np.float32) if maps else value
