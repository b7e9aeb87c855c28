// SPDX-License-Identifier: Apache-2.0
// Opening of shared libraries that a user names.
#pragma once
#include <string>

#include "base/result.h"

namespace tilewright {

// The handle of a shared library, for dlsym; it stays loaded. Errors: kFileNotFound; kLinkFailed with the linker's
// reason.
Result<void*> open_plugin(const std::string& path);

}  // namespace tilewright
