// SPDX-License-Identifier: Apache-2.0
// Products of few rows and a matrix of 4- or 8-bit numbers with a scale and a zero point for each block of a row: what
// is read is what is stored, so that the memory's bandwidth bounds a language model's step and not the width of floats.
#pragma once
#include "base/tensor.h"
#include "topi/view.h"

namespace tilewright::topi {

// (m, k) by the transpose of (n, k), in blocks along k; the last block of a row may be a part.
struct BlockDenseProblem {
  int64_t m = 0, n = 0, k = 0, block = 0;
  int64_t bits = 4;
  int64_t blocks() const { return ceil_div(k, block); }
  int64_t per_word() const { return 32 / bits; }
  int64_t words() const { return block / per_word(); }  // of a block
};

Cost estimate(const BlockDenseProblem& problem, const Target& target);
// Each thread's copy of the rows, scaled, and the sums of their blocks.
int64_t block_dense_scratch_bytes(const BlockDenseProblem& problem);

// (n, blocks, bytes of a block) -> int32 (panels, blocks, words of a block, columns of a panel)
Tensor pack_block_words(const Tensor& bytes);
// (n, blocks) -> (panels, blocks, columns of a panel), for scales and for zero points
Tensor pack_block_scales(const Tensor& scales);

// All float32. words, scales, zeros: packed. out: (m, n).
tir::Stmt block_dense(const BlockDenseProblem& problem, const View& data, const tir::Buffer& words,
                      const tir::Buffer& scales, const tir::Buffer& zeros, const View& out, const Epilogue& epilogue,
                      const KernelContext& context);

}  // namespace tilewright::topi
