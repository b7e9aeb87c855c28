// SPDX-License-Identifier: Apache-2.0
// Reads POSIX tar files with untrusted content.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright::driver {

struct TarMember {
  std::string name;  // as stored; folders end in a slash
  std::string_view bytes;
};
bool is_tar(std::string_view file);
// In order; views into the file. Error: BadArtifact.
Result<std::vector<TarMember>> read_tar(std::span<const std::byte> file);

}  // namespace tilewright::driver
