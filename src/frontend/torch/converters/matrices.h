// SPDX-License-Identifier: Apache-2.0
// What converters of matrices share.
#pragma once
#include "frontend/torch/convert.h"

namespace tilewright::torch::matrices {

struct Sides {
  int64_t rows, columns;
};
Sides sides(NodeContext& c, const Expr& e);
// The last two axes exchanged.
Expr turned(NodeContext& c, const Expr& e);
// A tensor of matrices in float64.
Expr matrix(NodeContext& c, const Value& v, bool square = true);
// In the first operand's dtype.
Values as_given(NodeContext& c, const Expr& e);

}  // namespace tilewright::torch::matrices
