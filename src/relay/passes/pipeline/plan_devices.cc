// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/plan_devices.h"

#include <optional>

#include "base/format.h"
#include "relay/ops/program/attrs_device.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr ConfigKey<int64_t> kFallback{"relay.fallback_device_type", 1};

struct Device {
  int64_t type = 1, id = 0;
  bool operator==(const Device&) const = default;
};

// Union-find of expressions that share a device, with the device once it is known.
class Domains {
 public:
  // Errors: InvalidArgument when both sets have devices and they differ.
  Status join(const Expr& a, const Expr& b) {
    size_t x = root(a), y = root(b);
    if (x == y) return Ok{};
    if (devices_[x] && devices_[y] && !(*devices_[x] == *devices_[y])) return conflict(a, *devices_[x], *devices_[y]);
    parents_[x] = y;
    if (!devices_[y]) devices_[y] = devices_[x];
    return Ok{};
  }
  Status fix(const Expr& e, const Device& device) {
    auto& known = devices_[root(e)];
    if (known && !(*known == device)) return conflict(e, *known, device);
    known = device;
    return Ok{};
  }
  Device of(const Expr& e, const Device& fallback) {
    auto& known = devices_[root(e)];
    return known ? *known : fallback;
  }

 private:
  static Diagnostic conflict(const Expr& e, const Device& a, const Device& b) {
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("a value is to be on device {}.{} and on {}.{}", a.type, a.id, b.type, b.id),
                      e->span ? *e->span : "", "put on_device between the two parts, so that a copy can stand there");
  }
  size_t root(const Expr& e) {
    auto [it, fresh] = index_.try_emplace(e.get(), parents_.size());
    if (fresh) {
      parents_.push_back(it->second);
      devices_.emplace_back();
    }
    size_t at = it->second;
    while (parents_[at] != at) at = parents_[at] = parents_[parents_[at]];
    return at;
  }
  std::unordered_map<const ExprNode*, size_t> index_;
  std::vector<size_t> parents_;
  std::vector<std::optional<Device>> devices_;
};

Status constrain(const Expr& e, Domains& domains) {
  switch (e->kind) {
    case ExprKind::kCall: {
      const auto& c = *as<CallNode>(e);
      if (is_call_to(e, "on_device")) {
        const auto& a = attrs_of<OnDeviceAttrs>(e);
        Device device{a.device_type, a.device_id};
        if (a.constrain_body) TW_TRY_STATUS(domains.fix(c.args[0], device));
        return a.constrain_result ? domains.fix(e, device) : Status(Ok{});
      }
      if (is_call_to(e, "device_copy")) {
        const auto& a = attrs_of<DeviceCopyAttrs>(e);
        TW_TRY_STATUS(domains.fix(c.args[0], {a.src_dev_type, a.src_dev_id}));
        return domains.fix(e, {a.dst_dev_type, a.dst_dev_id});
      }
      for (const Expr& arg : c.args)
        if (const auto* tuple = as<TupleNode>(arg)) {
          for (const Expr& field : tuple->fields) TW_TRY_STATUS(domains.join(field, e));
        } else {
          TW_TRY_STATUS(domains.join(arg, e));
        }
      return Ok{};
    }
    case ExprKind::kTupleGetItem: {
      const auto& get = *as<TupleGetItemNode>(e);
      const auto* tuple = as<TupleNode>(get.tuple);
      return domains.join(e, tuple ? tuple->fields[static_cast<size_t>(get.index)] : get.tuple);
    }
    case ExprKind::kLet:
      TW_TRY_STATUS(domains.join(as<LetNode>(e)->var, as<LetNode>(e)->value));
      return domains.join(e, as<LetNode>(e)->body);
    case ExprKind::kIf:
      TW_TRY_STATUS(domains.join(e, as<IfNode>(e)->then_branch));
      return domains.join(e, as<IfNode>(e)->else_branch);
    case ExprKind::kMatch:
      for (const Clause& clause : as<MatchNode>(e)->clauses) TW_TRY_STATUS(domains.join(e, clause.body));
      return Ok{};
    case ExprKind::kRefCreate:
      return domains.join(e, as<RefCreateNode>(e)->value);
    case ExprKind::kRefRead:
      return domains.join(e, as<RefReadNode>(e)->reference);
    case ExprKind::kRefWrite:
      return domains.join(as<RefWriteNode>(e)->reference, as<RefWriteNode>(e)->value);
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
    case ExprKind::kFunction:
    case ExprKind::kTuple:
    case ExprKind::kConstructor:
      return Ok{};
  }
  return Ok{};
}

Result<Expr> planned(const Expr& function, const Device& fallback) {
  Domains domains;
  bool any = false;
  for (const Expr& e : post_order(function, true)) {
    any |= is_call_to(e, "on_device");
    TW_TRY_STATUS(constrain(e, domains));
  }
  if (!any && fallback == Device{}) return function;
  // Everything not separated by a copy is on the result's device (lowering reads it).
  const Expr& body = as<FunctionNode>(function)->body;
  const auto* fields = as<TupleNode>(body);
  const Device result = domains.of(fields && !fields->fields.empty() ? fields->fields[0] : body, fallback);
  Expr out = rewrite_expr(function, [&](const Expr& original, const Expr& e) -> Expr {
    if (!is_call_to(original, "on_device")) return e;
    Device from = domains.of(arg(original, 0), fallback), to = domains.of(original, fallback);
    if (from == to) return arg(e, 0);
    return call("device_copy", {arg(e, 0)}, make_attrs<DeviceCopyAttrs>([&](auto& a) {
                  a.src_dev_type = from.type;
                  a.src_dev_id = from.id;
                  a.dst_dev_type = to.type;
                  a.dst_dev_id = to.id;
                }),
                e->span);
  });
  const auto& made = *as<FunctionNode>(out);
  if (result == Device{} || made.attrs.count("result_device_type")) return out;
  DictAttrs attrs = made.attrs;
  attrs["result_device_type"] = result.type;
  return make_function(made.params, made.body, std::move(attrs), made.span, made.type_variables);
}

}  // namespace

Result<Module> plan_devices(const Module& module, PassContext& context) {
  Device fallback{context.get(kFallback), 0};
  Module out = module;
  for (auto& [name, function] : out.functions)
    if (as<FunctionNode>(function) && !is_closed_function(function)) function = TW_TRY(planned(function, fallback));
  return out;
}

}  // namespace tilewright::relay
