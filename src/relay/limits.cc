// SPDX-License-Identifier: Apache-2.0
#include "relay/limits.h"

#include <algorithm>

#include "base/format.h"

namespace tilewright::relay {
namespace {
constexpr int64_t kMaxTypeLeaves = 1 << 16;
}  // namespace

Limits::Extent Limits::extent_of(const Type& t) {
  std::vector<Type> parts = parts_of(t);
  if (parts.empty()) return {};
  if (auto it = extents_.find(t.get()); it != extents_.end()) return it->second.second;
  Extent out{1, 1};
  for (const Type& part : parts) {
    Extent e = extent_of(part);
    out.leaves = std::min(kMaxTypeLeaves + 1, out.leaves + e.leaves);
    out.depth = std::max(out.depth, e.depth + 1);
  }
  extents_.emplace(t.get(), std::make_pair(t, out));
  return out;
}

std::string Limits::problem(const Type& type) {
  Extent extent = extent_of(type);
  return extent.leaves > kMaxTypeLeaves || extent.depth > kMaxNesting ? "a type is too large" : "";
}

int Limits::nesting_of(const Expr& e) const {
  auto it = nesting_.find(e.get());
  return it == nesting_.end() ? 0 : it->second;
}

std::string Limits::problem(const Expr& e) {
  std::string wrong = problem(e->type);
  if (!wrong.empty()) return wrong;
  int nesting = 0;
  bool scope = e->kind == ExprKind::kFunction || e->kind == ExprKind::kIf || e->kind == ExprKind::kMatch;
  for (const Expr& kid : children(e)) nesting = std::max(nesting, nesting_of(kid) + (scope ? 1 : 0));
  if (const auto* let = as<LetNode>(e)) nesting = std::max(nesting_of(let->value) + 1, nesting_of(let->body));
  if (nesting > kMaxNesting) return format("functions nest deeper than {} levels", kMaxNesting);
  if (nesting > 0) nesting_[e.get()] = nesting;
  return "";
}

}  // namespace tilewright::relay
