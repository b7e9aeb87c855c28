// SPDX-License-Identifier: Apache-2.0
// Products with few rows and a block-quantised matrix (4 or 8 bits, a scale and a zero point per block). The matrix is
// read in its stored form: a language model's step is bound by memory bandwidth, so fewer bytes are faster.
#pragma once
#include "base/tensor.h"
#include "topi/view.h"

namespace tilewright::topi {

// (m, k) times the transpose of (n, k), in blocks along k; the last block of a row may be partial.
struct BlockDenseProblem {
  int64_t m = 0, n = 0, k = 0, block = 0;
  int64_t bits = 4;
  int64_t blocks() const { return ceil_div(k, block); }
  int64_t per_word() const { return 32 / bits; }
  int64_t words() const { return block / per_word(); }  // per block
};

Cost estimate(const BlockDenseProblem& problem, const Target& target);
// Per thread: a scaled copy of the rows, and the sums of their blocks.
int64_t block_dense_scratch_bytes(const BlockDenseProblem& problem);

// (n, blocks, bytes per block) -> int32 (panels, blocks, words per block, columns per panel)
Tensor pack_block_words(const Tensor& bytes);
// (n, blocks) -> (panels, blocks, columns per panel), for scales and zero points
Tensor pack_block_scales(const Tensor& scales);

// All operands are float32; words, scales, zeros are packed. out: (m, n).
tir::Stmt block_dense(const BlockDenseProblem& problem, const View& data, const tir::Buffer& words,
                      const tir::Buffer& scales, const tir::Buffer& zeros, const View& out, const Epilogue& epilogue,
                      const KernelContext& context);

}  // namespace tilewright::topi
