# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays for tensors of other libraries, without copies."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime import nd


def convert_func(tvm_func: Callable[..., Any], tensor_type: type, to_dlpack_func: Callable[[Any], Any]) -> Callable[..., Any]:
    """The function as one that takes objects of tensor_type: to_dlpack_func says their memory."""
    if not callable(tvm_func):
        raise TypeError(f"convert_func takes a function, not a {type(tvm_func).__name__}")

    def wrapped(*args: Any) -> Any:
        return tvm_func(*[nd.from_dlpack(to_dlpack_func(a)) if isinstance(a, tensor_type) else a for a in args])
    return wrapped


def to_pytorch_func(tvm_func: Callable[..., Any]) -> Callable[..., Any]:
    """The function for PyTorch's tensors."""
    import torch  # type: ignore[import-not-found]
    return convert_func(tvm_func, torch.Tensor, torch.utils.dlpack.to_dlpack)


__all__ = ["convert_func", "to_pytorch_func"]
