// SPDX-License-Identifier: Apache-2.0
// Weights of linear operators: their types where a script leaves them open (OpFacts::operand_type), and their channel
// axes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

// The kernel layout of a transposed convolution. The classic default "OIHW" has always meant (C, O/groups, ...).
std::string transposed_kernel_layout(std::string letters);

// The axes of data, result and weight that hold channels.
struct WeightAxes {
  int64_t data_channel = 0, out_channel = 0;
  int64_t weight_in = 0, weight_out = 0;
  int64_t groups = 1;
  bool transposed = false;  // groups split the weight's input axis (conv_transpose), else its output axis
};
// For dense layers and (transposed) convolutions in plain layouts; nothing for other operators.
std::optional<WeightAxes> weight_axes(const Expr& call);

struct WeightShape {
  const std::string &data_layout, &kernel_layout;
  std::optional<int64_t> channels;  // of the result
  const std::optional<std::vector<int64_t>>& kernel_size;
  int64_t groups = 1;
  bool transposed = false;
};
// From the layouts' letters and blocks.
Type convolution_weight_type(const WeightShape& w, const TensorTypeNode& data);

template <class A, bool kTransposed = false, size_t kWeight = 1>
Type convolution_weight(const AttrsRef& attrs, size_t index, const TensorTypeNode& data) {
  const A& a = *attrs_as<A>(attrs);
  if (index != kWeight) return {};
  return convolution_weight_type({a.data_layout, a.kernel_layout, a.channels, a.kernel_size, a.groups, kTransposed},
                                 data);
}

// A vector along the axis that the attributes name.
Type vector_along(int64_t axis, const TensorTypeNode& data);

template <class A>
Type weight_along_axis(const AttrsRef& attrs, size_t, const TensorTypeNode& data) {
  return vector_along(attrs_as<A>(attrs)->axis, data);
}

}  // namespace tilewright::relay
