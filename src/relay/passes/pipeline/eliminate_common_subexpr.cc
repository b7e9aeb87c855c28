// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/eliminate_common_subexpr.h"

#include <cstring>
#include <unordered_map>

#include "base/hash.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

uint64_t mix(uint64_t h, uint64_t v) { return hash_bytes(&v, sizeof v, h); }
uint64_t mix(uint64_t h, const ExprNode* e) { return mix(h, reinterpret_cast<uintptr_t>(e)); }

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || a.dtype().is_string()) return false;
  return a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// Hash-consing: mergeable expressions by hash over their (already merged) operands.
class Merger {
 public:
  explicit Merger(const std::function<bool(const Expr&)>& skip) : skip_(skip) {}
  Expr representative(const Expr& e) {
    if (skip_ && as<CallNode>(e) && skip_(e)) return e;
    auto hash = hash_of(e);
    if (!hash) return e;
    auto& candidates = by_hash_[*hash];
    for (const Expr& other : candidates)
      if (equal(e, other)) return other;
    candidates.push_back(e);
    return e;
  }

 private:
  static std::optional<uint64_t> hash_of(const Expr& e) {
    uint64_t h = static_cast<uint64_t>(e->kind);
    switch (e->kind) {
      case ExprKind::kConstant: {
        const Tensor& data = as<ConstantNode>(e)->data;
        if (data.dtype().is_string()) return std::nullopt;
        for (int64_t d : data.shape()) h = mix(h, static_cast<uint64_t>(d));
        return hash_bytes(data.raw(), data.bytes(),
                          mix(h, static_cast<uint64_t>(data.dtype().code) * 256 + data.dtype().bits));
      }
      case ExprKind::kCall: {
        const OpDef* op = called_op(e);
        if (!op || op->stateful) return std::nullopt;
        h = mix(mix(h, reinterpret_cast<uintptr_t>(op)), attrs_hash(as<CallNode>(e)->attrs));
        break;
      }
      case ExprKind::kTuple:
        break;
      case ExprKind::kTupleGetItem:
        h = mix(h, static_cast<uint64_t>(as<TupleGetItemNode>(e)->index));
        break;
      case ExprKind::kVar:
      case ExprKind::kGlobalVar:
      case ExprKind::kOp:
      case ExprKind::kFunction:
      case ExprKind::kLet:
      case ExprKind::kIf:
      case ExprKind::kConstructor:
      case ExprKind::kMatch:
      case ExprKind::kRefCreate:
      case ExprKind::kRefRead:
      case ExprKind::kRefWrite:
        return std::nullopt;
    }
    for (const Expr& kid : children(e)) h = mix(h, kid.get());
    return h;
  }

  static bool equal(const Expr& a, const Expr& b) {
    if (a->kind != b->kind) return false;
    if (const auto* x = as<ConstantNode>(a)) return same_bytes(x->data, as<ConstantNode>(b)->data);
    if (children(a) != children(b)) return false;
    if (const auto* x = as<TupleGetItemNode>(a)) return x->index == as<TupleGetItemNode>(b)->index;
    if (as<TupleNode>(a)) return true;
    // Types differ when inference made separate unknown dims for both: they are data dependent and not known to be
    // equal.
    return called_op(a) == called_op(b) && attrs_equal(as<CallNode>(a)->attrs, as<CallNode>(b)->attrs) &&
           type_equal(a->type, b->type);
  }

  const std::function<bool(const Expr&)>& skip_;
  std::unordered_map<uint64_t, std::vector<Expr>> by_hash_;
};

// One function's body; nested functions have separate tables and are processed innermost first, without recursion over
// the graph.
Expr merge_in_function(const Expr& function, const std::function<bool(const Expr&)>& skip) {
  Merger merger(skip);
  return rewrite_graph(function, [&](const Expr& original, const Expr& e) {
    if (as<FunctionNode>(e) && !(original == function) && !is_closed_function(e)) return merge_in_function(e, skip);
    return merger.representative(e);
  });
}

}  // namespace

Result<Module> eliminate_common_subexpr_except(const Module& module, const std::function<bool(const Expr&)>& skip) {
  return rewrite_functions(module, [&](const Expr& function) { return merge_in_function(function, skip); });
}

Result<Module> eliminate_common_subexpr(const Module& module, PassContext&) {
  return eliminate_common_subexpr_except(module, {});
}

}  // namespace tilewright::relay
