// SPDX-License-Identifier: Apache-2.0
// FuseAttention: fuses a softmax and the products around it into nn.attention.
// What: batch_matmul(softmax(batch_matmul(Q, K) * scale + mask), V) over float32 of rank 3 or 4 -> nn.attention, with
// the scale from wherever it stands before the mask, masks that are added (also per window, where the batch is taken
// apart) or select a low constant, heads cut from one merged projection (slices, splits, (.., 3, H, D) taken apart
// along the 3), heads of keys and values that are repeated, expanded or one for all, and the transposes around it as
// layouts of the operands.
// Requires: static shapes; CombineParallelDense done, so that merged projections are seen.
// Ensures: the same function up to rounding. Attention whose scores have other users is left alone; so are few queries
// (one token of a decoder), which cannot fill a vector.
// Why here: before AlterOpLayout and FuseOps; after the passes that clean shapes and merge projections.
// Test: tests/relay/passes/fuse_attention*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> fuse_attention(const Module& module, PassContext& context);
}  // namespace tilewright::relay
