// SPDX-License-Identifier: Apache-2.0
// DenseToSparse, Conv2dToSparse, Conv2dToSparse2: layers with mostly zero weights read them block-sparse (BSR).
// What: DenseToSparse: nn.dense(x, w) -> nn.sparse_dense(x, w.data, w.indices, w.indptr) for every parameter w that
// relay.DenseToSparse.weights lists with the sizes of those three: "w=4,16,1,4,3". Conv2dToSparse: the same for
// nn.conv2d -> nn.sparse_conv2d ("w=4,16,1,4,3", or "w=4,16,4,3" for blocks one column wide). Conv2dToSparse2:
// constants of convolutions of a kernel size, layout and stride 1 become blocks here, where at least a part of them
// (sparsity_threshold) goes.
// Requires: typed module; convolutions 1x1 without padding or 3x3 with padding 1, stride and dilation 1, one group.
// Others stay.
// Ensures: the same results when the new parameters hold the weight's blocks. Parameters that nothing uses any more are
// gone, new ones stand last.
// Errors: InvalidArgument for sizes that are not a weight's.
// Why here: not in the default pipeline; a script runs them together with the parameters' values
// (relay.data_dep_optimization.bsr_dense, bsr_conv2d).
// Test: tests/relay/passes/{dense,conv2d}_to_sparse*.txt, python/tests/test_sparse.py
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> dense_to_sparse(const Module& module, PassContext& context);
Result<Module> conv2d_to_sparse(const Module& module, PassContext& context);
Result<Module> conv2d_to_sparse2(const Module& module, PassContext& context);
}  // namespace tilewright::relay
