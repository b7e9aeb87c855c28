// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/format.h"
#include "codegen/stackvm/assembler.h"

namespace tilewright::codegen::bytecode {

using stackvm::Element;
using stackvm::Op;
using tir::as;
using tir::ExprKind;
using tir::PrimExpr;

namespace {

bool is_small_float(DataType t) { return t.is_float() && t.bits < 32; }
bool is_double(DataType t) { return t.is_float() && t.bits == 64; }
bool is_wide_unsigned(DataType t) { return t.is_uint() && t.bits == 64; }
// What WrapBits and conversions to integers are told.
int64_t width_of(DataType t) { return t.bits + (t.is_int() ? 256 : 0); }

}  // namespace

Value Assembler::value(const PrimExpr& e) {
  if (e->kind == ExprKind::kVar) {
    if (auto found = variables_.find(e.get()); found != variables_.end()) return found->second;
    if (is_number(e)) return splat(number_of(e), e->dtype, e->dtype.lanes);
    fail("variable " + static_cast<const tir::VarNode&>(*e).name);
    return integer(0);
  }
  if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
  const Value v = compute(e);
  done_[e.get()] = v;
  order_.push_back(e.get());
  return v;
}

Value Assembler::constant(DataType type, int64_t integer, double real) {
  Wanted w{type.is_float() && !is_double(type) ? Op::kConstF : Op::kConstQ, 1, lane_bytes(type)};
  if (is_double(type)) {
    std::memcpy(&w.value, &real, sizeof real);
  } else if (type.is_float()) {
    const auto narrow = static_cast<float>(real);
    std::memcpy(&w.value, &narrow, sizeof narrow);
  } else {
    w.value = integer;
  }
  return pure(w);
}

Value Assembler::splat(Value v, DataType type, int lanes) {
  if (lanes == 1) return v;
  const uint32_t bytes = lane_bytes(type);
  return pure({bytes == 4 ? Op::kSplatF : Op::kSplatQ, lanes, bytes, v});
}

Value Assembler::compute(const PrimExpr& e) {
  const DataType type = e->dtype;
  if (type.code == TypeCode::kComplex || type.code == TypeCode::kHandle || type.is_string())
    fail(format("values of {}", type.str()));
  if (!error_.empty()) return listing_.tid;
  switch (e->kind) {
#define TW_KIND(name) case ExprKind::k##name:
    TW_TIR_BINARY(TW_KIND)
#undef TW_KIND
    return binary(static_cast<const tir::BinaryNode&>(*e));
    case ExprKind::kIntImm: {
      const int64_t v = static_cast<const tir::IntImmNode&>(*e).value;
      return splat(constant(type.element(), v, 0), type, type.lanes);
    }
    case ExprKind::kFloatImm: {
      const double v = static_cast<const tir::FloatImmNode&>(*e).value;
      return splat(constant(type.element(), 0, v), type, type.lanes);
    }
    case ExprKind::kVar:
      return value(e);
    case ExprKind::kNot:
      return pure({Op::kNot, type.lanes, 8, value(static_cast<const tir::NotNode&>(*e).a)});
    case ExprKind::kSelect:
      return select(static_cast<const tir::SelectNode&>(*e));
    case ExprKind::kCast:
      return cast(static_cast<const tir::CastNode&>(*e));
    case ExprKind::kReinterpret:
      return reinterpret(static_cast<const tir::ReinterpretNode&>(*e));
    case ExprKind::kLoad:
      return load(static_cast<const tir::LoadNode&>(*e));
    case ExprKind::kRamp: {
      const auto& n = static_cast<const tir::RampNode&>(*e);
      return wrapped(pure({Op::kRamp, type.lanes, 8, value(n.base), kNothing, kNothing, n.stride}), type);
    }
    case ExprKind::kBroadcast: {
      const auto& n = static_cast<const tir::BroadcastNode&>(*e);
      return splat(value(n.value), type, type.lanes);
    }
    case ExprKind::kShuffle:
      return shuffle(static_cast<const tir::ShuffleNode&>(*e));
    case ExprKind::kCall:
      return call(static_cast<const tir::CallNode&>(*e));
    case ExprKind::kLet: {
      const auto& n = static_cast<const tir::LetNode&>(*e);
      variables_[n.var.get()] = kept(value(n.value), n.value->dtype);
      Value out;
      scoped([&] { out = value(n.body); });
      return out;
    }
    case ExprKind::kExtern:
      fail(format("C functions, and the kernel calls '{}'", static_cast<const tir::ExternNode&>(*e).name));
      break;
    case ExprKind::kRead:
      fail("tensors without memory, and one is left in the kernel");  // never verified
      break;
  }
  return listing_.tid;
}

Value Assembler::binary(const tir::BinaryNode& n) {
  const DataType type = n.a->dtype;
  Value a = value(n.a), b = value(n.b);
  ExprKind kind = n.kind;
  if (kind == ExprKind::kGT || kind == ExprKind::kGE) {
    std::swap(a, b);
    kind = kind == ExprKind::kGT ? ExprKind::kLT : ExprKind::kLE;
  }
  if (kind == ExprKind::kNE) {
    const Value equal =
        type.is_float() ? float_binary(ExprKind::kEQ, type, a, b) : integer_binary(ExprKind::kEQ, type, a, b);
    return pure({Op::kNot, type.lanes, 8, equal});
  }
  return type.is_float() ? float_binary(kind, type, a, b) : integer_binary(kind, type, a, b);
}

Value Assembler::float_binary(ExprKind kind, DataType type, Value a, Value b) {
  const bool wide = is_double(type);
  auto op = [&](Op f, Op d, bool truth = false) {
    return pure({wide ? d : f, type.lanes, truth ? 8 : lane_bytes(type), a, b});
  };
  switch (kind) {
    case ExprKind::kAdd:
      return op(Op::kAddF, Op::kAddD);
    case ExprKind::kSub:
      return op(Op::kSubF, Op::kSubD);
    case ExprKind::kMul:
      return op(Op::kMulF, Op::kMulD);
    case ExprKind::kDiv:
      return op(Op::kDivF, Op::kDivD);
    case ExprKind::kMin:
      return op(Op::kMinF, Op::kMinD);
    case ExprKind::kMax:
      return op(Op::kMaxF, Op::kMaxD);
    case ExprKind::kEQ:
      return op(Op::kEqF, Op::kEqD, true);
    case ExprKind::kLT:
      return op(Op::kLtF, Op::kLtD, true);
    case ExprKind::kLE:
      return op(Op::kLeF, Op::kLeD, true);
    default:
      fail(format("{} of floats", tir::kind_name(kind)));
      return a;
  }
}

Value Assembler::integer_binary(ExprKind kind, DataType type, Value a, Value b) {
  const bool wide = is_wide_unsigned(type);
  auto op = [&](Op is_signed, Op is_unsigned) { return pure({wide ? is_unsigned : is_signed, type.lanes, 8, a, b}); };
  switch (kind) {
    case ExprKind::kAdd:
      return wrapped(op(Op::kAddI, Op::kAddI), type);
    case ExprKind::kSub:
      return wrapped(op(Op::kSubI, Op::kSubI), type);
    case ExprKind::kMul:
      return wrapped(op(Op::kMulI, Op::kMulI), type);
    case ExprKind::kDiv:
      return wrapped(op(Op::kDivI, Op::kDivU), type);
    case ExprKind::kMod:
      if (wide) return op(Op::kModU, Op::kModU);
      return pure(
          {Op::kSubI, type.lanes, 8, a, pure({Op::kMulI, type.lanes, 8, wrapped(op(Op::kDivI, Op::kDivU), type), b})});
    case ExprKind::kFloorDiv:
      return wrapped(op(Op::kFloorDivI, Op::kDivU), type);
    case ExprKind::kFloorMod:
      return op(Op::kFloorModI, Op::kModU);
    case ExprKind::kMin:
      return op(Op::kMinI, Op::kMinU);
    case ExprKind::kMax:
      return op(Op::kMaxI, Op::kMaxU);
    case ExprKind::kEQ:
      return op(Op::kEqI, Op::kEqI);
    case ExprKind::kLT:
      return op(Op::kLtI, Op::kLtU);
    case ExprKind::kLE:
      return op(Op::kLeI, Op::kLeU);
    case ExprKind::kAnd:
    case ExprKind::kBitAnd:
      return op(Op::kAndI, Op::kAndI);
    case ExprKind::kOr:
    case ExprKind::kBitOr:
      return op(Op::kOrI, Op::kOrI);
    case ExprKind::kBitXor:
      return op(Op::kXorI, Op::kXorI);
    case ExprKind::kShiftLeft:
      return wrapped(op(Op::kShlI, Op::kShlI), type);
    case ExprKind::kShiftRight:
      return op(Op::kShrI, Op::kShrU);
    default:
      fail(format("{} of integers", tir::kind_name(kind)));
      return a;
  }
}

Value Assembler::wrapped(Value v, DataType type) {
  if (type.bits == 64) return v;
  if (type.is_bool() || type.bits >= 8)
    return pure({Op::kWrap, type.lanes, 8, v, kNothing, kNothing, 0, element_of(type.element())});
  return pure({Op::kWrapBits, type.lanes, 8, v, kNothing, kNothing, width_of(type)});
}

Value Assembler::cast(const tir::CastNode& n) {
  const DataType from = n.value->dtype, to = n.dtype;
  const Value v = value(n.value);
  const int lanes = to.lanes;
  auto one = [&](Op op, int64_t number = 0) {
    return pure({op, lanes, lane_bytes(to), v, kNothing, kNothing, number, element_of(to.element())});
  };
  if (from.is_float()) {
    const bool wide = is_double(from);
    if (to.is_bool()) {
      const Value zero = splat(constant(from.element(), 0, 0), from, lanes);
      return pure({Op::kNot, lanes, 8, float_binary(ExprKind::kEQ, from, v, zero)});
    }
    if (!to.is_float()) return one(wide ? Op::kDToInt : Op::kFToInt, width_of(to));
    if (is_small_float(to)) return from.element() == to.element() ? v : one(wide ? Op::kRoundD : Op::kRoundF);
    if (is_double(to)) return wide ? v : one(Op::kFToD);
    return wide ? one(Op::kDToF) : v;  // a float32 holds every smaller one
  }
  if (to == kFloat32.with_lanes(lanes)) return one(is_wide_unsigned(from) ? Op::kUintToF : Op::kIntToF);
  if (to.is_float()) {
    const Value wide = pure({is_wide_unsigned(from) ? Op::kUintToD : Op::kIntToD, lanes, 8, v});
    if (is_double(to)) return wide;
    return pure({Op::kRoundD, lanes, 4, wide, kNothing, kNothing, 0, element_of(to.element())});
  }
  const bool widens = !to.is_bool() && (from.is_bool() || (to.bits >= from.bits && to.is_int() == from.is_int()) ||
                                        (to.bits > from.bits && from.is_uint()));
  return widens ? v : wrapped(v, to);
}

Value Assembler::reinterpret(const tir::ReinterpretNode& n) {
  const DataType from = n.value->dtype, to = n.dtype;
  Value v = value(n.value);
  if (from.is_integral() && to.is_integral() && from.lanes == to.lanes) return wrapped(v, to);
  const bool halves_from = from.is_integral() && from.bits < 8, halves_to = to.is_integral() && to.bits < 8;
  if (halves_from) v = wrapped(v, DataType{TypeCode::kUInt, from.bits, from.lanes});
  Wanted w{Op::kReinterpret, from.lanes, lane_bytes(to), v};
  w.value = w.result_lanes = to.lanes;
  w.element = halves_from ? Element::kU8 : element_of(from.element());
  w.other = halves_to ? Element::kU8 : element_of(to.element());
  const Value out = pure(w);
  return halves_to ? wrapped(out, to) : out;
}

Value Assembler::select(const tir::SelectNode& n) {
  const DataType type = n.dtype;
  Value condition = value(n.condition);
  if (n.condition->dtype.lanes != type.lanes) condition = splat(condition, kBool, type.lanes);
  const Value on_true = value(n.on_true), on_false = value(n.on_false);
  const uint32_t bytes = lane_bytes(type);
  return pure({bytes == 4 ? Op::kSelectF : Op::kSelectQ, type.lanes, bytes, condition, on_true, on_false});
}

Value Assembler::shuffle(const tir::ShuffleNode& n) {
  const uint32_t bytes = lane_bytes(n.dtype);
  std::vector<Value> sources, lanes;
  for (const PrimExpr& v : n.vectors) sources.push_back(value(v));
  for (int lane : n.indices) {
    size_t v = 0;
    while (lane >= n.vectors[v]->dtype.lanes) lane -= n.vectors[v++]->dtype.lanes;
    lanes.push_back({sources[v].reg, sources[v].offset + static_cast<uint32_t>(lane) * bytes});
  }
  // Lanes beside each other are there already.
  bool beside = true;
  for (size_t i = 1; i < lanes.size(); ++i)
    beside = beside && lanes[i] == Value{lanes[0].reg, lanes[0].offset + static_cast<uint32_t>(i) * bytes};
  if (beside) return lanes[0];
  uint32_t depth = 0;
  for (const Value& v : sources) depth = std::max(depth, changes(v) ? here() : listing_.registers[v.reg].depth);
  const Value to = new_register(uint64_t{bytes} * lanes.size(), depth);
  append({bytes == 4 ? Op::kShuffleF : Op::kShuffleQ, n.dtype.lanes, bytes, kNothing, kNothing, kNothing,
          static_cast<int64_t>(listing_.shuffles.size())},
         to, depth);
  listing_.shuffles.push_back(std::move(lanes));
  return to;
}

Assembler::Address Assembler::address(const PrimExpr& e) {
  if (!(e->dtype == kInt64)) return {value(e), 0};
  if (const auto c = tir::as_const_int(e)) return {kNothing, *c};
  auto wrapping = [](uint64_t v) { return static_cast<int64_t>(v); };
  auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  if (e->kind == ExprKind::kAdd || e->kind == ExprKind::kSub) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    const Address a = address(n.a), b = address(n.b);
    const bool sum = e->kind == ExprKind::kAdd;
    const int64_t beside = wrapping(sum ? u(a.beside) + u(b.beside) : u(a.beside) - u(b.beside));
    if (b.base == kNothing) return {a.base, beside};
    if (a.base == kNothing && sum) return {b.base, beside};
    const Value left = a.base == kNothing ? integer(0) : a.base;
    return {pure({sum ? Op::kAddI : Op::kSubI, 1, 8, left, b.base}), beside};
  }
  if (e->kind == ExprKind::kMul) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    if (const auto c = tir::as_const_int(n.b)) {
      const Address a = address(n.a);
      if (a.base != kNothing) return {pure({Op::kMulI, 1, 8, a.base, integer(*c)}), wrapping(u(a.beside) * u(*c))};
    }
  }
  return {value(e), 0};
}

Element Assembler::element_of(DataType type) {
  switch (type.code) {
    case TypeCode::kInt:
      return type.bits <= 8    ? Element::kI8
             : type.bits == 16 ? Element::kI16
             : type.bits == 32 ? Element::kI32
                               : Element::kI64;
    case TypeCode::kUInt:
      return type.bits <= 8    ? Element::kU8
             : type.bits == 16 ? Element::kU16
             : type.bits == 32 ? Element::kU32
                               : Element::kU64;
    case TypeCode::kFloat:
      return type.bits == 16 ? Element::kF16 : type.bits == 32 ? Element::kF32 : Element::kF64;
    case TypeCode::kBFloat:
      return Element::kBF16;
    case TypeCode::kBool:
      return Element::kBool;
    case TypeCode::kFloat8E4M3FN:
      return Element::kF8E4M3FN;
    case TypeCode::kFloat8E4M3FNUZ:
      return Element::kF8E4M3FNUZ;
    case TypeCode::kFloat8E5M2:
      return Element::kF8E5M2;
    case TypeCode::kFloat8E5M2FNUZ:
      return Element::kF8E5M2FNUZ;
    case TypeCode::kFloat8E8M0:
      return Element::kF8E8M0;
    case TypeCode::kFloat4E2M1:
      return Element::kF4E2M1;
    case TypeCode::kComplex:
    case TypeCode::kString:
    case TypeCode::kHandle:
      break;
  }
  fail(format("elements of {}", type.str()));
  return Element::kF32;
}

Assembler::Wanted Assembler::access(const tir::Buffer& buffer, const PrimExpr& index, const PrimExpr& mask, int lanes,
                                    bool store) {
  Wanted w{Op::kLoad, lanes};
  w.element = element_of(buffer->dtype.element());
  const auto* ramp = as<tir::RampNode>(index);
  const bool beside = lanes == 1 || (ramp && ramp->stride == 1);
  if (beside) {
    const Address at = address(lanes == 1 ? index : ramp->base);
    w.a = at.base == kNothing ? integer(0) : at.base, w.value = at.beside;
  } else {
    w.a = value(index);
  }
  if (mask) w.b = value(mask);
  const Op ops[2][2][2] = {{{Op::kGather, Op::kGatherMasked}, {Op::kLoad, Op::kLoadMasked}},
                           {{Op::kScatter, Op::kScatterMasked}, {Op::kStore, Op::kStoreMasked}}};
  w.op = ops[store][beside][static_cast<bool>(mask)];
  const uint32_t memory = memories_.at(buffer.get());
  if (store) program_.memories[memory].written = true;
  // Not a value: a memory's number, which operands of registers have no place for.
  w.c = {memory, UINT32_MAX};
  return w;
}

Value Assembler::load(const tir::LoadNode& n) {
  if (n.buffer->scope == tir::Scope::kRegister) return element_of_array(*n.buffer, n.index);
  const DataType type = n.dtype;
  const Wanted w = access(n.buffer, n.index, n.mask, type.lanes, false);
  const Value to = new_register(uint64_t{lane_bytes(type)} * type.lanes, here());
  append(w, to, here());
  return to;
}

}  // namespace tilewright::codegen::bytecode
