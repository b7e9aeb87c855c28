// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/storage_rewrite.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

const AllocateNode* stack_allocation(const Stmt& s) {
  const auto* n = as<AllocateNode>(s);
  return n && n->buffer->scope == Scope::kStack ? n : nullptr;
}

bool has_stack(const Stmt& body) {
  bool found = false;
  for_each_stmt(body, [&](const Stmt& s) { found |= stack_allocation(s) != nullptr; });
  return found;
}

// --- Registers

// How a stack buffer is accessed, if always as whole vectors at constant indices.
struct Places {
  bool constant = true;
  int lanes = 0;
  std::map<int64_t, std::string> masks;  // for each vector the mask that all its accesses share; empty: none

  void use(const PrimExpr& index, const PrimExpr& mask) {
    const auto* vector = as<RampNode>(index);
    const auto at = as_const_int(vector ? vector->base : index);
    const int n = index->dtype.lanes;
    constant = constant && at && *at >= 0 && (vector ? vector->stride == 1 : n == 1) && (lanes == 0 || lanes == n) &&
               *at % n == 0;
    lanes = n;
    if (!constant) return;
    bool known = true;
    if (mask)
      for_each_expr(mask, [&](const PrimExpr& e) { known &= e->kind != ExprKind::kVar && e->kind != ExprKind::kLoad; });
    const std::string text = mask ? to_text(mask) : "";
    constant = known && masks.try_emplace(*at / n, text).first->second == text;
  }
  bool fit(const BufferNode& b) const {
    return constant && lanes > 0 && (b.size + lanes - 1) / lanes <= kMaxRegisterScratch;
  }
};

Stmt scratch_in_registers(const Stmt& body) {
  std::unordered_map<const BufferNode*, Places> places;
  for_each_stmt(body, [&](const Stmt& s) {
    if (const auto* n = as<StoreNode>(s); n && n->buffer->scope == Scope::kStack)
      places[n->buffer.get()].use(n->index, n->mask);
    if (const auto* n = as<PrefetchNode>(s)) places[n->buffer.get()].constant = false;
    if (const auto* n = as<CallExternNode>(s))
      for (const ExternArgument& a : n->args)
        if (a.buffer) places[a.buffer.get()].constant = false;
  });
  for_each_expr(body, [&](const PrimExpr& e) {
    if (const auto* n = as<LoadNode>(e); n && n->buffer->scope == Scope::kStack)
      places[n->buffer.get()].use(n->index, n->mask);
  });
  std::unordered_map<const BufferNode*, Buffer> registers;
  for (const auto& [b, use] : places)
    if (b->scope == Scope::kStack && use.fit(*b))
      registers[b] = make_buffer(b->name, b->dtype.element().with_lanes(use.lanes),
                                 (b->size + use.lanes - 1) / use.lanes, Scope::kRegister);
  if (registers.empty()) return body;
  auto slot = [](const PrimExpr& index) {
    const auto* vector = as<RampNode>(index);
    return make_int(*as_const_int(vector ? vector->base : index) / index->dtype.lanes);
  };
  return mutate(
      body,
      [&](PrimExpr e) -> PrimExpr {
        const auto* n = as<LoadNode>(e);
        auto it = n ? registers.find(n->buffer.get()) : registers.end();
        if (it == registers.end()) return e;
        PrimExpr value = load(it->second, slot(n->index));
        return n->mask ? select(n->mask, value, make_const(value->dtype, 0)) : value;
      },
      [&](Stmt s) -> Stmt {
        if (const auto* n = as<StoreNode>(s)) {
          // Masked-off lanes are never read: all loads of this vector have the same mask.
          auto it = registers.find(n->buffer.get());
          return it == registers.end() ? s : store(it->second, slot(n->index), n->value);
        }
        if (const auto* n = as<AllocateNode>(s)) {
          auto it = registers.find(n->buffer.get());
          return it == registers.end() ? s : allocate(it->second, n->body);
        }
        return s;
      });
}

// --- Sharing

struct Span {
  int64_t first, last;  // in program order
  bool meets(const Span& other) const { return first <= other.last && other.first <= last; }
};

// Live ranges of stack buffers: from the first access to the last, extended over every loop between the allocation and
// an access, since the next iteration may need what this one leaves.
class Lifetimes {
 public:
  explicit Lifetimes(const Stmt& body) { walk(body); }
  const std::vector<Buffer>& order() const { return order_; }  // in order of allocation
  const std::vector<Span>& spans(const Buffer& b) const { return spans_.at(b.get()); }

 private:
  struct Open {
    const BufferNode* buffer;
    size_t loops;  // number of enclosing loops at the allocation
    std::optional<Span> span;
  };

  void touch(const BufferNode* buffer) {
    if (buffer->scope != Scope::kStack) return;
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      if (open->buffer != buffer) continue;
      const int64_t first = open->loops < loops_.size() ? loops_[open->loops] : now_;
      if (!open->span) open->span = Span{first, now_};
      open->span->last = now_;
      return;
    }
  }

  void reads(const PrimExpr& e) {
    for_each_expr(e, [&](const PrimExpr& x) {
      if (const auto* n = as<LoadNode>(x)) touch(n->buffer.get());
    });
  }

  void walk(const Stmt& s) {
    for_each_own_expr(s, [&](const PrimExpr& e) { reads(e); });
    ++now_;  // a statement reads before it writes
    switch (s->kind) {
      case StmtKind::kStore:
        touch(static_cast<const StoreNode&>(*s).buffer.get());
        break;
      case StmtKind::kPrefetch:
        touch(static_cast<const PrefetchNode&>(*s).buffer.get());
        break;
      case StmtKind::kCallExtern:
        for (const ExternArgument& a : static_cast<const CallExternNode&>(*s).args)
          if (a.buffer) touch(a.buffer.get());
        break;
      case StmtKind::kWrite:
      case StmtKind::kBlock:
        break;  // not in kernels
      case StmtKind::kFor:
      case StmtKind::kWhile: {
        const int64_t begin = now_;
        loops_.push_back(begin);
        for_each_child(s, [&](const Stmt& child) { walk(child); });
        if (const auto* n = as<WhileNode>(s)) reads(n->condition);  // once more, behind each iteration
        loops_.pop_back();
        for (Open& open : open_)
          if (open.span && open.span->last >= begin) open.span->last = now_;
        break;
      }
      case StmtKind::kAllocate: {
        const auto& n = static_cast<const AllocateNode&>(*s);
        if (n.buffer->scope != Scope::kStack) {
          walk(n.body);
          break;
        }
        auto [it, fresh] = spans_.try_emplace(n.buffer.get());
        if (fresh) order_.push_back(n.buffer);
        open_.push_back({n.buffer.get(), loops_.size(), {}});
        walk(n.body);
        if (open_.back().span) spans_[n.buffer.get()].push_back(*open_.back().span);
        open_.pop_back();
        break;
      }
      case StmtKind::kLetStmt:
      case StmtKind::kIf:
      case StmtKind::kSeq:
        for_each_child(s, [&](const Stmt& child) { walk(child); });
        break;
    }
    ++now_;
  }

  int64_t now_ = 0;
  std::vector<int64_t> loops_;  // start times of the enclosing loops
  std::vector<Open> open_;
  std::vector<Buffer> order_;
  std::unordered_map<const BufferNode*, std::vector<Span>> spans_;
};

struct Storage {
  std::vector<Buffer> members;  // the first is the largest
  std::vector<Span> spans;

  bool takes(const Buffer& b, const std::vector<Span>& others) const {
    if (members[0]->dtype != b->dtype) return false;
    for (const Span& mine : spans)
      for (const Span& other : others)
        if (mine.meets(other)) return false;
    return true;
  }
  Buffer buffer() const {
    std::vector<std::string> names;
    int alignment = 0;
    for (const Buffer& b : members) {
      alignment = std::max(alignment, b->alignment);
      if (std::find(names.begin(), names.end(), b->name) == names.end()) names.push_back(b->name);
    }
    std::string name;
    for (const std::string& part : names) name += (name.empty() ? "" : "_or_") + part;
    return make_buffer(name, members[0]->dtype, members[0]->size, Scope::kStack, alignment);
  }
};

Stmt shared_scratch(const Stmt& body) {
  const Lifetimes lifetimes(body);
  std::vector<Buffer> buffers;
  std::unordered_map<const BufferNode*, Buffer> shared;
  std::unordered_set<const BufferNode*> unused;
  for (const Buffer& b : lifetimes.order()) {
    if (lifetimes.spans(b).empty())
      unused.insert(b.get());
    else
      buffers.push_back(b);
  }
  std::stable_sort(buffers.begin(), buffers.end(), [](const Buffer& a, const Buffer& b) { return a->size > b->size; });
  std::vector<Storage> storages;
  for (const Buffer& b : buffers) {
    const std::vector<Span>& spans = lifetimes.spans(b);
    auto home = std::find_if(storages.begin(), storages.end(), [&](const Storage& s) { return s.takes(b, spans); });
    if (home == storages.end()) home = storages.insert(storages.end(), Storage{});
    home->members.push_back(b);
    home->spans.insert(home->spans.end(), spans.begin(), spans.end());
  }
  std::vector<Buffer> made;
  for (const Storage& storage : storages) {
    if (storage.members.size() == 1) continue;
    made.push_back(storage.buffer());
    for (const Buffer& b : storage.members) shared[b.get()] = made.back();
  }
  if (made.empty() && unused.empty()) return body;
  auto replaced = [&](const Buffer& b) {
    auto it = shared.find(b.get());
    return it == shared.end() ? Buffer() : it->second;
  };
  Stmt out = mutate(
      body,
      [&](const PrimExpr& e) -> PrimExpr {
        const auto* n = as<LoadNode>(e);
        Buffer b = n ? replaced(n->buffer) : Buffer();
        return b ? load(std::move(b), n->index, n->mask) : e;
      },
      [&](Stmt s) -> Stmt {
        if (const auto* n = as<StoreNode>(s))
          if (Buffer b = replaced(n->buffer)) return store(std::move(b), n->index, n->value, n->mask);
        if (const auto* n = as<PrefetchNode>(s))
          if (Buffer b = replaced(n->buffer)) return prefetch(std::move(b), n->index);
        if (const auto* n = as<CallExternNode>(s)) {
          std::vector<ExternArgument> args = n->args;
          for (ExternArgument& a : args)
            if (Buffer b = a.buffer ? replaced(a.buffer) : Buffer()) a.buffer = std::move(b);
          return call_extern(n->name, std::move(args), n->packed);
        }
        if (const auto* n = as<AllocateNode>(s); n && (replaced(n->buffer) || unused.count(n->buffer.get())))
          return n->body;
        return s;
      });
  for (auto b = made.rbegin(); b != made.rend(); ++b) out = allocate(*b, std::move(out));
  return out;
}

}  // namespace

PrimFunc storage_rewrite(PrimFunc function) {
  if (!has_stack(function.body)) return function;
  function.body = shared_scratch(scratch_in_registers(function.body));
  return function;
}

int64_t stack_bytes(const PrimFunc& function) {
  std::unordered_set<const BufferNode*> seen;
  int64_t bytes = 0;
  for_each_stmt(function.body, [&](const Stmt& s) {
    if (const auto* n = stack_allocation(s); n && seen.insert(n->buffer.get()).second)
      bytes += static_cast<int64_t>(n->buffer->dtype.bytes_for(static_cast<uint64_t>(n->buffer->size)));
  });
  return bytes;
}

}  // namespace tilewright::tir
