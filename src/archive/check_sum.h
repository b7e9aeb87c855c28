// SPDX-License-Identifier: Apache-2.0
// CRC-32 of ISO 3309, as zip archives have it: reflected polynomial.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace tilewright::archive {

uint32_t crc32_of(std::span<const std::byte> bytes);

}  // namespace tilewright::archive
