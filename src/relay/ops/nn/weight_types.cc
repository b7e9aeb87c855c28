// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/nn/weight_types.h"

namespace tilewright::relay {

Type convolution_weight_type(const WeightShape& w, const TensorTypeNode& data) {
  const size_t channel_axis = w.data_layout.find('C');
  if (channel_axis == std::string::npos || channel_axis >= data.shape.size() ||
      w.data_layout.size() != data.shape.size() || w.kernel_layout.size() != data.shape.size() || !w.channels ||
      !w.kernel_size || w.groups <= 0 || *w.channels <= 0)
    return {};
  Shape shape;
  size_t spatial = 0;
  // A transposed convolution's kernel starts with the input channels, whatever the classic default "OIHW" says.
  std::string letters = w.kernel_layout;
  if (w.transposed && letters.starts_with("OI")) std::swap(letters[0], letters[1]);
  for (char c : letters) {
    if (c == 'O')
      shape.push_back(w.transposed ? *w.channels / w.groups : *w.channels);
    else if (c == 'I')
      shape.push_back(w.transposed ? data.shape[channel_axis] : floordiv(data.shape[channel_axis], Dim(w.groups)));
    else if (spatial < w.kernel_size->size())
      shape.push_back((*w.kernel_size)[spatial++]);
    else
      return {};
  }
  return tensor_type(std::move(shape), data.dtype);
}

Type vector_along(int64_t axis, const TensorTypeNode& data) {
  const auto rank = static_cast<int64_t>(data.shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return {};
  return tensor_type({data.shape[static_cast<size_t>(axis)]}, data.dtype);
}

}  // namespace tilewright::relay
