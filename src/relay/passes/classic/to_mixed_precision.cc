// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/classic/to_mixed_precision.h"

#include <algorithm>

#include "ir/string_fields.h"
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr ConfigKey<bool> kKeepOutput{"relay.ToMixedPrecision.keep_orig_output_dtype", false};

class Narrower {
 public:
  explicit Narrower(DataType narrow) : narrow_(narrow) {}

  // The expression over operands that have been converted already.
  Expr converted(const Expr& e, std::vector<Expr> operands) {
    const OpDef* op = called_op(e);
    if (!op) return with_children(e, operands);
    const auto& c = *as<CallNode>(e);
    const Narrowing fact = op->facts.narrowing;
    if (fact == Narrowing::kAlways || (fact == Narrowing::kFollows && are_narrow(operands))) {
      auto made = try_call(op->name, cast_all(operands, narrow_), without_out_dtype(c.attrs), c.span);
      if (made.ok()) return *made;
    }
    std::vector<Expr> wide = cast_all(std::move(operands), kFloat32);
    return wide == c.args ? e : call(op->name, wide, c.attrs, c.span);
  }

  Expr cast_to(const Expr& e, DataType dtype) {
    DataType from = dtype == narrow_ ? DataType(kFloat32) : narrow_;
    if (const auto* tuple = as<TupleNode>(e)) {
      std::vector<Expr> fields = cast_all(tuple->fields, dtype);
      return fields == tuple->fields ? e : make_tuple(std::move(fields), e->span);
    }
    const auto* type = as_tensor(e->type);
    if (!type || type->dtype != from) return e;
    // A value cast one way and back is the value, when it began narrow.
    if (is_call_to(e, "cast") && dtype == narrow_ && tensor_of(arg(e, 0)).dtype == narrow_) return arg(e, 0);
    auto& known = casts_[{e.get(), dtype == narrow_}];
    if (!known.second)
      known = {e, call("cast", {e}, make_attrs<CastAttrs>([&](auto& a) { a.dtype = dtype; }), e->span)};
    return known.second;
  }

 private:
  std::vector<Expr> cast_all(std::vector<Expr> es, DataType dtype) {
    for (Expr& e : es) e = cast_to(e, dtype);
    return es;
  }

  bool are_narrow(const std::vector<Expr>& operands) const {
    bool any = false;
    std::function<bool(const Expr&)> narrow = [&](const Expr& e) {
      if (as<ConstantNode>(e)) return true;
      if (const auto* tuple = as<TupleNode>(e)) return std::all_of(tuple->fields.begin(), tuple->fields.end(), narrow);
      const auto* type = as_tensor(e->type);
      if (!type || type->dtype == kFloat32) return false;
      any |= type->dtype == narrow_;
      return true;
    };
    return std::all_of(operands.begin(), operands.end(), narrow) && any;
  }

  // An explicit float32 result would undo the narrower.
  static AttrsRef without_out_dtype(const AttrsRef& attrs) {
    struct Clear : StringFields {
      void field(const char* name, std::string* value) override {
        if (std::string_view(name) == "out_dtype" && *value == "float32") value->clear();
      }
    };
    if (!attrs) return attrs;
    AttrsNode* copy = attrs->clone();
    Clear clear;
    copy->visit(clear);
    return AttrsRef(copy);
  }

  struct KeyHash {
    size_t operator()(const std::pair<const ExprNode*, bool>& key) const {
      return std::hash<const void*>()(key.first) * 2 + key.second;
    }
  };
  DataType narrow_;
  std::unordered_map<std::pair<const ExprNode*, bool>, std::pair<Expr, Expr>, KeyHash>
      casts_;  // with the expression: its address is the key
};

// The expression with `type`, by casts of its tensors.
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

// A dataflow function: bindings and branches would have to change the types of variables.
bool is_dataflow(const Expr& function) {
  for (const Expr& e : post_order(function)) {
    bool fine = e == function || as<VarNode>(e) || as<ConstantNode>(e) || as<TupleNode>(e) || as<TupleGetItemNode>(e) ||
                called_op(e);
    if (!fine) return false;
  }
  return true;
}

}  // namespace

Result<Module> to_mixed_precision(const Module& module, DataType narrow, bool keep_output_dtype) {
  Module out = module;
  for (auto& [name, function] : out.functions) {
    const auto* node = as<FunctionNode>(function);
    // Other functions' results have callers that count on their types.
    if (!node || is_closed_function(function) || !is_dataflow(function)) continue;
    Narrower narrower(narrow);
    std::unordered_map<const ExprNode*, Expr> done;
    for (const Expr& e : post_order(node->body)) {
      std::vector<Expr> operands = children(e);
      for (Expr& operand : operands) operand = done.at(operand.get());
      done[e.get()] = narrower.converted(e, std::move(operands));
    }
    Expr body = done.at(node->body.get());
    if (keep_output_dtype || name != "main") body = as_type(body, node->body->type, narrower);
    if (!(body == node->body)) function = with_body(*node, body);
  }
  return out;
}

Result<Module> to_mixed_precision(const Module& module, PassContext& context) {
  return to_mixed_precision(module, kFloat16, context.get(kKeepOutput));
}

}  // namespace tilewright::relay
