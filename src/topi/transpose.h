// SPDX-License-Identifier: Apache-2.0
// Transposing copies through registers: v contiguous vectors in, v contiguous vectors out, log2(v) rounds of shuffles
// in between. Layout changes between plain and channel-blocked tensors are such copies.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

// Transposes lanes x lanes elements: load(r) gives row r, store(c, value) receives column c.
tir::Stmt transpose_tile(DataType element, int lanes, const std::function<tir::PrimExpr(int)>& load,
                         const std::function<tir::Stmt(int, tir::PrimExpr)>& store);

// Transposes parts * side rows of `side` elements, which fill 128 bits, to `side` vectors along the rows: within each
// 128 bits rows are interleaved, which is one instruction for any narrow element.
tir::Stmt transpose_narrow(DataType element, int side, int parts, const std::function<tir::PrimExpr(int)>& piece,
                           const std::function<tir::Stmt(int, tir::PrimExpr)>& store);

// Transposes `lanes` rows of 4 elements to 4 vectors along the rows, which `use` receives; piece(r) gives row r's 4
// elements. Pieces are combined as they are loaded, which halves transpose_tile's shuffles, all within 128 bits.
tir::Stmt transpose_quads(int lanes, const std::function<tir::PrimExpr(int)>& piece,
                          const std::function<tir::Stmt(const std::vector<tir::PrimExpr>&)>& use);

// A copy that moves elements: out[...] = epilogue(in[...]). A dimension of the result is one part or several of them
// (what a reshape makes of it), each with strides of its own in `in` and `out`.
struct Permutation {
  struct Part {
    int64_t extent = 1, from = 0, to = 0;  // strides in elements
    int axis = 0;                          // the result's dimension ...
    int64_t step = 1;                      // ... and how far an element of the part goes along it
  };
  View in, out;
  std::vector<Part> parts;  // in the result's order
};
// That of equal dimensions: `in` with the strides in the result's order.
Permutation permutation(const View& in, const View& out);
// Whether the result's last dimension is contiguous in `out` alone, and something else is in `in`.
bool is_transposing(const Permutation& p);
tir::Stmt transpose_copy(const Permutation& p, const Epilogue& epilogue, const KernelContext& context);
// out[..., j, ..., w] = epilogue(in[... + s * w + j]) for s = 2, 3 or 4:
// separates the phases of a stride by shuffles of s contiguous vectors. Any view
// whose last dimension has stride s and another dimension s contiguous elements.
bool is_deinterleaving(const View& in, const View& out);
tir::Stmt deinterleave_copy(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context);
// (N, C, H, W) -> (N, ceil(C/v), H, W, v) with zero padding lanes; and back. Any strides with W and v contiguous.
tir::Stmt to_blocked(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context);
// `rows_together`: vectors may cross the ends of rows; an
// epilogue that reads further operands must support that.
tir::Stmt from_blocked(const View& in, const View& out, const Epilogue& epilogue, const KernelContext& context,
                       bool rows_together = true);
Cost transpose_cost(const View& out, const Target& target);

}  // namespace tilewright::topi
