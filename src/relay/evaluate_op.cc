// SPDX-License-Identifier: Apache-2.0
// Evaluates one operator on values, by its reference implementation or its expansion.
#include <algorithm>

#include "base/checked.h"
#include "base/format.h"
#include "relay/interpreter.h"

namespace tilewright::relay {

Status within_limit(const Type& type, int64_t limit) {
  if (const auto* tuple = as_tuple(type)) {
    for (const Type& f : tuple->fields) TW_TRY_STATUS(within_limit(f, limit));
    return Ok{};
  }
  const auto* t = as_tensor(type);
  auto shape = t ? static_shape(t->shape) : std::nullopt;
  if (!shape) return Ok{};
  int64_t n = TW_TRY(checked_element_count(*shape));
  if (n > limit)
    return Diagnostic(ErrorCode::kLimitExceeded,
                      format("a tensor of {} elements is more than the interpreter's limit of {}", n, limit));
  return Ok{};
}

namespace {

bool is_static(const Type& type) {
  if (const auto* t = as_tensor(type)) return static_shape(t->shape).has_value();
  const auto* tuple = as_tuple(type);
  return tuple && std::all_of(tuple->fields.begin(), tuple->fields.end(), is_static);
}

Type type_of(const Value& v) { return tensor_type(to_shape(v.shape), v.dtype); }

// A value as an expression with its type and, if small, its data: what type inference may look at.
Expr known_operand(const Value& v) {
  constexpr int64_t kSmall = 4096;
  if (v.size() <= kSmall) return make_constant(to_tensor(v));
  return make_var("operand", type_of(v));
}

// Evaluates the expansion. It can see integer operands as constants, since they may decide sizes.
Result<std::vector<Value>> evaluate_composed(const OpDef& def, std::span<const Value> inputs,
                                             std::span<const size_t> fields_per_operand, const AttrsRef& attrs,
                                             int64_t max_elements) {
  std::vector<Expr> operands;
  std::vector<Type> types;
  Environment values;
  size_t at = 0;
  for (size_t n : fields_per_operand) {
    std::vector<Expr> fields;
    for (size_t i = 0; i < std::max<size_t>(n, 1); ++i) {
      const Value& v = inputs[at++];
      fields.push_back(v.dtype.is_integral() ? known_operand(v) : make_var("operand", type_of(v)));
      if (as<VarNode>(fields.back())) values[fields.back().get()] = {v};
    }
    operands.push_back(n ? make_tuple(std::move(fields)) : fields[0]);
    types.push_back(operands.back()->type);
  }
  InterpretOptions options;
  options.max_elements = max_elements;
  return evaluate(TW_TRY(def.expand(TypeArgs{types, operands, attrs})), values, options);
}

}  // namespace

Result<std::vector<Value>> evaluate_op(const OpDef& def, std::span<const Value> inputs,
                                       std::span<const size_t> fields_per_operand, const AttrsRef& attrs,
                                       const Type& out_type, int64_t max_elements) {
  Type type = out_type;
  if (!type || !is_static(type)) {
    std::vector<Expr> operands;
    size_t at = 0;
    for (size_t n : fields_per_operand) {
      std::vector<Expr> fields;
      for (size_t i = 0; i < std::max<size_t>(n, 1); ++i) fields.push_back(known_operand(inputs[at++]));
      operands.push_back(n ? make_tuple(std::move(fields)) : fields[0]);
    }
    type = TW_TRY(infer_call_type(def, operands, attrs));
    const auto *made = as_tensor(type), *expected = out_type ? as_tensor(out_type) : nullptr;
    if (made && expected && made->shape.size() != expected->shape.size())
      return Diagnostic(ErrorCode::kShapeMismatch, format("its result has {} dimensions, the graph says {}",
                                                          made->shape.size(), expected->shape.size()));
  }
  TW_TRY_STATUS(within_limit(type, max_elements));
  if (!def.evaluate) return evaluate_composed(def, inputs, fields_per_operand, attrs, max_elements);
  return def.evaluate(EvalArgs{inputs, attrs, type});
}

}  // namespace tilewright::relay
