// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648, section 4).
#pragma once
#include <optional>
#include <string>

namespace tilewright {

std::string base64_encode(const std::string& bytes);
// Nothing for invalid characters or a wrong length.
std::optional<std::string> base64_decode(const std::string& text);

}  // namespace tilewright
