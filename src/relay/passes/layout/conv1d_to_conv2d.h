// SPDX-License-Identifier: Apache-2.0
// Conv1DToConv2D: one-dimensional convolutions, transposed ones and pools become two-dimensional ones of height 1.
// What: nn.conv1d, nn.conv1d_transpose, nn.max_pool1d, nn.avg_pool1d and image.resize1d over (N, C, W) become their 2-D
// forms over (N, C, 1, W); elementwise operators, concatenates, splits, slices, pads and reductions between them
// follow, so that reshapes are needed only at the borders of such an island, where they merge with transposes.
// Requires: typed module; islands are of known sizes, weights constant.
// Ensures: the same values; results keep their shape.
// Why here: right before AlterOpLayout, which then puts them in channel blocks and, with Winograd's tiles of one row,
// gives them every kernel that 2-D convolutions have; the passes before know the 1-D forms.
// Test: tests/relay/passes/conv1d_to_conv2d*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> conv1d_to_conv2d(const Module& module, PassContext& context);
}  // namespace tilewright::relay
