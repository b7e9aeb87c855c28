# SPDX-License-Identifier: Apache-2.0
"""Names of the classic operator namespace that are not here, each with what to use instead."""
from __future__ import annotations

_MEMORY = "the compiler plans memory itself; it is no part of a script's Relay"

INSTEAD: dict[str, str] = {
    "nn.contrib_conv2d_winograd_nnpack_weight_transform": "the compiler chooses the algorithm and packs weights itself: call nn.conv2d",
    **dict.fromkeys(("auto_scheduler_layout_transform", "meta_schedule_layout_transform"), "layout_transform"),
    "vision.nms": "vision.non_max_suppression",
    **dict.fromkeys(("memory.alloc_storage", "memory.alloc_tensor", "memory.kill", "vm.shape_of", "vm.invoke_tvm_op", "vm.reshape_tensor", "call_lowered"), _MEMORY),
    **dict.fromkeys(("sparse_fill_empty_rows", "sparse_reshape"), "sparse_to_dense, then dense operators"),
    **dict.fromkeys(("nn.bitserial_conv2d", "nn.bitserial_dense", "nn.bitpack"), "qnn.conv2d or qnn.dense on 8-bit integers"),
    **dict.fromkeys(("nn.max_pool2d_grad", "nn.avg_pool2d_grad"), "relay.transform.gradient of the function that pools"),
    "nn.fifo_buffer": "concatenate of the buffer and the new part, strided_slice of the result; the buffer as input and output",
    "debug": "contrib.debugger.debug_executor shows every tensor",
    **dict.fromkeys(("annotation.compiler_begin", "annotation.compiler_end", "annotation.with_funcid"),
                    "functions with the attribute Compiler go to the external code generator of that name (docs/external-codegen.md)"),
    **dict.fromkeys(("random.threefry_generate", "random.threefry_split", "random.threefry_key", "random.uniform", "random.normal", "random.multinomial"),
                    "pass random numbers as an input, or numpy.random's as a relay.const"),
    "dyn.image.resize2d": "image.resize2d; sizes that data decides become constants with tilewright.compile(constants=...)",
    "dyn.nn.upsampling": "nn.upsampling", "dyn.nn.upsampling3d": "nn.upsampling3d", "dyn.nn.pad": "nn.pad", "dyn.topk": "topk, whose k may be an expression",
    "dyn.sparse_to_dense": "sparse_to_dense",
    "embedding": "take(table, indices, axis=0)", "percentile": "sort, then take", "concat": "concatenate", "matmul": "nn.matmul", "relu": "nn.relu",
    "softmax": "nn.softmax", "gelu": "nn.gelu", "permute": "transpose", "flatten": "nn.batch_flatten", "pow": "power", "div": "divide", "mul": "multiply",
    "sub": "subtract", "neg": "negative", "eq": "equal",
}


def has_absent(prefix: str) -> bool:
    """Whether names under a prefix ("dyn.image.") are known here."""
    return any(name.startswith(prefix) for name in INSTEAD)


def replacement(name: str) -> str | None:
    """What to use in place of a classic operator that is not here."""
    if name.startswith("contrib.ethosu"):
        return "an external code generator of that device (docs/external-codegen.md)"
    return INSTEAD.get(name)


__all__ = ["INSTEAD", "has_absent", "replacement"]
