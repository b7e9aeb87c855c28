// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one tensor.
#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

enum Domain { kFloats, kNumbers, kIntegers, kBools, kAll };

bool in_domain(DataType t, Domain domain) {
  switch (domain) {
    case kFloats:
      return t.is_float();
    case kNumbers:
      return t.is_float() || t.is_integral();
    case kIntegers:
      return t.is_integral() || t.is_bool();
    case kBools:
      return t.is_bool();
    case kAll:
      return true;
  }
  return false;
}

const char* domain_name(Domain domain) {
  switch (domain) {
    case kFloats:
      return "a floating dtype";
    case kNumbers:
      return "numbers";
    case kIntegers:
      return "integers or bool";
    case kBools:
      return "bool";
    case kAll:
      return "any dtype";
  }
  return "";
}

template <Domain kDomain>
Result<Type> same_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  if (!in_domain(t.dtype, kDomain))
    return type_error(format("it needs {}, not {}", domain_name(kDomain), t.dtype.str()));
  return args.types[0];
}

template <Domain kDomain>
Result<Type> bool_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  if (!in_domain(t.dtype, kDomain))
    return type_error(format("it needs {}, not {}", domain_name(kDomain), t.dtype.str()));
  return tensor_type(t.shape, kBool);
}

// y = f(x), bounded by how much f varies over [x - b, x + b], plus `ulps` rounding errors.
template <class F>
Value map_floats(const Value& in, DataType dtype, double ulps, F f) {
  Value out = make_value(dtype, in.shape);
  const size_t n = in.f.size();
  const double u = unit_roundoff(dtype) * ulps;
  for (size_t i = 0; i < n; ++i) out.f[i] = f(in.f[i]);
  if (in.bound.empty() && u == 0) return out;
  out.bound.resize(n);
  for (size_t i = 0; i < n; ++i) {
    double y = out.f[i], bound = u * std::fabs(y);
    if (!in.bound.empty() && in.bound[i] != 0) {
      double up = std::fabs(f(in.f[i] + in.bound[i]) - y), down = std::fabs(f(in.f[i] - in.bound[i]) - y);
      bound += std::fmax(up, down);  // ignores a NaN outside the domain
    }
    out.bound[i] = std::isfinite(y) ? bound : 0;
  }
  return out;
}

double relu(double x) { return x < 0 ? 0 : x; }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double negate(double x) { return -x; }
double half_even(double x) { return std::nearbyint(x); }
double half_away(double x) { return std::round(x); }
int64_t int_abs(int64_t x) { return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x; }
int64_t int_negate(int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }
int64_t int_relu(int64_t x) { return x < 0 ? 0 : x; }
int64_t int_sign(int64_t x) { return (x > 0) - (x < 0); }
int64_t same(int64_t x) { return x; }
int64_t flip_bits(int64_t x) { return ~x; }

// F is the float version, with its error in tenths of an ulp; I the integer version.
template <double (*F)(double), int kTenths, int64_t (*I)(int64_t) = same>
Result<std::vector<Value>> eval_unary(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  if (in.is_float()) return one(map_floats(in, in.dtype, kTenths / 10.0, [](double x) { return F(x); }));
  Value out = in;
  const bool unsigned64 = in.dtype == kUInt64;  // stored as bits: never negative
  for (int64_t& x : out.i)
    if (!unsigned64 || I == int_negate || I == flip_bits || I == int_sign)
      x = I == int_sign && unsigned64 ? x != 0 : wrap_int(in.dtype, I(x));
  if (in.dtype.is_bool() && I == flip_bits)
    for (size_t k = 0; k < out.i.size(); ++k) out.i[k] = !in.i[k];
  return one(std::move(out));
}

template <bool (*F)(double)>
Result<std::vector<Value>> eval_test(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  Value out = make_value(kBool, in.shape);
  for (size_t k = 0; k < out.i.size(); ++k) out.i[k] = in.is_float() ? F(in.f[k]) : F(0);
  return one(std::move(out));
}
bool is_nan(double x) { return std::isnan(x); }
bool is_inf(double x) { return std::isinf(x); }
bool is_finite(double x) { return std::isfinite(x); }

Result<std::vector<Value>> eval_logical_not(const EvalArgs& args) {
  Value out = args.inputs[0];
  for (int64_t& x : out.i) x = !x;
  return one(std::move(out));
}

Result<std::vector<Value>> eval_copy(const EvalArgs& args) { return one(args.inputs[0]); }

Result<std::vector<Value>> eval_clip(const EvalArgs& args) {
  const auto& a = args.as<ClipAttrs>();
  const Value& in = args.inputs[0];
  if (in.is_float())
    return one(map_floats(in, in.dtype, 0,
                          [&](double x) { return std::isnan(x) ? x : std::min(std::max(x, a.a_min), a.a_max); }));
  Value out = in;
  const bool u64 = in.dtype == kUInt64;
  for (int64_t& x : out.i) {
    double d = u64 ? static_cast<double>(static_cast<uint64_t>(x)) : static_cast<double>(x);
    if (d < a.a_min) {
      x = wrap_int(in.dtype, static_cast<int64_t>(std::ceil(a.a_min)));
      d = a.a_min;  // which may lie above a_max
    }
    if (d > a.a_max)
      x = u64 ? static_cast<int64_t>(static_cast<uint64_t>(a.a_max))
              : wrap_int(in.dtype, static_cast<int64_t>(std::floor(a.a_max)));
  }
  return one(std::move(out));
}

Result<std::vector<Value>> eval_leaky_relu(const EvalArgs& args) {
  const double alpha = args.as<LeakyReluAttrs>().alpha;
  return one(map_floats(args.inputs[0], args.inputs[0].dtype, 1, [alpha](double x) { return x < 0 ? alpha * x : x; }));
}

// The bound is relative to x, not to the result: that is the error of x * (1 + erf(x / sqrt(2))) / 2 in x's dtype.
Result<std::vector<Value>> eval_gelu(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  Value out = map_floats(in, in.dtype, 1, [](double x) {
    return std::isinf(x) ? std::fmax(x, 0) : 0.5 * x * std::erfc(-x * std::sqrt(0.5));
  });
  const double u = 6 * unit_roundoff(in.dtype);
  for (size_t i = 0; i < out.f.size(); ++i)
    if (std::isfinite(in.f[i])) out.bound[i] += u * std::fmin(std::fabs(in.f[i]), 6);
  return one(std::move(out));
}

// Reinterprets the bits as another dtype of the same width.
Result<Type> reinterpret_type(const TypeArgs& args) {
  const auto& t = args.tensor(0);
  const DataType to = attrs_of<CastAttrs>(args).dtype;
  if (t.dtype.is_string() || to.is_string() || t.dtype.bits != to.bits)
    return type_error(format("{} has another width than {}", t.dtype.str(), to.str()));
  return tensor_type(t.shape, to);
}
Result<std::vector<Value>> eval_reinterpret(const EvalArgs& args) {
  Tensor bytes = to_tensor(args.inputs[0]);
  return one(value_from(
      Tensor::view(args.as<CastAttrs>().dtype, bytes.shape(), bytes.raw(), std::make_shared<Tensor>(bytes))));
}

Result<Type> cast_type(const TypeArgs& args) {
  const DataType to = attrs_of<CastAttrs>(args).dtype;
  if (!to.is_bool() && !to.is_string()) TW_TRY_STATUS(number_dtype(to));
  return tensor_type(args.tensor(0).shape, attrs_of<CastAttrs>(args).dtype);
}

// Rounds to the dtype: casts are the one operator where narrow floats are rounded.
double round_to(Tensor* cell, double x) {
  cell->set_double(0, x);
  return cell->at_double(0);
}

std::string number_text(const Value& in, size_t k) {
  if (!in.is_float())
    return in.dtype == kUInt64 ? std::to_string(static_cast<uint64_t>(in.i[k])) : std::to_string(in.i[k]);
  double x = in.f[k];
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "INF" : "-INF";
  return in.dtype == kFloat64 ? format("{}", x) : format("{}", static_cast<float>(x));
}

Result<Value> cast_from_strings(const Value& in, DataType to) {
  Value out = make_value(to, in.shape);
  for (size_t k = 0; k < in.s.size(); ++k) {
    const char* text = in.s[k].c_str();
    char* end = nullptr;
    double x = std::strtod(text, &end);
    if (end == text || *end) return eval_error(format("cast: \"{}\" is not a number", in.s[k]));
    if (to.is_float())
      out.f[k] = x;
    else
      out.i[k] = to.is_integral() && in.s[k].find_first_of(".eEnN") == std::string::npos
                     ? wrap_int(to, std::strtoll(text, nullptr, 10))
                     : float_to_int(to, x);
  }
  return out;
}

Result<std::vector<Value>> eval_cast(const EvalArgs& args) {
  const Value& in = args.inputs[0];
  const DataType to = args.as<CastAttrs>().dtype;
  if (in.dtype == to) return one(in);
  if (in.dtype.is_string()) return one(TW_TRY(cast_from_strings(in, to)));
  Value out = make_value(to, in.shape);
  const size_t n = static_cast<size_t>(in.size());
  Tensor cell = to.is_string() ? Tensor() : Tensor::zeros(to, {});
  const bool narrow = to.is_float() && to.bits < 64;
  const double u = unit_roundoff(to);
  if (narrow && unit_roundoff(in.is_float() ? in.dtype : kInt64) < u) out.bound.resize(n);
  if (!in.bound.empty() && to.is_float()) out.bound.resize(n);
  for (size_t k = 0; k < n; ++k) {
    if (to.is_string()) {
      out.s[k] = number_text(in, k);
    } else if (to.is_float()) {
      double x = in.is_float()         ? in.f[k]
                 : in.dtype == kUInt64 ? static_cast<double>(static_cast<uint64_t>(in.i[k]))
                                       : static_cast<double>(in.i[k]);
      out.f[k] = narrow ? round_to(&cell, x) : x;
      if (!out.bound.empty()) {
        double b = bound_at(in, static_cast<int64_t>(k));
        // Only a value that already carries an error may round to another neighbour.
        out.bound[k] = b == 0 ? 0 : b + 2 * u * std::fabs(x);
      }
    } else {
      out.i[k] = in.is_float() ? float_to_int(to, in.f[k]) : wrap_int(to, in.i[k]);
    }
  }
  return one(std::move(out));
}

OpDef unary(const char* name, const char* doc, Result<Type> (*type)(const TypeArgs&),
            Result<std::vector<Value>> (*eval)(const EvalArgs&)) {
  return define_op(name, doc, {{"data", "any shape"}}, OpPattern::kElemWise, type, eval, nullptr);
}

}  // namespace

std::vector<OpDef> elementwise_ops() {
  std::vector<OpDef> ops;
// The arguments after the slope are facts.
#define TW_UNARY(name, text, domain, f, tenths, ...) \
  ops.push_back(unary(name, text, same_type<domain>, eval_unary<f, tenths>).with({__VA_ARGS__}));
  TW_UNARY("acos", "Arc cosine in radians. Floats.", kFloats, std::acos, 40)
  TW_UNARY("acosh", "Inverse hyperbolic cosine. Floats.", kFloats, std::acosh, 40)
  TW_UNARY("asin", "Arc sine in radians. Floats.", kFloats, std::asin, 40)
  TW_UNARY("asinh", "Inverse hyperbolic sine. Floats.", kFloats, std::asinh, 40)
  TW_UNARY("atan", "Arc tangent in radians. Floats.", kFloats, std::atan, 40)
  TW_UNARY("atanh", "Inverse hyperbolic tangent. Floats.", kFloats, std::atanh, 40)
  TW_UNARY("ceil", "The least integer not below x.", kNumbers, std::ceil, 0, .rounds = true)
  TW_UNARY("cos", "Cosine of radians. Floats.", kFloats, std::cos, 40)
  TW_UNARY("cosh", "Hyperbolic cosine. Floats.", kFloats, std::cosh, 40)
  TW_UNARY("erf", "The error function. Floats.", kFloats, std::erf, 40, .keeps_finite = true, .fast_form = "fast_erf")
  TW_UNARY("exp", "e to the power x. Floats.", kFloats, std::exp, 40, .fast_form = "fast_exp")
  // The polynomial approximations that FastMath selects. The plain operators' kernels are polynomials too, and share
  // them.
  TW_UNARY("fast_erf", "The error function, approximated. Floats.", kFloats, std::erf, 40)
  TW_UNARY("fast_exp", "e to the power x, approximated. Floats.", kFloats, std::exp, 40)
  TW_UNARY("fast_tanh", "Hyperbolic tangent, approximated. Floats.", kFloats, std::tanh, 40)
  TW_UNARY("floor", "The greatest integer not above x.", kNumbers, std::floor, 0, .rounds = true)
  TW_UNARY("log", "Natural logarithm. Floats.", kFloats, std::log, 40)
  TW_UNARY("log10", "Decimal logarithm. Floats.", kFloats, std::log10, 40)
  TW_UNARY("log1p", "log(1 + x), accurate for small x, too (ours). Floats.", kFloats, std::log1p, 40)
  TW_UNARY("log2", "Binary logarithm. Floats.", kFloats, std::log2, 40)
  TW_UNARY("nearbyint", "The nearest integer, halves to even (IEEE and ONNX; ours).", kNumbers, half_even, 0,
           .rounds = true)
  TW_UNARY("round", "The nearest integer, halves away from zero.", kNumbers, half_away, 0, .rounds = true)
  TW_UNARY("rsqrt", "1 / sqrt(x). Floats.", kFloats, rsqrt, 20)
  TW_UNARY("sigmoid", "1 / (1 + exp(-x)). Floats.", kFloats, sigmoid, 40, .narrowing = Narrowing::kFollows,
           .keeps_finite = true)
  TW_UNARY("sin", "Sine of radians. Floats.", kFloats, std::sin, 40)
  TW_UNARY("sinh", "Hyperbolic sine. Floats.", kFloats, std::sinh, 40)
  TW_UNARY("sqrt", "Square root. Floats.", kFloats, std::sqrt, 10, .narrowing = Narrowing::kFollows)
  TW_UNARY("tan", "Tangent of radians. Floats.", kFloats, std::tan, 40)
  TW_UNARY("tanh", "Hyperbolic tangent. Floats.", kFloats, std::tanh, 40, .narrowing = Narrowing::kFollows,
           .keeps_finite = true, .fast_form = "fast_tanh")
  TW_UNARY("trunc", "x rounded towards zero.", kNumbers, std::trunc, 0, .rounds = true)
#undef TW_UNARY
  ops.push_back(unary("abs", "Absolute value (the most negative integer wraps).", same_type<kNumbers>,
                      eval_unary<std::fabs, 0, int_abs>)
                    .with({.narrowing = Narrowing::kFollows, .keeps_finite = true}));
  ops.push_back(unary("negative", "-x (integers wrap).", same_type<kNumbers>, eval_unary<negate, 0, int_negate>)
                    .with({.narrowing = Narrowing::kFollows, .scaling = Scaling::kLinear, .keeps_finite = true}));
  ops.push_back(unary("nn.relu", "max(x, 0); NaN stays.", same_type<kNumbers>, eval_unary<relu, 0, int_relu>)
                    .with({.narrowing = Narrowing::kFollows, .scaling = Scaling::kPositive, .keeps_finite = true}));
  ops.push_back(unary("sign", "-1, 0 or 1; NaN stays.", same_type<kNumbers>, eval_unary<sign, 0, int_sign>));
  ops.push_back(unary("bitwise_not", "Every bit flipped; of bool, the other value.", same_type<kIntegers>,
                      eval_unary<negate, 0, flip_bits>));
  ops.push_back(unary("logical_not", "not x. Bool.", same_type<kBools>, eval_logical_not));
  ops.push_back(unary("copy", "The same values.", same_type<kAll>, eval_copy)
                    .with({.elements = Elements::kSame, .narrowing = Narrowing::kFollows, .keeps_finite = true}));
  ops.push_back(unary("isnan", "Whether x is NaN, as bool.", bool_type<kNumbers>, eval_test<is_nan>));
  ops.push_back(unary("isinf", "Whether x is an infinity, as bool.", bool_type<kNumbers>, eval_test<is_inf>));
  ops.push_back(
      unary("isfinite", "Whether x is neither infinite nor NaN, as bool.", bool_type<kNumbers>, eval_test<is_finite>));
  auto with_attrs = [&](OpDef op, AttrsRef (*make)()) {
    op.make_attrs = make;
    ops.push_back(std::move(op));
  };
  ops.push_back(unary("nn.gelu", "x * (1 + erf(x / sqrt(2))) / 2, within a few roundings of x. Floats.",
                      same_type<kFloats>, eval_gelu)
                    .with({.keeps_finite = true}));
  with_attrs(unary("clip", "x limited to [a_min, a_max]; NaN stays.", same_type<kNumbers>, eval_clip)
                 .with({.narrowing = Narrowing::kFollows, .keeps_finite = true}),
             make_default_attrs<ClipAttrs>);
  with_attrs(unary("nn.leaky_relu", "x, or alpha * x below zero. Floats.", same_type<kFloats>, eval_leaky_relu)
                 .with({.narrowing = Narrowing::kFollows, .scaling = Scaling::kPositive, .keeps_finite = true}),
             make_default_attrs<LeakyReluAttrs>);
  with_attrs(
      unary("cast",
            "The value in another dtype: floats round to nearest even, float to integer truncates, integers wrap.",
            cast_type, eval_cast),
      make_default_attrs<CastAttrs>);
  with_attrs(unary("reinterpret", "The bytes of every element read as another dtype of the same width.",
                   reinterpret_type, eval_reinterpret),
             make_default_attrs<CastAttrs>);
  return ops;
}

}  // namespace tilewright::relay
