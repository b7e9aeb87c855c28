// SPDX-License-Identifier: Apache-2.0
// Legalize's rule for matrix products: rewrites them to the forms of the register-tile kernels. Returns the call itself
// where it does not apply.
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {
// nn.dense, nn.matmul, nn.batch_matmul with operands of one dtype, wide enough for the result, and with equal batches.
Expr legal_product(const Expr& e);
}  // namespace tilewright::relay
