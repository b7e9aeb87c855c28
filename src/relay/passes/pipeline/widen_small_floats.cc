// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/widen_small_floats.h"

#include <algorithm>
#include <cmath>

#include "ir/string_fields.h"
#include "relay/calls.h"
#include "relay/ops/tensor/attrs_transform.h"

namespace tilewright::relay {
namespace {

bool is_small(DataType t) { return t == kFloat16 || t == kBFloat16; }

bool has_small(const Type& type) {
  if (const auto* tuple = as_tuple(type)) return std::any_of(tuple->fields.begin(), tuple->fields.end(), has_small);
  const auto* t = as_tensor(type);
  return t && is_small(t->dtype);
}

// The type with small floats replaced by float32, for comparison of types.
Type widened(const Type& type) {
  if (const auto* tuple = as_tuple(type)) {
    std::vector<Type> fields;
    for (const Type& field : tuple->fields) fields.push_back(widened(field));
    return tuple_type(std::move(fields));
  }
  const auto* t = as_tensor(type);
  return t && is_small(t->dtype) ? tensor_type(t->shape, kFloat32) : type;
}

// Replaces a small dtype attribute by float32.
AttrsRef with_wide_result(const AttrsRef& attrs) {
  struct Widen : StringFields {
    void field(const char* name, std::string* value) override {
      if (std::string_view(name) == "out_dtype" && (*value == "float16" || *value == "bfloat16")) *value = "float32";
    }
  };
  if (!attrs) return attrs;
  AttrsNode* copy = attrs->clone();
  Widen widen;
  copy->visit(widen);
  return AttrsRef(copy);
}

// An operator that only moves elements; a scatter does where it replaces what was there.
bool moves_elements(const Expr& e, const OpDef& op) {
  auto replaces = [](const std::string& how) { return how != "add" && how != "mul" && how != "min" && how != "max"; };
  const std::string_view name = op.name;
  if (name == "scatter_nd") return replaces(attrs_of<ScatterNDAttrs>(e).mode);
  if (name == "scatter_elements") return replaces(attrs_of<ScatterElementsAttrs>(e).reduction);
  return moves_bits(op.facts.elements);
}

// What bits alone answer: what kind of number each element is, and in which order they come.
bool needs_no_arithmetic(const OpDef& op) {
  static constexpr std::string_view kNames[] = {"argsort", "isfinite", "isinf", "isnan", "sort", "topk"};
  return std::find(std::begin(kNames), std::end(kNames), op.name) != std::end(kNames);
}

class Widening {
 public:
  explicit Widening(bool rounds) : rounds_(rounds) {}

  // The expression over converted operands: its type is the
  // original one, or that with float32 for small floats.
  Expr converted(const Expr& e, std::vector<Expr> operands) {
    const OpDef* op = called_op(e);
    if (!op) return converted_other(e, std::move(operands));
    const std::string_view name = op->name;
    if (name == "cast") return converted_cast(e, operands[0]);
    const bool any = has_small(e->type) || std::any_of(as<CallNode>(e)->args.begin(), as<CallNode>(e)->args.end(),
                                                       [](const Expr& a) { return has_small(a->type); });
    if (!any) return with_args(e, operands);
    if ((moves_elements(e, *op) || needs_no_arithmetic(*op)) && narrow_all(e, operands)) return with_args(e, operands);
    if (name != "reinterpret" && !op->stateful) {
      std::vector<Expr> wide;
      for (const Expr& operand : operands) wide.push_back(wide_of(operand));
      auto made = try_call(op->name, wide, with_wide_result(as<CallNode>(e)->attrs), e->span);
      if (made.ok() && type_equal(widened((*made)->type), widened(e->type)))
        return rounds_ ? as_type(*made, e->type) : *made;
    }
    for (size_t i = 0; i < operands.size(); ++i) operands[i] = as_type(operands[i], as<CallNode>(e)->args[i]->type);
    return with_args(e, operands);
  }

  // Casts the tensors of an expression back to the original type.
  Expr as_type(const Expr& e, const Type& type) {
    if (type_equal(e->type, type)) return e;
    if (const auto* tuple = as_tuple(type)) {
      std::vector<Expr> fields;
      for (size_t i = 0; i < tuple->fields.size(); ++i) fields.push_back(as_type(field_of(e, i), tuple->fields[i]));
      return make_tuple(std::move(fields), e->span);
    }
    return as_tensor(type) && as_tensor(e->type) ? cast_once(e, as_tensor(type)->dtype) : e;
  }

 private:
  static Expr field_of(const Expr& e, size_t i) {
    const auto* tuple = as<TupleNode>(e);
    return tuple ? tuple->fields[i] : make_get(e, static_cast<int64_t>(i), e->span);
  }

  Expr wide_of(const Expr& e) { return has_small(e->type) ? as_type(e, widened(e->type)) : e; }

  Expr with_args(const Expr& e, const std::vector<Expr>& operands) {
    const auto& c = *as<CallNode>(e);
    return operands == c.args ? e : call(called_op(e)->name, operands, c.attrs, c.span);
  }

  // Whether the originally small operands of a data movement are all still small; otherwise all become wide. Constants
  // follow the others.
  bool narrow_all(const Expr& e, const std::vector<Expr>& operands) const {
    const auto& args = as<CallNode>(e)->args;
    for (size_t i = 0; i < args.size(); ++i)
      if (has_small(args[i]->type) && !type_equal(args[i]->type, operands[i]->type)) return false;
    return true;
  }

  // Expressions without an operator: called functions and branches need their original types.
  Expr converted_other(const Expr& e, std::vector<Expr> operands) {
    if (as<TupleNode>(e)) return make_tuple(std::move(operands), e->span);
    if (const auto* get = as<TupleGetItemNode>(e)) return field_of(operands[0], static_cast<size_t>(get->index));
    const std::vector<Expr> original = children(e);
    for (size_t i = 0; i < operands.size(); ++i) operands[i] = as_type(operands[i], original[i]->type);
    return with_children(e, operands);
  }

  Expr converted_cast(const Expr& e, const Expr& operand) {
    const auto *from = as_tensor(arg(e, 0)->type), *to = as_tensor(e->type);
    if (!from || !to) return with_args(e, {as_type(operand, arg(e, 0)->type)});
    // Already a value of the type: float32 holds it with more digits.
    if (from->dtype == to->dtype) return operand;
    return cast_once(operand, to->dtype);
  }

  Expr cast_once(const Expr& e, DataType dtype) {
    if (tensor_of(e).dtype == dtype) return e;
    auto& known = casts_[{e.get(), static_cast<int>(dtype.code) * 256 + dtype.bits}];
    if (!known.second) known = {e, converted_constant(e, dtype)};
    return known.second;
  }
  Expr converted_constant(const Expr& e, DataType dtype) const {
    const Tensor* data = constant_data(e);
    if (!data || !dtype.is_float() || !data->dtype().is_float()) return cast(e, dtype);
    Tensor out(dtype, data->shape());
    for (int64_t i = 0; i < data->size(); ++i) out.set_double(i, data->at_double(i));
    if (out.size() == 1 && dtype == kFloat32 && !rounds_)
      out.set_double(0, before_rounding(out.at_double(0), data->dtype()));
    return make_constant(out, e->span);
  }
  // Restores the constants of GELU formulas, which later passes look for, to their values before rounding to the small
  // type.
  static double before_rounding(double value, DataType small) {
    for (double known : {std::sqrt(2.0), std::sqrt(0.5), std::sqrt(2 / M_PI), 0.044715}) {
      Tensor rounded(small, {});
      rounded.set_double(0, known);
      if (rounded.at_double(0) == value) return known;
    }
    return value;
  }

  struct KeyHash {
    size_t operator()(const std::pair<const ExprNode*, int>& key) const {
      return std::hash<const void*>()(key.first) * 31 + static_cast<size_t>(key.second);
    }
  };
  bool rounds_;
  // Each value is cast once; holds the expression, so that the key's address stays valid.
  std::unordered_map<std::pair<const ExprNode*, int>, std::pair<Expr, Expr>, KeyHash> casts_;
};

// Bindings and branches would need other variable types; their regions are compiled separately.
bool has_no_bindings(const Expr& body) {
  for (const Expr& e : post_order(body)) {
    const bool fine = as<VarNode>(e) || as<ConstantNode>(e) || as<TupleNode>(e) || as<TupleGetItemNode>(e) ||
                      e->kind == ExprKind::kOp || e->kind == ExprKind::kGlobalVar || as<CallNode>(e) ||
                      is_closed_function(e);
    if (!fine) return false;
  }
  return true;
}

bool mentions_small(const Expr& body) {
  for (const Expr& e : post_order(body))
    if (e->type && has_small(e->type)) return true;
  return false;
}

}  // namespace

Result<Module> widen_small_floats(const Module& module, PassContext& context) {
  const bool rounds = context.target && context.target->strict_math;
  return rewrite_functions(module, [&](const Expr& function) -> Expr {
    const auto& node = *as<FunctionNode>(function);
    if (!mentions_small(node.body) || !has_no_bindings(node.body)) return function;
    Widening widening(rounds);
    std::unordered_map<const ExprNode*, Expr> done;
    auto operands_of = [](const Expr& e) {
      if (is_closed_function(e)) return std::vector<Expr>();
      return called_op(e) ? as<CallNode>(e)->args : children(e);
    };
    for (const Expr& e : post_order_over(node.body, operands_of)) {
      std::vector<Expr> operands = operands_of(e);
      for (Expr& operand : operands) operand = done.at(operand.get());
      done[e.get()] = widening.converted(e, std::move(operands));
    }
    Expr body = widening.as_type(done.at(node.body.get()), node.body->type);
    return body == node.body ? function : with_body(node, body);
  });
}

}  // namespace tilewright::relay
