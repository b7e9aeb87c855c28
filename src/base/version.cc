// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace tilewright {

const char* version() { return TW_VERSION; }  // set for this file alone, by CMakeLists.txt

}  // namespace tilewright
