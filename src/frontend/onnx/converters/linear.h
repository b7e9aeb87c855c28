// SPDX-License-Identifier: Apache-2.0
// Matrix products that several families build on.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// numpy's matmul for operands of any rank; a constant matrix on the right becomes a dense layer's weight.
Expr matmul_of(NodeContext& c, Expr a, Expr b);
// Gemm with the attributes of the node.
Expr gemm_of(NodeContext& c);
// A matrix transposed; at once when it is a constant of any size.
Expr transposed_matrix(NodeContext& c, const Expr& e);

}  // namespace tilewright::onnx
