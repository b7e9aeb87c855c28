// SPDX-License-Identifier: Apache-2.0
// What ONNX's attention operators and onnxruntime's have in common. Heads are (batch, heads, sequence, size).
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

// The sizes of an operand that must have the rank; `what` names it in the error.
std::vector<int64_t> dims_of_rank(NodeContext& c, const Expr& e, int64_t rank, const char* what);

Expr batched_product(NodeContext& c, const Expr& a, const Expr& b, bool transpose_b);
Expr softmax_of_rows(NodeContext& c, const Expr& x);
// Every element along the axis `times` times.
Expr repeated(NodeContext& c, const Expr& x, int64_t times, int64_t axis);

// (batch, sequence, heads * size) as heads, and back.
Expr split_heads(NodeContext& c, const Expr& x, int64_t heads);
Expr merge_heads(NodeContext& c, const Expr& x);

// Pairs of the first `rotated` elements of x (batch, sequence, heads, size), turned by angles whose cosines and sines
// are (batch, sequence, 1, rotated / 2). Pairs are neighbours (interleaved) or halves apart.
Expr rotary_turned(NodeContext& c, const Expr& x, const Expr& cosine, const Expr& sine, int64_t rotated,
                   bool interleaved);

}  // namespace tilewright::onnx
