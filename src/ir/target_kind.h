// SPDX-License-Identifier: Apache-2.0
// Kinds of targets: the first word of a target string.
#pragma once
#include <span>

namespace tilewright {

// "llvm", "c", "stackvm"; each has a backend in codegen/backend.h.
std::span<const char* const> target_kinds();

}  // namespace tilewright
