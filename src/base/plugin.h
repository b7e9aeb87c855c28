// SPDX-License-Identifier: Apache-2.0
// Files that a user names for the dynamic linker, or for another program.
#pragma once
#include <string>

#include "base/result.h"

namespace tilewright {

// The whole path of a file that is there, without links; else empty. A bare name would be searched for in the system's
// folders, and one with a leading dash taken for an option.
std::string absolute_path(const std::string& path);

// The handle of a shared library, for dlsym; it stays loaded. Errors: kFileNotFound; kLinkFailed with the linker's
// reason.
Result<void*> open_plugin(const std::string& path);

}  // namespace tilewright
