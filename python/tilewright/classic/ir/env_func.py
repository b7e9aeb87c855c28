# SPDX-License-Identifier: Apache-2.0
"""A registered function as an object with a name: callable, and serialised by name."""
from __future__ import annotations

import zlib
from typing import Any

from ..registry import get_global_func

# The classic names of the operators' type rules. The rules themselves are the compiler's own: run_infer_type of a call asks them.
_PREFIX = "tvm.relay.type_relation."
_RELATIONS = frozenset(_PREFIX + name for name in """
    AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveMaxPool1D AdaptiveMaxPool2D AdaptiveMaxPool3D AdvIndex AffineGrid AllClassNMS
    AllocStorage AllocTensor Arange ArgReduce ArgWhere Argsort AvgPool1D AvgPool2D AvgPool3D BatchFlatten BatchMatmul BatchNorm BatchToSpaceND BiasAdd
    BinaryConv2D BinaryDense BitPack BroadCastTo BroadCastToLike Broadcast BroadcastComp CallLoweredRel Cast CastLike CollapseSumLike CollapseSumTo
    Concatenate Conv1D Conv1DTranspose Conv2D Conv2DBackwardWeight Conv2DGemm Conv2DGemmWeightTransform Conv2DNCHWc Conv2DTranspose Conv2DWinograd
    Conv2DWinogradNNPACKWeightTransform Conv2DWinogradWeightTransform Conv3D Conv3DTranspose Conv3DWinograd Conv3DWinogradWeightTransform Correlation
    CropAndResize CrossEntropy Cumprod Cumsum Debug DeformableConv2D Dense DensePack DepthToSpace Dequantize Dilate Dilation2D Dropout DynOneHot
    DynResize2D DynSparseToDense DynSqueeze DynStridedSlice DynTopK DynamicBroadCastTo DynamicExpandDims DynamicFull DynamicInitOp DynamicPad
    DynamicReshape DynamicTile DynamicUpSampling DynamicUpSampling3D Einsum ExpandDims FIFOBuffer Full FullLike Gather GatherND GetValidCount
    GlobalAvgPool2D GlobalMaxPool2D GridSample GroupNorm Identity IdentityCompRel InitOp InstanceNorm InvokeTVMOp Kill LayerNorm Matmul MatrixSetDiag
    MaxPool1D MaxPool2D MaxPool2DGrad MaxPool3D Meshgrid MetaRef MirrorPad MultiBoxPrior MultiBoxTransformLoc NLLLoss NMS NdarraySize Normal OneHot
    PRelu Pad Proposal QBatchMatmul QDense QLeakyRelu QNNSimulatedDequantize QNNSimulatedQuantize QnnBroadcast QnnConcatenate QnnConv2D
    QnnConv2DTranspose Quantize ROIAlign ROIPool Reduce Reinterpret Repeat Requantize Reshape ReshapeLike ReshapeTensor Resize1D Resize2D Resize3d
    Reverse ReverseReshape ReverseSequence Scatter ScatterAdd ScatterND SearchSorted SequenceMask ShapeOf SimulatedQuantize SliceLike SlidingWindow
    Softmax Sort SpaceToBatchND SpaceToDepth SparseAdd SparseConv2d SparseDense SparseToDense SparseTranspose Split Squeeze Stack StridedSet
    StridedSlice Take ThreefryGenerate ThreefrySplit Tile TopK Transpose TupleGetItem UnRavelIndexRel Uniform UpSampling UpSampling3D Variance Where
    YoloReorg auto_scheduler_layout_transform layout_transform meta_schedule_layout_transform qnn.erf qnn.exp qnn.hardswish qnn.log qnn.rsqrt
    qnn.sigmoid qnn.sqrt qnn.tanh sparse_fill_empty_rows sparse_reshape stft unique
""".split())


class EnvFunc:
    """`EnvFunc.get("my.function")(x)`; ValueError if the function is not registered."""

    def __init__(self, name: str):
        self.name = name
        self.func = _no_function(name) if name in _RELATIONS else get_global_func(name)

    @staticmethod
    def get(name: str) -> "EnvFunc":
        return EnvFunc(name)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvFunc) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def same_as(self, other: object) -> bool:
        return self == other

    def structural_hash(self) -> int:
        return zlib.crc32(self.name.encode())

    def __reduce__(self) -> Any:
        return EnvFunc, (self.name,)


def _no_function(name: str) -> Any:
    def refuse(*_: Any) -> Any:
        raise NotImplementedError(f"{name} only describes a relation; the type of a call is inferred by relay.transform.InferType")
    return refuse


__all__ = ["EnvFunc"]
