// SPDX-License-Identifier: Apache-2.0
// Values beside ties: where a kernel rounds to whole numbers, float32 and the reference's double may take different
// sides.
#pragma once
#include <optional>
#include <vector>

#include "relay/interpreter.h"

namespace tilewright::driver {

struct Sides {
  std::vector<relay::Value> low, high;
};

// The values of `body` where all that it rounds to whole numbers lies lower, and higher, by what float32 may lose on
// the way there (2^-15 of it, and of one step). Nothing if it rounds nothing.
Result<std::optional<Sides>> rounded_both_ways(const relay::Expr& body, const relay::Environment& arguments);

}  // namespace tilewright::driver
