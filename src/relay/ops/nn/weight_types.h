// SPDX-License-Identifier: Apache-2.0
// Types of weights that a script left open, as an operator's attributes and the type of its data have them
// (OpFacts::operand_type).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "relay/op.h"

namespace tilewright::relay {

struct WeightShape {
  const std::string &data_layout, &kernel_layout;
  std::optional<int64_t> channels;  // of the result
  const std::optional<std::vector<int64_t>>& kernel_size;
  int64_t groups = 1;
  bool transposed = false;
};
// By the letters of the layouts; plain ones only.
Type convolution_weight_type(const WeightShape& w, const TensorTypeNode& data);

template <class A, bool kTransposed = false, size_t kWeight = 1>
Type convolution_weight(const AttrsRef& attrs, size_t index, const TensorTypeNode& data) {
  const A& a = *attrs_as<A>(attrs);
  if (index != kWeight) return {};
  return convolution_weight_type({a.data_layout, a.kernel_layout, a.channels, a.kernel_size, a.groups, kTransposed},
                                 data);
}

// A vector along the axis that attributes name.
Type vector_along(int64_t axis, const TensorTypeNode& data);

template <class A>
Type weight_along_axis(const AttrsRef& attrs, size_t, const TensorTypeNode& data) {
  return vector_along(attrs_as<A>(attrs)->axis, data);
}

}  // namespace tilewright::relay
