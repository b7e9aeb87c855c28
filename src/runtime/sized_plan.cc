// SPDX-License-Identifier: Apache-2.0
#include "runtime/sized_plan.h"

#include <algorithm>
#include <cstring>

namespace tilewright::runtime {
namespace {

// Copies the elements that both shapes contain.
void copy_common(std::byte* to, const std::vector<int64_t>& to_shape, const std::byte* from,
                 const std::vector<int64_t>& from_shape, uint64_t element, size_t dimension = 0) {
  uint64_t to_step = element, from_step = element;
  bool same_behind = true;
  for (size_t d = dimension + 1; d < to_shape.size(); ++d) {
    to_step *= static_cast<uint64_t>(to_shape[d]), from_step *= static_cast<uint64_t>(from_shape[d]);
    same_behind = same_behind && to_shape[d] == from_shape[d];
  }
  const auto count =
      static_cast<uint64_t>(dimension < to_shape.size() ? std::min(to_shape[dimension], from_shape[dimension]) : 1);
  if (same_behind) {
    if (count * to_step > 0) std::memcpy(to, from, count * to_step);
    return;
  }
  for (uint64_t i = 0; i < count; ++i)
    copy_common(to + i * to_step, to_shape, from + i * from_step, from_shape, element, dimension + 1);
}

bool is_free(const plan::Plan& plan, bool output, size_t index) {
  for (const plan::FreeSize& size : plan.free_sizes)
    for (const auto& d : size.dims)
      if (d.output == output && d.tensor == index) return true;
  return false;
}

}  // namespace

std::vector<int64_t> least_sizes(const plan::Plan& whole) {
  std::vector<int64_t> sizes;
  for (const plan::FreeSize& size : whole.free_sizes) sizes.push_back(size.low);
  return sizes;
}

std::vector<int64_t> largest_sizes(const plan::Plan& whole) {
  std::vector<int64_t> sizes;
  for (const plan::FreeSize& size : whole.free_sizes) sizes.push_back(size.largest);
  return sizes;
}

std::vector<int64_t> shape_at(const plan::Plan& whole, bool output, size_t index, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> shape = (output ? whole.outputs : whole.inputs)[index].shape;
  for (size_t s = 0; s < sizes.size(); ++s)
    for (const auto& d : whole.free_sizes[s].dims)
      if (d.output == output && d.tensor == index) shape[d.axis] = (sizes[s] + d.add) / d.divide;
  return shape;
}

bool sizes_for(const plan::Plan& whole, size_t index, const DLTensor& tensor, std::vector<int64_t>* sizes) {
  if (tensor.ndim != static_cast<int32_t>(whole.inputs[index].shape.size())) return false;
  for (size_t s = 0; s < whole.free_sizes.size(); ++s)
    for (const auto& d : whole.free_sizes[s].dims) {
      if (d.output || d.tensor != index) continue;
      const int64_t wanted = tensor.shape[d.axis];
      if (wanted < whole.free_sizes[s].low || wanted > whole.free_sizes[s].largest) return false;
      (*sizes)[s] = wanted;
    }
  const std::vector<int64_t> shape = shape_at(whole, false, index, *sizes);
  return std::equal(shape.begin(), shape.end(), tensor.shape);
}

SizedPlan::SizedPlan(const plan::Plan& whole)
    : whole_(whole), shown_(whole), inputs_(whole.inputs.size()), outputs_(whole.outputs.size()) {
  shown_.variants.clear();
  for (bool output : {false, true})
    for (size_t i = 0; i < (output ? outputs_ : inputs_).size(); ++i)
      if (is_free(whole, output, i)) {
        const plan::TensorInfo& info = (output ? whole.outputs : whole.inputs)[i];
        (output ? outputs_ : inputs_)[i] = Tensor::zeros(info.dtype, info.shape);
      }
}

void SizedPlan::set_sizes(const std::vector<int64_t>& sizes) {
  sizes_ = sizes;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    shown_.inputs[i].shape = shape_at(whole_, false, i, sizes);
    if (inputs_[i].defined() && inputs_[i].bytes() > 0) std::memset(inputs_[i].mutable_raw(), 0, inputs_[i].bytes());
  }
  for (size_t i = 0; i < outputs_.size(); ++i) shown_.outputs[i].shape = shape_at(whole_, true, i, sizes);
}

std::byte* SizedPlan::padded(bool output, size_t index) {
  Tensor& t = (output ? outputs_ : inputs_)[index];
  return t.defined() ? t.mutable_raw() : nullptr;
}

void SizedPlan::read(size_t input, const void* data) {
  Tensor& t = inputs_[input];
  if (t.defined())
    copy_common(t.mutable_raw(), t.shape(), static_cast<const std::byte*>(data), shown_.inputs[input].shape,
                t.dtype().bytes());
}

void SizedPlan::write(size_t output, void* data) const {
  const Tensor& t = outputs_[output];
  if (t.defined())
    copy_common(static_cast<std::byte*>(data), shown_.outputs[output].shape, t.raw(), t.shape(), t.dtype().bytes());
}

}  // namespace tilewright::runtime
