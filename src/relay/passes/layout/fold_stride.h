// SPDX-License-Identifier: Apache-2.0
// FoldStride: turns strided convolutions of few channels into stride 1 over the stride's phases as channels (space to
// depth).
// What: conv2d of at most 4 channels (NCHW, OIHW, one group) with constant weights and a stride that divides its
// input's sizes: the input becomes (N, C*sh*sw, H/sh, W/sw), the kernel has the taps of each phase, zeros where one has
// fewer.
// Requires: typed module, weights folded; a target whose arithmetic may be reassociated (no --math=strict).
// Ensures: the same values. Only where Winograd then halves the products at least: 7x7 stride 2, 6x6, 5x5, 11x11 stride
// 4.
// Why here: right before layouts, which give 3 channels a kernel of their own that Winograd cannot use.
// Test: tests/relay/passes/fold_stride*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> fold_stride(const Module& module, PassContext& context);
}  // namespace tilewright::relay
