# SPDX-License-Identifier: Apache-2.0
"""Moves transposes of dense weights into the parameters."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis import search_fc_transpose
from ..analysis.sparse_dense import as_array
from ..transform import SimplifyFCTranspose
from .utils import run_pass


def convert(func: Any, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """(the function using NAME.T instead of the transpose of NAME, params with the transposed weights)."""
    from ...runtime.ndarray import array
    before = dict(params)
    names = list(dict.fromkeys(search_fc_transpose(func)))
    for name in names:
        params[name + ".T"] = array(np.ascontiguousarray(as_array(params.pop(name)).T))
    return run_pass(func, SimplifyFCTranspose(names), params, before), params


__all__ = ["convert"]
