// SPDX-License-Identifier: Apache-2.0
// Tensors as the JSON form holds them: their record in base64.
#pragma once
#include <string>

#include "base/tensor.h"

namespace tilewright::relay {

std::string encode_tensor(const Tensor& tensor);
Result<Tensor> decode_tensor(const std::string& text);

}  // namespace tilewright::relay
