// SPDX-License-Identifier: Apache-2.0
// The rules of Legalize: one operator in, an equal expression of operators with kernels out; the call itself where the
// rule does not apply (shapes that are not static, mostly).
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {
// Convolutions, pools and resizes in other than the usual layouts, between transposes.
Expr in_usual_layout(const Expr& e);
// einsum, where no operand has an axis twice.
Expr einsum_of_products(const Expr& e);
// Resizes and pools.
Expr legal_upsampling(const Expr& e);
Expr legal_resize2d(const Expr& e);
Expr legal_resize3d(const Expr& e);
Expr legal_avg_pool3d(const Expr& e);
Expr legal_global_pool(const Expr& e);
Expr legal_adaptive_pool1d(const Expr& e);
Expr legal_adaptive_pool2d(const Expr& e);
Expr legal_adaptive_pool3d(const Expr& e);
// Everything else.
Expr written_in_kernels(const Expr& e);
// A transpose; x itself where its axes stay.
Expr reordered(const Expr& x, std::vector<int64_t> axes);
}  // namespace tilewright::relay
