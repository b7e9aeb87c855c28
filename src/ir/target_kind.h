// SPDX-License-Identifier: Apache-2.0
// The kinds of targets: the first word of a target string.
#pragma once
#include <span>

namespace tilewright {

// "llvm", "c"; codegen/backend.h has a backend for each.
std::span<const char* const> target_kinds();

}  // namespace tilewright
