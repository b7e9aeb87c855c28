// SPDX-License-Identifier: Apache-2.0
// Where a user's files lie that can be made again: compiled kernels, what was measured of the machine.
#pragma once
#include <string>

namespace tilewright {

// $TILEWRIGHT_CACHE_DIR/NAME, else $XDG_CACHE_HOME/tilewright/NAME, else ~/.cache/tilewright/NAME; empty without a
// home.
std::string cache_folder(const std::string& name);

}  // namespace tilewright
