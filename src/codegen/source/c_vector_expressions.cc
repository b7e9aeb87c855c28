// SPDX-License-Identifier: Apache-2.0
// Vectors of the loop IR as GNU vectors.
#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "codegen/source/c_printer.h"
#include "codegen/source/c_types.h"

namespace tilewright::codegen {

using tir::as_const_int;
using tir::ExprKind;
using tir::Intrinsic;
using tir::PrimExpr;

namespace {

const char* vector_sign(ExprKind kind) {
  switch (kind) {
    case ExprKind::kAdd:
      return " + ";
    case ExprKind::kSub:
      return " - ";
    case ExprKind::kMul:
      return " * ";
    case ExprKind::kDiv:
      return " / ";
    case ExprKind::kBitAnd:
      return " & ";
    case ExprKind::kBitOr:
      return " | ";
    case ExprKind::kBitXor:
      return " ^ ";
    default:
      return nullptr;
  }
}

std::string suffix_of(const CVector& t) { return t.name().substr(3); }

// Those with a function on vectors (c_vectors.h) by the loop IR's name.
bool has_vector_function(Intrinsic op, DataType t) {
  constexpr Intrinsic kBoth[] = {Intrinsic::k_fma,   Intrinsic::k_sqrt, Intrinsic::k_round,
                                 Intrinsic::k_floor, Intrinsic::k_ceil, Intrinsic::k_trunc};
  constexpr Intrinsic kSingle[] = {Intrinsic::k_exp,  Intrinsic::k_exp_nonpositive,
                                   Intrinsic::k_tanh, Intrinsic::k_sigmoid,
                                   Intrinsic::k_erf,  Intrinsic::k_log};
  const bool single = t.element() == kFloat32;
  return ((single || t.element() == kFloat64) &&
          std::find(std::begin(kBoth), std::end(kBoth), op) != std::end(kBoth)) ||
         (single && std::find(std::begin(kSingle), std::end(kSingle), op) != std::end(kSingle));
}

}  // namespace

CPrinter::Code CPrinter::literal(const CVector& type, const std::vector<std::string>& lanes) {
  std::string out = format("({}){{", type.name());
  for (size_t i = 0; i < lanes.size(); ++i) out += (i == 0 ? "" : ", ") + lanes[i];
  return {out + "}", kAtom};
}

std::string CPrinter::held(const PrimExpr& e) {
  if (e->dtype.is_bool() && e->dtype.lanes > 1) {
    const int bits = mask_bits(e);
    std::string text = mask(e, bits);
    if (text.find_first_of("( ") == std::string::npos) return text;
    text = hoisted({text, kAtom}, DataType{TypeCode::kInt, static_cast<uint8_t>(bits), e->dtype.lanes}).text;
    return masks_[{e.get(), bits}] = text;
  }
  Code c = code(e);
  if (c.text.find_first_of("( ") == std::string::npos) return c.text;
  c = hoisted(c, e->dtype);
  if (memo_.count(e.get()) == 0) memo_order_.push_back(e.get());
  memo_[e.get()] = c;
  return c.text;
}

std::string CPrinter::one_lane(const PrimExpr& e, int lane) {
  if (e->dtype.lanes == 1) return held(e);
  if (const auto* n = tir::as<tir::BroadcastNode>(e)) return held(n->value);
  return format("{}[{}]{}", held(e), lane, e->dtype.is_bool() ? " != 0" : "");
}

// What no operator or function on vectors does: each lane as a scalar.
CPrinter::Code CPrinter::lane_by_lane(const PrimExpr& e) {
  const CVector type = e->dtype.is_bool() ? CVector{'i', 8, c_vector(e->dtype).lanes} : c_vector(e->dtype);
  std::vector<std::string> values;
  for (int lane = 0; lane < e->dtype.lanes && !error_; ++lane) {
    auto scalar = [&](const PrimExpr& part) {
      if (part->dtype.lanes == 1) return part;
      if (const auto* n = tir::as<tir::BroadcastNode>(part)) return n->value;
      PrimExpr var = tir::make_var("lane", part->dtype.element());
      made_.push_back(var);
      memo_[var.get()] = {one_lane(part, lane), part->dtype.is_bool() ? kCompare : kAtom};
      memo_order_.push_back(var.get());
      return var;
    };
    PrimExpr one;
    if (tir::is_binary(e->kind)) {
      const auto& n = static_cast<const tir::BinaryNode&>(*e);
      const PrimExpr a = scalar(n.a), b = scalar(n.b);
      one = tir::binary(n.kind, a, b);
    } else if (const auto* c = tir::as<tir::CastNode>(e)) {
      one = tir::cast(e->dtype.element(), scalar(c->value));
    } else if (const auto* r = tir::as<tir::ReinterpretNode>(e)) {
      one = tir::reinterpret(e->dtype.element(), scalar(r->value));
    } else if (const auto* s = tir::as<tir::SelectNode>(e)) {
      const PrimExpr c = scalar(s->condition), t = scalar(s->on_true), f = scalar(s->on_false);
      one = tir::select(c, t, f);
    } else if (const auto* call = tir::as<tir::CallNode>(e)) {
      std::vector<PrimExpr> args;
      for (const PrimExpr& a : call->args) args.push_back(scalar(a));
      one = tir::intrinsic(call->op, std::move(args));
    } else {
      fail(format("vectors of {} are left in C code", kind_name(e->kind)));
      return {"0", kAtom};
    }
    made_.push_back(one);
    const std::string value = at(one, kOr);
    values.push_back(e->dtype.is_bool() ? format("-({})", value) : value);
  }
  return literal(type, values);
}

CPrinter::Code CPrinter::vector(const PrimExpr& e) {
  type_of(e->dtype);
  if (error_) return {"0", kAtom};
  const CVector type = c_vector(e->dtype);
  if (e->dtype.is_bool()) return {format("({}){} & 1", type.name(), mask(e, 8)), kBits};  // bytes of zero or one
  if (tir::is_binary(e->kind)) return vector_binary(static_cast<const tir::BinaryNode&>(*e));
  switch (e->kind) {
    case ExprKind::kVar:
      return {name_of(e), kAtom};
    case ExprKind::kSelect: {
      const auto& n = static_cast<const tir::SelectNode&>(*e);
      if (n.condition->dtype.lanes == 1) {
        const std::string c = at(n.condition, kOr), t = alternative(n.on_true), f = alternative(n.on_false);
        return {format("{} ? {} : {}", c, t, f), kChoice};
      }
      const std::string m = mask(n.condition, type.bits), t = code(n.on_true).text, f = code(n.on_false).text;
      return {format("tw_choose_{}({}, {}, {})", suffix_of(type), m, t, f), kAtom};
    }
    case ExprKind::kCast:
      return vector_cast(static_cast<const tir::CastNode&>(*e));
    case ExprKind::kReinterpret:
      return vector_reinterpret(static_cast<const tir::ReinterpretNode&>(*e));
    case ExprKind::kLoad:
      return vector_load(static_cast<const tir::LoadNode&>(*e));
    case ExprKind::kRamp:
      return ramp(static_cast<const tir::RampNode&>(*e));
    case ExprKind::kBroadcast:
      return {format("tw_all_{}({})", suffix_of(type), code(static_cast<const tir::BroadcastNode&>(*e).value).text),
              kAtom};
    case ExprKind::kShuffle: {
      const auto& n = static_cast<const tir::ShuffleNode&>(*e);
      std::vector<std::string> inputs;
      for (const PrimExpr& v : n.vectors) inputs.push_back(v->dtype.lanes == 1 ? at(v, kOr) : held(v));
      return shuffled(n, type, inputs);
    }
    case ExprKind::kCall:
      return vector_call(static_cast<const tir::CallNode&>(*e));
    case ExprKind::kLet: {
      const auto& n = static_cast<const tir::LetNode&>(*e);
      memo_[n.var.get()] = {held(n.value), kAtom};
      memo_order_.push_back(n.var.get());
      return code(n.body);
    }
    default:
      fail(format("vectors of {} are left in C code", kind_name(e->kind)));
      return {"0", kAtom};
  }
}

CPrinter::Code CPrinter::ramp(const tir::RampNode& n) {
  const CVector type = c_vector(n.dtype);
  std::vector<std::string> steps;
  for (int i = 0; i < n.dtype.lanes; ++i) steps.push_back(c_integer(i * n.stride, n.dtype.element()));
  return {format("{} + {}", at(n.base, kSum), literal(type, steps).text), kSum};
}

CPrinter::Code CPrinter::vector_binary(const tir::BinaryNode& n) {
  const CVector type = c_vector(n.dtype);
  if (!is_plain_vector(n.dtype)) return lane_by_lane(PrimExpr(&n));
  if (n.kind == ExprKind::kMin || n.kind == ExprKind::kMax) {
    const std::string a = code(n.a).text, b = code(n.b).text;
    return {format("tw_{}_{}({}, {})", n.kind == ExprKind::kMin ? "min" : "max", suffix_of(type), a, b), kAtom};
  }
  if (n.kind == ExprKind::kShiftLeft || n.kind == ExprKind::kShiftRight) return vector_shift(n);
  const char* sign = vector_sign(n.kind);
  const bool divides = n.kind == ExprKind::kDiv;
  if (sign == nullptr || (divides && type.kind != 'f')) return lane_by_lane(PrimExpr(&n));
  const bool sum = n.kind == ExprKind::kAdd || n.kind == ExprKind::kSub;
  const bool product = n.kind == ExprKind::kMul || divides;
  const Level level = sum ? kSum : product ? kProduct : kBits;
  if ((sum || product) && type.kind == 'i') {  // wraps
    const std::string u = type.with('u').name();
    return {format("({0})(({1}){2}{3}({1}){4})", type.name(), u, whole(n.a), sign, whole(n.b)), kUnary};
  }
  const Level least = sum ? kProduct : kUnary;
  const std::string a = at(n.a, sum || product ? level : kUnary), b = at(n.b, least);
  return {a + sign + b, level};
}

CPrinter::Code CPrinter::vector_shift(const tir::BinaryNode& n) {
  const CVector type = c_vector(n.dtype);
  const bool left = n.kind == ExprKind::kShiftLeft;
  const auto by = as_const_int(n.b);
  const std::string count = by ? format("{}", *by & (type.bits - 1)) : format("({} & {})", whole(n.b), type.bits - 1);
  if (left && type.kind == 'i')
    return {format("({0})(({1}){2} << ({3}))", type.name(), type.with('u').name(), whole(n.a),
                   by ? count : format("({}){}", type.with('u').name(), count)),
            kUnary};
  return {format("{} {} {}", at(n.a, kUnary), left ? "<<" : ">>", count), kBits};
}

CPrinter::Code CPrinter::vector_cast(const tir::CastNode& n) {
  const DataType from = n.value->dtype, to = n.dtype;
  const CVector in = c_vector(from), out = c_vector(to);
  const PrimExpr self(&n);
  if (from.is_bool()) {
    if (!is_plain_vector(to)) return lane_by_lane(self);
    const std::string m = mask(n.value, out.bits);
    if (out.kind == 'f') return {format("tw_{}_of_{}(-{})", suffix_of(out), suffix_of(out.mask()), m), kAtom};
    return {format("({}){} & 1", out.name(), m), kBits};
  }
  const bool half_in = is_bits_float(from) && from.bits == 16, half_out = is_bits_float(to) && to.bits == 16;
  const std::string brain = (half_in ? from : to).code == TypeCode::kBFloat ? "bf16" : "f16";
  if (half_in && to.element() == kFloat32)
    return {format("tw_{}_to_{}({})", brain, suffix_of(out), code(n.value).text), kAtom};
  if (half_out && from.element() == kFloat32)
    return {format("tw_{}_of_{}({})", brain, suffix_of(in), code(n.value).text), kAtom};
  if (!is_plain_vector(from) || !is_plain_vector(to)) return lane_by_lane(self);
  if (in.kind == 'f' && out.kind != 'f') {
    if (out.bits > 32 || (out.bits == 32 && out.kind == 'u')) return lane_by_lane(self);
    if (out.bits < 32) {  // by a wider integer, which wraps
      const CVector word{'i', 32, out.lanes};
      return {format("tw_{0}_of_{1}(tw_{1}_of_{2}({3}))", suffix_of(out), suffix_of(word), suffix_of(in),
                     code(n.value).text),
              kAtom};
    }
  }
  if (in.kind != 'f' && out.kind != 'f' && in.bits == out.bits)
    return {format("({}){}", out.name(), whole(n.value)), kUnary};
  return {format("tw_{}_of_{}({})", suffix_of(out), suffix_of(in), code(n.value).text), kAtom};
}

// The same bits: between vectors a cast, also to a word.
CPrinter::Code CPrinter::vector_reinterpret(const tir::ReinterpretNode& n) {
  const DataType from = n.value->dtype, to = n.dtype;
  if (from.is_bool() || to.is_bool() || from.bits < 8 || to.bits < 8) return lane_by_lane(PrimExpr(&n));
  if (from.lanes == to.lanes || (from.lanes > 1 && to.lanes > 1))
    return {format("({}){}", type_of(to), whole(n.value)), kUnary};
  const DataType scalar = from.lanes == 1 ? from : to;
  const bool number = scalar.is_float() && !is_bits_float(scalar);
  const DataType bits{TypeCode::kUInt, scalar.bits, 1};
  if (!number) return {format("({}){}", type_of(to), whole(n.value)), kUnary};
  if (from.lanes > 1)
    return {format("tw_bits_{}_to_{}(({}){})", c_suffix(bits), c_suffix(scalar), c_type(bits), whole(n.value)), kAtom};
  return {format("({})tw_bits_{}_to_{}({})", type_of(to), c_suffix(scalar), c_suffix(bits), code(n.value).text),
          kUnary};
}

CPrinter::Code CPrinter::vector_call(const tir::CallNode& n) {
  if (n.op == Intrinsic::k_if_then_else) return choice(n);
  const PrimExpr self(&n);
  const CVector type = c_vector(n.dtype);
  auto arg = [&](size_t i) { return code(n.args[i]).text; };
  if (n.op == Intrinsic::k_dot4) {
    const std::string sum = arg(0), a = arg(1), b = arg(2);
    return {format("tw_dot4_{}({}, {}, {})", suffix_of(type), sum, a, b), kAtom};
  }
  if (has_vector_function(n.op, n.dtype)) {
    std::string list;
    for (size_t i = 0; i < n.args.size(); ++i) list += (i == 0 ? "" : ", ") + arg(i);
    return {format("tw_{}_{}({})", intrinsic_name(n.op), suffix_of(type), list), kAtom};
  }
  const bool number = type.kind == 'f' && is_plain_vector(n.dtype);
  const std::string m = type.mask().name(), most = format("INT{}_MAX", type.bits),
                    least = format("INT{}_MIN", type.bits);
  if (number && n.op == Intrinsic::k_fabs)
    return {format("({})(({}){} & {})", type.name(), m, whole(n.args[0]), most), kUnary};
  if (number && n.op == Intrinsic::k_copysign)
    return {format("({0})((({1}){2} & {3}) | (({1}){4} & {5}))", type.name(), m, whole(n.args[0]), most,
                   whole(n.args[1]), least),
            kUnary};
  if (n.op == Intrinsic::k_rsqrt && number)
    return {format("{} / tw_sqrt_{}({})", c_float(1, n.dtype.element()), suffix_of(type), arg(0)), kProduct};
  return lane_by_lane(self);
}

CPrinter::Code CPrinter::shuffle_to_scalar(const tir::ShuffleNode& n) {
  int at = n.indices[0];
  for (const PrimExpr& v : n.vectors) {
    if (at < v->dtype.lanes) {
      if (v->dtype.lanes == 1) return code(v);
      return {one_lane(v, at), v->dtype.is_bool() && v->kind != ExprKind::kBroadcast ? kCompare : kAtom};
    }
    at -= v->dtype.lanes;
  }
  fail("a shuffle takes a lane that does not exist");
  return {"0", kAtom};
}

// Of two vectors at a time; of more by lanes, or joined where all have as many.
CPrinter::Code CPrinter::shuffled(const tir::ShuffleNode& n, const CVector& type,
                                  const std::vector<std::string>& inputs) {
  struct Place {
    size_t input;
    int lane;
  };
  std::vector<Place> places;
  for (int index : n.indices) {
    size_t input = 0;
    for (; index >= n.vectors[input]->dtype.lanes; ++input) index -= n.vectors[input]->dtype.lanes;
    places.push_back({input, index});
  }
  std::vector<size_t> used;
  for (const Place& p : places)
    if (std::find(used.begin(), used.end(), p.input) == used.end()) used.push_back(p.input);
  const int lanes = n.vectors[used[0]]->dtype.lanes, stored = c_vector(kInt8.with_lanes(lanes)).lanes;
  const bool equal =
      lanes > 1 && std::all_of(used.begin(), used.end(), [&](size_t i) { return n.vectors[i]->dtype.lanes == lanes; });
  if (equal && used.size() <= 2) {
    std::string order;
    for (int i = 0; i < type.lanes; ++i) {
      int from = -1;
      if (const auto at = static_cast<size_t>(i); at < places.size())
        from = places[at].lane + (places[at].input == used[0] ? 0 : stored);
      order += format(", {}", from);
    }
    return {format("__builtin_shufflevector({}, {}{})", inputs[used[0]], inputs[used.back()], order), kAtom};
  }
  // A concatenation of vectors, two by two.
  if (equal && lanes == stored && (used.size() & (used.size() - 1)) == 0 &&
      static_cast<int>(places.size()) == lanes * static_cast<int>(used.size())) {
    bool in_order = true;
    for (size_t i = 0; i < places.size(); ++i)
      in_order &= places[i].input == used[i / static_cast<size_t>(lanes)] &&
                  places[i].lane == static_cast<int>(i % static_cast<size_t>(lanes));
    std::vector<std::string> parts;
    for (size_t i : used) parts.push_back(inputs[i]);
    for (int width = 2 * lanes; in_order && parts.size() > 1; width *= 2) {
      std::vector<std::string> pairs;
      std::string order;
      for (int i = 0; i < width; ++i) order += format(", {}", i);
      for (size_t i = 0; i < parts.size(); i += 2)
        pairs.push_back(format("__builtin_shufflevector({}, {}{})", parts[i], parts[i + 1], order));
      parts = std::move(pairs);
    }
    if (in_order) return {parts[0], kAtom};
  }
  std::vector<std::string> values;
  for (const Place& p : places)
    values.push_back(n.vectors[p.input]->dtype.lanes == 1 ? inputs[p.input]
                                                          : format("{}[{}]", inputs[p.input], p.lane));
  return literal(type, values);
}

// Lane i with lane i + n / 2 while the lanes are even in number, then from first to last.
CPrinter::Code CPrinter::reduced(const tir::CallNode& n) {
  const DataType t = n.args[0]->dtype;
  const bool sums = n.op == Intrinsic::k_reduce_add;
  std::string value = held(n.args[0]);
  int lanes = t.lanes;
  const bool whole_lanes = is_plain_vector(t) && c_vector(t).lanes == lanes;
  while (whole_lanes && lanes > 2) {
    const CVector half = c_vector(t.with_lanes(lanes / 2));
    std::string parts[2];
    for (int side : {0, 1}) {
      for (int i = 0; i < lanes / 2; ++i) parts[side] += format(", {}", i + side * (lanes / 2));
      parts[side] = format("__builtin_shufflevector({0}, {0}{1})", value, parts[side]);
    }
    const std::string u = half.with('u').name();
    const std::string out = !sums ? format("tw_{}_{}({}, {})", n.op == Intrinsic::k_reduce_min ? "min" : "max",
                                           suffix_of(half), parts[0], parts[1])
                            : half.kind == 'i'
                                ? format("({0})(({1}){2} + ({1}){3})", half.name(), u, parts[0], parts[1])
                                : format("{} + {}", parts[0], parts[1]);
    lanes /= 2;
    value = hoisted({out, kSum}, t.with_lanes(lanes)).text;
  }
  std::vector<PrimExpr> left;
  for (int i = 0; i < lanes; ++i) {
    left.push_back(tir::make_var("lane", t.element()));
    memo_[left.back().get()] = {format("{}[{}]", value, i), kAtom};
    memo_order_.push_back(left.back().get());
  }
  made_.insert(made_.end(), left.begin(), left.end());
  auto step = [&](const PrimExpr& a, const PrimExpr& b) {
    return sums ? a + b : n.op == Intrinsic::k_reduce_max ? tir::max(a, b) : tir::min(a, b);
  };
  while (left.size() > 1 && left.size() % 2 == 0) {
    const size_t half = left.size() / 2;
    for (size_t i = 0; i < half; ++i) left[i] = step(left[i], left[i + half]);
    left.resize(half);
  }
  for (size_t i = 1; i < left.size(); ++i) left[0] = step(left[0], left[i]);
  made_.push_back(left[0]);
  return code(left[0]);
}

}  // namespace tilewright::codegen
