// SPDX-License-Identifier: Apache-2.0
// A whole model as one C99 file: interface and usage comment, weights, kernels, and the function that runs them in
// order.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/formats/plan.h"
#include "base/result.h"
#include "base/tensor.h"
#include "codegen/source/c_external.h"
#include "codegen/source/c_interface.h"
#include "tir/stmt.h"

namespace tilewright::codegen {

struct CProgram {
  const plan::Plan& plan;
  std::span<const tir::PrimFunc> functions;  // in the order of plan.kernels
  std::span<const std::string> kernels;      // their text, from c_kernel
  std::function<Tensor(size_t)> weight;      // plan.params[i] as laid out in memory
  bool weights_apart = false;                // the caller provides the params space
  const CInterface* interface = nullptr;     // the classic interface, with names set; null: NAME_run
  // With the classic interface: the C functions of plan.externals, which other files define.
  std::vector<CExternal> externals = {};
};
// The model's C name: NAME_run runs it; macros begin with NAME in capitals.
std::string c_model_name(const plan::Plan& plan);

// Only the kernels, with the runtime's signature (tir/stmt.h: PrimFunc), for a library's object.
// `plan`: how they are called; null: in any way.
std::string c_kernel_functions(std::span<const tir::PrimFunc> functions, std::span<const std::string> kernels,
                               const plan::Plan* plan = nullptr);

// Errors: UnsupportedModel for what needs the runtime:
// several shapes, other devices, imported modules, strings.
Result<std::string> c_program(const CProgram& program);

}  // namespace tilewright::codegen
