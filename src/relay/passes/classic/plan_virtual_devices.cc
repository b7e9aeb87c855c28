// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/plan_virtual_devices.h"

#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "relay/ops/program/attrs_device.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// The devices of a compilation.
struct PlanTargets {
  VirtualDevice fallback, host;
  std::vector<VirtualDevice> all;
  // Adds the target that the compilation has for this kind of device.
  VirtualDevice canonical(VirtualDevice device) const {
    if (!device.type || !device.target.empty()) return device;
    for (const VirtualDevice& known : all)
      if (known.type == device.type)
        return completed(std::move(device), VirtualDevice{known.type, 0, known.target, known.host, ""});
    return device;
  }
};

// Device constraints: a device for a value; for a function, those of its parameters and result. A union-find merges
// values that share a device.
class PlaceDomains {
 public:
  using Id = size_t;
  struct Domain {
    Id parent = 0;
    VirtualDevice device;
    std::vector<Id> parts;  // of a function: parameters, result
  };

  // A domain for a type; for a function type, `device` is the result's.
  Id make(const Type& type, const VirtualDevice& device = {}) {
    std::vector<Id> parts;
    if (const auto* f = type ? as_func(type) : nullptr) {
      for (const Type& arg : f->args) parts.push_back(make(arg));
      parts.push_back(make(f->result, device));
    }
    return add(parts.empty() ? device : VirtualDevice{}, std::move(parts));
  }
  Id make_function(std::vector<Id> parts) { return add({}, std::move(parts)); }

  Id find(Id id) {
    while (domains_[id].parent != id) id = domains_[id].parent = domains_[domains_[id].parent].parent;
    return id;
  }
  const Domain& operator[](Id id) { return domains_[find(id)]; }
  // The device of a value, or of a function's result.
  Id result(Id id) {
    id = find(id);
    while (!domains_[id].parts.empty()) id = find(domains_[id].parts.back());
    return id;
  }
  const VirtualDevice& device(Id id) { return domains_[result(id)].device; }

  // Merges two domains; false when their devices differ.
  bool unify(Id a, Id b) {
    a = find(a);
    b = find(b);
    if (a == b) return true;
    if (domains_[a].parts.empty() != domains_[b].parts.empty())
      return domains_[a].parts.empty() ? collapse(a, b) : collapse(b, a);
    if (!domains_[a].parts.empty()) {
      const std::vector<Id> x = domains_[a].parts, y = domains_[b].parts;
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i)
        if (!unify(x[i], y[i])) return false;
    } else {
      auto both = joined(domains_[a].device, domains_[b].device);
      if (!both) return false;
      domains_[b].device = std::move(*both);
    }
    domains_[find(a)].parent = find(b);
    return true;
  }
  // Puts all parameters and the result of a function on the device of `value`.
  bool collapse(Id value, Id function) {
    function = find(function);
    if (domains_[function].parts.empty()) return unify(value, function);
    for (Id part : std::vector<Id>(domains_[function].parts))
      if (!collapse(value, part)) return false;
    return true;
  }
  // Gives undetermined domains `device`; a function's parameters first follow its result.
  void complete(Id id, const VirtualDevice& device) {
    id = find(id);
    if (domains_[id].parts.empty()) {
      domains_[id].device = completed(domains_[id].device, device);
      return;
    }
    const std::vector<Id> parts = domains_[id].parts;
    complete(parts.back(), device);
    const VirtualDevice result = this->device(parts.back());
    for (size_t i = 0; i + 1 < parts.size(); ++i) complete(parts[i], result);
  }

 private:
  Id add(VirtualDevice device, std::vector<Id> parts) {
    domains_.push_back({domains_.size(), std::move(device), std::move(parts)});
    return domains_.size() - 1;
  }
  std::vector<Domain> domains_;
};

bool is_free_annotation(const CallNode& call) {
  const auto* a = attrs_as<OnDeviceAttrs>(call.attrs);
  return a && !a->constrain_body && !a->constrain_result;
}
bool is_normal_annotation(const Expr& e) {
  const auto* a = is_call_to(e, "on_device") ? attrs_as<OnDeviceAttrs>(as<CallNode>(e)->attrs) : nullptr;
  return a && a->constrain_body && !a->constrain_result;
}
Expr annotated_with(const Expr& body, const VirtualDevice& device, bool constrain_result) {
  return call("on_device", {body}, on_device_attrs(device, constrain_result, true), body->span);
}
// Wraps on_device around an expression that does not state its device itself.
Expr fixed_to(const Expr& body, const VirtualDevice& device) {
  switch (body->kind) {
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kOp:
    case ExprKind::kConstructor:
    case ExprKind::kFunction:
      return body;
    default:
      return is_call_to(body, "on_device") ? body : annotated_with(body, device, true);
  }
}

// Keeps on_device around results of functions and bindings; copies a field rather than its tuple.
Expr push_annotations_in(const Expr&, const Expr& e) {
  auto settled = [](const Expr& part) {
    return is_normal_annotation(part) ? annotated_with(arg(part, 0), device_of(as<CallNode>(part)->attrs), true) : part;
  };
  if (const auto* get = as<TupleGetItemNode>(e); get && is_normal_annotation(get->tuple))
    return annotated_with(make_get(arg(get->tuple, 0), get->index, e->span), device_of(as<CallNode>(get->tuple)->attrs),
                          false);
  if (const auto* let = as<LetNode>(e); let && is_normal_annotation(let->value))
    return with_children(e, {let->var, settled(let->value), let->body});
  if (const auto* f = as<FunctionNode>(e); f && is_normal_annotation(f->body)) return with_body(*f, settled(f->body));
  return e;
}

class VirtualDevicePlanner {
 public:
  VirtualDevicePlanner(const Module& module, const PlanTargets& targets) : module_(module), targets_(targets) {}

  Result<Module> run() {
    Module out = module_;
    for (auto& [name, function] : module_.functions) {
      if (!planned(function)) continue;
      order_[name] = post_order(function, true);
      for (const Expr& e : order_[name])
        if (is_closed_function(e))
          for (const Expr& inner : post_order(e, true)) closed_.insert(inner.get());
      for (const Expr& e : order_[name])
        if (!closed_.count(e.get())) TW_TRY_STATUS(constrain(e));
    }
    for (auto& [name, order] : order_)
      for (const Expr& e : order)
        if (const auto* c = as<CallNode>(e); c && is_free_annotation(*c)) domains_.unify(of(e), of(c->args[0]));
    for (auto& [name, order] : order_)
      for (auto e = order.rbegin(); e != order.rend(); ++e) complete_open_functions(*e);
    for (auto& [name, order] : order_)
      out.functions[name] = rewrite_expr(module_.functions.at(name), [&](const Expr& original, const Expr& rebuilt) {
        return captured(original, rebuilt);
      });
    return out;
  }

 private:
  using Id = PlaceDomains::Id;
  static bool planned(const Expr& function) { return as<FunctionNode>(function) && !is_closed_function(function); }

  Id of(const Expr& e) {
    if (const auto* global = as<GlobalVarNode>(e)) {
      auto it = module_.functions.find(global->name);
      if (it != module_.functions.end()) return of(it->second);
    }
    if (auto it = of_.find(e.get()); it != of_.end()) return it->second;
    Id id = 0;
    if (const auto* f = as<FunctionNode>(e); f && !is_closed_function(e)) {
      std::vector<Id> parts;
      for (const Expr& param : f->params) parts.push_back(of(param));
      parts.push_back(of(f->body));
      id = domains_.make_function(std::move(parts));
    } else {
      id = domains_.make(e->type);
    }
    kept_.push_back(e);
    return of_[e.get()] = id;
  }

  // The domain of a callee: operators and closed functions use one device per call, which may differ between calls.
  Id callee(const Expr& e) {
    if (auto it = callees_.find(e.get()); it != callees_.end()) return it->second;
    const auto& c = *as<CallNode>(e);
    return callees_[e.get()] = [&] {
      if (const OpDef* op = called_op(e)) return operator_domain(std::string_view(op->name), c);
      if (c.callee->kind == ExprKind::kConstructor || is_closed_function(c.callee)) return uniform(c.args.size());
      return of(c.callee);
    }();
  }
  Id uniform(size_t args) {
    const Id one = domains_.make({});
    return domains_.make_function(std::vector<Id>(args + 1, one));
  }
  Id operator_domain(std::string_view op, const CallNode& c) {
    const Id host = domains_.make({}, targets_.host);
    if (op == "on_device") {
      const auto& a = *attrs_as<OnDeviceAttrs>(c.attrs);
      const VirtualDevice device = targets_.canonical(device_of(c.attrs));
      const Type& type = c.args[0]->type;
      return domains_.make_function({domains_.make(type, a.constrain_body ? device : VirtualDevice{}),
                                     domains_.make(type, a.constrain_result ? device : VirtualDevice{})});
    }
    if (op == "device_copy") {
      const auto [from, to] = devices_of(c.attrs);
      const Type& type = c.args[0]->type;
      return domains_.make_function(
          {domains_.make(type, targets_.canonical(from)), domains_.make(type, targets_.canonical(to))});
    }
    if (op == "vm.shape_of") return domains_.make_function({domains_.make({}), host});
    if (op == "vm.reshape_tensor" && c.args.size() == 2) {
      const Id data = domains_.make({});
      return domains_.make_function({data, host, data});
    }
    if (op == "memory.alloc_tensor" && c.args.size() == 3) {
      const Id storage = domains_.make({});
      return domains_.make_function({storage, host, host, storage});
    }
    if (op == "memory.alloc_storage" && c.args.size() == 2)
      return domains_.make_function({host, host, domains_.make({})});
    return uniform(c.args.size());
  }

  Status one(bool agreed, const Expr& e) {
    if (agreed) return Ok{};
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("a value is to be on two devices at once, at {}", described(e)), e->span ? *e->span : "",
                      "put on_device between the two parts, so that a copy can stand there");
  }
  static std::string described(const Expr& e) {
    if (const OpDef* op = called_op(e)) return format("a call of {}", op->name);
    if (const auto* c = as<CallNode>(e))
      if (const auto* global = as<GlobalVarNode>(c->callee)) return format("a call of @{}", global->name);
    return e->kind == ExprKind::kFunction ? "a function" : "an expression";
  }

  Status constrain(const Expr& e) {
    const Id self = of(e);
    switch (e->kind) {
      case ExprKind::kCall: {
        const auto& c = *as<CallNode>(e);
        std::vector<Id> parts;
        for (const Expr& arg : c.args) parts.push_back(of(arg));
        parts.push_back(self);
        return one(domains_.unify(callee(e), domains_.make_function(std::move(parts))), e);
      }
      case ExprKind::kFunction:
        return apply_function_devices(*as<FunctionNode>(e), e);
      case ExprKind::kTuple:
        for (const Expr& field : as<TupleNode>(e)->fields) TW_TRY_STATUS(one(domains_.collapse(self, of(field)), e));
        return Ok{};
      case ExprKind::kTupleGetItem:
        return one(domains_.collapse(of(as<TupleGetItemNode>(e)->tuple), self), e);
      case ExprKind::kLet:
        TW_TRY_STATUS(one(domains_.unify(of(as<LetNode>(e)->var), of(as<LetNode>(e)->value)), e));
        return one(domains_.unify(self, of(as<LetNode>(e)->body)), e);
      case ExprKind::kIf:
        TW_TRY_STATUS(one(domains_.collapse(of(as<IfNode>(e)->condition), self), e));
        TW_TRY_STATUS(one(domains_.unify(self, of(as<IfNode>(e)->then_branch)), e));
        return one(domains_.unify(self, of(as<IfNode>(e)->else_branch)), e);
      case ExprKind::kMatch: {
        const auto& match = *as<MatchNode>(e);
        TW_TRY_STATUS(one(domains_.collapse(of(match.data), self), e));
        for (const Clause& clause : match.clauses) {
          for (const Expr& var : pattern_vars(clause.pattern))
            TW_TRY_STATUS(one(domains_.collapse(of(match.data), of(var)), e));
          TW_TRY_STATUS(one(domains_.unify(self, of(clause.body)), e));
        }
        return Ok{};
      }
      case ExprKind::kRefCreate:
        return one(domains_.collapse(self, of(as<RefCreateNode>(e)->value)), e);
      case ExprKind::kRefRead:
        return one(domains_.collapse(of(as<RefReadNode>(e)->reference), self), e);
      case ExprKind::kRefWrite:
        TW_TRY_STATUS(one(domains_.collapse(self, of(as<RefWriteNode>(e)->value)), e));
        return one(domains_.unify(self, of(as<RefWriteNode>(e)->reference)), e);
      case ExprKind::kVar:
      case ExprKind::kGlobalVar:
      case ExprKind::kConstant:
      case ExprKind::kOp:
      case ExprKind::kConstructor:
        return Ok{};
    }
    return Ok{};
  }
  // Applies the devices given by the function's attributes.
  Status apply_function_devices(const FunctionNode& f, const Expr& e) {
    const FunctionDevices devices = TW_TRY(devices_of(f));
    if (devices.result.unconstrained()) return Ok{};
    for (size_t i = 0; i < f.params.size(); ++i)
      TW_TRY_STATUS(one(
          domains_.unify(of(f.params[i]), domains_.make(f.params[i]->type, targets_.canonical(devices.params[i]))), e));
    return one(domains_.unify(of(f.body), domains_.make(f.body->type, targets_.canonical(devices.result))), e);
  }

  // Users before operands, so that operands follow them.
  void complete_open_functions(const Expr& e) {
    if (closed_.count(e.get())) return;
    if (e->kind == ExprKind::kFunction) domains_.complete(of(e), targets_.fallback);
    if (e->kind == ExprKind::kCall) domains_.complete(callee(e), targets_.fallback);
    if (const auto* let = as<LetNode>(e)) domains_.complete(of(let->var), device(e));
  }
  VirtualDevice device(const Expr& e) {
    Expr seen = e;
    while (is_call_to(seen, "on_device")) seen = arg(seen, 0);
    return completed(domains_.device(of(seen)), targets_.fallback);
  }

  // `child` (originally `original`) for a use that expects `expected`; on_device is added unless it equals `lexical`,
  // the device that a reader would assume.
  Expr placed(const VirtualDevice& lexical, const VirtualDevice& expected, const VirtualDevice& from, Expr child) {
    if (child->kind == ExprKind::kOp || child->kind == ExprKind::kConstructor) return child;
    if (!(from == expected))
      child = call("device_copy", {fixed_to(child, from)}, device_copy_attrs(from, expected), child->span);
    return expected == lexical ? child : fixed_to(child, expected);
  }

  Expr captured(const Expr& original, const Expr& rebuilt) {
    if (closed_.count(original.get())) return original;
    if (is_call_to(original, "on_device")) return arg(rebuilt, 0);
    if (is_call_to(original, "device_copy")) {
      auto [from, to] = devices_of(as<CallNode>(original)->attrs);
      from = completed(targets_.canonical(from), targets_.fallback);
      to = completed(targets_.canonical(to), targets_.fallback);
      return from == to ? arg(rebuilt, 0) : placed(to, to, from, arg(rebuilt, 0));
    }
    const std::vector<Expr> before = children(original);
    std::vector<Expr> kids = children(rebuilt);
    if (before.size() != kids.size()) return rebuilt;
    if (const auto* f = as<FunctionNode>(original)) {
      const VirtualDevice result = device(f->body);
      const FunctionNode& made = *as<FunctionNode>(rebuilt);
      DictAttrs attrs = made.attrs;
      std::vector<std::string> params;
      const VirtualDevice gives = completed(domains_.device(of(original)), targets_.fallback);
      for (const Expr& param : f->params) params.push_back(device(param).text());
      if (!params.empty()) attrs[kParamDevicesAttr] = params;
      attrs[kDeviceAttr] = gives.text();
      return relay::make_function(made.params, placed(gives, gives, result, made.body), std::move(attrs), made.span,
                                  made.type_variables);
    }
    const VirtualDevice here = device(original);
    const auto* c = as<CallNode>(original);
    const size_t first = c && !called_op(original) ? 1 : 0;  // the callee is the first child
    for (size_t i = 0; i < kids.size(); ++i) {
      if (before[i]->kind == ExprKind::kVar && original->kind == ExprKind::kLet && i == 0) continue;
      if (i < first && is_closed_function(before[i])) continue;  // it is wherever it is called
      VirtualDevice expected = here;
      if (c && i >= first) {
        const auto parts = domains_[callee(original)].parts;
        expected =
            completed(domains_.device(i - first < parts.size() ? parts[i - first] : of(original)), targets_.fallback);
      }
      if (original->kind == ExprKind::kLet && i == 1) {
        kids[i] = placed({}, device(before[0]), device(before[i]), kids[i]);
        continue;
      }
      if (original->kind == ExprKind::kMatch && i > 0 && before[i]->kind == ExprKind::kVar &&
          binds(original, before[i]))
        continue;
      kids[i] = placed(here, expected, device(before[i]), kids[i]);
    }
    return with_children(rebuilt, kids);
  }
  static bool binds(const Expr& match, const Expr& var) {
    for (const Clause& clause : as<MatchNode>(match)->clauses)
      for (const Expr& bound : pattern_vars(clause.pattern))
        if (bound == var) return true;
    return false;
  }

  const Module& module_;
  const PlanTargets& targets_;
  PlaceDomains domains_;
  std::map<std::string, std::vector<Expr>> order_;
  std::unordered_map<const ExprNode*, Id> of_, callees_;
  std::unordered_set<const ExprNode*> closed_;  // closed functions and everything in them
  std::vector<Expr> kept_;                      // keeps the keys of of_ alive
};

}  // namespace

Result<Module> plan_virtual_devices(const Module& module, const std::vector<std::string>& devices) {
  if (devices.size() < 2)
    return Diagnostic(ErrorCode::kInvalidArgument, "devices for values and for shapes are needed");
  PlanTargets targets;
  for (const std::string& text : devices) targets.all.push_back(TW_TRY(parse_virtual_device(text)));
  targets.fallback = targets.all[0];
  targets.host = targets.all[1];
  targets.all.erase(targets.all.begin(), targets.all.begin() + 2);
  const Module settled = rewrite_module(module, push_annotations_in);
  return VirtualDevicePlanner(settled, targets).run();
}

}  // namespace tilewright::relay
