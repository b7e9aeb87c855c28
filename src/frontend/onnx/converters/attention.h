// SPDX-License-Identifier: Apache-2.0
// Building blocks that ONNX's attention operators share with onnxruntime's. Heads have the layout (batch, heads,
// sequence, size).
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// The shape of `e`, which must have the given rank; `what` names it in the error.
std::vector<int64_t> dims_of_rank(NodeContext& c, const Expr& e, int64_t rank, const char* what);

Expr batched_product(NodeContext& c, const Expr& a, const Expr& b, bool transpose_b);
Expr softmax_of_rows(NodeContext& c, const Expr& x);
// x over the root of the mean of its squares along the last axis.
Expr over_root_mean_square(NodeContext& c, const Expr& x, double epsilon);
// Repeats every element `times` times along the axis, as numpy.repeat does.
Expr repeated(NodeContext& c, const Expr& x, int64_t times, int64_t axis);

// (batch, sequence, heads * size) to (batch, heads, sequence, size), and back.
Expr split_heads(NodeContext& c, const Expr& x, int64_t heads);
Expr merge_heads(NodeContext& c, const Expr& x);

// An operand that may be left out.
Expr given(NodeContext& c, size_t i);
// The score of a key that causality hides: -inf, so that no mask can raise it.
Expr hidden_score(NodeContext& c, DataType dtype);
// The node's scale of scores: 1 / sqrt(size) where it names none.
double scale_of(NodeContext& c, int64_t size);
// Rows of a table (positions, pairs) by position.
Expr rows_of(NodeContext& c, const Expr& table, const Expr& positions);

// Rotary embedding: rotates pairs among the first `rotated` elements of x (batch, sequence, heads, size). cosine and
// sine are (batch, sequence, 1, rotated / 2). The two of a pair are adjacent (interleaved) or rotated / 2 apart.
Expr rotary_turned(NodeContext& c, const Expr& x, const Expr& cosine, const Expr& sine, int64_t rotated,
                   bool interleaved);

}  // namespace tilewright::onnx
