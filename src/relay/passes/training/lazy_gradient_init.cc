// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/training/lazy_gradient_init.h"

#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// 0 or 1 if all elements have that value.
std::optional<int> known_value(const Expr& e) {
  if (is_call_to(e, "zeros")) return 0;
  if (is_call_to(e, "ones")) return 1;
  if (const Tensor* data = constant_data(e); data && !data->dtype().is_bool())
    for (int value : {0, 1})
      if (is_uniform(e, value)) return value;
  return std::nullopt;
}

Expr filled(const Expr& like, int value) {
  const auto& type = tensor_of(like);
  return call(value ? "ones" : "zeros", {}, make_attrs<InitOpAttrs>([&](auto& a) {
                a.shape = *static_shape(type.shape);
                a.dtype = type.dtype.str();
              }),
              like->span);
}

Expr lazy(const Expr& e) {
  const auto* type = as_tensor(e->type);
  if (!type || !static_shape(type->shape)) return e;
  if (const Tensor* data = constant_data(e)) {
    auto value = data->size() > 1 ? known_value(e) : std::nullopt;
    return value ? filled(e, *value) : e;
  }
  const OpDef* def = called_op(e);
  if (!def) return e;
  const std::string_view op = def->name;
  const auto& args = as<CallNode>(e)->args;
  if (op == "zeros_like" || op == "ones_like") return filled(e, op == "ones_like");
  auto stands = [&](const Expr& x) { return same_tensor_type(x, e); };
  if (op == "add" || op == "subtract" || op == "multiply") {
    const auto a = known_value(args[0]), b = known_value(args[1]);
    if (op == "multiply") {
      if (a == 0 || b == 0) return filled(e, 0);
      if (a == 1 && stands(args[1])) return args[1];
      if (b == 1 && stands(args[0])) return args[0];
      return e;
    }
    if (a == 0 && b == 0) return filled(e, 0);
    if (op == "add" && a == 0 && stands(args[1])) return args[1];
    if (b == 0 && stands(args[0])) return args[0];
    return e;
  }
  const bool stays = of_first_operand(def->facts.elements) || op == "cast";
  const auto value = args.empty() ? std::nullopt : known_value(args[0]);
  if (value && stays && !type->dtype.is_bool()) return filled(e, *value);
  if (value == 0 && (op == "sum" || op == "negative")) return filled(e, 0);
  return e;
}

}  // namespace

Result<Module> lazy_gradient_init(const Module& module, PassContext&) {
  return rewrite_module(module, [](const Expr&, const Expr& e) { return lazy(e); });
}

}  // namespace tilewright::relay
