// SPDX-License-Identifier: Apache-2.0
// Sparse operators in others: what the kernels do not know becomes products with a sparse right side.
#pragma once
#include "relay/op.h"

namespace tilewright::relay {

// nn.sparse_dense with sparse_lhs, nn.internal.sparse_dense_padded and nn.sparse_conv2d as nn.sparse_dense without it;
// null for other calls and for free sizes.
Expr sparse_product_of(const Expr& call);

}  // namespace tilewright::relay
