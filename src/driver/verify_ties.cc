// SPDX-License-Identifier: Apache-2.0
#include "driver/verify_ties.h"

#include <utility>

#include "relay/calls.h"
#include "relay/op.h"

namespace tilewright::driver {
namespace {

constexpr double kLost = 0x1p-15;

bool rounds(const relay::Expr& e) {
  const auto* call = relay::as<relay::CallNode>(e);
  const auto* op = call ? relay::as<relay::OpNode>(call->callee) : nullptr;
  return op && op->def->facts.rounds;
}

// `body` with the operand x of each rounding replaced by x + side * (|x| + 1); the expression itself if there is none.
relay::Expr moved(const relay::Expr& body, double side) {
  return relay::rewrite_graph(
      body,
      [&](const relay::Expr&, const relay::Expr& e) {
        if (!rounds(e) || !relay::is_float_tensor(e)) return e;
        const relay::Expr& x = relay::arg(e, 0);
        const DataType dtype = relay::tensor_of(x).dtype;
        const relay::Expr size = relay::both("add", relay::one("abs", x), relay::full_constant(1, dtype));
        const relay::Expr there =
            relay::both("add", x, relay::both("multiply", size, relay::full_constant(side, dtype)));
        return relay::with_children(e, {there});
      },
      true);
}
relay::Module moved(const relay::Module& module, double side) {
  relay::Module out = module;
  for (auto& [name, function] : out.functions) function = moved(function, side);
  return out;
}

}  // namespace

Result<std::optional<Sides>> rounded_both_ways(const relay::Expr& body, const relay::Environment& arguments) {
  const relay::Expr lower = moved(body, -kLost);
  if (lower == body) return std::optional<Sides>();
  Sides sides;
  sides.low = TW_TRY(relay::evaluate(lower, arguments));
  sides.high = TW_TRY(relay::evaluate(moved(body, kLost), arguments));
  return std::optional<Sides>(std::move(sides));
}

Result<std::optional<Sides>> rounded_both_ways(const relay::Module& module,
                                               const std::map<std::string, relay::Value>& inputs) {
  const relay::Module lower = moved(module, -kLost);
  if (lower.functions == module.functions) return std::optional<Sides>();
  Sides sides;
  sides.low = TW_TRY(relay::interpret(lower, inputs));
  sides.high = TW_TRY(relay::interpret(moved(module, kLost), inputs));
  return std::optional<Sides>(std::move(sides));
}

}  // namespace tilewright::driver
