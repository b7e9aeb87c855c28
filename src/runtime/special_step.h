// SPDX-License-Identifier: Apache-2.0
// Steps other than kernels: a call of an imported module's function, or a copy between devices.
#pragma once
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "runtime/function.h"

namespace tilewright::runtime {

class SpecialStep {
 public:
  // `function` is empty for a copy. The step's buffers are the variant's arguments from `first_argument` on.
  SpecialStep(const plan::Plan& plan, const plan::Step& step, size_t first_argument, FunctionRef function);
  SpecialStep(SpecialStep&&) = default;  // values point to tensors_, whose storage does not move
  // Errors: those of the function, or its exception, located at its name.
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
