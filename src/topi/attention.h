// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel: scores, softmax and the product with the values, for a block of queries of one head at a
// time. Lanes are queries: keys and values are read where they lie, element by element, and the softmax needs nothing
// across lanes. The scores of a block stay in the near caches and are never written to memory.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

struct AttentionProblem {
  int64_t batch = 1, heads = 1, queries = 0, keys = 0, size = 0, value_size = 0;
  int64_t group = 1;  // heads of the query for each head of key and value
  double scale = 1;   // of the scores before the mask
};

Cost estimate(const AttentionProblem& problem, const Target& target);

// Views as (batch, head, position, element) with any strides; out's last is 1. mask: null buffer for none; a dimension
// of extent 1 is broadcast. float32. The epilogue's index is (batch, head, query, element). Scores above kMaxKeys keys
// go block by block with a running maximum.
tir::Stmt attention(const AttentionProblem& problem, const View& query, const View& key, const View& value,
                    const View& mask, const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
