# SPDX-License-Identifier: Apache-2.0
"""Names the unnamed nodes of an ONNX model by operator and count: Conv_0, Relu_1. Edits the protobuf encoding directly
(developers.google.com/protocol-buffers/docs/encoding), so that everything else of the model is preserved byte for byte."""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from ....model import error_of

# Field numbers of onnx.proto.
_MODEL_GRAPH, _GRAPH_NODE, _NODE_NAME, _NODE_OPERATOR, _NODE_ATTRIBUTE, _ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 7, 1, 3, 4, 5, 6, 11
_MESSAGE = 2


def _number(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yields (field number, payload if length-delimited, the encoded field)."""
    at = 0
    while at < len(data):
        begin = at
        key, at = _number(data, at)
        content, kind = data[:0], key & 7
        if kind == 0:
            _, at = _number(data, at)
        elif kind == 1:
            at += 8
        elif kind == _MESSAGE:
            size, at = _number(data, at)
            content, at = data[at:at + size], at + size
        elif kind == 5:
            at += 4
        else:
            raise IndexError("a group")
        if at > len(data):
            raise IndexError("the end")
        yield key >> 3, content, data[begin:at]


def _message(field: int, content: bytes) -> bytes:
    def varint(value: int) -> bytes:
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])
    return varint(field << 3 | _MESSAGE) + varint(len(content)) + content


class _Namer:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def node(self, data: memoryview) -> bytes:
        parts = list(_fields(data))
        named = any(field == _NODE_NAME and len(content) for field, content, _ in parts)
        operator = next((bytes(content).decode() for field, content, _ in parts if field == _NODE_OPERATOR), "")
        out = [_message(field, self.attribute(content)) if field == _NODE_ATTRIBUTE else bytes(whole)
               for field, content, whole in parts if field != _NODE_NAME or named]
        if not named:
            out.append(_message(_NODE_NAME, f"{operator}_{self.counts[operator]}".encode()))
        self.counts[operator] += 1
        return b"".join(out)

    def attribute(self, data: memoryview) -> bytes:
        return b"".join(_message(field, self.graph(content)) if field in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS) else bytes(whole)
                        for field, content, whole in _fields(data))

    def graph(self, data: memoryview) -> bytes:
        return b"".join(_message(field, self.node(content)) if field == _GRAPH_NODE else bytes(whole) for field, content, whole in _fields(data))

    def model(self, data: memoryview) -> bytes:
        return b"".join(_message(field, self.graph(content)) if field == _MODEL_GRAPH else bytes(whole) for field, content, whole in _fields(data))


def with_node_names(model: bytes) -> bytes:
    """The model with all nodes named. Error: 201 (damaged)."""
    try:
        return _Namer().model(memoryview(model))
    except (IndexError, UnicodeDecodeError):
        raise error_of(201, "InvalidModel", "the model's bytes are no ONNX model") from None


def write_renamed(model: bytes, path: str | os.PathLike[str], name: str = "model.onnx") -> bytes:
    """Writes the model with names to a file, or to a folder under `name`. Error: 103 (cannot write)."""
    renamed = with_node_names(model)
    place = os.path.join(path, name) if os.path.isdir(path) else os.fspath(path)
    try:
        with open(place, "wb") as file:
            file.write(renamed)
    except OSError as error:
        raise error_of(103, "CannotWrite", f"{place}: {error.strerror}", "give a file in a folder that exists, or the folder") from None
    return renamed


__all__ = ["with_node_names", "write_renamed"]
