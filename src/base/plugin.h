// SPDX-License-Identifier: Apache-2.0
// Paths given by the user to be opened by the dynamic linker, or by another program.
#pragma once
#include <string>

#include "base/result.h"

namespace tilewright {

// The canonical absolute path of an existing file, else empty. A bare name would be searched in the system's folders,
// and a leading dash taken for an option.
std::string absolute_path(const std::string& path);

// Opens a shared library permanently; returns the handle for dlsym. Errors: kFileNotFound; kLinkFailed with the
// linker's reason.
Result<void*> open_plugin(const std::string& path);

}  // namespace tilewright
