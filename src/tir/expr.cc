// SPDX-License-Identifier: Apache-2.0
#include "tir/expr.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "tir/scalar.h"
#include "tir/typing.h"

namespace tilewright::tir {
namespace {

struct IntrinsicRow {
  const char* name;
  int arity;
};
constexpr IntrinsicRow kIntrinsics[] = {
#define TW_INTRINSIC(name, arity) {#name, arity},
    TW_TIR_INTRINSICS(TW_INTRINSIC)
#undef TW_INTRINSIC
};

constexpr const char* kKindNames[] = {
#define TW_KIND(name) #name,
    TW_TIR_BINARY(TW_KIND) TW_TIR_OTHER(TW_KIND)
#undef TW_KIND
};

bool is_integer_like(DataType t) { return t.is_integral() || t.is_bool(); }

template <class T>
const T* cast_kind(const PrimExpr& e, ExprKind kind) {
  return e->kind == kind ? static_cast<const T*>(e.get()) : nullptr;
}
const BroadcastNode* as_broadcast(const PrimExpr& e) { return cast_kind<BroadcastNode>(e, ExprKind::kBroadcast); }
const RampNode* as_ramp(const PrimExpr& e) { return cast_kind<RampNode>(e, ExprKind::kRamp); }
const BinaryNode* as_kind(const PrimExpr& e, ExprKind kind) { return cast_kind<BinaryNode>(e, kind); }

// Wraps around, as on the machine.
int64_t add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t mul(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }

// Broadcasts the operand with fewer lanes.
void match_lanes(PrimExpr& a, PrimExpr& b) {
  if (a->dtype.lanes == b->dtype.lanes) return;
  if (a->dtype.lanes == 1)
    a = broadcast(std::move(a), b->dtype.lanes);
  else if (b->dtype.lanes == 1)
    b = broadcast(std::move(b), a->dtype.lanes);
}

std::string operand_types(const char* what, const PrimExpr& a, const PrimExpr& b) {
  return format("{} of {} and {}", what, a->dtype.str(), b->dtype.str());
}

bool commutes(ExprKind kind, bool is_float) {
  switch (kind) {
    case ExprKind::kAdd:
    case ExprKind::kMul:
    case ExprKind::kEQ:
    case ExprKind::kNE:
      return true;
    case ExprKind::kMin:
    case ExprKind::kMax:
    case ExprKind::kAnd:
    case ExprKind::kOr:
    case ExprKind::kBitAnd:
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
      return !is_float;  // on floats Min and Max are not commutative: they differ for NaN
    default:
      return false;
  }
}

PrimExpr fold_constants(ExprKind kind, DataType result, const PrimExpr& a, const PrimExpr& b) {
  if (a->kind == ExprKind::kIntImm && b->kind == ExprKind::kIntImm) {
    int64_t value;
    if (!integer_binary(kind, a->dtype, static_cast<const IntImmNode*>(a.get())->value,
                        static_cast<const IntImmNode*>(b.get())->value, &value))
      return {};
    return make_int(value, result);
  }
  if (a->kind == ExprKind::kFloatImm && b->kind == ExprKind::kFloatImm) {
    double x = static_cast<const FloatImmNode*>(a.get())->value, y = static_cast<const FloatImmNode*>(b.get())->value;
    if (is_comparison(kind)) return make_int(float_comparison(kind, x, y), result);
    return make_float(float_arithmetic(kind, a->dtype, x, y), result);
  }
  return {};
}

// Ramps stay ramps under + - and multiplication by a constant; wrapping arithmetic keeps that exact.
PrimExpr fold_ramps(ExprKind kind, const PrimExpr& a, const PrimExpr& b) {
  const RampNode *ra = as_ramp(a), *rb = as_ramp(b);
  const BroadcastNode *ba = as_broadcast(a), *bb = as_broadcast(b);
  const int lanes = a->dtype.lanes;
  if (kind == ExprKind::kAdd || kind == ExprKind::kSub) {
    const int sign = kind == ExprKind::kAdd ? 1 : -1;
    if (ra && rb) return ramp(binary(kind, ra->base, rb->base), add(ra->stride, mul(sign, rb->stride)), lanes);
    if (ra && bb) return ramp(binary(kind, ra->base, bb->value), ra->stride, lanes);
    if (ba && rb) return ramp(binary(kind, ba->value, rb->base), mul(sign, rb->stride), lanes);
  }
  if (kind == ExprKind::kMul) {
    if (auto c = ra && bb ? as_const_int(b) : std::nullopt)
      return ramp(ra->base * bb->value, mul(ra->stride, *c), lanes);
    if (auto c = ba && rb ? as_const_int(a) : std::nullopt)
      return ramp(rb->base * ba->value, mul(rb->stride, *c), lanes);
  }
  return {};
}

// Identities of integers and bools with a constant on the right, or with equal operands.
PrimExpr fold_integer(ExprKind kind, DataType result, const PrimExpr& a, const PrimExpr& b) {
  const DataType type = a->dtype;
  auto constant = [](DataType t, int64_t v) { return make_int(v, t); };
  if (a == b) {
    switch (kind) {
      case ExprKind::kSub:
      case ExprKind::kBitXor:
        return constant(type, 0);
      case ExprKind::kMin:
      case ExprKind::kMax:
      case ExprKind::kAnd:
      case ExprKind::kOr:
      case ExprKind::kBitAnd:
      case ExprKind::kBitOr:
        return a;
      case ExprKind::kEQ:
      case ExprKind::kLE:
      case ExprKind::kGE:
        return constant(result, 1);
      case ExprKind::kNE:
      case ExprKind::kLT:
      case ExprKind::kGT:
        return constant(result, 0);
      default:
        break;
    }
  }
  auto c = as_const_int(b);
  if (!c) return {};
  const int64_t v = *c;
  switch (kind) {
    case ExprKind::kAdd:
      if (v == 0) return a;
      if (auto* inner = as_kind(a, ExprKind::kAdd))
        if (auto c1 = as_const_int(inner->b)) return inner->a + constant(type, add(*c1, v));
      break;
    case ExprKind::kSub:
      if (v == 0) return a;
      if (type.is_int()) return a + constant(type, mul(v, -1));
      break;
    case ExprKind::kMul:
      if (v == 1) return a;
      if (v == 0) return b;
      if (auto* inner = as_kind(a, ExprKind::kMul))
        if (auto c1 = as_const_int(inner->b)) return inner->a * constant(type, mul(*c1, v));
      break;
    case ExprKind::kDiv:
    case ExprKind::kFloorDiv:
      if (v == 1) return a;
      break;
    case ExprKind::kMod:
    case ExprKind::kFloorMod:
      if (v == 1) return constant(type, 0);
      break;
    case ExprKind::kAnd:
      return v ? a : b;
    case ExprKind::kOr:
      return v ? b : a;
    case ExprKind::kBitOr:
    case ExprKind::kBitXor:
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight:
      if (v == 0) return a;
      break;
    case ExprKind::kBitAnd:
      if (v == 0) return b;
      break;
    default:
      break;
  }
  return {};
}

// Identities of floats that hold for NaN, infinities and both zeros: x*1, x/1, x-0, x+(-0).
PrimExpr fold_float(ExprKind kind, const PrimExpr& a, const PrimExpr& b) {
  auto c = as_const_float(b);
  if (!c) return {};
  if ((kind == ExprKind::kMul || kind == ExprKind::kDiv) && *c == 1) return a;
  if (kind == ExprKind::kSub && *c == 0 && !std::signbit(*c)) return a;
  if (kind == ExprKind::kAdd && *c == 0 && std::signbit(*c)) return a;
  return {};
}
}  // namespace

const char* intrinsic_name(Intrinsic op) { return kIntrinsics[static_cast<int>(op)].name; }
int intrinsic_arity(Intrinsic op) { return kIntrinsics[static_cast<int>(op)].arity; }
bool is_binary(ExprKind kind) { return kind <= ExprKind::kShiftRight; }
bool is_comparison(ExprKind kind) { return kind >= ExprKind::kEQ && kind <= ExprKind::kGE; }
const char* kind_name(ExprKind kind) { return kKindNames[static_cast<int>(kind)]; }

std::optional<int64_t> as_const_int(const PrimExpr& e) {
  if (auto* b = as_broadcast(e)) return as_const_int(b->value);
  if (auto* i = cast_kind<IntImmNode>(e, ExprKind::kIntImm)) return i->value;
  return std::nullopt;
}

std::optional<double> as_const_float(const PrimExpr& e) {
  if (auto* b = as_broadcast(e)) return as_const_float(b->value);
  if (auto* f = cast_kind<FloatImmNode>(e, ExprKind::kFloatImm)) return f->value;
  return std::nullopt;
}

Buffer make_buffer(std::string name, DataType dtype, int64_t size, Scope scope, int alignment, bool read_only,
                   bool streamed) {
  TW_ICHECK(size >= 0 || (size == kUnknownSize && scope == Scope::kGlobal),
            format("buffer {} of {} elements", name, size));
  if (alignment == 0) alignment = std::max<int>(1, static_cast<int>(dtype.element().bytes()));
  return make_node<BufferNode>(std::move(name), dtype, size, scope, alignment, read_only, streamed);
}

PrimExpr make_int(int64_t value, DataType dtype) {
  TW_ICHECK(is_integer_like(dtype), dtype.str());
  PrimExpr scalar = make_node<IntImmNode>(dtype.element(), wrap_integer(dtype, value));
  return dtype.lanes == 1 ? scalar : broadcast(std::move(scalar), dtype.lanes);
}

PrimExpr make_float(double value, DataType dtype) {
  TW_ICHECK(dtype.is_float(), dtype.str());
  PrimExpr scalar = make_node<FloatImmNode>(dtype.element(), round_float(dtype, value));
  return dtype.lanes == 1 ? scalar : broadcast(std::move(scalar), dtype.lanes);
}

PrimExpr make_const(DataType dtype, double value) {
  if (dtype.is_float()) return make_float(value, dtype);
  return make_int(float_to_integer(dtype.is_bool() ? dtype : (value < 0 ? kInt64 : kUInt64), value), dtype);
}

PrimExpr make_var(std::string name, DataType t, bool size) { return make_node<VarNode>(std::move(name), t, size); }

PrimExpr binary(ExprKind kind, PrimExpr a, PrimExpr b) {
  TW_ICHECK(is_binary(kind), kind_name(kind));
  match_lanes(a, b);
  TW_ICHECK(a->dtype == b->dtype && operator_takes(kind, a->dtype), operand_types(kind_name(kind), a, b));
  const DataType type = a->dtype;
  const DataType result = operator_result(kind, type);
  if (type.lanes > 1) {
    auto *ba = as_broadcast(a), *bb = as_broadcast(b);
    if (ba && bb) return broadcast(binary(kind, ba->value, bb->value), type.lanes);
    if (type.is_integral() && (as_ramp(a) || as_ramp(b)))
      if (auto folded = fold_ramps(kind, a, b)) return folded;
  } else if (auto folded = fold_constants(kind, result, a, b)) {
    return folded;
  }
  if (type.is_float()) {
    if (commutes(kind, true) && as_const_float(a)) std::swap(a, b);
    if (auto folded = fold_float(kind, a, b)) return folded;
  } else {
    if (commutes(kind, false) && as_const_int(a)) std::swap(a, b);
    if (auto folded = fold_integer(kind, result, a, b)) return folded;
  }
  return make_node<BinaryNode>(kind, result, std::move(a), std::move(b));
}

PrimExpr operator+(const PrimExpr& a, const PrimExpr& b) { return binary(ExprKind::kAdd, a, b); }
PrimExpr operator-(const PrimExpr& a, const PrimExpr& b) { return binary(ExprKind::kSub, a, b); }
PrimExpr operator*(const PrimExpr& a, const PrimExpr& b) { return binary(ExprKind::kMul, a, b); }

namespace {
PrimExpr number_like(const PrimExpr& a, int64_t v) {
  return a->dtype.is_float() ? make_float(static_cast<double>(v), a->dtype) : make_int(v, a->dtype);
}
}  // namespace
PrimExpr operator+(const PrimExpr& a, int64_t b) { return a + number_like(a, b); }
PrimExpr operator-(const PrimExpr& a, int64_t b) { return a - number_like(a, b); }
PrimExpr operator*(const PrimExpr& a, int64_t b) { return a * number_like(a, b); }
PrimExpr div(PrimExpr a, PrimExpr b) { return binary(ExprKind::kDiv, std::move(a), std::move(b)); }
PrimExpr floordiv(PrimExpr a, PrimExpr b) { return binary(ExprKind::kFloorDiv, std::move(a), std::move(b)); }
PrimExpr floormod(PrimExpr a, PrimExpr b) { return binary(ExprKind::kFloorMod, std::move(a), std::move(b)); }
PrimExpr floordiv(const PrimExpr& a, int64_t b) { return floordiv(a, number_like(a, b)); }
PrimExpr floormod(const PrimExpr& a, int64_t b) { return floormod(a, number_like(a, b)); }
PrimExpr min(PrimExpr a, PrimExpr b) { return binary(ExprKind::kMin, std::move(a), std::move(b)); }
PrimExpr max(PrimExpr a, PrimExpr b) { return binary(ExprKind::kMax, std::move(a), std::move(b)); }
PrimExpr lt(PrimExpr a, PrimExpr b) { return binary(ExprKind::kLT, std::move(a), std::move(b)); }
PrimExpr le(PrimExpr a, PrimExpr b) { return binary(ExprKind::kLE, std::move(a), std::move(b)); }
PrimExpr gt(PrimExpr a, PrimExpr b) { return binary(ExprKind::kGT, std::move(a), std::move(b)); }
PrimExpr ge(PrimExpr a, PrimExpr b) { return binary(ExprKind::kGE, std::move(a), std::move(b)); }
PrimExpr eq(PrimExpr a, PrimExpr b) { return binary(ExprKind::kEQ, std::move(a), std::move(b)); }
PrimExpr ne(PrimExpr a, PrimExpr b) { return binary(ExprKind::kNE, std::move(a), std::move(b)); }
PrimExpr logical_and(PrimExpr a, PrimExpr b) { return binary(ExprKind::kAnd, std::move(a), std::move(b)); }
PrimExpr logical_or(PrimExpr a, PrimExpr b) { return binary(ExprKind::kOr, std::move(a), std::move(b)); }

PrimExpr logical_not(PrimExpr a) {
  TW_ICHECK(a->dtype.is_bool(), a->dtype.str());
  if (auto c = as_const_int(a)) return make_int(!*c, a->dtype);
  if (auto* n = cast_kind<NotNode>(a, ExprKind::kNot)) return n->a;
  if (auto* b = as_broadcast(a)) return broadcast(logical_not(b->value), a->dtype.lanes);
  return make_node<NotNode>(std::move(a));
}

PrimExpr select(PrimExpr condition, PrimExpr on_true, PrimExpr on_false) {
  match_lanes(on_true, on_false);
  if (condition->dtype.lanes > 1 && on_true->dtype.lanes == 1) {
    on_true = broadcast(std::move(on_true), condition->dtype.lanes);
    on_false = broadcast(std::move(on_false), condition->dtype.lanes);
  }
  TW_ICHECK(on_true->dtype == on_false->dtype, operand_types("select", on_true, on_false));
  const int lanes = on_true->dtype.lanes;
  if (condition->dtype.lanes == 1) condition = broadcast(std::move(condition), lanes);
  TW_ICHECK(condition->dtype == kBool.with_lanes(lanes), operand_types("select", condition, on_true));
  if (auto c = as_const_int(condition)) return *c ? on_true : on_false;
  if (on_true == on_false) return on_true;
  if (lanes > 1) {
    auto *c = as_broadcast(condition), *t = as_broadcast(on_true), *f = as_broadcast(on_false);
    if (c && t && f) return broadcast(select(c->value, t->value, f->value), lanes);
  }
  return make_node<SelectNode>(std::move(condition), std::move(on_true), std::move(on_false));
}

PrimExpr cast(DataType dtype, PrimExpr value) {
  const DataType from = value->dtype;
  if (dtype.lanes == 1) dtype = dtype.with_lanes(from.lanes);
  TW_ICHECK(dtype.lanes == from.lanes, format("cast of {} to {}", from.str(), dtype.str()));
  if (dtype == from) return value;
  auto known = [](DataType t) { return is_integer_like(t) || t.is_float(); };
  TW_ICHECK(known(dtype) && known(from), format("cast of {} to {}", from.str(), dtype.str()));
  if (auto* b = as_broadcast(value)) return broadcast(cast(dtype.element(), b->value), dtype.lanes);
  if (auto* i = cast_kind<IntImmNode>(value, ExprKind::kIntImm)) {
    if (dtype.is_float()) return make_float(integer_to_float(from, dtype, i->value), dtype);
    return make_int(i->value, dtype);
  }
  if (auto* f = cast_kind<FloatImmNode>(value, ExprKind::kFloatImm)) {
    if (dtype.is_float()) return make_float(f->value, dtype);
    const double whole = std::trunc(f->value);
    const int64_t converted = float_to_integer(dtype, f->value);
    // Out of range, the result depends on the machine: not folded.
    if (dtype.is_bool() || integer_to_float(dtype, kFloat64, converted) == whole) return make_int(converted, dtype);
  }
  return make_node<CastNode>(dtype, std::move(value));
}

PrimExpr reinterpret(DataType dtype, PrimExpr value) {
  const DataType from = value->dtype;
  if (dtype.lanes == 1 && dtype.bits == from.bits) dtype = dtype.with_lanes(from.lanes);
  TW_ICHECK(dtype.bits * dtype.lanes == from.bits * from.lanes,
            format("reinterpret of {} as {}", from.str(), dtype.str()));
  if (dtype == from) return value;
  if (auto* b = as_broadcast(value); b && dtype.bits == from.bits)
    return broadcast(reinterpret(dtype.element(), b->value), dtype.lanes);
  return make_node<ReinterpretNode>(dtype, std::move(value));
}

PrimExpr ramp(PrimExpr base, int64_t stride, int lanes) {
  TW_ICHECK(base->dtype.lanes == 1 && base->dtype.is_integral() && lanes >= 1, base->dtype.str());
  if (lanes == 1) return base;
  if (stride == 0) return broadcast(std::move(base), lanes);
  return make_node<RampNode>(std::move(base), stride, lanes);
}

PrimExpr broadcast(PrimExpr value, int lanes) {
  TW_ICHECK(lanes >= 1 && lanes <= UINT16_MAX, format("{} lanes", lanes));
  if (lanes == 1) return value;
  TW_ICHECK(value->dtype.lanes == 1, format("broadcast of {}", value->dtype.str()));
  return make_node<BroadcastNode>(std::move(value), lanes);
}

PrimExpr shuffle(std::vector<PrimExpr> vectors, std::vector<int> indices) {
  TW_ICHECK(!vectors.empty() && !indices.empty(), "shuffle of nothing");
  int total = 0;
  for (const auto& v : vectors) {
    TW_ICHECK(v->dtype.element() == vectors[0]->dtype.element(), operand_types("shuffle", vectors[0], v));
    total += v->dtype.lanes;
  }
  for (int i : indices) TW_ICHECK(i >= 0 && i < total, format("shuffle index {} of {} lanes", i, total));
  if (indices.size() == 1) {  // extracting one lane: look for its source
    int lane = indices[0];
    for (const auto& v : vectors) {
      if (lane >= v->dtype.lanes) {
        lane -= v->dtype.lanes;
        continue;
      }
      if (v->dtype.lanes == 1) return v;
      if (auto* b = as_broadcast(v)) return b->value;
      if (auto* r = as_ramp(v)) return r->base + mul(r->stride, lane);
      return make_node<ShuffleNode>(std::vector<PrimExpr>{v}, std::vector<int>{lane});
    }
  }
  if (vectors.size() == 1 && static_cast<int>(indices.size()) == total) {
    bool identity = true;
    for (int i = 0; i < total; ++i) identity &= indices[i] == i;
    if (identity) return vectors[0];
  }
  return make_node<ShuffleNode>(std::move(vectors), std::move(indices));
}

PrimExpr intrinsic(Intrinsic op, std::vector<PrimExpr> args) {
  const std::string name = intrinsic_name(op);
  TW_ICHECK(static_cast<int>(args.size()) == intrinsic_arity(op), name);
  if (op == Intrinsic::k_if_then_else) {
    TW_ICHECK(args[0]->dtype == kBool, name);
    match_lanes(args[1], args[2]);
    TW_ICHECK(args[1]->dtype == args[2]->dtype, operand_types("if_then_else", args[1], args[2]));
    if (auto c = as_const_int(args[0])) return *c ? args[1] : args[2];
    DataType type = args[1]->dtype;
    return make_node<CallNode>(type, op, std::move(args));
  }
  int lanes = 1;
  for (const auto& a : args) lanes = std::max<int>(lanes, a->dtype.lanes);
  bool all_broadcast = lanes > 1;
  for (auto& a : args) {
    if (a->dtype.lanes == 1) a = broadcast(a, lanes);
    TW_ICHECK(a->dtype.lanes == lanes, name);
    all_broadcast &= a->kind == ExprKind::kBroadcast;
  }
  DataType type = args[0]->dtype;
  bool reduces = false;
  switch (op) {
    case Intrinsic::k_reduce_add:
    case Intrinsic::k_reduce_max:
    case Intrinsic::k_reduce_min:
      TW_ICHECK(type.is_float() || type.is_integral(), name);
      type = type.element();
      reduces = true;
      break;
    case Intrinsic::k_isnan:
    case Intrinsic::k_isinf:
    case Intrinsic::k_isfinite:
      TW_ICHECK(type.is_float(), name);
      type = kBool.with_lanes(lanes);
      break;
    case Intrinsic::k_popcount:
    case Intrinsic::k_clz:
      TW_ICHECK(type.is_integral(), name);
      break;
    case Intrinsic::k_dot4:
    case Intrinsic::k_dot2:
    case Intrinsic::k_even_bytes:
    case Intrinsic::k_odd_bytes:
    case Intrinsic::k_low_halves:
    case Intrinsic::k_high_halves:
      for (const auto& a : args) TW_ICHECK(a->dtype == kInt32.with_lanes(lanes), name + " of " + a->dtype.str());
      break;
    case Intrinsic::k_dot2_bfloat16:
      TW_ICHECK(type.element() == kFloat32, name + " of " + type.str());
      for (size_t i : {1, 2})
        TW_ICHECK(args[i]->dtype == kInt32.with_lanes(lanes), name + " of " + args[i]->dtype.str());
      break;
    case Intrinsic::k_ldexp_int:
      TW_ICHECK(type.is_float() && args[1]->dtype == kInt32.with_lanes(lanes), name);
      break;
    default:
      TW_ICHECK(type.is_float(), name + " of " + type.str());
      for (const auto& a : args) TW_ICHECK(a->dtype == type, operand_types(name.c_str(), args[0], a));
  }
  if (reduces && lanes == 1) return args[0];
  if (all_broadcast && !reduces) {  // equal lanes are computed once
    for (auto& a : args) a = as_broadcast(a)->value;
    return broadcast(intrinsic(op, std::move(args)), lanes);
  }
  return make_node<CallNode>(type, op, std::move(args));
}

PrimExpr extern_value(DataType dtype, std::string name, std::vector<PrimExpr> args) {
  return make_node<ExternNode>(dtype, std::move(name), std::move(args));
}

PrimExpr fma(PrimExpr a, PrimExpr b, PrimExpr c) {
  return intrinsic(Intrinsic::k_fma, {std::move(a), std::move(b), std::move(c)});
}

PrimExpr let(PrimExpr var, PrimExpr value, PrimExpr body) {
  TW_ICHECK(var->kind == ExprKind::kVar && var->dtype == value->dtype, operand_types("let", var, value));
  return make_node<LetNode>(std::move(var), std::move(value), std::move(body));
}

PrimExpr load(Buffer buffer, PrimExpr index, PrimExpr mask) {
  TW_ICHECK(index->dtype.is_integral(), format("{} indexed by {}", buffer->name, index->dtype.str()));
  const int lanes = index->dtype.lanes;
  if (buffer->scope == Scope::kRegister) {
    TW_ICHECK(lanes == 1 && !mask, format("register buffer {} has scalar indices and no masks", buffer->name));
    DataType type = buffer->dtype;
    return make_node<LoadNode>(type, std::move(buffer), std::move(index), PrimExpr());
  }
  if (mask) {
    if (mask->dtype.lanes == 1) mask = broadcast(std::move(mask), lanes);
    TW_ICHECK(mask->dtype == kBool.with_lanes(lanes), operand_types("mask", index, mask));
    if (auto c = as_const_int(mask); c && *c) mask = {};
  }
  DataType type = buffer->dtype.element().with_lanes(lanes);
  return make_node<LoadNode>(type, std::move(buffer), std::move(index), std::move(mask));
}

PrimExpr read(DataType dtype, Ref<Node> source, std::string name, std::vector<PrimExpr> indices) {
  return make_node<ReadNode>(dtype, std::move(source), std::move(name), std::move(indices));
}

}  // namespace tilewright::tir
