// SPDX-License-Identifier: Apache-2.0
// Tensors in the JSON form: base64 of their binary record.
#pragma once
#include <string>

#include "base/tensor.h"

namespace tilewright::relay {

std::string encode_tensor(const Tensor& tensor);
Result<Tensor> decode_tensor(const std::string& text);

}  // namespace tilewright::relay
