// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/to_mixed_precision.h"

#include <algorithm>

#include "ir/string_fields.h"
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr ConfigKey<bool> kKeepOutput{"relay.ToMixedPrecision.keep_orig_output_dtype", false};

// Operators that create tensors of a dtype given by an attribute.
constexpr std::string_view kMakers[] = {"full", "ones", "zeros"};

template <size_t kSize>
bool is_one_of(const OpDef& op, const std::string_view (&names)[kSize]) {
  return std::find(std::begin(names), std::end(names), op.name) != std::end(names);
}

class Narrower {
 public:
  Narrower(DataType narrow, const PrecisionRules& rules) : narrow_(narrow), rules_(rules) {}

  // The expression over converted operands.
  Expr converted(const Expr& e, std::vector<Expr> operands) {
    const OpDef* op = called_op(e);
    if (!op) return with_children(e, operands);
    const auto& c = *as<CallNode>(e);
    const PrecisionRule rule = rule_of(*op, e);
    if (rule.narrowing == Narrowing::kAlways || (rule.narrowing == Narrowing::kFollows && can_be_narrow(operands))) {
      std::vector<Expr> narrow = cast_all(operands, narrow_);
      const AttrsRef attrs = with_dtype(*op, c.attrs, rule.accumulated);
      if (narrow == c.args && (!attrs || attrs_equal(attrs, c.attrs))) return e;
      auto made = try_call(op->name, std::move(narrow), attrs, c.span);
      if (made.ok()) return rule.accumulated == rule.result ? *made : cast_to(*made, rule.result);
    }
    std::vector<Expr> wide = cast_all(std::move(operands), kFloat32);
    return wide == c.args ? e : call(op->name, wide, c.attrs, c.span);
  }

  // Casts floats: narrow ones to a wide `dtype`, wide ones to a narrow `dtype`.
  Expr cast_to(const Expr& e, DataType dtype) {
    if (const auto* tuple = as<TupleNode>(e)) {
      std::vector<Expr> fields = cast_all(tuple->fields, dtype);
      return fields == tuple->fields ? e : make_tuple(std::move(fields), e->span);
    }
    const auto* type = as_tensor(e->type);
    if (!type || !type->dtype.is_float() || type->dtype == dtype) return e;
    if (dtype != narrow_ && type->dtype != narrow_) return e;
    // Casting a narrow value to wide and back gives the value itself.
    if (is_call_to(e, "cast") && dtype == narrow_ && tensor_of(arg(e, 0)).dtype == narrow_) return arg(e, 0);
    auto& known = casts_[{e.get(), dtype}];
    if (!known.second)
      known = {e, call("cast", {e}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = dtype; }), e->span)};
    return known.second;
  }

 private:
  std::vector<Expr> cast_all(std::vector<Expr> es, DataType dtype) {
    for (Expr& e : es) e = cast_to(e, dtype);
    return es;
  }

  PrecisionRule rule_of(const OpDef& op, const Expr& e) const {
    if (rules_)
      if (auto own = rules_(op.name, e)) return *own;
    return {op.facts.narrowing, narrow_, narrow_};
  }

  // Every float operand is narrow already, or is a parameter or constant, which is converted only once.
  bool can_be_narrow(const std::vector<Expr>& operands) const {
    return std::all_of(operands.begin(), operands.end(), [&](const Expr& e) {
      return as<ConstantNode>(e) || as<VarNode>(e) || is_narrow(e->type) ||
             (as<TupleNode>(e) && can_be_narrow(as<TupleNode>(e)->fields));
    });
  }
  bool is_narrow(const Type& type) const {
    if (const auto* tuple = as_tuple(type))
      return std::all_of(tuple->fields.begin(), tuple->fields.end(), [&](const Type& t) { return is_narrow(t); });
    const auto* tensor = as_tensor(type);
    return tensor && (!tensor->dtype.is_float() || tensor->dtype == narrow_);
  }

  // The attributes with this dtype as accumulation or creation dtype.
  static AttrsRef with_dtype(const OpDef& op, const AttrsRef& attrs, DataType dtype) {
    struct Set : StringFields {
      std::string wanted, name;
      void field(const char* field, std::string* value) override {
        const bool floating = value->empty() || value->starts_with("float") || value->starts_with("bfloat");
        if (field == name && floating) *value = wanted;
      }
    };
    const bool maker = is_one_of(op, kMakers);
    if (!attrs || (!maker && !std::string_view(op.name).starts_with("nn."))) return attrs;
    AttrsNode* copy = attrs->clone();
    Set set;
    set.wanted = dtype.str();
    set.name = maker ? "dtype" : "out_dtype";
    copy->visit(set);
    return AttrsRef(copy);
  }

  struct KeyHash {
    size_t operator()(const std::pair<const ExprNode*, DataType>& key) const {
      return std::hash<const void*>()(key.first) * 31 + static_cast<size_t>(key.second.code) * 7 + key.second.bits;
    }
  };
  DataType narrow_;
  const PrecisionRules& rules_;
  std::unordered_map<std::pair<const ExprNode*, DataType>, std::pair<Expr, Expr>, KeyHash>
      casts_;  // holds the expression, so that the key's address stays valid
};

// Casts the tensors of an expression so that it has `type`.
Expr as_type(const Expr& e, const Type& type, Narrower& narrower) {
  if (type_equal(e->type, type)) return e;
  if (const auto* tuple = as_tuple(type)) {
    std::vector<Expr> fields;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      const auto* literal = as<TupleNode>(e);
      fields.push_back(as_type(literal ? literal->fields[i] : make_get(e, static_cast<int64_t>(i), e->span),
                               tuple->fields[i], narrower));
    }
    return make_tuple(std::move(fields), e->span);
  }
  return as_tensor(type) ? narrower.cast_to(e, as_tensor(type)->dtype) : e;
}

// Functions that call functions (whose parameter types would have to change) or use data types are not converted.
bool is_plain(const Expr& function) {
  for (const Expr& e : post_order(function)) {
    bool fine = e == function || as<VarNode>(e) || as<ConstantNode>(e) || as<TupleNode>(e) || as<TupleGetItemNode>(e) ||
                as<LetNode>(e) || as<IfNode>(e) || called_op(e);
    if (!fine) return false;
  }
  return true;
}

Expr narrowed_body(const Expr& body, Narrower& narrower) {
  std::unordered_map<const ExprNode*, Expr> done;
  const std::vector<Expr> order = post_order(body);
  std::unordered_map<const ExprNode*, std::vector<Expr>> bound;  // value -> the variables bound to it
  for (const Expr& e : order)
    if (const auto* let = as<LetNode>(e)) bound[let->value.get()].push_back(let->var);
  for (const Expr& e : order) {
    std::vector<Expr> operands = children(e);
    for (Expr& operand : operands) operand = done.at(operand.get());
    if (as<IfNode>(e))
      for (size_t i : {size_t{1}, size_t{2}}) operands[i] = as_type(operands[i], children(e)[i]->type, narrower);
    const Expr made = narrower.converted(e, std::move(operands));
    done[e.get()] = made;
    // A variable takes its value's converted type; its uses come later in the order.
    if (auto it = bound.find(e.get()); it != bound.end())
      for (const Expr& var : it->second)
        if (!type_equal(var->type, made->type))
          done[var.get()] = make_var(as<VarNode>(var)->name, made->type, var->span);
  }
  return done.at(body.get());
}

}  // namespace

Result<Module> to_mixed_precision(const Module& module, DataType narrow, bool keep_output_dtype,
                                  const PrecisionRules& rules) {
  Module out = module;
  for (auto& [name, function] : out.functions) {
    const auto* node = as<FunctionNode>(function);
    // Callers rely on the result types of other functions.
    if (!node || is_closed_function(function) || !is_plain(function)) continue;
    Narrower narrower(narrow, rules);
    Expr body = narrowed_body(node->body, narrower);
    if (keep_output_dtype || name != "main") body = as_type(body, node->body->type, narrower);
    if (!(body == node->body)) function = with_body(*node, body);
  }
  return out;
}

Result<Module> to_mixed_precision(const Module& module, PassContext& context) {
  return to_mixed_precision(module, kFloat16, context.get(kKeepOutput), {});
}

}  // namespace tilewright::relay
