// SPDX-License-Identifier: Apache-2.0
// Loads, stores and masks of GNU vectors.
#include <algorithm>

#include "base/format.h"
#include "codegen/source/c_printer.h"
#include "codegen/source/c_types.h"

namespace tilewright::codegen {

using tir::as_const_int;
using tir::ExprKind;
using tir::Intrinsic;
using tir::PrimExpr;

namespace {

// How many lanes a mask has, if it is the first ones of a known number.
std::optional<int64_t> first_lanes(const PrimExpr& mask) {
  if (mask->kind != ExprKind::kLT) return std::nullopt;
  const auto& n = static_cast<const tir::BinaryNode&>(*mask);
  const auto* ramp = tir::as<tir::RampNode>(n.a);
  const auto end = as_const_int(n.b), begin = ramp != nullptr ? as_const_int(ramp->base) : std::nullopt;
  if (!end || !begin || ramp->stride != 1) return std::nullopt;
  return std::clamp<int64_t>(*end - *begin, 0, mask->dtype.lanes);
}

std::string function_ending(const CVector& t) { return t.name().substr(3); }

}  // namespace

std::string CPrinter::address(const tir::BufferNode* buffer, const PrimExpr& index) {
  std::string name = buffers_[buffer];
  if (as_const_int(index) == 0) return name;
  return format("{} + {}", name, at(index, kSum));
}

CPrinter::Code CPrinter::vector_load(const tir::LoadNode& n) {
  const tir::BufferNode* buffer = n.buffer.get();
  used_.insert(buffer);
  if (buffer->scope == tir::Scope::kRegister) return {element_of(*buffer, n.index), kAtom};
  const CVector type = c_vector(n.dtype);
  const auto* ramp = tir::as<tir::RampNode>(n.index);
  const bool contiguous = ramp != nullptr && ramp->stride == 1;
  const std::string name = buffers_[buffer];
  if (contiguous) {
    auto count = n.mask ? first_lanes(n.mask) : std::optional<int64_t>(n.dtype.lanes);
    const std::string from = address(buffer, ramp->base);
    if (count == type.lanes) return {format("*(const {}_at *)({})", type.name(), from), kUnary};
    if (count) return {format("tw_load{}_{}({})", *count, function_ending(type), from), kAtom};
    const std::string m = mask(n.mask, type.bits);
    // Lanes beyond those of the loop IR are off.
    if (type.lanes == n.dtype.lanes)
      return {format("tw_masked_load_{}({}, {})", function_ending(type), from, m), kAtom};
  }
  if (ramp != nullptr && !n.mask && type.lanes == n.dtype.lanes && (ramp->stride == -1 || ramp->stride == 2)) {
    const int lanes = n.dtype.lanes;
    const bool back = ramp->stride == -1;
    std::string order;
    for (int i = 0; i < lanes; ++i) order += format(", {}", back ? lanes - 1 - i : 2 * i < lanes ? 2 * i : 2 * i + 1);
    const std::string first = address(buffer, ramp->base);
    if (back) {
      const std::string all = format("*(const {}_at *)({} - {})", type.name(), first, lanes - 1);
      const std::string value = hoisted({all, kUnary}, n.dtype).text;
      return {format("__builtin_shufflevector({0}, {0}{1})", value, order), kAtom};
    }
    // Nothing past the last element is read.
    return {format("__builtin_shufflevector(*(const {0}_at *)({1}), *(const {0}_at *)({1} + {2}){3})", type.name(),
                   first, lanes - 1, order),
            kAtom};
  }
  if (const auto* same = tir::as<tir::BroadcastNode>(n.index); same != nullptr && !n.mask)
    return {format("tw_all_{}({}[{}])", function_ending(type), name, code(same->value).text), kAtom};
  std::vector<std::string> values;
  const std::string base = ramp != nullptr ? held(ramp->base) : "";
  for (int i = 0; i < n.dtype.lanes; ++i) {
    const std::string place =
        ramp != nullptr ? format("{} + {}", base, c_integer(i * ramp->stride, kInt64)) : one_lane(n.index, i);
    const std::string value = format("{}[{}]", name, place);
    values.push_back(n.mask ? format("{} ? {} : 0", one_lane(n.mask, i), value) : value);
  }
  return literal(type, values);
}

void CPrinter::print_vector_store(const tir::StoreNode& s) {
  const tir::BufferNode* buffer = s.buffer.get();
  const DataType t = s.value->dtype;
  const CVector type = c_vector(t);
  const auto* ramp = tir::as<tir::RampNode>(s.index);
  const std::string name = buffers_[buffer];
  if (t.lanes == 1) {
    const std::string condition = at(s.mask, kOr), place = code(s.index).text, value = code(s.value).text;
    line(format("if ({}) {}[{}] = {};", condition, name, place, value));
    return;
  }
  if (ramp != nullptr && ramp->stride == 1) {
    const auto count = s.mask ? first_lanes(s.mask) : std::optional<int64_t>(t.lanes);
    const std::string to = address(buffer, ramp->base), value = code(s.value).text;
    if (count == type.lanes) return line(format("*({}_at *)({}) = {};", type.name(), to, value));
    if (count) return line(format("tw_store{}_{}({}, {});", *count, function_ending(type), to, value));
    if (type.lanes == t.lanes)
      return line(format("tw_masked_store_{}({}, {}, {});", function_ending(type), to, mask(s.mask, type.bits), value));
  }
  // In order: if several lanes write one element, the last wins.
  std::string value = code(s.value).text;
  if (t.is_bool() || value.find_first_of("( ") != std::string::npos) {
    const std::string held_name = fresh(format("t{}", temporaries_++));
    line(format("const {} {} = {};", type.name(), held_name, value));
    value = held_name;
  }
  const std::string base = ramp != nullptr ? held(ramp->base) : "";
  for (int i = 0; i < t.lanes; ++i) {
    const std::string place =
        ramp != nullptr ? format("{} + {}", base, c_integer(i * ramp->stride, kInt64)) : one_lane(s.index, i);
    line(format("{}{}[{}] = {}[{}];", s.mask ? format("if ({}) ", one_lane(s.mask, i)) : "", name, place, value, i));
  }
}

int CPrinter::mask_bits(const PrimExpr& e) {
  if (tir::is_comparison(e->kind)) {
    const PrimExpr& a = static_cast<const tir::BinaryNode&>(*e).a;
    return a->dtype.is_bool() ? mask_bits(a) : c_vector(a->dtype).bits;
  }
  if (tir::is_binary(e->kind)) return mask_bits(static_cast<const tir::BinaryNode&>(*e).a);
  if (const auto* n = tir::as<tir::NotNode>(e)) return mask_bits(n->a);
  if (const auto* n = tir::as<tir::CastNode>(e)) return c_vector(n->value->dtype).bits;
  if (const auto* n = tir::as<tir::ShuffleNode>(e)) return mask_bits(n->vectors[0]);
  if (const auto* n = tir::as<tir::CallNode>(e))
    return n->args[0]->dtype.is_bool() ? 8 : c_vector(n->args[0]->dtype).bits;
  return 8;
}

std::string CPrinter::compared(const tir::BinaryNode& n, int bits) {
  if (n.a->dtype.is_bool()) {
    const std::string a = mask(n.a, bits), b = mask(n.b, bits);
    return format("({}({} ^ {}))", n.kind == ExprKind::kEQ ? "~" : "", a, b);
  }
  const char* sign = n.kind == ExprKind::kEQ   ? "=="
                     : n.kind == ExprKind::kNE ? "!="
                     : n.kind == ExprKind::kLT ? "<"
                     : n.kind == ExprKind::kLE ? "<="
                     : n.kind == ExprKind::kGT ? ">"
                                               : ">=";
  const std::string a = at(n.a, kSum), b = at(n.b, kSum);
  return format("(({})({} {} {}))", c_vector(n.a->dtype).mask().name(), a, sign, b);
}

std::string CPrinter::mask(const PrimExpr& e, int bits) {
  if (auto found = masks_.find({e.get(), bits}); found != masks_.end()) return found->second;
  if (error_) return "0";
  std::string text = mask_uncached(e, bits);
  if (uses_[e.get()] > 1 && text.find_first_of("( ") != std::string::npos)
    text = hoisted({text, kAtom}, DataType{TypeCode::kInt, static_cast<uint8_t>(bits), e->dtype.lanes}).text;
  return masks_[{e.get(), bits}] = text;
}

std::string CPrinter::mask_uncached(const PrimExpr& e, int bits) {
  const CVector type{'i', bits, c_vector(e->dtype).lanes};
  auto from = [&](const std::string& text, int own) {
    const CVector given{'i', own, type.lanes};
    return own == bits ? text : format("tw_{}_of_{}({})", function_ending(type), function_ending(given), text);
  };
  if (tir::is_comparison(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    return n.a->dtype.is_bool() ? compared(n, bits) : from(compared(n, bits), c_vector(n.a->dtype).bits);
  }
  if (tir::is_binary(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    const bool both = n.kind == ExprKind::kAnd || n.kind == ExprKind::kBitAnd;
    const bool either = n.kind == ExprKind::kOr || n.kind == ExprKind::kBitOr;
    const std::string a = mask(n.a, bits), b = mask(n.b, bits);
    return format("({} {} {})", a, both ? "&" : either ? "|" : "^", b);
  }
  switch (e->kind) {
    case ExprKind::kVar:
      return from(memo_.count(e.get()) != 0 ? memo_[e.get()].text : name_of(e), 8);
    case ExprKind::kNot:
      return format("(~{})", mask(static_cast<const tir::NotNode&>(*e).a, bits));
    case ExprKind::kBroadcast: {
      const std::string on = at(static_cast<const tir::BroadcastNode&>(*e).value, kOr);
      return format("tw_all_{}(-({}))", function_ending(type), on);
    }
    case ExprKind::kSelect: {
      const auto& n = static_cast<const tir::SelectNode&>(*e);
      if (n.condition->dtype.lanes == 1) {
        const std::string c = at(n.condition, kOr), t = mask(n.on_true, bits), f = mask(n.on_false, bits);
        return format("({} ? {} : {})", c, t, f);
      }
      const std::string c = mask(n.condition, bits), t = mask(n.on_true, bits), f = mask(n.on_false, bits);
      return format("(({0} & {1}) | (~{0} & {2}))", c, t, f);
    }
    case ExprKind::kCast: {
      const auto& n = static_cast<const tir::CastNode&>(*e);
      if (!is_plain_vector(n.value->dtype)) break;
      const CVector own = c_vector(n.value->dtype);
      return from(format("(({})({} != 0))", own.mask().name(), at(n.value, kSum)), own.bits);
    }
    case ExprKind::kLoad: {
      const auto& n = static_cast<const tir::LoadNode&>(*e);
      const std::string value = vector_load(n).text;
      if (n.buffer->scope == tir::Scope::kRegister) return from(value, 8);
      return from(format("(({})(({}) != 0))", CVector{'i', 8, type.lanes}.name(), value), 8);
    }
    case ExprKind::kShuffle: {
      const auto& n = static_cast<const tir::ShuffleNode&>(*e);
      std::vector<std::string> inputs;
      for (const PrimExpr& v : n.vectors)
        inputs.push_back(v->dtype.lanes == 1 ? format("-({})", at(v, kOr)) : mask(v, bits));
      return shuffled(n, type, inputs).text;
    }
    case ExprKind::kCall: {
      const auto& n = static_cast<const tir::CallNode&>(*e);
      const DataType t = n.args[0]->dtype;
      const CVector own = c_vector(t);
      const bool number = own.kind == 'f' && is_plain_vector(t);
      if (number && n.op == Intrinsic::k_isnan) {
        const std::string x = held(n.args[0]);
        return from(format("(({0})({1} != {1}))", own.mask().name(), x), own.bits);
      }
      if (n.op == Intrinsic::k_if_then_else) return from(format("({})", choice(n).text), 8);
      break;
    }
    case ExprKind::kLet: {
      const auto& n = static_cast<const tir::LetNode&>(*e);
      memo_[n.var.get()] = {n.value->dtype.is_bool() && n.value->dtype.lanes > 1 ? mask(n.value, 8) : held(n.value),
                            kAtom};
      memo_order_.push_back(n.var.get());
      return mask(n.body, bits);
    }
    default:
      break;
  }
  return from(lane_by_lane(e).text, 8);
}

}  // namespace tilewright::codegen
