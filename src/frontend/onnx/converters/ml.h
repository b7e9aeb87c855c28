// SPDX-License-Identifier: Apache-2.0
// What the families of ai.onnx.ml have in common.
#pragma once
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {

inline constexpr char kMlDomain[] = "ai.onnx.ml";

// What is done to rows of scores at the end; TreeEnsemble numbers it in this order.
enum class PostTransform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
PostTransform post_transform_of(NodeContext& c);  // the node's attribute, by name
Expr post_transformed(NodeContext& c, const Expr& scores, PostTransform transform);

// The labels of classes, whole numbers or texts, and those of rows by their class.
Tensor class_labels(NodeContext& c);
Expr labels_of(NodeContext& c, const Expr& classes, const Tensor& labels);

// A matrix of float32 or float64, whatever the node's operand 0 is; a vector is one row.
Expr feature_rows(NodeContext& c, DataType dtype);
// Values as a tensor of float32 (or float64).
Tensor numbers_of(const std::vector<double>& values, std::vector<int64_t> shape, DataType dtype);

}  // namespace tilewright::onnx
