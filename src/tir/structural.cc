// SPDX-License-Identifier: Apache-2.0
#include "tir/structural.h"

#include <cstring>
#include <set>
#include <unordered_map>

#include "tir/walk.h"

namespace tilewright::tir {
namespace {

std::vector<PrimExpr> children_of(const PrimExpr& e) {
  std::vector<PrimExpr> out;
  for_each_child(e, [&](const PrimExpr& child) { out.push_back(child); });
  return out;
}

// A node's content besides its children, as text.
std::string own_text(const PrimExpr& e) {
  std::string out = std::string(kind_name(e->kind)) + ":" + e->dtype.str();
  if (const auto* n = as<IntImmNode>(e)) out += ":" + std::to_string(n->value);
  if (const auto* n = as<FloatImmNode>(e)) {
    uint64_t bits = 0;
    std::memcpy(&bits, &n->value, sizeof(bits));
    out += ":" + std::to_string(bits);
  }
  if (const auto* n = as<CallNode>(e)) out += std::string(":") + intrinsic_name(n->op);
  if (const auto* n = as<ExternNode>(e)) out += ":" + n->name;
  if (const auto* n = as<RampNode>(e)) out += ":" + std::to_string(n->stride);
  if (const auto* n = as<ShuffleNode>(e))
    for (int i : n->indices) out += ":" + std::to_string(i);
  return out;
}

std::string own_text(const Stmt& s) {
  std::string out = std::to_string(static_cast<int>(s->kind));
  auto annotated = [&](const Annotations& list) {
    for (const auto& [key, value] : list) out += ":" + key + "=" + value;
  };
  if (const auto* n = as<ForNode>(s)) {
    out += ":" + std::to_string(static_cast<int>(n->for_kind));
    annotated(n->annotations);
  }
  if (const auto* n = as<CallExternNode>(s)) out += ":" + n->name + (n->packed ? ":packed" : "");
  if (const auto* n = as<IfNode>(s)) out += n->else_case ? ":else" : "";
  if (const auto* n = as<BlockNode>(s)) {
    for (const BlockAxis& axis : n->axes) out += axis.reduces ? ":reduces" : ":runs";
    out += n->init ? ":init" : "";
    annotated(n->annotations);
  }
  return out;
}

// The memory that a node reads or writes.
const Node* memory_of(const PrimExpr& e) {
  if (const auto* n = as<ReadNode>(e)) return n->source.get();
  if (const auto* n = as<LoadNode>(e)) return n->buffer.get();
  return nullptr;
}
const Node* memory_of(const Stmt& s) {
  if (const auto* n = as<WriteNode>(s)) return n->target.get();
  if (const auto* n = as<StoreNode>(s)) return n->buffer.get();
  if (const auto* n = as<PrefetchNode>(s)) return n->buffer.get();
  if (const auto* n = as<AllocateNode>(s)) return n->buffer.get();
  return nullptr;
}

std::vector<PrimExpr> bound_by(const Stmt& s) {
  if (const auto* n = as<ForNode>(s)) return {n->var};
  if (const auto* n = as<LetStmtNode>(s)) return {n->var};
  std::vector<PrimExpr> out;
  if (const auto* n = as<BlockNode>(s))
    for (const BlockAxis& axis : n->axes) out.push_back(axis.var);
  return out;
}

std::vector<PrimExpr> own_exprs(const Stmt& s) {
  std::vector<PrimExpr> out;
  for_each_own_expr(s, [&](const PrimExpr& e) { out.push_back(e); });
  return out;
}
std::vector<Stmt> children_of(const Stmt& s) {
  std::vector<Stmt> out;
  for_each_child(s, [&](const Stmt& child) { out.push_back(child); });
  return out;
}

class Comparison {
 public:
  explicit Comparison(bool map_free) : map_free_(map_free) {}

  bool expr(const PrimExpr& a, const PrimExpr& b) {
    if (!a || !b) return !a && !b;
    if (a->kind == ExprKind::kVar || b->kind == ExprKind::kVar) return variable(a, b);
    if (equal_.count({a.get(), b.get()})) return true;
    if (own_text(a) != own_text(b) || !memory(memory_of(a), memory_of(b))) return false;
    if (const auto* x = as<LetNode>(a), *y = as<LetNode>(b); x && y) {
      if (!expr(x->value, y->value) || !bind(x->var, y->var)) return false;
      return expr(x->body, y->body);
    }
    if (!all(children_of(a), children_of(b))) return false;
    equal_.insert({a.get(), b.get()});
    return true;
  }

  bool stmt(const Stmt& a, const Stmt& b) {
    if (!a || !b) return !a && !b;
    if (own_text(a) != own_text(b)) return false;
    const auto *x = as<BlockNode>(a), *y = as<BlockNode>(b);
    if (x && y && !block_memory(*x, *y)) return false;
    if (!memory(memory_of(a), memory_of(b)) || !all(own_exprs(a), own_exprs(b))) return false;
    const std::vector<PrimExpr> p = bound_by(a), q = bound_by(b);
    if (p.size() != q.size()) return false;
    for (size_t i = 0; i < p.size(); ++i)
      if (!bind(p[i], q[i])) return false;
    const std::vector<Stmt> inner_a = children_of(a), inner_b = children_of(b);
    if (inner_a.size() != inner_b.size()) return false;
    for (size_t i = 0; i < inner_a.size(); ++i)
      if (!stmt(inner_a[i], inner_b[i])) return false;
    return true;
  }

  bool bind(const PrimExpr& a, const PrimExpr& b) {
    if (a->dtype != b->dtype) return false;
    auto known = forth_.find(a.get());
    if (known != forth_.end() && known->second != b.get()) equal_.clear();  // rebound in a sibling scope
    forth_[a.get()] = b.get();
    back_[b.get()] = a.get();
    return true;
  }

  bool memory(const Node* a, const Node* b) {
    if (a == nullptr || b == nullptr) return a == b;
    if (auto known = forth_.find(a); known != forth_.end()) return known->second == b;
    if (back_.count(b)) return false;
    const auto *x = dynamic_cast<const ArrayNode*>(a), *y = dynamic_cast<const ArrayNode*>(b);
    const auto *p = dynamic_cast<const BufferNode*>(a), *q = dynamic_cast<const BufferNode*>(b);
    if (x && y) {
      if (x->dtype != y->dtype || x->scope != y->scope || !defined(x->shape, y->shape) ||
          !defined(x->strides, y->strides))
        return false;
    } else if (p && q) {
      if (p->dtype != q->dtype || p->size != q->size || p->scope != q->scope) return false;
    } else if (a != b) {
      return false;
    }
    forth_[a] = b;
    back_[b] = a;
    return true;
  }

 private:
  // A buffer's sizes bind the variables they consist of.
  bool defined(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      const bool both = a[i]->kind == ExprKind::kVar && b[i]->kind == ExprKind::kVar;
      if (both && !forth_.count(a[i].get()) && !back_.count(b[i].get())) {
        if (!bind(a[i], b[i])) return false;
      } else if (!expr(a[i], b[i])) {
        return false;
      }
    }
    return true;
  }
  bool block_memory(const BlockNode& a, const BlockNode& b) {
    if (a.memory.size() != b.memory.size()) return false;
    for (size_t i = 0; i < a.memory.size(); ++i)
      if (!memory(a.memory[i].get(), b.memory[i].get())) return false;
    return true;
  }
  bool all(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!expr(a[i], b[i])) return false;
    return true;
  }
  bool variable(const PrimExpr& a, const PrimExpr& b) {
    if (a->kind != b->kind || a->dtype != b->dtype) return false;
    auto known = forth_.find(a.get());
    if (known != forth_.end()) return known->second == b.get();
    if (back_.count(b.get())) return false;
    return (a == b || map_free_) && bind(a, b);
  }

  const bool map_free_;
  std::unordered_map<const Node*, const Node*> forth_, back_;
  std::set<std::pair<const Node*, const Node*>> equal_;
};

class Hasher {
 public:
  explicit Hasher(bool map_free) : map_free_(map_free) {}
  uint64_t result() const { return hash_; }

  void text(const std::string& value) {
    for (const char c : value) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * kPrime;
    hash_ = (hash_ ^ 0xff) * kPrime;
  }
  void number(uint64_t value) { text(std::to_string(value)); }
  void bind(const Node* node) { places_.emplace(node, places_.size()); }

  void expr(const PrimExpr& e) {
    if (!e) return text("none");
    if (e->kind == ExprKind::kVar) {
      if (map_free_) bind(e.get());
      auto known = places_.find(e.get());
      text(e->dtype.str());
      return known != places_.end() ? number(known->second) : text(static_cast<const VarNode&>(*e).name);
    }
    text(own_text(e));
    memory(memory_of(e));
    if (const auto* let = as<LetNode>(e)) {
      expr(let->value);
      bind(let->var.get());
      return expr(let->body);
    }
    for (const PrimExpr& child : children_of(e)) expr(child);
  }
  void stmt(const Stmt& s) {
    text(own_text(s));
    if (const auto* n = as<BlockNode>(s))
      for (const Ref<Node>& array : n->memory) memory(array.get());
    memory(memory_of(s));
    for (const PrimExpr& e : own_exprs(s)) expr(e);
    for (const PrimExpr& var : bound_by(s)) bind(var.get());
    for (const Stmt& child : children_of(s)) stmt(child);
  }
  void memory(const Node* node) {
    if (node == nullptr) return;
    const bool first = places_.emplace(node, places_.size()).second;
    number(places_[node]);
    if (const auto* array = dynamic_cast<const ArrayNode*>(node); array && first) {
      text(array->dtype.str() + array->scope);
      for (const PrimExpr& size : array->shape) {
        if (size->kind == ExprKind::kVar) bind(size.get());
        expr(size);
      }
    }
  }

 private:
  static constexpr uint64_t kPrime = 1099511628211u;
  const bool map_free_;
  uint64_t hash_ = 14695981039346656037u;
  std::unordered_map<const Node*, size_t> places_;
};

}  // namespace

bool structural_equal(const PrimExpr& a, const PrimExpr& b, bool map_free_variables) {
  return Comparison(map_free_variables).expr(a, b);
}
bool structural_equal(const Stmt& a, const Stmt& b, bool map_free_variables) {
  return Comparison(map_free_variables).stmt(a, b);
}
bool structural_equal(const BlockFunction& a, const BlockFunction& b) {
  if (a.params.size() != b.params.size()) return false;
  Comparison comparison(false);
  for (size_t i = 0; i < a.params.size(); ++i) {
    const auto &p = a.params[i], &q = b.params[i];
    if (!p.array != !q.array) return false;
    if (p.array ? !comparison.memory(p.array.get(), q.array.get()) : !comparison.bind(p.var, q.var)) return false;
  }
  return comparison.stmt(a.body, b.body);
}

uint64_t structural_hash(const PrimExpr& e, bool map_free_variables) {
  Hasher hasher(map_free_variables);
  hasher.expr(e);
  return hasher.result();
}
uint64_t structural_hash(const Stmt& s, bool map_free_variables) {
  Hasher hasher(map_free_variables);
  hasher.stmt(s);
  return hasher.result();
}
uint64_t structural_hash(const BlockFunction& f) {
  Hasher hasher(false);
  for (const auto& p : f.params) {
    if (p.array) {
      hasher.memory(p.array.get());
    } else {
      hasher.bind(p.var.get());
      hasher.expr(p.var);
    }
  }
  hasher.stmt(f.body);
  return hasher.result();
}

}  // namespace tilewright::tir
