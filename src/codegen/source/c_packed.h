// SPDX-License-Identifier: Apache-2.0
// A model's kernels as packed functions of the C runtime (crt/include/tvm/runtime/crt/module.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/formats/function_table.h"
#include "base/formats/plan.h"
#include "base/tensor.h"
#include "codegen/source/c_external.h"

namespace tilewright::codegen {

// A weight that is part of the code: plan.params[param], of the graph's storage `storage`.
struct LinkedParam {
  size_t param = 0;
  int64_t storage = 0;
};

// The C file with a packed function for each kernel, which takes whole tensors, and the system library's table of them.
// It calls the kernels of another file or object (c_kernel_functions). `externals`: the functions of plan.externals,
// which further files define.
// Without `own_table` the packed functions are called by c_system_lib's table, which may list several models.
std::string c_packed_functions(const plan::Plan& plan, const std::vector<LinkedParam>& linked,
                               const std::vector<CExternal>& externals, const std::function<Tensor(size_t)>& weight,
                               bool own_table = true);
// The same for functions of tensors without free sizes (base/formats/function_table.h).
std::string c_packed_functions(const plan::Plan& plan, const std::vector<plan::Function>& functions);

// The file with the system library of several models: the names of their packed functions.
std::string c_system_lib(const std::vector<std::string>& names);

}  // namespace tilewright::codegen
