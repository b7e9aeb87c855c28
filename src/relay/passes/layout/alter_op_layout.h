// SPDX-License-Identifier: Apache-2.0
// AlterOpLayout: stores activations of convolution networks in channel blocks (NCHW16c for AVX-512, NCHW8c for AVX2).
// What: 2-D convolutions become nn.contrib_conv2d_NCHWc over packed weights; pools, elementwise ops, channel concats
// and spatial reductions between them follow; layout_transform is needed only at the borders of a blocked island. 3-D
// convolutions, pools and the operators between them likewise use NCDHW16c; their weights keep their layout.
// Requires: static shapes, BatchNorm folded, constants as weights (but for 2-D convolutions of floats over 16 pixels or
// more, whose computed weights are packed in the run), bias as add of a (C, 1, 1) constant (CanonicalizeOps).
// Ensures: the same function of the same inputs; results keep their plain layout. Groups that divide a block (of 2, 4
// or 8 channels) stay blocked over weights OIHW4i16o, groups of whole half blocks (24 channels) over OIHW8i8o; other
// narrow groups leave the island.
// Why here: after the arithmetic passes, which know plain layouts only; before FoldConstant packs the weights and
// FuseOps. Padding lanes of the last block are finite on every edge (only ops that keep them finite stay inside an
// island when the channels do not fill it), and weights are zero there, so they never reach a real channel.
// Tests: tests/relay/passes/alter_op_layout*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {

Result<Module> alter_op_layout(const Module& module, PassContext& context);

}  // namespace tilewright::relay
