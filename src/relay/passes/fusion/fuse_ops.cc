// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/fusion/fuse_ops.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/format.h"
#include "relay/passes/fusion/fusion_groups.h"

namespace tilewright::relay {
namespace {

constexpr ConfigKey<int64_t> kMaxDepth{"relay.FuseOps.max_depth", 256};
constexpr ConfigKey<bool> kInPlace{"relay.FuseOps.in_place", true};
constexpr ConfigKey<bool> kLinkParams{"relay.FuseOps.link_params", false};

class Outliner {
 public:
  Outliner(const Expr& root, const FusionOptions& options, bool link_params)
      : groups_(root, options), link_params_(link_params), inner_(groups_.nodes().size()), outer_(inner_.size()) {}

  Expr run() {
    for (size_t node = 0; node < inner_.size(); ++node) rebuild(node);
    return outer_.back();
  }

 private:
  struct Outline {
    std::vector<Expr> params, arguments;
    std::unordered_map<const ExprNode*, size_t> param_of;
    bool has_call = false, reshape_only = true;
  };

  // The operand as seen inside the group: another member's expression, or a parameter.
  Expr inside(const Expr& operand, size_t group) {
    size_t index = groups_.index_of(operand);
    if (groups_.group_of(index) == group) return inner_[index];
    const Expr& value = outer_[index];
    if (link_params_ && as<ConstantNode>(value)) return value;
    Outline& outline = outlines_[group];
    auto [it, fresh] = outline.param_of.try_emplace(value.get(), outline.params.size());
    if (fresh) {
      outline.params.push_back(make_var(format("p{}", outline.params.size()), value->type));
      outline.arguments.push_back(value);
    }
    return outline.params[it->second];
  }

  std::vector<Expr> all_inside(const std::vector<Expr>& operands, size_t group) {
    std::vector<Expr> out;
    for (const Expr& operand : operands) out.push_back(inside(operand, group));
    return out;
  }

  Expr outside(const Expr& e) { return outer_[groups_.index_of(e)]; }

  // Rebuilds a node that is in no group over its rewritten children.
  Expr rebuild_outside(const Expr& e) {
    if (const auto* function = as<FunctionNode>(e)) {
      if (is_closed_function(e)) return e;
      Expr body = outside(function->body);
      return body == function->body ? e : with_body(*function, body);
    }
    std::vector<Expr> kids;
    for (const Expr& kid : children(e)) kids.push_back(outside(kid));
    return with_children(e, kids);
  }

  void rebuild(size_t node) {
    const Expr& e = groups_.nodes()[node];
    const size_t group = groups_.group_of(node);
    const bool root = groups_.is_root(node);
    if (const auto* call = as<CallNode>(e); call && called_op(e)) {
      const OpDef* op = called_op(e);
      if (std::string_view(op->name) == "annotation.stop_fusion") {
        inner_[node] = outer_[node] = outside(call->args[0]);
        return;
      }
      inner_[node] = same_call(e, *call, all_inside(call->args, group));
      Outline& outline = outlines_[group];
      outline.has_call = true;
      outline.reshape_only &= op->facts.elements == Elements::kReshaped;
    } else if (const auto* tuple = as<TupleNode>(e); tuple && !root) {
      inner_[node] = make_tuple(all_inside(tuple->fields, group), tuple->span);
    } else if (const auto* item = as<TupleGetItemNode>(e);
               item && (!root || groups_.group_of(groups_.index_of(item->tuple)) == group)) {
      inner_[node] = make_get(inside(item->tuple, group), item->index, item->span);
    } else {
      inner_[node] = outer_[node] = rebuild_outside(e);
      return;
    }
    outer_[node] = root ? outline_function(group, node) : inner_[node];
  }

  // Outlining does not change types, so they are kept: inferring them again could fail where they depend on constants
  // that are parameters now.
  static Expr same_call(const Expr& e, const CallNode& call, std::vector<Expr> args) {
    if (args == call.args) return e;
    return make_node<CallNode>(call.callee, std::move(args), call.attrs, call.type, call.span);
  }

  Expr outline_function(size_t group, size_t root) {
    Outline& outline = outlines_[group];
    if (!outline.has_call) return inner_[root];
    DictAttrs attrs = {{"Primitive", int64_t{1}}};
    if (outline.reshape_only) attrs["relay.reshape_only"] = int64_t{1};
    Expr function = make_function(std::move(outline.params), inner_[root], std::move(attrs), inner_[root]->span);
    Expr call = call_function(function, std::move(outline.arguments), inner_[root]->span);
    outlines_.erase(group);
    return call;
  }

  FusionGroups groups_;
  bool link_params_;
  std::vector<Expr> inner_;  // each node inside its group
  std::vector<Expr> outer_;  // each group's result outside
  std::unordered_map<size_t, Outline> outlines_;
};

}  // namespace

Result<Module> fuse_ops(const Module& module, PassContext& context) {
  FusionOptions options{context.opt_level >= 1, context.get(kMaxDepth), context.get(kInPlace)};
  Module out = module;
  for (auto& [name, function] : out.functions) {
    const auto* node = as<FunctionNode>(function);
    if (!node || is_closed_function(function)) continue;
    function = Outliner(function, options, context.get(kLinkParams)).run();
  }
  return out;
}

}  // namespace tilewright::relay
