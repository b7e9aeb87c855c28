// SPDX-License-Identifier: Apache-2.0
// The folder for a user's files that can be regenerated: compiled kernels, measured machine profiles.
#pragma once
#include <string>

namespace tilewright {

// $TILEWRIGHT_CACHE_DIR/NAME, else $XDG_CACHE_HOME/tilewright/NAME, else ~/.cache/tilewright/NAME; empty without a home
// folder.
std::string cache_folder(const std::string& name);

}  // namespace tilewright
