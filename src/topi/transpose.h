// SPDX-License-Identifier: Apache-2.0
// Transposing copies through registers: v contiguous vectors in, v contiguous vectors out, log2(v) rounds of shuffles
// between. Layout changes between plain and channel-blocked tensors are such copies.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

// Transposes lanes x lanes elements: load(r) gives row r, store(c, value) takes column c.
tir::Stmt transpose_tile(DataType element, int lanes, const std::function<tir::PrimExpr(int)>& load,
                         const std::function<tir::Stmt(int, tir::PrimExpr)>& store);

// `lanes` rows by 4 elements as 4 vectors along the rows, named within use: piece(r) gives row r's 4 elements. Pieces
// are put side by side as they are loaded, so half of transpose_tile's shuffles are left, within 128 bits.
tir::Stmt transpose_quads(int lanes, const std::function<tir::PrimExpr(int)>& piece,
                          const std::function<tir::Stmt(const std::vector<tir::PrimExpr>&)>& use);

// out[index] = epilogue(in[index]) where the last dimension is contiguous in out and another one is in `in`: any
// permutation of dimensions, given as a view of permuted strides.
bool is_transposing(const View& in, const View& out);
tir::Stmt transpose_copy(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context);
// out[..., j, ..., w] = epilogue(in[... + s * w + j]) for s = 2, 3 or 4: the phases of a stride, taken apart by
// shuffles of s contiguous vectors. Any view whose last dimension has stride s, and another one s elements that are
// contiguous.
bool is_deinterleaving(const View& in, const View& out);
tir::Stmt deinterleave_copy(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context);
// (N, C, H, W) -> (N, ceil(C/v), H, W, v), padding lanes zero; and back. Strides are free but for contiguous W and v.
tir::Stmt to_blocked(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context);
// `rows_together`: vectors may run over the ends of rows, which an epilogue that reads more than the value must be able
// to follow.
tir::Stmt from_blocked(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context,
                       bool rows_together = true);
Cost transpose_cost(const View& out, const Target& target);

}  // namespace tilewright::topi
