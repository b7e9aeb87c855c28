// SPDX-License-Identifier: Apache-2.0
// Reads and writes files.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace tilewright::inputs {

inline std::span<const std::byte> bytes_of(const std::string& s) {
  return std::as_bytes(std::span(s.data(), s.size()));
}

// Writes to a temporary name, then renames. Errors: CannotWrite.
Status write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace tilewright::inputs
