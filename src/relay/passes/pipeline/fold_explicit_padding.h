// SPDX-License-Identifier: Apache-2.0
// FoldExplicitPadding: zero padding in front of a convolution becomes the convolution's own padding.
// What: conv(nn.pad(x, 0), w) -> conv(x, w, padding + pad) for nn.conv1d/2d/3d, when only spatial axes are padded, and
// average pooling that counts its padding likewise. Taps of a constant kernel that only ever read padding are removed,
// with that padding (dilations wider than the map, maps of one column).
// Requires: typed module.
// Ensures: the same function.
// Why here: before layouts are chosen; kernels read padding from halos instead of a copied tensor.
// Test: tests/relay/passes/fold_explicit_padding*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> fold_explicit_padding(const Module& module, PassContext& context);
}  // namespace tilewright::relay
