// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>
#include "tilewright/vm.h"
static std::vector<int64_t> ids(3 * 21, 1);
