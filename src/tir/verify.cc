// SPDX-License-Identifier: Apache-2.0
#include "tir/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/format.h"
#include "tir/text.h"
#include "tir/typing.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

class Verifier {
 public:
  explicit Verifier(Form form) : form_(form) {}
  std::string error;  // the violated rule; empty if none
  Stmt place;         // the statement that violates it

  void function(const PrimFunc& f) {
    if (!f.body) return fail("the function has no body");
    for (const auto& p : f.params) {
      if (p->scope != Scope::kGlobal) return fail(format("the parameter {} is not global", p->name));
      if (!in_scope_.insert(p.get()).second) return fail(format("the parameter {} is given twice", p->name));
      if (auto e = typing_error(*p); !e.empty()) return fail(e);
    }
    if (!f.tid != !f.nthreads) return fail("tid and nthreads come together or not at all");
    for (const auto& v : {f.tid, f.nthreads}) {
      if (!v) continue;
      if (v->kind != ExprKind::kVar || v->dtype != kInt64) return fail("tid and nthreads are int64 variables");
      if (!in_scope_.insert(v.get()).second) return fail("tid and nthreads are one variable");
    }
    stmt(f.body, 1);
  }

 private:
  void fail(std::string what) {
    if (error.empty()) error = std::move(what);
  }

  // Binds a variable or buffer during `inner`. Expressions
  // verified inside a scope are not valid outside.
  template <class F>
  void scoped(const Node* node, const std::string& name, const F& inner) {
    if (!in_scope_.insert(node).second) return bound_again(name);
    size_t mark = checked_order_.size();
    inner();
    while (checked_order_.size() > mark) {
      checked_.erase(checked_order_.back());
      checked_order_.pop_back();
    }
    in_scope_.erase(node);
  }

  // The recursive functions below keep their frames small: messages are formatted in separate functions.
  [[gnu::noinline]] void bound_again(const std::string& name) {
    fail(format("{} is bound again inside its own scope", name));
  }
  [[gnu::noinline]] void out_of_scope(const VarNode& v) {
    fail(format("the variable {} is used outside its scope", v.name));
  }
  [[gnu::noinline]] void nested_too_deep() { fail(format("statements are nested more than {} deep", kMaxStmtDepth)); }
  template <class N>
  [[gnu::noinline]] bool well_typed(const N& node) {
    std::string what = typing_error(node);
    if (!what.empty()) fail(std::move(what));
    return error.empty();
  }

  [[gnu::noinline]] void bounds(const BufferNode& b, const PrimExpr& index, bool masked) {
    if (!in_scope_.count(&b)) return fail(format("the buffer {} is used outside its scope", b.name));
    const ExprNode* base = index.get();
    __int128 span = 0;
    if (auto* r = as<RampNode>(index)) {
      base = r->base.get();
      span = static_cast<__int128>(r->stride) * (r->dtype.lanes - 1);
    }
    if (base->kind == ExprKind::kBroadcast) base = static_cast<const BroadcastNode*>(base)->value.get();
    if (base->kind == ExprKind::kIntImm) {
      const int64_t at = static_cast<const IntImmNode*>(base)->value;
      const __int128 first = std::min<__int128>(at, at + span), last = std::max<__int128>(at, at + span);
      if (!masked && (first < 0 || (last >= b.size && b.size != kUnknownSize)))
        fail(span == 0 ? format("index {} is outside {}, which has {} elements", at, b.name, b.size)
                       : format("{} leaves {}, which has {} elements", to_text(index), b.name, b.size));
    } else if (form_ == Form::kFinal && b.scope == Scope::kRegister) {
      fail(format("the register buffer {} is indexed by {}, which is not constant", b.name, to_text(index)));
    }
  }

  // `depth` bounds this recursion. The returned height of e bounds that of other passes, which may reach shared nodes
  // by other paths.
  int expr(const PrimExpr& e, int depth) {
    int height = 1;
    auto child_height = [&](const PrimExpr& child) { height = std::max(height, expr(child, depth + 1) + 1); };
    if (!error.empty()) return height;
    TW_ICHECK(e, "an expression is missing");
    if (auto it = checked_.find(e.get()); it != checked_.end()) return it->second;
    if (depth > kMaxExprDepth) return too_deep();
    if (e->kind == ExprKind::kLet) {
      const auto& n = static_cast<const LetNode&>(*e);
      if (!well_typed(*e)) return height;
      child_height(n.value);
      scoped(n.var.get(), static_cast<const VarNode&>(*n.var).name, [&] { child_height(n.body); });
    } else {
      for_each_child(e, child_height);
      if (!error.empty()) return height;
      if (!well_typed(*e)) return height;
      if (e->kind == ExprKind::kVar && !in_scope_.count(e.get())) out_of_scope(static_cast<const VarNode&>(*e));
      if (e->kind == ExprKind::kLoad) {
        const auto& n = static_cast<const LoadNode&>(*e);
        bounds(*n.buffer, n.index, bool(n.mask));
      }
    }
    if (height > kMaxExprDepth) return too_deep();
    checked_.emplace(e.get(), height);
    checked_order_.push_back(e.get());
    return height;
  }
  [[gnu::noinline]] int too_deep() {
    fail(format("an expression is more than {} levels deep", kMaxExprDepth));
    return kMaxExprDepth;
  }

  void stmt(const Stmt& s, int depth) {
    if (!error.empty()) return;
    TW_ICHECK(s, "a statement is missing");
    if (depth > kMaxStmtDepth) return nested_too_deep();
    for_each_own_expr(s, [&](const PrimExpr& e) { expr(e, 1); });
    if (error.empty() && well_typed(*s)) check_own(s);
    if (!error.empty()) {
      if (!place) place = s;
      return;
    }
    switch (s->kind) {
      case StmtKind::kFor: {
        const auto& n = static_cast<const ForNode&>(*s);
        scoped(n.var.get(), static_cast<const VarNode&>(*n.var).name, [&] { stmt(n.body, depth + 1); });
        break;
      }
      case StmtKind::kLetStmt: {
        const auto& n = static_cast<const LetStmtNode&>(*s);
        scoped(n.var.get(), static_cast<const VarNode&>(*n.var).name, [&] { stmt(n.body, depth + 1); });
        break;
      }
      case StmtKind::kAllocate: {
        const auto& n = static_cast<const AllocateNode&>(*s);
        scoped(n.buffer.get(), n.buffer->name, [&] { stmt(n.body, depth + 1); });
        break;
      }
      case StmtKind::kStore:
      case StmtKind::kPrefetch:
      case StmtKind::kIf:
      case StmtKind::kWhile:
      case StmtKind::kSeq:
      case StmtKind::kCallExtern:
      case StmtKind::kWrite:
      case StmtKind::kBlock:
        for_each_child(s, [&](const Stmt& child) { stmt(child, depth + 1); });
        break;
    }
  }

  [[gnu::noinline]] void check_own(const Stmt& s) {
    if (auto* n = as<StoreNode>(s)) bounds(*n->buffer, n->index, bool(n->mask));
    if (auto* n = as<PrefetchNode>(s); n && !in_scope_.count(n->buffer.get()))
      fail(format("the buffer {} is used outside its scope", n->buffer->name));
    if (auto* n = as<CallExternNode>(s))
      for (const ExternArgument& a : n->args)
        if (a.buffer && !in_scope_.count(a.buffer.get()))
          fail(format("the buffer {} is used outside its scope", a.buffer->name));
    if (auto* n = as<AllocateNode>(s))
      if (auto what = typing_error(*n->buffer); !what.empty()) fail(what);
    if (auto* n = as<ForNode>(s); n && form_ == Form::kFinal && n->for_kind != ForKind::kSerial)
      fail(format("the loop over {} is still to be {}", static_cast<const VarNode&>(*n->var).name,
                  n->for_kind == ForKind::kVectorized ? "vectorized"
                  : n->for_kind == ForKind::kUnrolled ? "unrolled"
                                                      : "divided among threads"));
  }

  const Form form_;
  std::unordered_set<const Node*> in_scope_;
  std::unordered_map<const ExprNode*, int> checked_;  // with their height
  std::vector<const ExprNode*> checked_order_;
};

std::string first_line(const Stmt& s) {
  // Only stores are printed: a loop nest's text is long, and printing one that is too deep would recurse.
  std::string text = s->kind == StmtKind::kStore ? to_text(s) : "";
  text = text.substr(text.rfind('\n', text.size() < 2 ? 0 : text.size() - 2) + 1);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.size() > 160 ? text.substr(0, 157) + "..." : text;
}
}  // namespace

Status verify(const PrimFunc& function, Form form) {
  Verifier v(form);
  v.function(function);
  if (v.error.empty()) return Ok{};
  std::string where = format("kernel {}", function.name);
  bool printable = v.place && v.error.find("levels deep") == std::string::npos;
  if (std::string line = printable ? first_line(v.place) : ""; !line.empty()) where += format(", '{}'", line);
  return Diagnostic(ErrorCode::kVerifyFailed, v.error, where,
                    "this is a fault of the pass or template that made the kernel");
}

}  // namespace tilewright::tir
