// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/fusion/compiler_marks.h"

#include <numeric>

namespace tilewright::relay {
namespace {

// Whether a region can contain it; anything else between marks is an input of the region.
bool can_be_inside(const Expr& e) {
  if (const auto* call = as<CallNode>(e)) return called_op(e) || as<FunctionNode>(call->callee);
  return e->kind == ExprKind::kTuple || e->kind == ExprKind::kTupleGetItem;
}

bool bounds(const Expr& e, const char* mark) { return is_call_to(e, mark) && compiler_of_mark(e) != kDefaultCompiler; }

}  // namespace

std::vector<Expr> CompilerRegions::operands(const Expr& e) {
  const auto* call = as<CallNode>(e);
  return call && as<FunctionNode>(call->callee) ? call->args : children(e);
}

CompilerRegions::CompilerRegions(const Expr& body) : order_(post_order(body)) {
  std::unordered_map<const ExprNode*, size_t> place;
  for (size_t i = 0; i < order_.size(); ++i) place[order_[i].get()] = i;
  std::vector<size_t> parent(order_.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  auto find = [&](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  std::vector<bool> inside(order_.size());
  std::vector<const std::string*> compiler(order_.size());
  // Users first: an end's operand, and everything it is computed from, up to the begins.
  for (size_t i = order_.size(); i-- > 0;) {
    const Expr& e = order_[i];
    const Expr held = is_call_to(e, kCompilerEnd) ? as<CallNode>(e)->args[0] : Expr();
    const bool end = held && bounds(e, kCompilerEnd) && can_be_inside(held) && !is_call_to(held, kCompilerBegin) &&
                     !is_call_to(held, kCompilerEnd);
    if (end) compiler[i] = &compiler_of_mark(e);
    if (!end && (!inside[i] || is_call_to(e, kCompilerBegin))) continue;
    for (const Expr& kid : operands(e)) {
      const size_t k = place.at(kid.get());
      const bool begin = is_call_to(kid, kCompilerBegin);
      if (!begin && (is_call_to(kid, kCompilerEnd) || !can_be_inside(kid))) continue;
      inside[k] = true;
      parent[find(k)] = find(i);
    }
  }
  std::unordered_map<size_t, size_t> numbers;
  for (size_t i = 0; i < order_.size(); ++i) {
    if (!inside[i] && !compiler[i]) continue;
    auto [it, fresh] = numbers.try_emplace(find(i), compilers_.size());
    if (fresh) compilers_.emplace_back();
    if (compiler[i]) compilers_[it->second] = *compiler[i];
    region_[order_[i].get()] = it->second;
  }
}

std::ptrdiff_t CompilerRegions::of(const Expr& e) const {
  auto found = region_.find(e.get());
  return found == region_.end() ? -1 : static_cast<std::ptrdiff_t>(found->second);
}

}  // namespace tilewright::relay
