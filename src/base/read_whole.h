// SPDX-License-Identifier: Apache-2.0
// Reads whole files; base/work_folder.h writes them.
#pragma once
#include <string>

#include "base/result.h"

namespace tilewright {

// Errors: FileNotFound, LimitExceeded (above 16 GiB).
Result<std::string> read_whole(const std::string& path);

}  // namespace tilewright
