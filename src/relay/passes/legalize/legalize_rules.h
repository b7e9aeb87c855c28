// SPDX-License-Identifier: Apache-2.0
// The rules of Legalize: from one operator to an equal expression of operators with kernels. A rule returns the call
// itself where it does not apply, mostly for shapes that are not static.
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {
// Convolutions, pools and resizes in non-standard layouts, wrapped in transposes.
Expr in_usual_layout(const Expr& e);
// einsum without repeated axes in an operand.
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
Expr legalize_operator(const Expr& e);
// A transpose; x itself when the permutation is the identity.
Expr reordered(const Expr& x, std::vector<int64_t> axes);
}  // namespace tilewright::relay
