// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/nn/weight_types.h"

#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/tensor/layout.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

bool has_no_blocks(const std::string& layout) {
  return std::all_of(layout.begin(), layout.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

template <class A>
std::optional<WeightAxes> convolution_axes(const A& attrs, bool transposed) {
  const std::string data = attrs.data_layout,
                    kernel = transposed ? transposed_kernel_layout(attrs.kernel_layout) : attrs.kernel_layout;
  const std::string out = attrs.out_layout.empty() ? data : attrs.out_layout;
  const size_t c = data.find('C'), oc = out.find('C'), i = kernel.find('I'), o = kernel.find('O');
  if (!has_no_blocks(data) || !has_no_blocks(kernel) || !has_no_blocks(out)) return std::nullopt;
  if (c == std::string::npos || oc == std::string::npos || i == std::string::npos || o == std::string::npos)
    return std::nullopt;
  if (transposed && attrs.groups != 1 && i > o) return std::nullopt;  // ambiguous: either axis could hold the groups
  return WeightAxes{static_cast<int64_t>(c),
                    static_cast<int64_t>(oc),
                    static_cast<int64_t>(i),
                    static_cast<int64_t>(o),
                    attrs.groups,
                    transposed};
}

}  // namespace

std::string transposed_kernel_layout(std::string letters) {
  if (letters.starts_with("OI")) std::swap(letters[0], letters[1]);
  return letters;
}

std::optional<WeightAxes> weight_axes(const Expr& e) {
  const auto* call = as<CallNode>(e);
  const OpDef* op = called_op(e);
  if (!op) return std::nullopt;
  const std::string_view name = op->name;
  if (name == "nn.dense") {
    int64_t last = static_cast<int64_t>(tensor_of(e).shape.size()) - 1;
    return WeightAxes{last, last, 1, 0, 1, false};
  }
  if (name == "nn.conv1d") return convolution_axes(*attrs_as<Conv1DAttrs>(call->attrs), false);
  if (name == "nn.conv2d") return convolution_axes(*attrs_as<Conv2DAttrs>(call->attrs), false);
  if (name == "nn.conv3d") return convolution_axes(*attrs_as<Conv3DAttrs>(call->attrs), false);
  if (name == "nn.conv1d_transpose") return convolution_axes(*attrs_as<Conv1DTransposeAttrs>(call->attrs), true);
  if (name == "nn.conv2d_transpose") return convolution_axes(*attrs_as<Conv2DTransposeAttrs>(call->attrs), true);
  if (name == "nn.conv3d_transpose") return convolution_axes(*attrs_as<Conv3DTransposeAttrs>(call->attrs), true);
  return std::nullopt;
}

Type convolution_weight_type(const WeightShape& w, const TensorTypeNode& data) {
  auto from = parse_layout(w.data_layout),
       to = parse_layout(w.transposed ? transposed_kernel_layout(w.kernel_layout) : w.kernel_layout);
  if (!from.ok() || !to.ok() || from->find('C') < 0 || from->rank() != data.shape.size() || !w.channels ||
      !w.kernel_size || w.groups <= 0 || *w.channels <= 0)
    return {};
  const Dim in = from->extent('C', data.shape);
  Shape shape{w.transposed ? *w.channels / w.groups : *w.channels, w.transposed ? in : floordiv(in, Dim(w.groups))};
  std::string letters = "OI";
  for (const Layout::Axis& axis : to->axes)  // kernel_size has the spatial axes in the layout's order
    if (axis.factor == 0 && axis.letter != 'O' && axis.letter != 'I') letters += axis.letter;
  if (letters.size() != shape.size() + w.kernel_size->size()) return {};
  for (int64_t size : *w.kernel_size) shape.push_back(size);
  auto made = relayout_shape(parse_layout(letters).value(), *to, shape);
  return made.ok() ? tensor_type(std::move(*made), data.dtype) : Type();
}

Type vector_along(int64_t axis, const TensorTypeNode& data) {
  const auto rank = static_cast<int64_t>(data.shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return {};
  return tensor_type({data.shape[static_cast<size_t>(axis)]}, data.dtype);
}

}  // namespace tilewright::relay
