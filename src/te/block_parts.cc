// SPDX-License-Identifier: Apache-2.0
#include "te/block_parts.h"

#include <algorithm>
#include <functional>

#include "tir/walk.h"

namespace tilewright::te {

using tir::BlockNode;
using tir::ForNode;
using tir::PrimExpr;
using tir::Stmt;

const std::string& variable_name(const PrimExpr& var) { return static_cast<const tir::VarNode&>(*var).name; }

bool writes_array(const Stmt& s, const Node* array) {
  bool found = false;
  tir::for_each_stmt(s, [&](const Stmt& part) {
    if (const auto* n = tir::as<tir::WriteNode>(part)) found = found || n->target.get() == array;
    if (const auto* n = tir::as<tir::CallExternNode>(part))
      for (const auto& a : n->args)
        found = found || (a.address && static_cast<const tir::ReadNode&>(*a.value).source.get() == array);
  });
  return found;
}

bool reads_array(const Stmt& s, const Node* array) {
  bool found = false;
  tir::for_each_expr(s, [&](const PrimExpr& e) {
    const auto* n = tir::as<tir::ReadNode>(e);
    found = found || (n && n->source.get() == array);
  });
  return found;
}

std::vector<Ref<Node>> inputs_of(const Stmt& s) {
  std::vector<Ref<Node>> out;
  auto add = [&](const PrimExpr& e) {
    const auto* n = tir::as<tir::ReadNode>(e);
    if (n && std::find(out.begin(), out.end(), n->source) == out.end() && !writes_array(s, n->source.get()))
      out.push_back(n->source);
  };
  tir::for_each_stmt(s, [&](const Stmt& part) {
    tir::for_each_own_expr(part, [&](const PrimExpr& e) { tir::for_each_expr(e, add); });
  });
  return out;
}

Stmt replaced(const Stmt& whole, const Stmt& old, const Stmt& with) {
  std::function<Stmt(const Stmt&)> walk = [&](const Stmt& s) -> Stmt {
    if (s == old) return with;
    return tir::map_children(
        s, [](const PrimExpr& e) { return e; }, walk);
  };
  return walk(whole);
}

Stmt with_loop_body(const ForNode& loop, Stmt body) {
  return tir::make_for(loop.var, loop.min, loop.extent, std::move(body), loop.for_kind, loop.annotations);
}

std::vector<PlacedBlock> blocks_in(const Stmt& s) {
  std::vector<PlacedBlock> out;
  std::vector<const ForNode*> loops;
  std::function<void(const Stmt&)> visit = [&](const Stmt& part) {
    if (const auto* n = tir::as<BlockNode>(part); n && !n->axes.empty()) out.push_back({n, loops});
    const auto* loop = tir::as<ForNode>(part);
    if (loop) loops.push_back(loop);
    tir::for_each_child(part, visit);
    if (loop) loops.pop_back();
  };
  visit(s);
  return out;
}

}  // namespace tilewright::te
