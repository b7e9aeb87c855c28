# SPDX-License-Identifier: Apache-2.0
"""Converts arrays of any library to numpy, without a copy where possible."""
from __future__ import annotations

from typing import Any

import numpy as np


def as_array(value: Any) -> np.ndarray:
    """numpy view of an array: numpy itself, DLPack, or whatever numpy.asarray takes. Row-major; copied only when it is not."""
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        try:
            array = np.from_dlpack(value)
        except (BufferError, TypeError, RuntimeError):  # not supported by older DLPack: booleans, read-only memory
            if not hasattr(value, "__array__"):
                raise
            array = np.asarray(value)
    elif hasattr(value, "numpy"):
        array = value.numpy()
    else:
        array = np.asarray(value)
        if array.dtype == object:
            raise TypeError(f"a {type(value).__name__} is no tensor: numpy has no dtype for it")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


__all__ = ["as_array"]
