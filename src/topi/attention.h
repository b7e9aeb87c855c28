// SPDX-License-Identifier: Apache-2.0
// Attention as one kernel: scores, softmax and the product with the values, for a block of queries of one head at a
// time. Lanes are queries: keys and values are read in place, as scalars, and the softmax needs no cross-lane
// operations. A block's scores stay in the L1 and L2 caches.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

struct AttentionProblem {
  int64_t batch = 1, heads = 1, queries = 0, keys = 0, size = 0, value_size = 0;
  int64_t group = 1;  // query heads per key/value head
  double scale = 1;   // factor for the scores, before the mask
};

Cost estimate(const AttentionProblem& problem, const Target& target);

// Views are (batch, head, position, element) with any strides; the last stride of out is 1. mask: a null buffer for
// none; extents of 1 broadcast. float32. The epilogue's index is (batch, head, query, element). Beyond kMaxKeys keys
// the scores are computed block by block with a running maximum (online softmax).
tir::Stmt attention(const AttentionProblem& problem, const View& query, const View& key, const View& value,
                    const View& mask, const View& out, const Epilogue& epilogue, const KernelContext& context);

}  // namespace tilewright::topi
