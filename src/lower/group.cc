// SPDX-License-Identifier: Apache-2.0
#include "lower/group.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "lower/compute.h"
#include "relay/op.h"

namespace tilewright::lower {
using namespace relay;
using tir::PrimExpr;

bool Anchor::direct() const {
  return std::all_of(inputs.begin(), inputs.end(), [](int i) { return i >= 0; });
}

namespace {

size_t flat_count(const Type& type) {
  const auto* tuple = as_tuple(type);
  if (!tuple) return 1;
  size_t n = 0;
  for (const Type& f : tuple->fields) n += flat_count(f);
  return n;
}

// The flattened arguments of a call: literal tuples are expanded.
std::vector<Expr> flat_args(const CallNode& call) {
  std::vector<Expr> out;
  for (const Expr& arg : call.args) {
    if (const auto* tuple = as<TupleNode>(arg))
      out.insert(out.end(), tuple->fields.begin(), tuple->fields.end());
    else
      out.push_back(arg);
  }
  return out;
}

}  // namespace

Anchor find_anchor(const FunctionNode& function) {
  Anchor anchor;
  for (const Expr& e : post_order(function.body)) {
    const OpDef* op = called_op(e);
    if (!op || find_compute(op->name)) continue;
    anchor.call = as<CallNode>(e);
    anchor.expr = e;
    anchor.op = op->name;
  }
  if (!anchor.call) return anchor;
  std::unordered_map<const ExprNode*, int> input_of;
  int next = 0;
  for (const Expr& p : function.params) {
    input_of[p.get()] = next;
    next += static_cast<int>(flat_count(p->type));
  }
  for (const Expr& e : post_order(function.body)) {
    if (const auto* constant = as<ConstantNode>(e); constant && constant->data.size() != 1) input_of[e.get()] = next++;
    // A field of a tuple parameter.
    const auto* get = as<TupleGetItemNode>(e);
    if (!get || !as<VarNode>(get->tuple) || !input_of.count(get->tuple.get())) continue;
    int at = input_of[get->tuple.get()];
    for (int64_t i = 0; i < get->index; ++i)
      at += static_cast<int>(flat_count(as_tuple(get->tuple->type)->fields[static_cast<size_t>(i)]));
    input_of[e.get()] = at;
  }
  for (const Expr& arg : flat_args(*anchor.call)) {
    auto it = input_of.find(arg.get());
    size_t n = flat_count(arg->type);
    for (size_t i = 0; i < n; ++i)
      anchor.inputs.push_back(it == input_of.end() ? -1 : it->second + static_cast<int>(i));
  }
  return anchor;
}

bool lowers_whole(const FunctionNode& function) {
  Expr anchor;
  for (const Expr& e : post_order(function.body)) {
    if (e->kind == ExprKind::kTuple && e == function.body) continue;
    const OpDef* op = called_op(e);
    if (e->kind == ExprKind::kCall && !op) return false;
    if (!op || find_compute(op->name)) continue;
    if (anchor) return false;
    anchor = e;
  }
  if (!anchor) return true;
  // A template for an injective operator (resizing) reads tensors, not computed operands. The rules of fusion give
  // other anchors only operands they can compute.
  if (called_op(anchor)->pattern <= OpPattern::kInjective)
    for (const Expr& arg : flat_args(*as<CallNode>(anchor)))
      if (arg->kind == ExprKind::kCall) return false;
  if (function.body == anchor) return true;
  if (!as_tensor(function.body->type)) return false;
  // Everything behind the anchor must be evaluated at the anchor's own index.
  const auto* at = as_tensor(anchor->type);
  if (!at) return false;
  std::map<const ExprNode*, bool> after{{anchor.get(), true}};
  for (const Expr& e : post_order(function.body)) {
    if (e == anchor) continue;
    bool uses = false;
    for (const Expr& kid : children(e)) uses = uses || after[kid.get()];
    if (!uses) continue;
    after[e.get()] = true;
    if (e->kind != ExprKind::kCall) continue;  // a tuple: operand of a concatenation
    if (called_op(e)->pattern > OpPattern::kBroadcast || called_op(e)->name == std::string_view("repeat") ||
        called_op(e)->name == std::string_view("tile") || !as_tensor(e->type) || as_tensor(e->type)->shape != at->shape)
      return false;
  }
  return true;
}

Module split_groups(const Module& fused, const FunctionNode* apart) {
  const FunctionNode* main = fused.main_function();
  if (!main) return fused;
  Expr body = rewrite_graph(main->body, [&](const Expr&, const Expr& rebuilt) -> Expr {
    const auto* call_node = as<CallNode>(rebuilt);
    const auto* function = call_node ? as<FunctionNode>(call_node->callee) : nullptr;
    if (!function || !function->primitive() || (lowers_whole(*function) && function != apart)) return rebuilt;
    std::map<const VarNode*, Expr> values;
    for (size_t i = 0; i < function->params.size(); ++i) values[as<VarNode>(function->params[i])] = call_node->args[i];
    return rewrite_graph(substitute(function->body, values), [&](const Expr& original, const Expr& e) -> Expr {
      const auto* inner = as<CallNode>(e);
      if (!inner || !called_op(e)) return e;
      // A group of one call, whose non-constant arguments are parameters.
      std::vector<Expr> params, args;
      std::map<const ExprNode*, Expr> seen;
      auto param = [&](const Expr& value) -> Expr {
        if (const auto* c = as<ConstantNode>(value); c && c->data.size() == 1) return value;
        auto [it, fresh] = seen.try_emplace(value.get());
        if (fresh) {
          it->second = make_var(format("p{}", params.size()), value->type);
          params.push_back(it->second);
          args.push_back(value);
        }
        return it->second;
      };
      std::vector<Expr> body_args;
      for (const Expr& arg : inner->args) {
        if (const auto* tuple = as<TupleNode>(arg)) {
          std::vector<Expr> fields;
          for (const Expr& f : tuple->fields) fields.push_back(param(f));
          body_args.push_back(make_tuple(fields, tuple->span));
        } else {
          body_args.push_back(param(arg));
        }
      }
      Expr body = call(called_op(e)->name, body_args, inner->attrs, e->span);
      return call_function(make_function(params, body, {{"Primitive", int64_t{1}}}), args, e->span);
    });
  });
  return fused.with_main(make_function(main->params, body, main->attrs, main->span));
}

GroupScope::GroupScope(const Group& group, std::vector<topi::View> inputs, std::vector<topi::View> outputs)
    : group_(group), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  size_t next = 0;
  for (const Expr& p : group.function->params)
    for (size_t n = flat_count(p->type); n > 0; --n) input_of_[p.get()].push_back(next++);
  for (const auto* constant : group.lifted) input_of_[constant].push_back(next++);
}

// Evaluates expressions at indices. Results are memoised by expression and index, so that a diamond of operators costs
// its size, not the number of its paths.
struct GroupScope::Evaluation {
  const GroupScope& scope;
  PrimExpr mask;
  const ExprNode* anchor = nullptr;
  PrimExpr anchor_value;
  PrimExpr last = {};  // index of the last dimension that is known to lie in `run`
  Run run = {};
  using Key = std::tuple<const ExprNode*, int, int, std::vector<const tir::ExprNode*>>;
  std::map<Key, PrimExpr> done;
  std::vector<topi::Index> kept;  // the indices in the keys, kept alive while `done` refers to them

  PrimExpr value(const Expr& e, int output, const topi::Index& index, int lanes) {
    if (e.get() == anchor) {
      TW_ICHECK(anchor_value->dtype.lanes == lanes, "epilogue reads the anchor at another width");
      return anchor_value;
    }
    Key key{e.get(), output, lanes, {}};
    for (const auto& i : index) std::get<3>(key).push_back(i.get());
    if (auto it = done.find(key); it != done.end()) return it->second;
    PrimExpr result = compute(e, output, index, lanes);
    kept.push_back(index);
    done.emplace(std::move(key), result);
    return result;
  }

  PrimExpr compute(const Expr& e, int output, const topi::Index& index, int lanes) {
    if (auto it = scope.input_of_.find(e.get()); it != scope.input_of_.end())
      return scope.inputs_[it->second[static_cast<size_t>(output)]].load(index, lanes, lanes > 1 ? mask : PrimExpr());
    if (const auto* constant = as<ConstantNode>(e)) {
      const Tensor& t = constant->data;
      PrimExpr scalar =
          t.dtype().is_float() ? tir::make_float(t.at_double(0), t.dtype()) : tir::make_int(t.at_int(0), t.dtype());
      return tir::broadcast(scalar, lanes);
    }
    if (const auto* get = as<TupleGetItemNode>(e)) return value(get->tuple, static_cast<int>(get->index), index, lanes);
    if (const auto* tuple = as<TupleNode>(e)) return value(tuple->fields[static_cast<size_t>(output)], 0, index, lanes);
    const auto* call = as<CallNode>(e);
    TW_ICHECK(call && called_op(e), "an expression that a fusion group cannot hold");
    ComputeFn fn = find_compute(called_op(e)->name);
    TW_ICHECK(fn, std::string("no compute definition for ") + called_op(e)->name);
    std::vector<topi::Operand> operands;
    std::vector<const TensorTypeNode*> types;
    for (const Expr& arg : flat_args(*call)) {
      const auto* tuple = as_tuple(arg->type);
      size_t n = tuple ? tuple->fields.size() : 1;
      for (size_t k = 0; k < n; ++k) {
        operands.push_back([this, arg, k](const topi::Index& at, int l, const PrimExpr&) {
          return value(arg, static_cast<int>(k), at, l);
        });
        types.push_back(as_tensor(tuple ? tuple->fields[k] : arg->type));
      }
    }
    const auto* out_tuple = as_tuple(e->type);
    const auto* out = as_tensor(out_tuple ? out_tuple->fields[static_cast<size_t>(output)] : e->type);
    PrimExpr lanes_mask = lanes > 1 ? mask : PrimExpr();
    const bool known = last && !index.empty() && index.back() == last;
    return fn(ComputeArgs{*call, operands, types, *out, output, index, lanes, lanes_mask, known ? &run : nullptr});
  }
};

topi::Operand GroupScope::operand(const Expr& e, int output) const {
  return [this, e, output](const topi::Index& index, int lanes, const PrimExpr& mask) {
    Evaluation evaluation{*this, mask, nullptr, nullptr, {}, {}, {}, {}};
    return evaluation.value(e, output, index, lanes);
  };
}

topi::Operand GroupScope::operand_within(const relay::Expr& e, int output, int64_t first, int64_t last) const {
  return [this, e, output, first, last](const topi::Index& index, int lanes, const PrimExpr& mask) {
    Evaluation evaluation{*this,         mask, nullptr, nullptr, index.empty() ? PrimExpr() : index.back(),
                          {first, last}, {},   {}};
    return evaluation.value(e, output, index, lanes);
  };
}

topi::Operand GroupScope::anchor_operand(const Anchor& anchor, size_t i) const {
  size_t at = 0;
  for (const Expr& arg : flat_args(*anchor.call)) {
    size_t n = flat_count(arg->type);
    if (i < at + n) return operand(arg, static_cast<int>(i - at));
    at += n;
  }
  internal_error(__FILE__, __LINE__, "anchor operand out of range");
}

topi::Epilogue GroupScope::epilogue(const Anchor& anchor) const {
  return [this, anchor](PrimExpr value, const topi::Index& index, const PrimExpr& mask) {
    DataType type = as_tensor(anchor.expr->type) ? as_tensor(anchor.expr->type)->dtype : value->dtype.element();
    int lanes = value->dtype.lanes;
    if (value->dtype.element() != type) value = tir::cast(type, value);
    Evaluation evaluation{*this, mask, anchor.expr.get(), value, {}, {}, {}, {}};
    return evaluation.value(group_.function->body, 0, index, lanes);
  };
}

}  // namespace tilewright::lower
