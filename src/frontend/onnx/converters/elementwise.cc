// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparison, logic and casts.
#include <algorithm>
#include <limits>

#include "base/format.h"
#include "frontend/onnx/convert.h"

namespace tilewright::onnx {
namespace {

template <const char* kOp>
Values unary(NodeContext& c) {
  return {c.call(kOp, {c.input(0)})};
}

// Before opset 7 broadcasting was an attribute, and `axis` said which axes of a those of b align with.
Expr legacy_broadcast(NodeContext& c, const Expr& a, const Expr& b) {
  if (c.opset() >= 7 || c.int_attr("broadcast", 0) == 0 || !c.has_attr("axis")) return b;
  int64_t axis = c.axis(c.int_attr("axis"), c.rank(a));
  int64_t after = c.rank(a) - axis - c.rank(b);
  if (after < 0) c.fail(format("its axis {} leaves no room for an operand of rank {}", axis, c.rank(b)));
  return c.expand(b, c.rank(b), after);
}

template <const char* kOp>
Values binary(NodeContext& c) {
  Expr a = c.input(0), b = c.input(1);
  return {c.call(kOp, {a, legacy_broadcast(c, a, b)})};
}

constexpr char kAbs[] = "abs", kAcos[] = "acos", kAcosh[] = "acosh", kAsin[] = "asin", kAsinh[] = "asinh",
               kAtan[] = "atan", kAtanh[] = "atanh", kCeil[] = "ceil", kCos[] = "cos", kCosh[] = "cosh", kErf[] = "erf",
               kExp[] = "exp", kFloor[] = "floor", kIsNan[] = "isnan", kLog[] = "log", kNegative[] = "negative",
               kNot[] = "logical_not", kRound[] = "nearbyint", kSign[] = "sign", kSin[] = "sin", kSinh[] = "sinh",
               kSqrt[] = "sqrt", kTan[] = "tan", kTanh[] = "tanh", kSigmoid[] = "sigmoid", kRelu[] = "nn.relu",
               kBitNot[] = "bitwise_not";
constexpr char kAdd[] = "add", kSub[] = "subtract", kMul[] = "multiply", kDiv[] = "divide", kAnd[] = "logical_and",
               kOr[] = "logical_or", kXor[] = "logical_xor", kBitAnd[] = "bitwise_and", kBitOr[] = "bitwise_or",
               kBitXor[] = "bitwise_xor", kEqual[] = "equal", kGreater[] = "greater", kGreaterEqual[] = "greater_equal",
               kLess[] = "less", kLessEqual[] = "less_equal", kMax[] = "maximum", kMin[] = "minimum";

Values reciprocal(NodeContext& c) {
  Expr x = c.input(0);
  return {c.div(c.scalar_like(1, x), x)};
}

Values power(NodeContext& c) {
  Expr a = c.input(0), b = legacy_broadcast(c, a, c.input(1));
  DataType result = c.dtype(a);
  // Small integral exponents and 1/2 become products and square roots: exact, much cheaper, and defined for negative
  // bases.
  if (const Tensor* t = c.known(b); t && t->size() == 1 && c.rank(b) <= c.rank(a) && result.is_float()) {
    double exponent = t->at_double(0);
    if (exponent == 1) return {a};
    if (exponent == 2) return {c.mul(a, a)};
    if (exponent == 3) return {c.mul(c.mul(a, a), a)};
    if (exponent == 0.5) return {c.call("sqrt", {a})};
  }
  // The exponent may have another type; the result has that of the base.
  if (result.is_float() || !c.dtype(b).is_float()) return {c.call("power", {a, c.cast(b, result)})};
  return {c.cast(c.call("power", {c.cast(a, kFloat64), c.cast(b, kFloat64)}), result)};
}

// fmod=0: the result has the divisor's sign (integers only); fmod=1: the dividend's, as in C.
Values mod(NodeContext& c) {
  bool truncating = c.int_attr("fmod", 0) != 0;
  return {c.call(truncating ? "mod" : "floor_mod", {c.input(0), c.input(1)})};
}

Values bit_shift(NodeContext& c) {
  std::string direction = c.string_attr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    c.fail(format("its direction '{}' is neither LEFT nor RIGHT", direction));
  return {c.call(direction == "LEFT" ? "left_shift" : "right_shift", {c.input(0), c.input(1)})};
}

template <const char* kOp>
Values variadic(NodeContext& c) {
  std::vector<Expr> in = c.all_inputs();
  if (in.empty()) c.fail("it has no input");
  Expr out = in[0];
  for (size_t i = 1; i < in.size(); ++i) out = c.call(kOp, {out, in[i]});
  return {out};
}

Values mean(NodeContext& c) {
  Expr sum = variadic<kAdd>(c)[0].expr;
  return {c.div(sum, c.scalar_like(static_cast<double>(c.input_count()), sum))};
}

Values is_inf(NodeContext& c) {
  Expr x = c.input(0);
  bool positive = c.int_attr("detect_positive", 1), negative = c.int_attr("detect_negative", 1);
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (positive && negative) return {c.call("isinf", {x})};
  if (!positive && !negative) return {c.call("logical_and", {c.call("isinf", {x}), c.scalar(0, kBool)})};
  return {c.call("equal", {x, c.scalar_like(positive ? inf : -inf, x)})};
}

// Values beyond the range of a float8 become its largest finite value when saturating, else infinity or NaN.
Expr bounded_for_float8(NodeContext& c, const Expr& x, DataType to) {
  struct Range {
    TypeCode code;
    double largest, limit;  // values from `limit` on would round beyond `largest`
  };
  static constexpr Range kRanges[] = {{TypeCode::kFloat8E4M3FN, 448, 464},
                                      {TypeCode::kFloat8E4M3FNUZ, 240, 248},
                                      {TypeCode::kFloat8E5M2, 57344, 61440},
                                      {TypeCode::kFloat8E5M2FNUZ, 57344, 61440}};
  bool saturate = c.int_attr("saturate", 1) != 0;
  for (const Range& r : kRanges) {
    if (r.code != to.code || !c.dtype(x).is_float()) continue;
    if (saturate)
      return c.call("clip", {x}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                      a.a_min = -r.largest;
                      a.a_max = r.largest;
                    }));
    if (to.code == TypeCode::kFloat8E5M2) return x;  // has infinities
    Expr wide = c.cast(x, kFloat32);
    Expr outside = c.call("greater_equal", {c.call("abs", {wide}), c.scalar(r.limit, kFloat32)});
    return c.where(outside, c.scalar(std::numeric_limits<double>::quiet_NaN(), kFloat32), wide);
  }
  return x;
}

// float8_e8m0 holds powers of two only. Whether to round up (the default) or down is read from the float32 bits: a
// non-zero mantissa means that the value lies above the power of two of its exponent.
Expr bounded_for_e8m0(NodeContext& c, const Expr& x) {
  std::string mode = c.string_attr("round_mode", "up");
  if (mode == "nearest") return x;
  if (mode != "up" && mode != "down") c.fail(format("its round_mode is '{}', not up, down or nearest", mode));
  auto as_type = [&](const Expr& e, DataType t) {
    return c.call("reinterpret", {e}, make_attrs<relay::CastAttrs>([&](auto& a) { a.dtype = t; }));
  };
  Expr wide = c.cast(x, kFloat32), bits = as_type(wide, kInt32);
  if (mode == "up") bits = c.add(bits, c.scalar(0x7fffff, kInt32));
  Expr power = as_type(c.call("bitwise_and", {bits, c.scalar(0x7f800000, kInt32)}), kFloat32);
  return c.where(c.call("isnan", {wide}), wide, power);
}

Values cast_to(NodeContext& c, DataType to) {
  Expr x = c.input(0);
  if (c.dtype(x) == to) return {x};
  if (to.code == TypeCode::kFloat8E8M0 && c.dtype(x).is_float()) return {c.cast(bounded_for_e8m0(c, x), to)};
  return {c.cast(bounded_for_float8(c, x, to), to)};
}
Values cast(NodeContext& c) {
  if (!c.has_attr("to")) c.fail("its attribute 'to' is missing");
  return cast_to(c, c.dtype_attr("to", kFloat32));
}
Values cast_like(NodeContext& c) { return cast_to(c, c.dtype(c.input(1))); }
Values bit_cast(NodeContext& c) {
  DataType to = c.dtype_attr("to", kFloat32);
  return {c.call("reinterpret", {c.input(0)}, make_attrs<relay::CastAttrs>([&](auto& a) { a.dtype = to; }))};
}

Values where(NodeContext& c) { return {c.where(c.input(0), c.input(1), c.input(2))}; }

Values clip_between(NodeContext& c, const Expr& low, const Expr& high) {
  Expr x = c.input(0);
  const Tensor *l = c.known(low), *h = c.known(high);
  // An attribute holds the bounds as doubles, which are exact for bounds of at most 53 bits.
  bool simple = (!low || (l && l->size() == 1)) && (!high || (h && h->size() == 1)) && c.dtype(x) != kInt64 &&
                c.dtype(x) != kUInt64;
  if (simple)
    return {c.call("clip", {x}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                     if (l) a.a_min = l->at_double(0);
                     if (h) a.a_max = h->at_double(0);
                   }))};
  if (low) x = c.call("maximum", {x, low});
  if (high) x = c.call("minimum", {x, high});
  return {x};
}
Values clip_1(NodeContext& c) {
  return {c.call("clip", {c.input(0)}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                   a.a_min = c.float_attr("min", std::numeric_limits<float>::lowest());
                   a.a_max = c.float_attr("max", std::numeric_limits<float>::max());
                 }))};
}
Values clip_11(NodeContext& c) {
  return clip_between(c, c.has(1) ? c.input(1) : Expr(), c.has(2) ? c.input(2) : Expr());
}

constexpr ConverterEntry kElementwiseConverters[] = {
    {"Abs", 1, unary<kAbs>},
    {"Acos", 7, unary<kAcos>},
    {"Acosh", 9, unary<kAcosh>},
    {"Asin", 7, unary<kAsin>},
    {"Asinh", 9, unary<kAsinh>},
    {"Atan", 7, unary<kAtan>},
    {"Atanh", 9, unary<kAtanh>},
    {"Ceil", 1, unary<kCeil>},
    {"Cos", 7, unary<kCos>},
    {"Cosh", 9, unary<kCosh>},
    {"Erf", 9, unary<kErf>},
    {"Exp", 1, unary<kExp>},
    {"Floor", 1, unary<kFloor>},
    {"IsNaN", 9, unary<kIsNan>},
    {"Log", 1, unary<kLog>},
    {"Neg", 1, unary<kNegative>},
    {"Not", 1, unary<kNot>},
    {"Round", 11, unary<kRound>},
    {"Sign", 9, unary<kSign>},
    {"Sin", 7, unary<kSin>},
    {"Sinh", 9, unary<kSinh>},
    {"Sqrt", 1, unary<kSqrt>},
    {"Tan", 7, unary<kTan>},
    {"Tanh", 1, unary<kTanh>},
    {"Sigmoid", 1, unary<kSigmoid>},
    {"Relu", 1, unary<kRelu>},
    {"BitwiseNot", 18, unary<kBitNot>},
    {"Reciprocal", 1, reciprocal},
    {"IsInf", 10, is_inf},
    {"Add", 1, binary<kAdd>},
    {"Sub", 1, binary<kSub>},
    {"Mul", 1, binary<kMul>},
    {"Div", 1, binary<kDiv>},
    {"And", 1, binary<kAnd>},
    {"Or", 1, binary<kOr>},
    {"Xor", 1, binary<kXor>},
    {"BitwiseAnd", 18, binary<kBitAnd>},
    {"BitwiseOr", 18, binary<kBitOr>},
    {"BitwiseXor", 18, binary<kBitXor>},
    {"Equal", 1, binary<kEqual>},
    {"Greater", 1, binary<kGreater>},
    {"GreaterOrEqual", 12, binary<kGreaterEqual>},
    {"Less", 1, binary<kLess>},
    {"LessOrEqual", 12, binary<kLessEqual>},
    {"Pow", 1, power},
    {"Mod", 10, mod},
    {"BitShift", 11, bit_shift},
    {"Max", 1, variadic<kMax>},
    {"Min", 1, variadic<kMin>},
    {"Sum", 1, variadic<kAdd>},
    {"Mean", 1, mean},
    {"Cast", 1, cast},
    {"CastLike", 15, cast_like},
    {"BitCast", 26, bit_cast},
    {"Where", 9, where},
    {"Clip", 1, clip_1},
    {"Clip", 11, clip_11},
};

}  // namespace

std::span<const ConverterEntry> elementwise_converters() { return kElementwiseConverters; }

}  // namespace tilewright::onnx
