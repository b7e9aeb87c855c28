// SPDX-License-Identifier: Apache-2.0
#include "tir/stmt.h"

#include "base/format.h"

namespace tilewright::tir {

Stmt make_for(PrimExpr var, PrimExpr min, PrimExpr extent, Stmt body, ForKind kind, Annotations annotations) {
  TW_ICHECK(var->kind == ExprKind::kVar && var->dtype.lanes == 1 && var->dtype.is_integral(), var->dtype.str());
  TW_ICHECK(min->dtype == var->dtype && extent->dtype == var->dtype,
            format("loop variable {}, min {}, extent {}", var->dtype.str(), min->dtype.str(), extent->dtype.str()));
  TW_ICHECK(body, "a loop has a body");
  return make_node<ForNode>(std::move(var), std::move(min), std::move(extent), kind, std::move(body),
                            std::move(annotations));
}

Stmt store(Buffer buffer, PrimExpr index, PrimExpr value, PrimExpr mask) {
  TW_ICHECK(index->dtype.is_integral(), format("{} indexed by {}", buffer->name, index->dtype.str()));
  TW_ICHECK(!buffer->read_only, format("store to the read-only buffer {}", buffer->name));
  const int lanes = index->dtype.lanes;
  DataType type = buffer->dtype;
  if (buffer->scope == Scope::kRegister) {
    TW_ICHECK(lanes == 1 && !mask, format("register buffer {} has scalar indices and no masks", buffer->name));
  } else {
    type = type.element().with_lanes(lanes);
    if (mask && mask->dtype.lanes == 1) mask = broadcast(std::move(mask), lanes);
    TW_ICHECK(!mask || mask->dtype == kBool.with_lanes(lanes),
              format("mask of {} on {} lanes", mask->dtype.str(), lanes));
    if (auto c = mask ? as_const_int(mask) : std::nullopt) {
      if (*c == 0) return seq({});
      mask = {};
    }
  }
  if (value->dtype.lanes == 1) value = broadcast(std::move(value), type.lanes);
  TW_ICHECK(value->dtype == type, format("store of {} to {} of {}", value->dtype.str(), buffer->name, type.str()));
  return make_node<StoreNode>(std::move(buffer), std::move(index), std::move(value), std::move(mask));
}

Stmt prefetch(Buffer buffer, PrimExpr index) {
  TW_ICHECK(index->dtype.is_integral() && index->dtype.lanes == 1,
            format("{} prefetched at {}", buffer->name, index->dtype.str()));
  TW_ICHECK(buffer->scope != Scope::kRegister, format("register buffer {} is prefetched", buffer->name));
  return make_node<PrefetchNode>(std::move(buffer), std::move(index));
}

Stmt let_stmt(PrimExpr var, PrimExpr value, Stmt body) {
  TW_ICHECK(var->kind == ExprKind::kVar && var->dtype == value->dtype,
            format("let of {} is {}", var->dtype.str(), value->dtype.str()));
  TW_ICHECK(body, "a let has a body");
  return make_node<LetStmtNode>(std::move(var), std::move(value), std::move(body));
}

Stmt make_if(PrimExpr condition, Stmt then_case, Stmt else_case) {
  TW_ICHECK(condition->dtype == kBool, condition->dtype.str());
  TW_ICHECK(then_case, "an if has a body");
  if (auto c = as_const_int(condition)) return *c ? then_case : (else_case ? else_case : seq({}));
  return make_node<IfNode>(std::move(condition), std::move(then_case), std::move(else_case));
}

Stmt make_while(PrimExpr condition, Stmt body) {
  TW_ICHECK(condition->dtype == kBool, condition->dtype.str());
  TW_ICHECK(body, "a loop has a body");
  if (as_const_int(condition) == 0) return seq({});
  return make_node<WhileNode>(std::move(condition), std::move(body));
}

Stmt seq(std::vector<Stmt> stmts) {
  bool flat = true;
  for (const auto& s : stmts) flat &= s && s->kind != StmtKind::kSeq;
  if (!flat) {
    std::vector<Stmt> all;  // a Seq never holds a Seq, so one level is enough
    for (auto& s : stmts) {
      if (!s) continue;
      if (s->kind == StmtKind::kSeq) {
        const auto& inner = static_cast<const SeqNode*>(s.get())->stmts;
        all.insert(all.end(), inner.begin(), inner.end());
      } else {
        all.push_back(std::move(s));
      }
    }
    stmts = std::move(all);
  }
  if (stmts.size() == 1) return stmts[0];
  return make_node<SeqNode>(std::move(stmts));
}

Stmt allocate(Buffer buffer, Stmt body) {
  TW_ICHECK(buffer->scope != Scope::kGlobal, format("{} is a parameter, not an allocation", buffer->name));
  TW_ICHECK(body, "an allocation has a body");
  return make_node<AllocateNode>(std::move(buffer), std::move(body));
}

Stmt call_extern(std::string name, std::vector<ExternArgument> args, bool packed) {
  return make_node<CallExternNode>(std::move(name), std::move(args), packed);
}

Stmt write(Ref<Node> target, std::string name, std::vector<PrimExpr> indices, PrimExpr value) {
  return make_node<WriteNode>(std::move(target), std::move(name), std::move(indices), std::move(value));
}

}  // namespace tilewright::tir
