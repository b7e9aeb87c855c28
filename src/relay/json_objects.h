// SPDX-License-Identifier: Apache-2.0
// The node table both directions of the JSON form share: ids, strings and tensors.
#pragma once
#include <optional>
#include <string>

#include "base/tensor.h"

namespace tilewright::relay {

std::string base64_encode(const std::string& bytes);
// Nothing for characters outside the alphabet or a wrong length.
std::optional<std::string> base64_decode(const std::string& text);
std::string encode_tensor(const Tensor& tensor);
Result<Tensor> decode_tensor(const std::string& text);

}  // namespace tilewright::relay
