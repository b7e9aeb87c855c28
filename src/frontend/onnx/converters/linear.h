// SPDX-License-Identifier: Apache-2.0
// Matrix products that several families build on.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// numpy.matmul for operands of any rank; a constant matrix on the right becomes the weight of a dense layer.
Expr matmul_of(NodeContext& c, Expr a, Expr b);
// Gemm with the attributes of the node.
Expr gemm_of(NodeContext& c);
// The transpose of a matrix; a constant is transposed at import, whatever its size.
Expr transposed_matrix(NodeContext& c, const Expr& e);

}  // namespace tilewright::onnx
