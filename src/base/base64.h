// SPDX-License-Identifier: Apache-2.0
// Bytes as text of 64 letters (RFC 4648, section 4).
#pragma once
#include <optional>
#include <string>

namespace tilewright {

std::string base64_encode(const std::string& bytes);
// Nothing for characters outside the alphabet or a wrong length.
std::optional<std::string> base64_decode(const std::string& text);

}  // namespace tilewright
