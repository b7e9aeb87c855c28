// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/format.h"
#include "codegen/source/c_printer.h"
#include "codegen/source/c_types.h"
#include "tir/walk.h"

namespace tilewright::codegen {

using tir::as_const_int;
using tir::ExprKind;
using tir::Intrinsic;
using tir::PrimExpr;

namespace {

constexpr size_t kLongestExpression = 140;

bool is_leaf(const PrimExpr& e) {
  return e->kind == ExprKind::kVar || e->kind == ExprKind::kIntImm || e->kind == ExprKind::kFloatImm;
}

struct CMathName {
  Intrinsic op;
  const char* name;  // the function's name for double
};
constexpr CMathName kCMathNames[] = {
    {Intrinsic::k_exp, "exp"},           {Intrinsic::k_log, "log"},
    {Intrinsic::k_sqrt, "sqrt"},         {Intrinsic::k_tanh, "tanh"},
    {Intrinsic::k_erf, "erf"},           {Intrinsic::k_pow, "pow"},
    {Intrinsic::k_floor, "floor"},       {Intrinsic::k_ceil, "ceil"},
    {Intrinsic::k_trunc, "trunc"},       {Intrinsic::k_fabs, "fabs"},
    {Intrinsic::k_sin, "sin"},           {Intrinsic::k_cos, "cos"},
    {Intrinsic::k_tan, "tan"},           {Intrinsic::k_asin, "asin"},
    {Intrinsic::k_acos, "acos"},         {Intrinsic::k_atan, "atan"},
    {Intrinsic::k_sinh, "sinh"},         {Intrinsic::k_cosh, "cosh"},
    {Intrinsic::k_asinh, "asinh"},       {Intrinsic::k_acosh, "acosh"},
    {Intrinsic::k_atanh, "atanh"},       {Intrinsic::k_exp2, "exp2"},
    {Intrinsic::k_log2, "log2"},         {Intrinsic::k_log10, "log10"},
    {Intrinsic::k_log1p, "log1p"},       {Intrinsic::k_fmod, "fmod"},
    {Intrinsic::k_copysign, "copysign"}, {Intrinsic::k_exp_nonpositive, "exp"},
};

const char* comparison_sign(ExprKind kind) {
  return kind == ExprKind::kEQ   ? " == "
         : kind == ExprKind::kNE ? " != "
         : kind == ExprKind::kLT ? " < "
         : kind == ExprKind::kLE ? " <= "
         : kind == ExprKind::kGT ? " > "
                                 : " >= ";
}

ExprKind mirrored(ExprKind kind) {
  return kind == ExprKind::kLT   ? ExprKind::kGT
         : kind == ExprKind::kLE ? ExprKind::kGE
         : kind == ExprKind::kGT ? ExprKind::kLT
         : kind == ExprKind::kGE ? ExprKind::kLE
                                 : kind;
}

}  // namespace

std::string CPrinter::at(const PrimExpr& e, Level least) {
  const Code c = code(e);
  return c.level < least ? "(" + c.text + ")" : c.text;
}

CPrinter::Code CPrinter::hoisted(const Code& value, DataType dtype) {
  const std::string name = fresh(format("t{}", temporaries_++));
  line(format("const {} {} = {};", type_of(dtype), name, value.text));
  return {name, kAtom};
}

CPrinter::Code CPrinter::code(const PrimExpr& e) {
  if (auto found = memo_.find(e.get()); found != memo_.end()) return found->second;
  Code c = error_ ? Code{"0", kAtom} : uncached(e);
  if (e->dtype.is_bool() && e->dtype.lanes > 1) return c;  // its mask is kept
  if (!is_leaf(e) && c.level != kAtom && (uses_[e.get()] > 1 || c.text.size() > kLongestExpression))
    c = hoisted(c, e->dtype);
  else if (!is_leaf(e) && uses_[e.get()] > 1 && c.text.find('(') != std::string::npos)
    c = hoisted(c, e->dtype);  // a call
  memo_.emplace(e.get(), c);
  memo_order_.push_back(e.get());
  return c;
}

CPrinter::Code CPrinter::uncached(const PrimExpr& e) {
  if (e->dtype.lanes != 1) {
    if (vectors_) return vector(e);
    fail(format("{} lanes are left in C code", e->dtype.lanes));
    return {"0", kAtom};
  }
  type_of(e->dtype);
  if (tir::is_binary(e->kind)) return binary(static_cast<const tir::BinaryNode&>(*e));
  switch (e->kind) {
    case ExprKind::kVar:
      return {name_of(e), kAtom};
    case ExprKind::kIntImm:
      return {c_integer(static_cast<const tir::IntImmNode&>(*e).value, e->dtype), kAtom};
    case ExprKind::kFloatImm:
      return {c_float(static_cast<const tir::FloatImmNode&>(*e).value, e->dtype), kAtom};
    case ExprKind::kNot:
      return {"!" + at(static_cast<const tir::NotNode&>(*e).a, kAtom), kUnary};
    case ExprKind::kSelect: {
      const auto& n = static_cast<const tir::SelectNode&>(*e);
      const std::string c = at(n.condition, kOr), t = at(n.on_true, kOr), f = at(n.on_false, kOr);
      return {format("{} ? {} : {}", c, t, f), kChoice};
    }
    case ExprKind::kCast:
      return cast(static_cast<const tir::CastNode&>(*e));
    case ExprKind::kReinterpret:
      return reinterpret(static_cast<const tir::ReinterpretNode&>(*e));
    case ExprKind::kLoad: {
      const auto& n = static_cast<const tir::LoadNode&>(*e);
      if (n.mask)
        return choice(*tir::as<tir::CallNode>(made_.emplace_back(tir::intrinsic(
            Intrinsic::k_if_then_else, {n.mask, tir::load(n.buffer, n.index), tir::make_const(n.dtype, 0)}))));
      used_.insert(n.buffer.get());
      if (n.buffer->scope == tir::Scope::kRegister) return {element_of(*n.buffer, n.index), kAtom};
      std::string text = format("{}[{}]", buffers_[n.buffer.get()], code(n.index).text);
      if (!e->dtype.is_bool()) return {std::move(text), kAtom};
      return {text + " != 0", kCompare};
    }
    case ExprKind::kCall:
      return call(static_cast<const tir::CallNode&>(*e));
    case ExprKind::kLet: {
      const auto& n = static_cast<const tir::LetNode&>(*e);
      const Code value = code(n.value);
      memo_[n.var.get()] = value.level == kAtom && value.text.size() < 40 ? value : hoisted(value, n.value->dtype);
      memo_order_.push_back(n.var.get());
      return code(n.body);
    }
    case ExprKind::kShuffle:
      if (vectors_) return shuffle_to_scalar(static_cast<const tir::ShuffleNode&>(*e));
      fail("a shuffle is left in C code");
      return {"0", kAtom};
    case ExprKind::kExtern:
      return call_extern(static_cast<const tir::ExternNode&>(*e));
    default:
      fail(format("{} is left in C code", kind_name(e->kind)));
      return {"0", kAtom};
  }
}

// An integer expression in C's int or wider, wrapped to its dtype.
CPrinter::Code CPrinter::wrapped(DataType t, const std::string& text) {
  if (t.bits == 8 || t.bits >= 16) return {format("({})({})", c_type(t), text), kUnary};
  const int all = (1 << t.bits) - 1, sign = 1 << (t.bits - 1);
  if (t.is_int()) return {format("(int8_t)(((({}) & {}) ^ {}) - {})", text, all, sign, sign), kUnary};
  return {format("(uint8_t)(({}) & {})", text, all), kUnary};
}

CPrinter::Code CPrinter::function(const std::string& name, const tir::BinaryNode& n) {
  const std::string a = code(n.a).text, b = code(n.b).text;
  return {format("tw_{}_{}({}, {})", name, c_suffix(n.a->dtype), a, b), kAtom};
}

CPrinter::Code CPrinter::infix(const tir::BinaryNode& n, const char* sign, Level level, Level left, Level right) {
  const std::string a = at(n.a, left), b = at(n.b, right);
  return {a + sign + b, level};
}

CPrinter::Code CPrinter::binary(const tir::BinaryNode& n) {
  if (tir::is_comparison(n.kind)) {
    if (auto known = decided(n)) return *known;
    return infix(n, comparison_sign(n.kind), kCompare, kSum, kSum);
  }
  if (n.kind == ExprKind::kAnd || (n.kind == ExprKind::kBitAnd && n.dtype.is_bool()))
    return infix(n, " && ", kAnd, kCompare, kCompare);
  if (n.kind == ExprKind::kOr || (n.kind == ExprKind::kBitOr && n.dtype.is_bool()))
    return infix(n, " || ", kOr, kCompare, kCompare);
  return n.dtype.is_float() ? float_binary(n) : integer_binary(n);
}

// Folds comparisons that the type decides, about which compilers would warn.
std::optional<CPrinter::Code> CPrinter::decided(const tir::BinaryNode& n) {
  const DataType t = n.a->dtype;
  if (!t.is_integral() || t.bits >= 64) return std::nullopt;
  auto c = as_const_int(n.b);
  const bool swapped = !c;
  if (swapped) c = as_const_int(n.a);
  if (!c) return std::nullopt;
  const ExprKind kind = swapped ? mirrored(n.kind) : n.kind;
  const int64_t lowest = t.is_uint() ? 0 : -(int64_t{1} << (t.bits - 1));
  const int64_t highest = (int64_t{1} << (t.is_uint() ? t.bits : t.bits - 1)) - 1;
  if ((kind == ExprKind::kLT && *c <= lowest) || (kind == ExprKind::kGT && *c >= highest)) return Code{"0", kAtom};
  if ((kind == ExprKind::kGE && *c <= lowest) || (kind == ExprKind::kLE && *c >= highest)) return Code{"1", kAtom};
  return std::nullopt;
}

CPrinter::Code CPrinter::float_binary(const tir::BinaryNode& n) {
  switch (n.kind) {
    case ExprKind::kAdd:
      return infix(n, " + ", kSum, kSum, kProduct);
    case ExprKind::kSub:
      return infix(n, " - ", kSum, kSum, kProduct);
    case ExprKind::kMul:
      return infix(n, " * ", kProduct, kProduct, kUnary);
    case ExprKind::kDiv:
      return infix(n, " / ", kProduct, kProduct, kUnary);
    case ExprKind::kMin:
      return function("min", n);
    case ExprKind::kMax:
      return function("max", n);
    default:
      fail(format("{} of floats is left in C code", kind_name(n.kind)));
      return {"0", kAtom};
  }
}

CPrinter::Code CPrinter::integer_binary(const tir::BinaryNode& n) {
  const DataType t = n.dtype;
  // Narrow integers are computed in C's int and wrapped; wide unsigned ones wrap by themselves.
  const bool small = t.bits < 32, plain = t.is_uint() && !small;
  auto sum = [&](const char* sign, const char* name, Level level, Level right) -> Code {
    if (is_index(n.a) && is_index(n.b)) return infix(n, sign, level, level, right);
    if (small) {
      // A product of two uint16 may overflow int.
      const std::string a = at(n.a, level), b = at(n.b, right);
      return wrapped(t, (level == kProduct && t.is_uint() && t.bits == 16 ? "1u * " : "") + a + sign + b);
    }
    return plain ? infix(n, sign, level, level, right) : function(name, n);
  };
  auto bits = [&](const char* sign) { return infix(n, sign, kBits, kUnary, kUnary); };
  switch (n.kind) {
    case ExprKind::kAdd:
      return sum(" + ", "add", kSum, kProduct);
    case ExprKind::kSub:
      return sum(" - ", "sub", kSum, kProduct);
    case ExprKind::kMul:
      return sum(" * ", "mul", kProduct, kUnary);
    case ExprKind::kMin:
      return function("min", n);
    case ExprKind::kMax:
      return function("max", n);
    case ExprKind::kBitAnd:
      return bits(" & ");
    case ExprKind::kBitOr:
      return bits(" | ");
    case ExprKind::kBitXor:
      return bits(" ^ ");
    case ExprKind::kShiftLeft:
    case ExprKind::kShiftRight: {
      const bool left = n.kind == ExprKind::kShiftLeft;
      const auto by = as_const_int(n.b);
      const bool inside = by && *by >= 0 && *by < t.bits;
      if (inside && (plain || !left)) return infix(n, left ? " << " : " >> ", kBits, kUnary, kUnary);
      const Code shifted = function(left ? "shl" : "shr", n);
      return small ? wrapped(t, shifted.text) : shifted;
    }
    default:
      return quotient(n);
  }
}

CPrinter::Code CPrinter::quotient(const tir::BinaryNode& n) {
  const DataType t = n.dtype;
  const auto divisor = as_const_int(n.b);
  const bool unsigned_like = t.is_uint() || (is_non_negative(n.a) && is_non_negative(n.b));
  const bool safe = divisor && *divisor != 0 && *divisor != -1;
  const bool rest = n.kind == ExprKind::kMod || n.kind == ExprKind::kFloorMod;
  if (safe && (unsigned_like || n.kind == ExprKind::kDiv || n.kind == ExprKind::kMod))
    return infix(n, rest ? " % " : " / ", kProduct, kProduct, kUnary);
  if (safe && *divisor > 0 && (*divisor & (*divisor - 1)) == 0) {
    // An arithmetic shift and a mask round down.
    const std::string a = at(n.a, kUnary);
    if (n.kind == ExprKind::kFloorMod) return {format("{} & {}", a, c_integer(*divisor - 1, t)), kBits};
    return {format("{} >> {}", a, static_cast<int>(std::log2(static_cast<double>(*divisor)))), kBits};
  }
  const bool wide_unsigned = t.is_uint() && t.bits >= 32;
  const bool down = n.kind == ExprKind::kFloorDiv || n.kind == ExprKind::kFloorMod;
  const std::string name = (down && !wide_unsigned ? "floor" : "") + std::string(rest ? "mod" : "div");
  const Code c = function(name.c_str(), n);
  return t.bits < 32 ? wrapped(t, c.text) : c;
}

CPrinter::Code CPrinter::cast(const tir::CastNode& n) {
  const DataType from = n.value->dtype, to = n.dtype;
  if (is_bits_float(from) && is_bits_float(to))
    return {c_narrow_call(to, c_widen_call(from, code(n.value).text)), kAtom};
  if (is_bits_float(from)) {
    Code wide{c_widen_call(from, code(n.value).text), kAtom};
    if (to == kFloat32) return wide;
    if (to == kFloat64) return {"(double)" + wide.text, kUnary};
    if (to.is_bool()) return {wide.text + " != 0.0f", kCompare};
    const std::string number = format("tw_f32_to_{}({})",
                                      to.bits < 32    ? "i32"
                                      : to == kUInt32 ? "i64"
                                                      : c_suffix(to),
                                      wide.text);
    return wrapped(to, number);
  }
  if (const auto* rounded = tir::as<tir::CallNode>(n.value);
      rounded != nullptr && rounded->op == Intrinsic::k_round && from == kFloat32 && to == kInt32)
    return {format("tw_round_to_i32({})", code(rounded->args[0]).text), kAtom};
  const std::string value = at(n.value, kUnary);
  if (is_bits_float(to)) {
    // Wide integers and doubles have more bits than a float.
    std::string narrow = value;
    if (from == kFloat64 || (from.is_integral() && from.bits >= 32))
      narrow = format("tw_f64_to_f32_odd({}{})", from == kFloat64 ? "" : "(double)", value);
    else if (!from.is_float())
      narrow = "(float)" + value;
    return {c_narrow_call(to, narrow), kAtom};
  }
  if (to.is_bool()) return {format("{} != {}", value, from.is_float() ? c_float(0, from) : "0"), kCompare};
  if (to.is_float() || from.is_bool()) return {format("({}){}", c_type(to), value), kUnary};
  if (from.is_float()) {
    // Narrow integers are converted via a wider one and wrap.
    const DataType over = to.bits < 32 ? kInt32 : to == kUInt32 ? kInt64 : to;
    const std::string number = format("tw_{}_to_{}({})", c_suffix(from), c_suffix(over), code(n.value).text);
    return over == to ? Code{number, kAtom} : wrapped(to, number);
  }
  const bool widens = to.bits >= from.bits && to.is_int() == from.is_int();
  if (widens && as_const_int(n.value)) return {c_integer(*as_const_int(n.value), to), kAtom};
  return to.bits < 8 ? wrapped(to, code(n.value).text) : Code{format("({}){}", c_type(to), value), kUnary};
}

CPrinter::Code CPrinter::reinterpret(const tir::ReinterpretNode& n) {
  const DataType from = n.value->dtype, to = n.dtype;
  if (vectors_ && from.lanes > 1) return vector_reinterpret(n);
  if (const auto* bytes = tir::as<tir::LoadNode>(n.value); bytes != nullptr && from.lanes > 1) {
    const auto* ramp = tir::as<tir::RampNode>(bytes->index);
    used_.insert(bytes->buffer.get());
    const std::string base = buffers_[bytes->buffer.get()], first = at(ramp->base, kSum);
    return {format("({})tw_word_of_{}({} + {})", c_type(to), from.lanes, base, first), kUnary};
  }
  // Small floats are represented by their bits.
  auto is_float_in_c = [](DataType t) { return t.is_float() && t.bits > 16; };
  if (is_float_in_c(from) != is_float_in_c(to))
    return {format("tw_bits_{}_to_{}({})", c_suffix(from), c_suffix(to), code(n.value).text), kAtom};
  if (to.is_bool()) return {at(n.value, kSum) + " != 0", kCompare};
  return to.bits < 8 ? wrapped(to, code(n.value).text)
                     : Code{format("({}){}", c_type(to), at(n.value, kUnary)), kUnary};
}

CPrinter::Code CPrinter::call(const tir::CallNode& n) {
  if (n.op == Intrinsic::k_if_then_else) return choice(n);
  if (n.op == Intrinsic::k_reduce_add || n.op == Intrinsic::k_reduce_max || n.op == Intrinsic::k_reduce_min)
    return reduced(n);
  std::vector<std::string> args;
  for (const PrimExpr& a : n.args) args.push_back(code(a).text);
  const DataType t = n.args[0]->dtype;
  const char* f = t.bits == 64 ? "" : "f";
  const char* suffix = t.bits == 64 ? "f64" : "f32";
  switch (n.op) {
    case Intrinsic::k_fma:
      return {format("tw_fma_{}({}, {}, {})", suffix, args[0], args[1], args[2]), kAtom};
    case Intrinsic::k_round:
      if (t.bits == 32) return {format("tw_rint_f32({})", args[0]), kAtom};
      return {format("rint({})", args[0]), kAtom};
    case Intrinsic::k_dot4:
    case Intrinsic::k_dot2:
    case Intrinsic::k_dot2_bfloat16:
      return {format("tw_{}({}, {}, {})", intrinsic_name(n.op), args[0], args[1], args[2]), kAtom};
    case Intrinsic::k_even_bytes:
    case Intrinsic::k_odd_bytes:
      if (as_const_int(n.args[0]) == 0) return {format("tw_{}_of({})", intrinsic_name(n.op), args[1]), kAtom};
      return {format("tw_{}({}, {})", intrinsic_name(n.op), args[0], args[1]), kAtom};
    case Intrinsic::k_low_halves:
    case Intrinsic::k_high_halves:
      return {format("tw_{}({}, {})", intrinsic_name(n.op), args[0], args[1]), kAtom};
    case Intrinsic::k_sigmoid:
      return {format("tw_sigmoid_{}({})", suffix, args[0]), kAtom};
    case Intrinsic::k_rsqrt:
      return {format("{} / sqrt{}({})", c_float(1, t), f, args[0]), kProduct};
    case Intrinsic::k_ldexp_int:
      return {format("ldexp{}({}, {})", f, args[0], args[1]), kAtom};
    case Intrinsic::k_isnan:
    case Intrinsic::k_isinf:
    case Intrinsic::k_isfinite:
      return {format("{}({}) != 0", intrinsic_name(n.op), args[0]), kCompare};
    case Intrinsic::k_popcount:
    case Intrinsic::k_clz: {
      const std::string bits = wrapped({TypeCode::kUInt, t.bits, 1}, args[0]).text;
      return {n.op == Intrinsic::k_popcount ? format("({})tw_popcount({})", c_type(t), bits)
                                            : format("({})tw_clz({}, {})", c_type(t), bits, t.bits),
              kUnary};
    }
    default:
      break;
  }
  for (const CMathName& row : kCMathNames)
    if (row.op == n.op)
      return {format("{}{}({}{}{})", row.name, f, args[0], args.size() > 1 ? ", " : "", args.size() > 1 ? args[1] : ""),
              kAtom};
  fail(format("there is no C for {}", intrinsic_name(n.op)));
  return {"0", kAtom};
}

// One of two values between which `?:` chooses: those must be of one type, and what a vector's place is read as is
// another.
std::string CPrinter::alternative(const PrimExpr& e) {
  if (e->dtype.is_bool() && e->dtype.lanes > 1) return mask(e, 8);
  const Code made = code(e);
  const bool place = e->dtype.lanes > 1 && made.level == kUnary;
  return place ? format("({}){}", type_of(e->dtype), made.text) : at(e, kOr);
}

// Evaluates only the selected side: its temporaries are declared inside its branch.
CPrinter::Code CPrinter::choice(const tir::CallNode& n) {
  const std::string condition = at(n.args[0], kOr);
  const std::string before = std::move(text_);
  std::string lines[2], values[2];
  ++indent_;
  for (size_t side : {size_t{0}, size_t{1}}) {
    text_.clear();
    const size_t mark = memo_order_.size();
    const auto masks = masks_;
    values[side] = alternative(n.args[side + 1]);
    masks_ = masks;
    for (; memo_order_.size() > mark; memo_order_.pop_back()) memo_.erase(memo_order_.back());
    lines[side] = std::move(text_);
  }
  --indent_;
  text_ = before;
  if (lines[0].empty() && lines[1].empty()) return {format("{} ? {} : {}", condition, values[0], values[1]), kChoice};
  const std::string name = fresh(format("t{}", temporaries_++));
  line(format("{} {};", type_of(n.dtype), name));
  line(format("if ({}) {{", condition));
  text_ += lines[0];
  ++indent_, line(format("{} = {};", name, values[0])), --indent_;
  line("} else {");
  text_ += lines[1];
  ++indent_, line(format("{} = {};", name, values[1])), --indent_;
  line("}");
  return {name, kAtom};
}

bool CPrinter::is_index(const PrimExpr& e) {
  if (e->kind == ExprKind::kIntImm) return true;
  if (e->kind == ExprKind::kVar) return index_vars_.count(e.get()) != 0;
  if (!e->dtype.is_int() || e->dtype.bits < 32) return false;
  if (auto found = index_memo_.find(e.get()); found != index_memo_.end()) return found->second;
  bool out = false;
  if (tir::is_binary(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    out = is_index(n.a) && is_index(n.b);
  } else if (e->kind == ExprKind::kSelect) {
    const auto& n = static_cast<const tir::SelectNode&>(*e);
    out = is_index(n.on_true) && is_index(n.on_false);
  } else if (const auto* n = tir::as<tir::CastNode>(e)) {
    out = n->value->dtype.is_int() && n->value->dtype.bits <= e->dtype.bits && is_index(n->value);
  }
  return index_memo_[e.get()] = out;
}

bool CPrinter::is_non_negative(const PrimExpr& e) {
  if (auto c = as_const_int(e)) return *c >= 0;
  if (e->kind == ExprKind::kVar) return non_negative_vars_.count(e.get()) != 0;
  if (auto found = sign_memo_.find(e.get()); found != sign_memo_.end()) return found->second;
  bool out = false;
  if (tir::is_binary(e->kind)) {
    const auto& n = static_cast<const tir::BinaryNode&>(*e);
    const bool a = is_non_negative(n.a), b = is_non_negative(n.b);
    switch (n.kind) {
      case ExprKind::kAdd:
      case ExprKind::kMul:
        out = a && b && is_index(e);
        break;
      case ExprKind::kMod:
        out = a;
        break;
      case ExprKind::kDiv:
      case ExprKind::kFloorDiv:
      case ExprKind::kMin:
        out = a && b;
        break;
      case ExprKind::kFloorMod:
        out = b && as_const_int(n.b).value_or(0) > 0;
        break;
      case ExprKind::kMax:
      case ExprKind::kBitAnd:
        out = a || b;
        break;
      default:
        break;
    }
  }
  return sign_memo_[e.get()] = out;
}

}  // namespace tilewright::codegen
