# SPDX-License-Identifier: Apache-2.0
"""Layers as tensor expressions."""
from ..nn_utils import get_pad_tuple, get_pad_tuple1d, get_pad_tuple2d, get_pad_tuple3d
from .basic import batch_matmul, bias_add, dense, flatten, leaky_relu, log_softmax, pad, prelu, relu, scale_shift_nchw, softmax
from .windows import conv2d, conv2d_nchw, conv2d_nhwc, depthwise_conv2d_nchw, global_pool, pool2d

__all__ = ["batch_matmul", "bias_add", "conv2d", "conv2d_nchw", "conv2d_nhwc", "dense", "depthwise_conv2d_nchw", "flatten", "get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple2d",
           "get_pad_tuple3d", "global_pool", "leaky_relu", "log_softmax", "pad", "pool2d", "prelu", "relu", "scale_shift_nchw", "softmax"]
