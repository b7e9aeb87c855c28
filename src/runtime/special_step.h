// SPDX-License-Identifier: Apache-2.0
// Steps of a plan that are no kernels: a call of a function that an imported module has, or a copy between devices.
#pragma once
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "runtime/function.h"

namespace tilewright::runtime {

class SpecialStep {
 public:
  // `function` is empty for a copy. The step's buffers are arguments `first_argument` and on of the variant's.
  SpecialStep(const plan::Plan& plan, const plan::Step& step, size_t first_argument, FunctionRef function);
  SpecialStep(SpecialStep&&) = default;  // values point at tensors, which stay where they are
  // The error of the function, or what it threw, with its name as place.
  Status run(void* const* arguments);

 private:
  std::string name_;
  size_t first_argument_;
  FunctionRef function_;
  uint64_t bytes_ = 0;             // of a copy
  std::vector<DLTensor> tensors_;  // inputs, then outputs
  std::vector<tw_value> values_;
};

}  // namespace tilewright::runtime
