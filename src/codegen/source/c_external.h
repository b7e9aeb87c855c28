// SPDX-License-Identifier: Apache-2.0
// Calls of the C functions of external code generators, by the classic packed convention: DLPack tensors, in unions of
// eight bytes.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/formats/plan.h"
#include "base/tensor.h"

namespace tilewright::codegen {

// A function in another C file. `constants`: what its __init_<symbol> receives before the first call.
struct CExternal {
  std::string symbol;
  std::vector<Tensor> constants;
};

// The parameters of a packed function.
extern const char* const kCPackedParameters;
// A tensor as DLPack has it, and a value of a packed call. May appear several times in a file.
extern const char* const kCPackedTypes;

// The kind of an element as DLPack has it.
int dlpack_code(DataType dtype);

// The declarations of the functions, and their constants; kCPackedTypes included.
std::string c_external_declarations(const std::vector<CExternal>& externals);

// Statements that give the function its constants, once; empty if it has none. As below, -1 is returned on errors.
std::string c_external_constants(const CExternal& external);
// `arguments`: each tensor's address as an expression, and its description. The statements return -1 from the function
// around them if the call fails.
using CTensors = std::vector<std::pair<std::string, const plan::Buffer*>>;
std::string c_external_call(const CExternal& external, const CTensors& arguments);

}  // namespace tilewright::codegen
