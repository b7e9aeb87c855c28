// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/fold_constant.h"

#include "base/checked.h"
#include "relay/constant_call.h"
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr ConfigKey<int64_t> kMaxBytes{"relay.FoldConstant.max_bytes", int64_t{256} << 20};
constexpr ConfigKey<bool> kFoldQnn{"relay.FoldConstant.fold_qnn", false};
// Constants that only repeat values (broadcast_to, full, tile) are stored up to this size.
constexpr uint64_t kRepeatBytes = 64 << 10;

// Bytes of a type of known shape; nothing for other types.
std::optional<uint64_t> bytes_of(const Type& type) {
  if (const auto* tuple = as_tuple(type)) {
    uint64_t total = 0;
    for (const Type& field : tuple->fields) {
      auto bytes = bytes_of(field);
      if (!bytes) return std::nullopt;
      total += *bytes;
    }
    return total;
  }
  const auto* tensor = as_tensor(type);
  auto shape = tensor ? static_shape(tensor->shape) : std::nullopt;
  if (!shape) return std::nullopt;
  auto count = checked_element_count(*shape);
  if (!count.ok()) return std::nullopt;
  return tensor->dtype.bytes_for(static_cast<uint64_t>(*count));
}

Expr fold_shape_query(const Expr& e) {
  bool size = is_call_to(e, "ndarray_size");
  if (!size && !is_call_to(e, "shape_of")) return e;
  const auto* type = as_tensor(arg(e, 0)->type);
  auto shape = type ? static_shape(type->shape) : std::nullopt;
  if (!shape) return e;
  DataType dtype = as_tensor(e->type)->dtype;
  if (size) return make_scalar(static_cast<double>(element_count(type->shape).value()), dtype);
  Tensor out(dtype, {static_cast<int64_t>(shape->size())});
  for (size_t i = 0; i < shape->size(); ++i) out.set_int(static_cast<int64_t>(i), (*shape)[i]);
  return make_constant(std::move(out), e->span);
}

Expr fold_call(const Expr& e, int64_t max_bytes) {
  Expr query = fold_shape_query(e);
  if (!(query == e) || !is_constant_call(e)) return query;
  const auto& call = *as<CallNode>(e);
  auto bytes = bytes_of(call.type);
  uint64_t input_bytes = 0;
  for (const Expr& operand : call.args) input_bytes += bytes_of(operand->type).value_or(0);
  if (!bytes || *bytes > static_cast<uint64_t>(max_bytes)) return e;
  // layout_transform is folded regardless: it packs weights, even if most of the last block is padding.
  if (*bytes > kRepeatBytes && *bytes > 4 * input_bytes && !is_call_to(e, "layout_transform")) return e;
  // An operator that rejects its operands (an index out of range) is left for the run to report.
  auto result = evaluate_constant_call(e);
  if (!result.ok()) return e;
  if (as_tensor(call.type)) return make_constant(std::move(result->front()), e->span);
  std::vector<Expr> fields;
  for (Tensor& tensor : *result) fields.push_back(make_constant(std::move(tensor), e->span));
  return make_tuple(std::move(fields), e->span);
}

}  // namespace

Expr fold_expr(const Expr& e, int64_t max_bytes) {
  switch (e->kind) {
    case ExprKind::kCall:
      return fold_call(e, max_bytes);
    case ExprKind::kTupleGetItem:
      if (const auto* tuple = as<TupleNode>(as<TupleGetItemNode>(e)->tuple))
        return tuple->fields[static_cast<size_t>(as<TupleGetItemNode>(e)->index)];
      return e;
    case ExprKind::kIf:
      if (auto condition = uniform_value(as<IfNode>(e)->condition))
        return *condition != 0 ? as<IfNode>(e)->then_branch : as<IfNode>(e)->else_branch;
      return e;
    case ExprKind::kVar:
    case ExprKind::kGlobalVar:
    case ExprKind::kConstant:
    case ExprKind::kOp:
    case ExprKind::kFunction:
    case ExprKind::kTuple:
    case ExprKind::kLet:
    case ExprKind::kConstructor:
    case ExprKind::kMatch:
    case ExprKind::kRefCreate:
    case ExprKind::kRefRead:
    case ExprKind::kRefWrite:
      return e;
  }
  return e;
}

Result<Module> fold_constant(const Module& module, PassContext& context) {
  const int64_t max_bytes = context.get(kMaxBytes);
  const bool fold_qnn = context.get(kFoldQnn);
  // Quantised operators stay, since later passes look for them; dropout is only for training.
  auto stays = [&](const Expr& e) {
    const OpDef* op = called_op(e);
    const std::string_view name = op ? op->name : "";
    return name == "nn.dropout" || (!fold_qnn && name.starts_with("qnn."));
  };
  bool bound = false;  // a variable was replaced by its constant: its users may fold now
  auto fold = [&](const Expr&, const Expr& e) -> Expr {
    if (const auto* let = as<LetNode>(e); let && as<ConstantNode>(let->value)) {
      bound = true;
      return substitute(let->body, {{as<VarNode>(let->var), let->value}});
    }
    return stays(e) ? e : fold_expr(e, max_bytes);
  };
  Module out = rewrite_module(module, fold);
  constexpr int kMaxRounds = 256;
  for (int round = 0; bound && round < kMaxRounds; ++round) {
    bound = false;
    out = rewrite_module(out, fold);
  }
  return out;
}

}  // namespace tilewright::relay
