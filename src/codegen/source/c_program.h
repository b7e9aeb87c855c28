// SPDX-License-Identifier: Apache-2.0
// A whole model as one C99 file: what a user calls and how, weights, kernels, and the function that runs them in order.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "base/formats/plan.h"
#include "base/result.h"
#include "base/tensor.h"
#include "codegen/source/c_interface.h"
#include "tir/stmt.h"

namespace tilewright::codegen {

struct CProgram {
  const plan::Plan& plan;
  std::span<const tir::PrimFunc> functions;  // in the order of plan.kernels
  std::span<const std::string> kernels;      // the same, as c_kernel wrote them
  std::function<Tensor(size_t)> weight;      // plan.params[i] as it lies in memory
  bool weights_apart = false;                // the caller brings the params space
  const CInterface* interface = nullptr;     // the classic stack's, named; null: NAME_run
};
// The function that runs the model is NAME_run; its macros begin with NAME in capitals.
std::string c_model_name(const plan::Plan& plan);

// The kernels alone, behind the signature that the runtime calls (tir/stmt.h: PrimFunc), for an object of a library.
std::string c_kernel_functions(std::span<const tir::PrimFunc> functions, std::span<const std::string> kernels);

// Errors: UnsupportedModel for what a program without the runtime cannot do: several shapes, other devices, functions
// of imported modules, texts.
Result<std::string> c_program(const CProgram& program);

}  // namespace tilewright::codegen
