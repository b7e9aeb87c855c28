// SPDX-License-Identifier: Apache-2.0
#include "inputs/file.h"

#include "base/work_folder.h"

namespace tilewright::inputs {

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  return write_whole(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace tilewright::inputs
