// SPDX-License-Identifier: Apache-2.0
// A model's kernels as packed functions of the C runtime (crt/include/tvm/runtime/crt/module.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "base/tensor.h"

namespace tilewright::codegen {

// A weight that is part of the code: plan.params[param], of the graph's storage `storage`.
struct LinkedParam {
  size_t param = 0;
  int64_t storage = 0;
};

// The C file with a packed function for each kernel, which takes whole tensors, and the system library's table of them.
// It calls the kernels of another file or object (c_kernel_functions).
std::string c_packed_functions(const plan::Plan& plan, const std::vector<LinkedParam>& linked,
                               const std::function<Tensor(size_t)>& weight);

}  // namespace tilewright::codegen
