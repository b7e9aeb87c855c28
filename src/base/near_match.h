// SPDX-License-Identifier: Apache-2.0
// Names close to one a user mistyped, for the hint of an error.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

// The known names closest to `name` (letter case ignored), best first, at most `limit`; empty when none is close.
std::vector<std::string> near_matches(std::string_view name, std::span<const std::string> known, size_t limit = 3);
// "did you mean FuseOps or DefuseOps?", or `otherwise` when no known name is close.
std::string did_you_mean(std::string_view name, std::span<const std::string> known, std::string otherwise = {});

}  // namespace tilewright
