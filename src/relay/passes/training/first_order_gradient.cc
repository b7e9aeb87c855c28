// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/training/first_order_gradient.h"

#include <algorithm>

#include "base/format.h"
#include "relay/ops/attrs.h"
#include "relay/ops/gradient.h"
#include "relay/passes/pipeline/expand_composed.h"
#include "relay/passes/training/unfold.h"
#include "relay/rewrite.h"
#include "relay/script_ops.h"

namespace tilewright::relay {
namespace {

Expr filled_like(const Expr& e, double value) {
  const auto& t = tensor_of(e);
  if (auto shape = static_shape(t.shape)) return full_constant(value, t.dtype, *shape);
  return call(value == 0 ? "zeros_like" : "ones_like", {e});
}

// Integers have gradients, too, computed in integers.
bool has_numbers(const Expr& e) {
  const auto* t = as_tensor(e->type);
  return t && (t->dtype.is_float() || t->dtype.is_integral()) && !t->dtype.is_bool();
}

bool has_sizes(const Expr& call) {
  const auto& args = as<CallNode>(call)->args;
  return gradients::is_static(call) && std::all_of(args.begin(), args.end(), gradients::is_static);
}

// The gradients of a call's operands, given its result's; nothing without a rule.
std::optional<Gradients> operand_gradients(const Expr& e, const Expr& gradient) {
  const OpFacts& op = called_op(e)->facts;
  if (!op.gradient) return std::nullopt;
  if (!op.gradient_of_any_shape && !has_sizes(e)) return std::nullopt;
  Gradients out = op.gradient(e, gradient);
  return out.empty() ? std::nullopt : std::optional(std::move(out));
}

bool has_gradient_rule(const Expr& e) {
  const OpDef& op = *called_op(e);
  if (!op.facts.gradient) return false;
  // zeros_like and similar operators are expanded to the known shape.
  return !(op.facts.gradient_of_any_shape && op.expand && has_sizes(e));
}

class Backward {
 public:
  Result<std::vector<Expr>> run(const Expr& y, const std::vector<Expr>& xs) {
    std::vector<Expr> order = post_order(y);
    for (const Expr& e : order) TW_TRY_STATUS(check(e));
    seed(y);
    for (size_t i = order.size(); i-- > 0;) TW_TRY_STATUS(spread(order[i]));
    std::vector<Expr> gradients;
    for (const Expr& x : xs) {
      auto it = gradients_.find(x.get());
      gradients.push_back(it == gradients_.end() ? filled_like(x, 0) : it->second);
    }
    return gradients;
  }

 private:
  Status check(const Expr& e) const {
    bool flows = as<VarNode>(e) || as<ConstantNode>(e) || as<TupleNode>(e) || as<TupleGetItemNode>(e) || called_op(e) ||
                 as<IfNode>(e);
    if (!flows)
      return Diagnostic(ErrorCode::kUnsupportedModel, "gradients go through operators and branches only", "",
                        "run PartialEvaluate first");
    return Ok{};
  }
  void seed(const Expr& e) {
    if (const auto* tuple = as<TupleNode>(e)) {
      for (const Expr& field : tuple->fields) seed(field);
    } else if (has_numbers(e)) {
      add(e, filled_like(e, 1));
    }
  }
  void add(const Expr& e, const Expr& gradient) {
    if (!gradient) return;
    Expr& known = gradients_[e.get()];
    known = known ? call("add", {known, gradient}) : gradient;
  }

  Status spread(const Expr& e) {
    if (const auto* get = as<TupleGetItemNode>(e)) {
      auto it = gradients_.find(e.get());
      if (it == gradients_.end()) return Ok{};
      if (const auto* tuple = as<TupleNode>(get->tuple)) {
        add(tuple->fields[static_cast<size_t>(get->index)], it->second);
      } else {
        auto& fields = fields_[get->tuple.get()];
        fields.resize(as_tuple(get->tuple->type)->fields.size());
        Expr& known = fields[static_cast<size_t>(get->index)];
        known = known ? call("add", {known, it->second}) : it->second;
      }
      return Ok{};
    }
    if (const auto* branch = as<IfNode>(e)) {
      auto it = gradients_.find(e.get());
      if (it == gradients_.end()) return Ok{};
      Expr none = filled_like(e, 0);
      add(branch->then_branch, make_node<IfNode>(branch->condition, it->second, none, e->span));
      add(branch->else_branch, make_node<IfNode>(branch->condition, none, it->second, e->span));
      return Ok{};
    }
    if (!called_op(e)) return Ok{};
    Expr gradient;
    if (auto it = gradients_.find(e.get()); it != gradients_.end()) gradient = it->second;
    if (auto it = fields_.find(e.get()); it != fields_.end()) {
      // Unused results have gradient zero.
      for (size_t i = 0; i < it->second.size(); ++i)
        if (!it->second[i]) it->second[i] = filled_like(make_get(e, static_cast<int64_t>(i)), 0);
      gradient = make_tuple(it->second);
    }
    if (!gradient) return Ok{};
    std::optional<std::vector<Expr>> parts;
    if (const auto of_script = find_script_gradient(called_op(e)->name))
      parts = TW_TRY((*of_script)(e, gradient));
    else
      parts = operand_gradients(e, gradient);
    if (!parts)
      return Diagnostic(ErrorCode::kUnsupportedModel, format("{} has no gradient", called_op(e)->name),
                        e->span ? *e->span : "", "SimplifyInference takes normalisations apart first");
    const auto& args = as<CallNode>(e)->args;
    // A tuple operand's gradients are those of its fields.
    if (args.size() == 1 && as<TupleNode>(args[0])) {
      for (size_t i = 0; i < parts->size(); ++i) add(as<TupleNode>(args[0])->fields[i], (*parts)[i]);
      return Ok{};
    }
    for (size_t i = 0; i < std::min(parts->size(), args.size()); ++i)
      if (has_numbers(args[i])) add(args[i], (*parts)[i]);
    return Ok{};
  }

  std::unordered_map<const ExprNode*, Expr> gradients_;
  // per call with several results: gradients of its fields
  std::unordered_map<const ExprNode*, std::vector<Expr>> fields_;
};

}  // namespace

Result<std::vector<Expr>> gradients_of(const Expr& y, const std::vector<Expr>& xs) {
  Backward backward;
  return backward.run(y, xs);
}

Result<Module> first_order_gradient(const Module& module, PassContext&) {
  Module out = module;
  for (auto& [name, function] : out.functions) {
    if (!as<FunctionNode>(function) || is_closed_function(function)) continue;
    auto graph = unfolded(module, function);
    if (!graph.ok()) {
      Diagnostic error = graph.error();
      error.where = error.where.empty() ? "@" + name : format("@{}: {}", name, error.where);
      return error;
    }
    function = *graph;
    // Composed operators are differentiated through their expansion.
    for (bool changed = true; changed;) {
      changed = false;
      function = rewrite_expr(function, [&](const Expr&, const Expr& e) {
        Expr made = called_op(e) && !has_gradient_rule(e) ? expanded(e) : e;
        changed |= !(made == e);
        return made;
      });
    }
    const auto& node = *as<FunctionNode>(function);
    auto gradients = gradients_of(node.body, node.params);
    if (!gradients.ok()) {
      Diagnostic error = gradients.error();
      error.where = error.where.empty() ? "@" + name : format("@{}: {}", name, error.where);
      return error;
    }
    const Expr body = make_tuple({node.body, make_tuple(*std::move(gradients))});
    function = make_node<FunctionNode>(node.params, body, node.attrs, node.span, node.type_variables);
  }
  return out;
}

}  // namespace tilewright::relay
