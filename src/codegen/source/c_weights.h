// SPDX-License-Identifier: Apache-2.0
// Constants as arrays of C.
#pragma once
#include <string>

#include "base/formats/plan.h"
#include "base/tensor.h"

namespace tilewright::codegen {

// `static const float NAME[...] = {...};` with a comment that says whose it is. Floats read back as the same value.
std::string c_weight(const plan::Param& param, const std::string& name, const Tensor& data);

}  // namespace tilewright::codegen
