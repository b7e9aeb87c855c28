// SPDX-License-Identifier: Apache-2.0
// Values beside ties: where a kernel rounds to whole numbers, float32 and the reference's double may take different
// sides.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "relay/interpreter.h"

namespace tilewright::driver {

struct Sides {
  std::vector<relay::Value> low, high;
};

// The values of `body` where all that it rounds to whole numbers lies lower, and higher, by what float32 may lose on
// the way there (2^-15 of it, and of one step). Nothing if it rounds nothing.
Result<std::optional<Sides>> rounded_both_ways(const relay::Expr& body, const relay::Environment& arguments);
// The same of a module's results. What is moved adds up on the way: the sides say how far ties reach, not between
// which values a result lies.
Result<std::optional<Sides>> rounded_both_ways(const relay::Module& module,
                                               const std::map<std::string, relay::Value>& inputs);

}  // namespace tilewright::driver
