// SPDX-License-Identifier: Apache-2.0
#include "tir/interpreter_code.h"

#include <algorithm>
#include <utility>

#include "tir/walk.h"

namespace tilewright::tir::interpreter {

Slot Compiler::keep(int64_t lanes) {
  Slot slot = code_.kept | kKept;
  code_.kept += static_cast<uint32_t>(lanes);
  code_.constants.resize(code_.kept);
  return slot;
}

int Compiler::add_memory(const Buffer& buffer, void* data) {
  Memory m{buffer.get(), data, 0, {}};
  if (buffer->scope == Scope::kRegister) m.first = keep(buffer->size * buffer->dtype.lanes);
  if (buffer->scope == Scope::kStack) m.own.resize(buffer->dtype.bytes_for(buffer->size));
  code_.memories.push_back(std::move(m));
  int id = static_cast<int>(code_.memories.size()) - 1;
  memory_of_[buffer.get()] = id;
  return id;
}

std::unique_ptr<Step> Compiler::step(const Stmt& s) {
  auto out = std::make_unique<Step>();
  out->node = s.get();
  done_.clear();
  next_temporary_ = 0;
  target_ = &out->code;
  switch (s->kind) {
    case StmtKind::kFor: {
      const auto& n = static_cast<const ForNode&>(*s);
      out->in[0] = value(n.min);
      out->in[1] = value(n.extent);
      bind(n.var, out->var = keep(1));
      out->children.push_back(step(n.body));
      break;
    }
    case StmtKind::kStore: {
      const auto& n = static_cast<const StoreNode&>(*s);
      out->in[0] = value(n.index);
      out->in[1] = value(n.value);
      if ((out->masked = bool(n.mask))) out->in[2] = value(n.mask);
      out->memory = memory_of_.at(n.buffer.get());
      break;
    }
    case StmtKind::kPrefetch:
    case StmtKind::kCallExtern:
    case StmtKind::kWrite:
    case StmtKind::kBlock:
      break;
    case StmtKind::kLetStmt: {
      const auto& n = static_cast<const LetStmtNode&>(*s);
      out->in[0] = value(n.value);
      bind(n.var, out->var = keep(n.var->dtype.lanes));
      out->children.push_back(step(n.body));
      break;
    }
    case StmtKind::kIf: {
      const auto& n = static_cast<const IfNode&>(*s);
      out->in[0] = value(n.condition);
      out->children.push_back(step(n.then_case));
      if (n.else_case) out->children.push_back(step(n.else_case));
      break;
    }
    case StmtKind::kWhile: {
      const auto& n = static_cast<const WhileNode&>(*s);
      out->in[0] = value(n.condition);
      out->children.push_back(step(n.body));
      break;
    }
    case StmtKind::kSeq:
      for (const auto& child : static_cast<const SeqNode&>(*s).stmts) out->children.push_back(step(child));
      break;
    case StmtKind::kAllocate: {
      const auto& n = static_cast<const AllocateNode&>(*s);
      out->memory = add_memory(n.buffer, nullptr);
      out->children.push_back(step(n.body));
      break;
    }
  }
  code_.temporaries = std::max(code_.temporaries, next_temporary_);
  return out;
}

Slot Compiler::temporary(int lanes) {
  Slot slot = next_temporary_;
  next_temporary_ += static_cast<uint32_t>(lanes);
  code_.temporaries = std::max(code_.temporaries, next_temporary_);
  return slot;
}

Slot Compiler::value(const PrimExpr& e) {
  if (e->kind == ExprKind::kVar) return variables_.at(e.get());
  if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
  Slot slot = compute(e);
  done_[e.get()] = slot;
  order_.push_back(e.get());
  return slot;
}

Slot Compiler::constant(const PrimExpr& e) {
  Slot slot = keep(1);
  Lane& lane = code_.constants[slot & ~kKept];
  if (auto* i = as<IntImmNode>(e))
    lane.i = i->value;
  else
    lane.f = static_cast<const FloatImmNode&>(*e).value;
  return slot;
}

Slot Compiler::compute(const PrimExpr& e) {
  if (e->kind == ExprKind::kIntImm || e->kind == ExprKind::kFloatImm) return constant(e);
  if (e->kind == ExprKind::kLet) {
    const auto& n = static_cast<const LetNode&>(*e);
    bind(n.var, value(n.value));
    Slot slot = 0;
    scoped([&] { slot = value(n.body); });
    return slot;
  }
  Instruction i;
  i.node = e.get();
  if (auto* call = as<CallNode>(e); call && call->op == Intrinsic::k_if_then_else) {
    i.in[0] = value(call->args[0]);
    for (int side = 0; side < 2; ++side) {
      Program code;
      Program* outer = std::exchange(target_, &code);
      scoped([&] { i.in[1 + side] = value(call->args[1 + side]); });
      target_ = outer;
      i.branch[side] = static_cast<int>(code_.branches.size());
      code_.branches.push_back(std::move(code));
    }
  } else if (auto* s = as<ShuffleNode>(e)) {
    for (const auto& v : s->vectors) i.more.push_back(value(v));
  } else if (e->kind == ExprKind::kExtern) {
    // has no value; executing it reports that
  } else if (auto* l = as<LoadNode>(e)) {
    i.in[0] = value(l->index);
    if (l->mask) i.in[1] = value(l->mask);
    i.memory = memory_of_.at(l->buffer.get());
  } else {
    int k = 0;
    for_each_child(e, [&](const PrimExpr& child) { i.in[k++] = value(child); });
  }
  i.to = temporary(e->dtype.lanes);
  target_->push_back(i);
  return i.to;
}

}  // namespace tilewright::tir::interpreter
