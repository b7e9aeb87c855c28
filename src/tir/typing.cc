// SPDX-License-Identifier: Apache-2.0
#include "tir/typing.h"

#include <algorithm>

#include "base/format.h"

namespace tilewright::tir {
namespace {
bool is_integer_like(DataType t) { return t.is_integral() || t.is_bool(); }
bool is_number(DataType t) { return is_integer_like(t) || t.is_float(); }

std::string mismatch(const char* what, DataType a, DataType b) {
  return format("{} of {} and {}", what, a.str(), b.str());
}

std::string index_error(const BufferNode& b, const PrimExpr& index, const PrimExpr& mask) {
  if (!index->dtype.is_integral()) return format("{} is indexed by {}", b.name, index->dtype.str());
  if (b.scope == Scope::kRegister && (index->dtype.lanes != 1 || mask))
    return format("the register buffer {} takes scalar indices and no mask", b.name);
  if (mask && mask->dtype != kBool.with_lanes(index->dtype.lanes))
    return format("a mask of {} for {} lanes of {}", mask->dtype.str(), index->dtype.lanes, b.name);
  return {};
}

DataType element_type(const BufferNode& b, const PrimExpr& index) {
  return b.scope == Scope::kRegister ? b.dtype : b.dtype.element().with_lanes(index->dtype.lanes);
}

std::string call_error(const CallNode& n) {
  const char* name = intrinsic_name(n.op);
  if (static_cast<int>(n.args.size()) != intrinsic_arity(n.op))
    return format("{} takes {} arguments, not {}", name, intrinsic_arity(n.op), n.args.size());
  const DataType type = n.args[0]->dtype;
  switch (n.op) {
    case Intrinsic::k_if_then_else:
      if (type != kBool) return format("if_then_else takes a scalar bool, not {}", type.str());
      if (n.args[1]->dtype != n.args[2]->dtype) return mismatch(name, n.args[1]->dtype, n.args[2]->dtype);
      break;
    case Intrinsic::k_reduce_add:
    case Intrinsic::k_reduce_max:
    case Intrinsic::k_reduce_min:
      if (!type.is_float() && !type.is_integral()) return format("{} of {}", name, type.str());
      break;
    case Intrinsic::k_popcount:
    case Intrinsic::k_clz:
      if (!type.is_integral()) return format("{} of {}", name, type.str());
      break;
    case Intrinsic::k_dot4:
    case Intrinsic::k_dot2:
    case Intrinsic::k_even_bytes:
    case Intrinsic::k_odd_bytes:
    case Intrinsic::k_low_halves:
    case Intrinsic::k_high_halves:
      for (const auto& a : n.args)
        if (a->dtype != kInt32.with_lanes(type.lanes)) return format("{} of {}", name, a->dtype.str());
      break;
    case Intrinsic::k_dot2_bfloat16:
      if (type.element() != kFloat32) return format("{} of {}", name, type.str());
      for (size_t i : {1, 2})
        if (n.args[i]->dtype != kInt32.with_lanes(type.lanes)) return format("{} of {}", name, n.args[i]->dtype.str());
      break;
    case Intrinsic::k_ldexp_int:
      if (!type.is_float() || n.args[1]->dtype != kInt32.with_lanes(type.lanes))
        return mismatch(name, type, n.args[1]->dtype);
      break;
    default:
      if (!type.is_float()) return format("{} of {}", name, type.str());
      for (const auto& a : n.args)
        if (a->dtype != type) return mismatch(name, type, a->dtype);
  }
  if (n.dtype != call_result(n.op, n.args)) return format("{} of {} typed {}", name, type.str(), n.dtype.str());
  return {};
}
}  // namespace

bool operator_takes(ExprKind kind, DataType t) {
  switch (kind) {
    case ExprKind::kAdd:
    case ExprKind::kSub:
    case ExprKind::kMul:
    case ExprKind::kDiv:
      return t.is_integral() || t.is_float();
    case ExprKind::kMin:
    case ExprKind::kMax:
    case ExprKind::kEQ:
    case ExprKind::kNE:
    case ExprKind::kLT:
    case ExprKind::kLE:
    case ExprKind::kGT:
    case ExprKind::kGE:
      return is_number(t);
    case ExprKind::kMod:
    case ExprKind::kFloorDiv:
    case ExprKind::kFloorMod:
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
      return t.is_integral();
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return t.is_bool();
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
      return is_integer_like(t);
    default:
      return false;
  }
}

DataType operator_result(ExprKind kind, DataType operand) {
  return is_comparison(kind) ? kBool.with_lanes(operand.lanes) : operand;
}

DataType call_result(Intrinsic op, const std::vector<PrimExpr>& args) {
  switch (op) {
    case Intrinsic::k_if_then_else:
      return args[1]->dtype;
    case Intrinsic::k_reduce_add:
    case Intrinsic::k_reduce_max:
    case Intrinsic::k_reduce_min:
      return args[0]->dtype.element();
    case Intrinsic::k_isnan:
    case Intrinsic::k_isinf:
    case Intrinsic::k_isfinite:
      return kBool.with_lanes(args[0]->dtype.lanes);
    default:
      return args[0]->dtype;
  }
}

std::string typing_error(const ExprNode& e) {
  switch (e.kind) {
#define TW_KIND(name) case ExprKind::k##name:
    TW_TIR_BINARY(TW_KIND)
#undef TW_KIND
    {
      const auto& n = static_cast<const BinaryNode&>(e);
      if (n.a->dtype != n.b->dtype || !operator_takes(e.kind, n.a->dtype))
        return mismatch(kind_name(e.kind), n.a->dtype, n.b->dtype);
      if (e.dtype != operator_result(e.kind, n.a->dtype))
        return format("{} typed {}", kind_name(e.kind), e.dtype.str());
      return {};
    }
    case ExprKind::kIntImm:
      return is_integer_like(e.dtype) && e.dtype.lanes == 1 ? ""
                                                            : format("an integer constant typed {}", e.dtype.str());
    case ExprKind::kFloatImm:
      return e.dtype.is_float() && e.dtype.lanes == 1 ? "" : format("a float constant typed {}", e.dtype.str());
    case ExprKind::kVar:
      return is_number(e.dtype) ? "" : format("a variable typed {}", e.dtype.str());
    case ExprKind::kNot:
      return e.dtype.is_bool() ? "" : format("not of {}", e.dtype.str());
    case ExprKind::kSelect: {
      const auto& n = static_cast<const SelectNode&>(e);
      if (n.on_true->dtype != n.on_false->dtype) return mismatch("select", n.on_true->dtype, n.on_false->dtype);
      if (n.condition->dtype != kBool.with_lanes(e.dtype.lanes))
        return format("select of {} by {}", e.dtype.str(), n.condition->dtype.str());
      return {};
    }
    case ExprKind::kCast: {
      DataType from = static_cast<const CastNode&>(e).value->dtype;
      bool fits = is_number(from) && is_number(e.dtype) && from.lanes == e.dtype.lanes;
      return fits ? "" : mismatch("cast", from, e.dtype);
    }
    case ExprKind::kReinterpret: {
      DataType from = static_cast<const ReinterpretNode&>(e).value->dtype;
      bool fits = is_number(from) && is_number(e.dtype) && from.lanes * from.bits == e.dtype.lanes * e.dtype.bits;
      return fits ? "" : mismatch("reinterpret", from, e.dtype);
    }
    case ExprKind::kLoad: {
      const auto& n = static_cast<const LoadNode&>(e);
      if (auto error = index_error(*n.buffer, n.index, n.mask); !error.empty()) return error;
      return e.dtype == element_type(*n.buffer, n.index) ? "" : format("a load typed {}", e.dtype.str());
    }
    case ExprKind::kRamp: {
      DataType base = static_cast<const RampNode&>(e).base->dtype;
      return base.is_integral() && base.lanes == 1 && e.dtype.lanes > 0 ? "" : format("ramp of {}", base.str());
    }
    case ExprKind::kBroadcast: {
      DataType value = static_cast<const BroadcastNode&>(e).value->dtype;
      return value.lanes == 1 && e.dtype.lanes > 0 ? "" : format("broadcast of {}", value.str());
    }
    case ExprKind::kShuffle: {
      const auto& n = static_cast<const ShuffleNode&>(e);
      int lanes = 0;
      for (const auto& v : n.vectors) {
        if (v->dtype.element() != e.dtype.element()) return mismatch("shuffle", e.dtype.element(), v->dtype);
        lanes += v->dtype.lanes;
      }
      for (int i : n.indices)
        if (i < 0 || i >= lanes) return format("a shuffle takes lane {} of {}", i, lanes);
      return {};
    }
    case ExprKind::kRead:
      return "an element of a tensor expression is left in a function";
    case ExprKind::kExtern: {
      const auto& n = static_cast<const ExternNode&>(e);
      if (!is_number(e.dtype) || e.dtype.lanes != 1) return format("{} gives {}", n.name, e.dtype.str());
      for (const PrimExpr& a : n.args)
        if (!is_number(a->dtype) || a->dtype.lanes != 1) return format("{} of {}", n.name, a->dtype.str());
      return {};
    }
    case ExprKind::kCall:
      return call_error(static_cast<const CallNode&>(e));
    case ExprKind::kLet: {
      const auto& n = static_cast<const LetNode&>(e);
      if (n.var->kind != ExprKind::kVar) return "a let binds something that is not a variable";
      return n.var->dtype == n.value->dtype ? "" : mismatch("let", n.var->dtype, n.value->dtype);
    }
  }
  return {};
}

std::string typing_error(const StmtNode& s) {
  switch (s.kind) {
    case StmtKind::kFor: {
      const auto& n = static_cast<const ForNode&>(s);
      if (n.var->kind != ExprKind::kVar || n.var->dtype.lanes != 1 || !n.var->dtype.is_integral())
        return format("a loop over {}", n.var->dtype.str());
      if (n.min->dtype != n.var->dtype) return mismatch("a loop", n.var->dtype, n.min->dtype);
      return n.extent->dtype == n.var->dtype ? "" : mismatch("a loop", n.var->dtype, n.extent->dtype);
    }
    case StmtKind::kStore: {
      const auto& n = static_cast<const StoreNode&>(s);
      if (n.buffer->read_only) return format("a store to the read-only buffer {}", n.buffer->name);
      if (auto error = index_error(*n.buffer, n.index, n.mask); !error.empty()) return error;
      DataType type = element_type(*n.buffer, n.index);
      return n.value->dtype == type
                 ? ""
                 : format("a store of {} where {} holds {}", n.value->dtype.str(), n.buffer->name, type.str());
    }
    case StmtKind::kPrefetch: {
      const auto& n = static_cast<const PrefetchNode&>(s);
      if (n.buffer->scope == Scope::kRegister) return format("a prefetch of the register buffer {}", n.buffer->name);
      if (n.index->dtype.lanes != 1)
        return format("a prefetch of {} at {} lanes", n.buffer->name, n.index->dtype.lanes);
      return index_error(*n.buffer, n.index, PrimExpr());
    }
    case StmtKind::kLetStmt: {
      const auto& n = static_cast<const LetStmtNode&>(s);
      if (n.var->kind != ExprKind::kVar) return "a let binds something that is not a variable";
      return n.var->dtype == n.value->dtype ? "" : mismatch("let", n.var->dtype, n.value->dtype);
    }
    case StmtKind::kIf: {
      DataType type = static_cast<const IfNode&>(s).condition->dtype;
      return type == kBool ? "" : format("an if on {}, not on a scalar bool", type.str());
    }
    case StmtKind::kWhile: {
      DataType type = static_cast<const WhileNode&>(s).condition->dtype;
      return type == kBool ? "" : format("a while on {}, not on a scalar bool", type.str());
    }
    case StmtKind::kSeq:
      return {};
    case StmtKind::kCallExtern: {
      const auto& n = static_cast<const CallExternNode&>(s);
      for (const ExternArgument& a : n.args) {
        if (a.value->dtype.lanes != 1) return format("{} of {}", n.name, a.value->dtype.str());
        if (a.buffer && a.buffer->scope == Scope::kRegister)
          return format("the address of the register buffer {}", a.buffer->name);
        if (a.buffer && a.value->dtype != kInt64)
          return format("{} indexed by {}", a.buffer->name, a.value->dtype.str());
        if (a.address) return "an address without a place in memory is left in a function";
      }
      return n.packed ? format("a call of the runtime's function {} is left in a kernel", n.name) : "";
    }
    case StmtKind::kWrite:
    case StmtKind::kBlock:
      return "what has no place in memory yet is left in a function";
    case StmtKind::kAllocate: {
      const auto& b = *static_cast<const AllocateNode&>(s).buffer;
      return b.scope != Scope::kGlobal ? "" : format("an allocation of {}, which is global", b.name);
    }
  }
  return {};
}

std::string typing_error(const BufferNode& b) {
  if (!is_number(b.dtype)) return format("buffer {} of {}", b.name, b.dtype.str());
  if (b.size < 0 && !(b.size == kUnknownSize && b.scope == Scope::kGlobal))
    return format("buffer {} of {} elements", b.name, b.size);
  int a = b.alignment;
  if (a < 1 || a > 4096 || (a & (a - 1)) != 0) return format("buffer {} aligned to {} bytes", b.name, a);
  constexpr int64_t kLargestArray = 1 << 20;  // bytes of a thread's stack
  if (b.scope != Scope::kGlobal && b.size > kLargestArray / std::max<int64_t>(1, b.dtype.bytes()))
    return format("{} of {} elements is too large for a kernel's stack", b.name, b.size);
  return {};
}

}  // namespace tilewright::tir
