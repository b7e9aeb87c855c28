# SPDX-License-Identifier: Apache-2.0
"""The result of a layout rule: the layouts of a call's operands and results, and its attributes adapted to them."""
from __future__ import annotations

from typing import Any

from ..tir import Layout


class InferCorrectLayoutOutput:
    def __init__(self, input_layouts: Any, output_layouts: Any, new_attrs: Any):
        self.input_layouts, self.output_layouts, self.new_attrs = list(input_layouts), list(output_layouts), new_attrs


def register_infer_correct_layout(op_name: str, infer_layout: Any = None, level: int = 10) -> Any:
    raise NotImplementedError("ConvertLayout knows the layouts of every operator; relay.op.register_convert_op_layout says how a call is converted")


__all__ = ["InferCorrectLayoutOutput", "Layout", "register_infer_correct_layout"]
