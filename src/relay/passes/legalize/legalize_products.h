// SPDX-License-Identifier: Apache-2.0
// Legalize's rule for matrix products: what register tiles compute. The call itself where it does not apply.
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {
// nn.dense, nn.matmul, nn.batch_matmul over operands of one dtype, wide enough for the result, with equal batches.
Expr legal_product(const Expr& e);
}  // namespace tilewright::relay
