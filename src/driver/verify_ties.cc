// SPDX-License-Identifier: Apache-2.0
#include "driver/verify_ties.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "relay/calls.h"

namespace tilewright::driver {
namespace {

constexpr std::array<std::string_view, 5> kRoundings = {"nearbyint", "round", "floor", "ceil", "trunc"};

// `body` with the operand x of each rounding replaced by x + side * (|x| + 1); the expression itself if there is none.
relay::Expr moved(const relay::Expr& body, double side) {
  return relay::rewrite_graph(body, [&](const relay::Expr&, const relay::Expr& e) {
    const bool rounds = std::any_of(kRoundings.begin(), kRoundings.end(),
                                    [&](std::string_view op) { return relay::as_call(e, op) != nullptr; });
    if (!rounds || !relay::is_float_tensor(e)) return e;
    const relay::Expr& x = relay::arg(e, 0);
    const DataType dtype = relay::tensor_of(x).dtype;
    const relay::Expr size = relay::both("add", relay::one("abs", x), relay::full_constant(1, dtype));
    const relay::Expr there = relay::both("add", x, relay::both("multiply", size, relay::full_constant(side, dtype)));
    return relay::with_children(e, {there});
  });
}

}  // namespace

Result<std::optional<Sides>> rounded_both_ways(const relay::Expr& body, const relay::Environment& arguments) {
  constexpr double kLost = 0x1p-15;
  const relay::Expr lower = moved(body, -kLost);
  if (lower == body) return std::optional<Sides>();
  Sides sides;
  sides.low = TW_TRY(relay::evaluate(lower, arguments));
  sides.high = TW_TRY(relay::evaluate(moved(body, kLost), arguments));
  return std::optional<Sides>(std::move(sides));
}

}  // namespace tilewright::driver
