// SPDX-License-Identifier: Apache-2.0
// Constants as C arrays.
#pragma once
#include <string>

#include "base/formats/plan.h"
#include "base/tensor.h"

namespace tilewright::codegen {

// `static const float NAME[...] = {...};` with a comment that names the weight. Floats are printed exactly.
std::string c_weight(const plan::Param& param, const std::string& name, const Tensor& data, bool aligned = false);

}  // namespace tilewright::codegen
