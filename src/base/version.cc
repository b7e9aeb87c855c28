// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace tilewright {

const char* version() { return TW_VERSION; }  // defined for this file only, by CMakeLists.txt

}  // namespace tilewright
