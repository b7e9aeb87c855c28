# SPDX-License-Identifier: Apache-2.0
"""Makes array functions accept other libraries' tensors without copies."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..runtime import nd


def convert_func(tvm_func: Callable[..., Any], tensor_type: type, to_dlpack_func: Callable[[Any], Any]) -> Callable[..., Any]:
    """Wraps the function for arguments of tensor_type, which to_dlpack_func converts to DLPack."""
    if not callable(tvm_func):
        raise TypeError(f"convert_func takes a function, not a {type(tvm_func).__name__}")

    def wrapped(*args: Any) -> Any:
        return tvm_func(*[nd.from_dlpack(to_dlpack_func(a)) if isinstance(a, tensor_type) else a for a in args])
    return wrapped


def to_pytorch_func(tvm_func: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the function for PyTorch tensors."""
    import torch  # type: ignore[import-not-found]
    return convert_func(tvm_func, torch.Tensor, torch.utils.dlpack.to_dlpack)


__all__ = ["convert_func", "to_pytorch_func"]
