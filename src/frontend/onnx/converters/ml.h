// SPDX-License-Identifier: Apache-2.0
// What the converter families of ai.onnx.ml share.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

inline constexpr char kMlDomain[] = "ai.onnx.ml";

// What is applied to each row of scores at the end, in TreeEnsemble's numbering.
enum class PostTransform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
PostTransform post_transform_of(NodeContext& c);  // the node's attribute, by name
Expr post_transformed(NodeContext& c, const Expr& scores, PostTransform transform);

// The labels of the classes (integers or strings), and the label of each row's class.
Tensor class_labels(NodeContext& c);
Expr labels_of(NodeContext& c, const Expr& classes, const Tensor& labels);
// The column of each row's largest score.
Expr best_class(NodeContext& c, const Expr& scores);

// Operand 0 as a matrix of float32 or float64; a vector becomes one row.
Expr feature_rows(NodeContext& c, DataType dtype);
// Values as a tensor of float32 (or float64).
Tensor numbers_of(const std::vector<double>& values, std::vector<int64_t> shape, DataType dtype);

}  // namespace tilewright::onnx
