// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <array>
#include <cstdint>

namespace tilewright {
namespace {
constexpr char kBase64Alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}  // namespace

std::string base64_encode(const std::string& bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kBase64Alphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(const std::string& text) {
  static const std::array<int8_t, 256> kValues = [] {
    std::array<int8_t, 256> out{};
    out.fill(-1);
    for (int i = 0; i < 64; ++i) out[static_cast<uint8_t>(kBase64Alphabet[i])] = static_cast<int8_t>(i);
    return out;
  }();
  if (text.size() % 4) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    int padding = 0;
    for (size_t k = 0; k < 4; ++k) {
      char c = text[i + k];
      bool pad = c == '=' && i + 4 == text.size() && k >= 2;
      if (!pad && (padding || kValues[static_cast<uint8_t>(c)] < 0)) return std::nullopt;
      padding += pad;
      group = group << 6 | (pad ? 0u : static_cast<uint32_t>(kValues[static_cast<uint8_t>(c)]));
    }
    for (int k = 0; k < 3 - padding; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
  return out;
}

}  // namespace tilewright
