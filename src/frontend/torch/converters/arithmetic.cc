// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic and functions with PyTorch's type promotion, for tensors and for symbolic numbers.
#include <cmath>
#include <limits>

#include "base/format.h"
#include "frontend/torch/convert.h"

namespace tilewright::torch {
namespace arithmetic {
namespace {

// Floating-point functions: integers are cast to float32 first.
template <const char* kOp>
Values real_function(NodeContext& c) {
  return {c.call(kOp, {c.real(c.tensor("self"))})};
}
// Functions whose result has the operand's type.
template <const char* kOp>
Values same_function(NodeContext& c) {
  return {c.call(kOp, {c.tensor("self")})};
}
// Rounding leaves integers unchanged.
template <const char* kOp>
Values rounding(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.dtype(x).is_float() ? c.call(kOp, {x}) : x};
}

constexpr char kExp[] = "exp", kLog[] = "log", kLog2[] = "log2", kLog10[] = "log10", kLog1p[] = "log1p",
               kSqrt[] = "sqrt", kRsqrt[] = "rsqrt", kSin[] = "sin", kCos[] = "cos", kTan[] = "tan", kAsin[] = "asin",
               kAcos[] = "acos", kAtan[] = "atan", kSinh[] = "sinh", kCosh[] = "cosh", kTanh[] = "tanh",
               kAsinh[] = "asinh", kAcosh[] = "acosh", kAtanh[] = "atanh", kErf[] = "erf", kSigmoid[] = "sigmoid";
constexpr char kAbs[] = "abs", kNegative[] = "negative", kSign[] = "sign";
constexpr char kCeil[] = "ceil", kFloor[] = "floor", kTrunc[] = "trunc";

Values expm1(NodeContext& c) {
  // (u - 1) * x / log(u) with u = exp(x) is accurate near zero (Kahan).
  Expr x = c.real(c.tensor("self")), one = c.scalar_like(1, x), u = c.call("exp", {x}), less = c.sub(u, one);
  Expr log = c.call("log", {u});
  Expr plain = c.call("logical_or", {c.call("isinf", {u}), c.call("equal", {less, c.scalar_like(-1, x)})});
  Expr exact = c.div(c.mul(less, x), c.where(c.call("equal", {log, c.zero_like(x)}), one, log));
  return {c.where(c.call("equal", {u, one}), x, c.where(plain, less, exact))};
}
Values exp2(NodeContext& c) {
  Expr x = c.real(c.tensor("self"));
  return {c.call("power", {c.scalar_like(2, x), x})};
}
Values reciprocal(NodeContext& c) {
  Expr x = c.real(c.tensor("self"));
  return {c.div(c.scalar_like(1, x), x)};
}
Values square(NodeContext& c) {
  Expr x = c.tensor("self");
  if (c.dtype(x).is_bool()) x = c.cast(x, kInt64);
  return {c.mul(x, x)};
}
Values logit(NodeContext& c) {
  Expr x = c.real(c.tensor("self"));
  if (auto eps = c.maybe_number("eps")) {
    x = c.call("clip", {x}, make_attrs<relay::ClipAttrs>([&](auto& a) {
                 a.a_min = *eps;
                 a.a_max = 1 - *eps;
               }));
  }
  return {c.call("log", {c.div(x, c.sub(c.scalar_like(1, x), x))})};
}
// Rounds half to even.
Values round(NodeContext& c) {
  Expr x = c.tensor("self");
  const int64_t decimals = c.integer("decimals", 0);
  if (!c.dtype(x).is_float()) return {x};
  if (decimals == 0) return {c.call("nearbyint", {x})};
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  Expr s = c.scalar_like(scale, x);
  if (decimals > 0) return {c.div(c.call("nearbyint", {c.mul(x, s)}), s)};
  return {c.mul(c.call("nearbyint", {c.div(x, s)}), s)};
}
Values frac(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.sub(x, c.call("trunc", {x}))};
}
Values sgn(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.dtype(x).is_bool() ? x : c.call("sign", {x})};
}

struct Operands {
  Expr a, b;
  DataType dtype;
};
Operands same_type(NodeContext& c, const char* first = "self", const char* second = "other", bool real = false) {
  const Value &a = c.value(first), &b = c.value(second);
  const DataType dtype = real ? c.promoted_real({&a, &b}) : c.promoted({&a, &b});
  return {c.as_tensor(a, dtype), c.as_tensor(b, dtype), dtype};
}

// self + alpha * other
Expr scaled(NodeContext& c, const Expr& e) {
  const Value* alpha = c.find("alpha");
  if (!alpha) return e;
  if (const Tensor* t = c.known(alpha->expr); t && t->size() == 1 && t->at_double(0) == 1) return e;
  return c.mul(e, c.as_tensor(*alpha, c.dtype(e)));
}
Values add(NodeContext& c) {
  Operands o = same_type(c);
  if (o.dtype.is_bool()) return {c.call("logical_or", {o.a, o.b})};
  return {c.add(o.a, scaled(c, o.b))};
}
Values subtract(NodeContext& c) {
  Operands o = same_type(c);
  return {c.sub(o.a, scaled(c, o.b))};
}
Values reverse_subtract(NodeContext& c) {
  Operands o = same_type(c);
  return {c.sub(o.b, scaled(c, o.a))};
}
Values multiply(NodeContext& c) {
  Operands o = same_type(c);
  if (o.dtype.is_bool()) return {c.call("logical_and", {o.a, o.b})};
  return {c.mul(o.a, o.b)};
}
Expr floor_quotient(NodeContext& c, const Expr& a, const Expr& b) { return c.call("floor_divide", {a, b}); }
Values divide(NodeContext& c) {
  const std::string mode = c.text("rounding_mode", "");
  Operands o = same_type(c, "self", "other", mode.empty());
  if (mode.empty()) return {c.div(o.a, o.b)};
  if (mode == "floor") return {floor_quotient(c, o.a, o.b)};
  if (mode != "trunc") c.fail(format("its rounding_mode '{}' is neither floor nor trunc", mode));
  if (!o.dtype.is_float()) return {c.call("trunc_divide", {o.a, o.b})};
  return {c.call("trunc", {c.div(o.a, o.b)})};
}
Values floor_divide(NodeContext& c) {
  Operands o = same_type(c);
  return {floor_quotient(c, o.a, o.b)};
}
Values remainder(NodeContext& c) {
  Operands o = same_type(c);
  return {c.call("floor_mod", {o.a, o.b})};
}
Values fmod(NodeContext& c) {
  Operands o = same_type(c);
  return {c.call(o.dtype.is_float() ? "mod" : "trunc_mod", {o.a, o.b})};
}

Expr power_of(NodeContext& c, const Expr& a, const Expr& b, DataType dtype) {
  // Small integral exponents and 1/2 become products and square roots: exact and much cheaper.
  if (const Tensor* t = c.known(b); t && t->size() == 1 && c.rank(b) <= c.rank(a) && dtype.is_float()) {
    const double exponent = t->at_double(0);
    if (exponent == 0) return c.add(c.mul(a, c.zero_like(a)), c.scalar_like(1, a));
    if (exponent == 1) return a;
    if (exponent == 2) return c.mul(a, a);
    if (exponent == 3) return c.mul(c.mul(a, a), a);
    if (exponent == 4) return c.mul(c.mul(a, a), c.mul(a, a));
    if (exponent == 0.5) return c.call("sqrt", {a});
    if (exponent == -0.5) return c.call("rsqrt", {a});
    if (exponent == -1) return c.div(c.scalar_like(1, a), a);
    if (exponent == -2) return c.div(c.scalar_like(1, a), c.mul(a, a));
  }
  return c.call("power", {a, b});
}
Values power(NodeContext& c) {
  Operands o = same_type(c, "self", "exponent");
  return {power_of(c, o.a, o.b, o.dtype)};
}

template <const char* kOp>
Values binary(NodeContext& c) {
  Operands o = same_type(c);
  return {c.call(kOp, {o.a, o.b})};
}
constexpr char kMaximum[] = "maximum", kMinimum[] = "minimum", kLeftShift[] = "left_shift",
               kRightShift[] = "right_shift", kBitAnd[] = "bitwise_and", kBitOr[] = "bitwise_or",
               kBitXor[] = "bitwise_xor";

// The graph IR has no maximum and minimum of booleans.
template <const char* kOp>
Values extreme(NodeContext& c) {
  Operands o = same_type(c);
  if (!o.dtype.is_bool()) return {c.call(kOp, {o.a, o.b})};
  return {c.call(kOp == kMaximum ? "logical_or" : "logical_and", {o.a, o.b})};
}
// fmax and fmin: where one operand is NaN, the other.
template <const char* kOp>
Values extreme_number(NodeContext& c) {
  Operands o = same_type(c);
  Expr y = c.call(kOp, {o.a, o.b});
  if (!o.dtype.is_float()) return {y};
  return {c.where(c.call("isnan", {o.a}), o.b, c.where(c.call("isnan", {o.b}), o.a, y))};
}
template <const char* kOp>
Values bits(NodeContext& c) {
  Operands o = same_type(c);
  if (!o.dtype.is_bool()) return {c.call(kOp, {o.a, o.b})};
  return {c.call(kOp == kBitAnd ? "logical_and" : kOp == kBitOr ? "logical_or" : "logical_xor", {o.a, o.b})};
}
Values bitwise_not(NodeContext& c) {
  Expr x = c.tensor("self");
  return {c.call(c.dtype(x).is_bool() ? "logical_not" : "bitwise_not", {x})};
}

Values atan2(NodeContext& c) {
  Operands o = same_type(c, "self", "other", true);
  Expr y = o.a, x = o.b, zero = c.zero_like(x);
  Expr base = c.call("atan", {c.div(y, x)});
  Expr turn = c.where(c.call("less", {y, zero}), c.scalar_like(-M_PI, x), c.scalar_like(M_PI, x));
  Expr behind = c.where(c.call("less", {x, zero}), c.add(base, turn), base);
  Expr side = c.mul(c.call("sign", {y}), c.scalar_like(M_PI / 2, x));
  return {c.where(c.call("equal", {x, zero}), side, behind)};
}
Values hypot(NodeContext& c) {
  Operands o = same_type(c);
  return {c.call("sqrt", {c.add(c.mul(o.a, o.a), c.mul(o.b, o.b))})};
}
Values logaddexp(NodeContext& c) {
  Operands o = same_type(c, "self", "other", true);
  Expr high = c.call("maximum", {o.a, o.b}), apart = c.call("abs", {c.sub(o.a, o.b)});
  Expr tail = c.call("log", {c.add(c.scalar_like(1, high), c.call("exp", {c.call("negative", {apart})}))});
  return {c.where(c.call("equal", {o.a, o.b}), c.add(high, c.scalar_like(std::log(2.0), high)), c.add(high, tail))};
}

// self + value * tensor1 (*, /) tensor2
Values add_product(NodeContext& c, const char* op) {
  const Value &self = c.value("self"), &t1 = c.value("tensor1"), &t2 = c.value("tensor2");
  const DataType dtype = c.promoted({&self, &t1, &t2});
  Expr product = c.call(op, {c.as_tensor(t1, dtype), c.as_tensor(t2, dtype)});
  const double value = c.number("value", 1);
  if (value != 1) product = c.mul(product, c.scalar(value, dtype));
  return {c.add(c.as_tensor(self, dtype), product)};
}
Values addcmul(NodeContext& c) { return add_product(c, "multiply"); }
Values addcdiv(NodeContext& c) { return add_product(c, "divide"); }
Values lerp(NodeContext& c) {
  const Value &self = c.value("self"), &end = c.value("end"), &weight = c.value("weight");
  const DataType dtype = c.promoted({&self, &end});
  Expr a = c.as_tensor(self, dtype), b = c.as_tensor(end, dtype), w = c.as_tensor(weight, dtype);
  return {c.add(a, c.mul(w, c.sub(b, a)))};
}

// The result is a Python number: a Relay scalar of one of the dtypes that literals have.
Values as_number(Expr e) { return {Value::number(std::move(e))}; }
template <const char* kOp>
Values number_binary(NodeContext& c) {
  const Value &a = c.positional(0), &b = c.positional(1);
  if (!a.expr || !b.expr) c.fail_type("an operand is not a number");
  // With a tensor operand it is a tensor operator.
  const bool tensor = a.kind == Value::kTensor || b.kind == Value::kTensor;
  const bool any_float = c.dtype(a.expr).is_float() || c.dtype(b.expr).is_float();
  const DataType dtype = tensor ? c.promoted({&a, &b}) : any_float ? kFloat64 : kInt64;
  Expr y = c.call(kOp, {c.as_tensor(a, dtype), c.as_tensor(b, dtype)});
  return tensor ? Values{y} : as_number(y);
}
// Numbers, or element types, which are numbers in TorchScript.
template <const char* kOp, bool kSame>
Values number_equal(NodeContext& c) {
  const Value &a = c.positional(0), &b = c.positional(1);
  if (a.kind != Value::kDtype && b.kind != Value::kDtype) return number_binary<kOp>(c);
  const auto first = NodeContext::element_type(a), second = NodeContext::element_type(b);
  Tensor found = Tensor::zeros(kBool, {});
  found.set_int(0, ((first && second && *first == *second) == kSame) ? 1 : 0);
  return as_number(c.constant_of(std::move(found)));
}
constexpr char kAddOp[] = "add", kSubOp[] = "subtract", kMulOp[] = "multiply", kFloorDivOp[] = "floor_divide",
               kModOp[] = "floor_mod", kPowOp[] = "power", kEqOp[] = "equal", kNeOp[] = "not_equal", kLtOp[] = "less",
               kLeOp[] = "less_equal", kGtOp[] = "greater", kGeOp[] = "greater_equal";
Values number_divide(NodeContext& c) {
  const Value &a = c.positional(0), &b = c.positional(1);
  return as_number(c.div(c.as_tensor(a, kFloat64), c.as_tensor(b, kFloat64)));
}
Values number_negative(NodeContext& c) { return as_number(c.call("negative", {c.positional(0).expr})); }
Values number_not(NodeContext& c) { return as_number(c.call("logical_not", {c.cast(c.positional(0).expr, kBool)})); }
Values number_float(NodeContext& c) { return as_number(c.cast(c.positional(0).expr, kFloat64)); }
Values number_integer(NodeContext& c) {
  Expr e = c.positional(0).expr;
  return as_number(c.cast(c.dtype(e).is_float() ? c.call("trunc", {e}) : e, kInt64));
}
template <const char* kOp>
Values number_rounded(NodeContext& c) {
  Expr e = c.positional(0).expr;
  return as_number(c.dtype(e).is_float() ? c.cast(c.call(kOp, {e}), kInt64) : e);
}
template <const char* kOp>
Values number_function(NodeContext& c) {
  return as_number(c.call(kOp, {c.as_tensor(c.positional(0), kFloat64)}));
}
Values number_and(NodeContext& c) {
  return as_number(c.call("logical_and", {c.cast(c.positional(0).expr, kBool), c.cast(c.positional(1).expr, kBool)}));
}
Values number_or(NodeContext& c) {
  return as_number(c.call("logical_or", {c.cast(c.positional(0).expr, kBool), c.cast(c.positional(1).expr, kBool)}));
}

// One of two numbers.
Values number_choice(NodeContext& c) {
  const Value &yes = c.positional(1), &no = c.positional(2);
  if (!c.positional(0).expr || !yes.expr || !no.expr) c.fail_type("its operands are not numbers");
  return {Value::number(c.where(c.cast(c.positional(0).expr, kBool), yes.expr, c.cast(no.expr, c.dtype(yes.expr))))};
}

constexpr ConverterEntry kTable[] = {
    {"aten.exp", real_function<kExp>},
    {"aten.log", real_function<kLog>},
    {"aten.log2", real_function<kLog2>},
    {"aten.log10", real_function<kLog10>},
    {"aten.log1p", real_function<kLog1p>},
    {"aten.special_log1p", real_function<kLog1p>},
    {"aten.special_expm1", expm1},
    {"aten.special_exp2", exp2},
    {"aten.special_erf", real_function<kErf>},
    {"aten.special_logit", logit},
    {"aten.special_round", round},
    {"aten.absolute", same_function<kAbs>},
    {"aten.arcsin", real_function<kAsin>},
    {"aten.arccos", real_function<kAcos>},
    {"aten.arctan", real_function<kAtan>},
    {"aten.arcsinh", real_function<kAsinh>},
    {"aten.arccosh", real_function<kAcosh>},
    {"aten.arctanh", real_function<kAtanh>},
    {"aten.arctan2", atan2},
    {"aten.expm1", expm1},
    {"aten.exp2", exp2},
    {"aten.sqrt", real_function<kSqrt>},
    {"aten.rsqrt", real_function<kRsqrt>},
    {"aten.sin", real_function<kSin>},
    {"aten.cos", real_function<kCos>},
    {"aten.tan", real_function<kTan>},
    {"aten.asin", real_function<kAsin>},
    {"aten.acos", real_function<kAcos>},
    {"aten.atan", real_function<kAtan>},
    {"aten.sinh", real_function<kSinh>},
    {"aten.cosh", real_function<kCosh>},
    {"aten.tanh", real_function<kTanh>},
    {"aten.asinh", real_function<kAsinh>},
    {"aten.acosh", real_function<kAcosh>},
    {"aten.atanh", real_function<kAtanh>},
    {"aten.erf", real_function<kErf>},
    {"aten.sigmoid", real_function<kSigmoid>},
    {"aten.special_expit", real_function<kSigmoid>},
    {"aten.reciprocal", reciprocal},
    {"aten.square", square},
    {"aten.logit", logit},
    {"aten.abs", same_function<kAbs>},
    {"aten.neg", same_function<kNegative>},
    {"aten.negative", same_function<kNegative>},
    {"aten.sign", same_function<kSign>},
    {"aten.sgn", sgn},
    {"aten.ceil", rounding<kCeil>},
    {"aten.floor", rounding<kFloor>},
    {"aten.trunc", rounding<kTrunc>},
    {"aten.fix", rounding<kTrunc>},
    {"aten.round", round},
    {"aten.frac", frac},
    {"aten.add", add},
    {"aten.sub", subtract},
    {"aten.subtract", subtract},
    {"aten.rsub", reverse_subtract},
    {"aten.mul", multiply},
    {"aten.multiply", multiply},
    {"aten.div", divide},
    {"aten.divide", divide},
    {"aten.true_divide", divide},
    {"aten.floor_divide", floor_divide},
    {"aten.remainder", remainder},
    {"aten.fmod", fmod},
    {"aten.pow", power},
    {"aten.maximum", extreme<kMaximum>},
    {"aten.minimum", extreme<kMinimum>},
    {"aten.fmax", extreme_number<kMaximum>},
    {"aten.fmin", extreme_number<kMinimum>},
    {"aten.bitwise_and", bits<kBitAnd>},
    {"aten.bitwise_or", bits<kBitOr>},
    {"aten.bitwise_xor", bits<kBitXor>},
    {"aten.__and__", bits<kBitAnd>},
    {"aten.__or__", bits<kBitOr>},
    {"aten.__xor__", bits<kBitXor>},
    {"aten.bitwise_not", bitwise_not},
    {"aten.bitwise_left_shift", binary<kLeftShift>},
    {"aten.bitwise_right_shift", binary<kRightShift>},
    {"aten.__lshift__", binary<kLeftShift>},
    {"aten.__rshift__", binary<kRightShift>},
    {"aten.atan2", atan2},
    {"aten.hypot", hypot},
    {"aten.logaddexp", logaddexp},
    {"aten.addcmul", addcmul},
    {"aten.addcdiv", addcdiv},
    {"aten.lerp", lerp},
    {"operator.add", number_binary<kAddOp>},
    {"operator.sub", number_binary<kSubOp>},
    {"operator.mul", number_binary<kMulOp>},
    {"operator.floordiv", number_binary<kFloorDivOp>},
    {"operator.mod", number_binary<kModOp>},
    {"operator.pow", number_binary<kPowOp>},
    {"operator.truediv", number_divide},
    {"operator.neg", number_negative},
    {"operator.eq", number_equal<kEqOp, true>},
    {"operator.ne", number_equal<kNeOp, false>},
    {"operator.lt", number_binary<kLtOp>},
    {"operator.le", number_binary<kLeOp>},
    {"operator.gt", number_binary<kGtOp>},
    {"operator.ge", number_binary<kGeOp>},
    {"operator.and_", number_and},
    {"operator.or_", number_or},
    {"operator.not_", number_not},
    {"torch.sym_not", number_not},
    {"torch.sym_ite", number_choice},
    {"torch.sym_max", number_binary<kMaximum>},
    {"torch.sym_min", number_binary<kMinimum>},
    {"torch.sym_float", number_float},
    {"torch.sym_int", number_integer},
    {"math.ceil", number_rounded<kCeil>},
    {"math.floor", number_rounded<kFloor>},
    {"math.trunc", number_rounded<kTrunc>},
    {"math.sqrt", number_function<kSqrt>},
    {"math.exp", number_function<kExp>},
    {"math.log", number_function<kLog>},
};

}  // namespace
}  // namespace arithmetic

std::span<const ConverterEntry> arithmetic_converters() { return arithmetic::kTable; }

}  // namespace tilewright::torch
