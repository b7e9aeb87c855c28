// SPDX-License-Identifier: Apache-2.0
// A plan with free sizes (plan::FreeSize) for the sizes of one run: callers see tensors of the actual sizes, kernels of
// the largest; the excess is zero in inputs and dropped from outputs.
#pragma once
#include <vector>

#include "base/formats/plan.h"
#include "base/tensor.h"
#include "tilewright/dlpack.h"

namespace tilewright::runtime {

class SizedPlan {
 public:
  explicit SizedPlan(const plan::Plan& whole);

  // The plan for callers: inputs and outputs have the actual sizes.
  const plan::Plan& shown() const { return shown_; }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  void set_sizes(const std::vector<int64_t>& sizes);

  // The padded copy of an input or output; null if it has no free size.
  std::byte* padded(bool output, size_t index);
  const int64_t* size(size_t index) const { return &sizes_[index]; }
  // Called before and after a run. `data`: the caller's memory of the tensor.
  void read(size_t input, const void* data);
  void write(size_t output, void* data) const;

 private:
  const plan::Plan& whole_;
  plan::Plan shown_;
  std::vector<int64_t> sizes_;
  std::vector<Tensor> inputs_, outputs_;
};

// Updates `sizes` to those that a tensor implies as input `index`; whether the plan supports them.
bool sizes_for(const plan::Plan& whole, size_t index, const DLTensor& tensor, std::vector<int64_t>* sizes);
// The shape of an input or output at these sizes.
std::vector<int64_t> shape_at(const plan::Plan& whole, bool output, size_t index, const std::vector<int64_t>& sizes);
// The smallest and largest admissible sizes.
std::vector<int64_t> least_sizes(const plan::Plan& whole);
std::vector<int64_t> largest_sizes(const plan::Plan& whole);

}  // namespace tilewright::runtime
