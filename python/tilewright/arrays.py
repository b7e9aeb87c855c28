# SPDX-License-Identifier: Apache-2.0
"""Converts arrays of any library to numpy, without a copy where possible."""
from __future__ import annotations

from typing import Any

import numpy as np


def as_array(value: Any) -> Any:
    """numpy view of an array: numpy itself, DLPack, or whatever numpy.asarray takes. Row-major; copied only when it is not.
    A tensor of a dtype that numpy lacks (bfloat16) stays what it is, for those that take DLPack."""
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        try:
            array = np.from_dlpack(value)
        except (BufferError, TypeError, RuntimeError):  # not supported by older DLPack: booleans, read-only memory
            if not hasattr(value, "__array__"):
                raise
            try:
                array = np.asarray(value)
            except TypeError:
                return value.contiguous()
    elif hasattr(value, "numpy"):
        array = value.numpy()
    else:
        array = np.asarray(value)
        if array.dtype == object:
            raise TypeError(f"a {type(value).__name__} is no tensor: numpy has no dtype for it")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


__all__ = ["as_array"]
