// SPDX-License-Identifier: Apache-2.0
// FlattenAtrousConv: a convolution between space_to_batch_nd and batch_to_space_nd becomes one dilated convolution.
// What: conv2d with unit strides, no padding and no dilation between the two, both of the same blocks over exactly its
// spatial axes; the blocks become the dilation, the paddings less the crops its padding.
// Requires: typed module.
// Ensures: the same values; other combinations stay.
// Why here: before layouts are chosen; models from frameworks without dilation write it so.
// Test: tests/relay/passes/flatten_atrous_conv*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> flatten_atrous_conv(const Module& module, PassContext& context);
}  // namespace tilewright::relay
