// SPDX-License-Identifier: Apache-2.0
// Operators of two or three tensors with numpy broadcasting.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/nn/weight_types.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Result<Shape> operands_shape(const TypeArgs& args) {
  const auto &a = args.tensor(0), &b = args.tensor(1);
  if (a.dtype != b.dtype)
    return type_error(format("operands are {} and {}", type_str(args.types[0]), type_str(args.types[1])),
                      "cast one of them");
  return broadcast_shapes(a.shape, b.shape);
}

Result<Type> arithmetic_type(const TypeArgs& args) {
  Shape shape = TW_TRY(operands_shape(args));
  DataType t = args.tensor(0).dtype;
  if (!t.is_float() && !t.is_integral()) return type_error(format("it needs numbers, not {}", t.str()));
  return tensor_type(std::move(shape), t);
}
Result<Type> comparison_type(const TypeArgs& args) { return tensor_type(TW_TRY(operands_shape(args)), kBool); }
Result<Type> logical_type(const TypeArgs& args) {
  Shape shape = TW_TRY(operands_shape(args));
  DataType t = args.tensor(0).dtype;
  if (!t.is_bool()) return type_error(format("it needs bool, not {}", t.str()));
  return tensor_type(std::move(shape), t);
}
Result<Type> bitwise_type(const TypeArgs& args) {
  Shape shape = TW_TRY(operands_shape(args));
  DataType t = args.tensor(0).dtype;
  if (!t.is_integral() && !t.is_bool()) return type_error(format("it needs integers or bool, not {}", t.str()));
  return tensor_type(std::move(shape), t);
}

// Calls fn(out index, a index, b index); common layouts take plain loops.
template <class F>
void walk_pair(const Value& a, const Value& b, const std::vector<int64_t>& shape, F&& fn) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  if (a.shape == b.shape) {
    for (int64_t i = 0; i < n; ++i) fn(i, i, i);
  } else if (b.size() == 1 && a.size() == n) {
    for (int64_t i = 0; i < n; ++i) fn(i, i, int64_t{0});
  } else {
    walk<2>(shape, {broadcast_strides(a.shape, shape), broadcast_strides(b.shape, shape)},
            [&](int64_t o, const int64_t* at) { fn(o, at[0], at[1]); });
  }
}

// Adds independent errors: linear growth would double the bound in every residual block.
double independent(double ba, double bb) { return ba == 0 ? bb : bb == 0 ? ba : std::sqrt(ba * ba + bb * bb); }

struct Add {
  static double f(double a, double b) { return a + b; }
  static double bound(double, double, double, double ba, double bb) { return independent(ba, bb); }
  static uint64_t i(uint64_t a, uint64_t b) { return a + b; }
};
struct Subtract {
  static double f(double a, double b) { return a - b; }
  static double bound(double, double, double, double ba, double bb) { return independent(ba, bb); }
  static uint64_t i(uint64_t a, uint64_t b) { return a - b; }
};
struct Multiply {
  static double f(double a, double b) { return a * b; }
  static double bound(double a, double b, double, double ba, double bb) {
    return std::fabs(a) * bb + std::fabs(b) * ba + ba * bb;
  }
  static uint64_t i(uint64_t a, uint64_t b) { return a * b; }
};
template <double (*F)(double, double)>
double corners(double a, double b, double y, double ba, double bb) {
  double worst = 0;
  for (double x : {F(a + ba, b + bb), F(a + ba, b - bb), F(a - ba, b + bb), F(a - ba, b - bb)})
    worst = std::fmax(worst, std::fabs(x - y));
  return worst;
}
struct Divide {
  static double f(double a, double b) { return a / b; }
  static double bound(double, double b, double y, double ba, double bb) {
    if (ba == 0 && bb == 0) return 0;
    double low = std::fabs(b) - bb;
    return low > 0 ? (ba + std::fabs(y) * bb) / low : HUGE_VAL;
  }
};
struct Maximum {
  static double f(double a, double b) { return std::isnan(a) || a > b ? a : b; }
  static double bound(double, double, double, double ba, double bb) { return std::fmax(ba, bb); }
};
struct Minimum {
  static double f(double a, double b) { return std::isnan(a) || a < b ? a : b; }
  static double bound(double, double, double, double ba, double bb) { return std::fmax(ba, bb); }
};
struct Power {
  static double f(double a, double b) { return std::pow(a, b); }
  static double bound(double a, double b, double y, double ba, double bb) {
    return ba == 0 && bb == 0 ? 0 : corners<f>(a, b, y, ba, bb);
  }
};
struct TruncMod {
  static double f(double a, double b) { return std::fmod(a, b); }
  static double bound(double a, double b, double y, double ba, double bb) {
    return ba == 0 && bb == 0 ? 0 : corners<f>(a, b, y, ba, bb);
  }
};
struct FloorMod {
  static double f(double a, double b) {
    double m = std::fmod(a, b);
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
  }
  static double bound(double a, double b, double y, double ba, double bb) {
    return ba == 0 && bb == 0 ? 0 : corners<f>(a, b, y, ba, bb);
  }
};
struct FloorDivide {
  static double f(double a, double b) { return std::floor(a / b); }
  static double bound(double a, double b, double y, double ba, double bb) {
    return ba == 0 && bb == 0 ? 0 : corners<f>(a, b, y, ba, bb);
  }
};
struct TruncDivide {
  static double f(double a, double b) { return std::trunc(a / b); }
  static double bound(double a, double b, double y, double ba, double bb) {
    return ba == 0 && bb == 0 ? 0 : corners<f>(a, b, y, ba, bb);
  }
};

// Integer counterparts: exact, signed or unsigned; `ok` turns false on a division by zero.
enum IntKind {
  kAdd,
  kSub,
  kMul,
  kTruncDiv,
  kFloorDiv,
  kTruncMod,
  kFloorMod,
  kPow,
  kMax,
  kMin,
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr
};

int64_t int_op(IntKind kind, int64_t a, int64_t b, bool is_unsigned, int bits, bool* ok) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (kind) {
    case kAdd:
      return static_cast<int64_t>(ua + ub);
    case kSub:
      return static_cast<int64_t>(ua - ub);
    case kMul:
      return static_cast<int64_t>(ua * ub);
    case kTruncDiv:
    case kFloorDiv:
    case kTruncMod:
    case kFloorMod: {
      if (b == 0) {
        *ok = false;
        return 0;
      }
      if (is_unsigned) return static_cast<int64_t>(kind == kTruncDiv || kind == kFloorDiv ? ua / ub : ua % ub);
      if (b == -1) return kind == kTruncDiv || kind == kFloorDiv ? static_cast<int64_t>(-ua) : 0;
      int64_t q = a / b, r = a % b;
      bool adjust = r != 0 && (r < 0) != (b < 0);
      if (kind == kTruncDiv) return q;
      if (kind == kFloorDiv) return adjust ? q - 1 : q;
      return kind == kFloorMod && adjust ? r + b : r;
    }
    case kPow: {
      if (!is_unsigned && b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
      uint64_t out = 1;
      for (; ub; ub >>= 1, ua *= ua)
        if (ub & 1) out *= ua;
      return static_cast<int64_t>(out);
    }
    case kMax:
      return (is_unsigned ? ua > ub : a > b) ? a : b;
    case kMin:
      return (is_unsigned ? ua < ub : a < b) ? a : b;
    case kAnd:
      return a & b;
    case kOr:
      return a | b;
    case kXor:
      return a ^ b;
    case kShl:
      return ub >= static_cast<uint64_t>(bits) ? 0 : static_cast<int64_t>(ua << ub);
    case kShr:
      if (ub >= static_cast<uint64_t>(bits)) return is_unsigned || a >= 0 ? 0 : -1;
      return is_unsigned ? static_cast<int64_t>(ua >> ub) : a >> b;
  }
  return 0;
}

template <IntKind kKind>
Result<std::vector<Value>> eval_int(const EvalArgs& args) {
  const Value &a = args.inputs[0], &b = args.inputs[1];
  Value out = out_value(args);
  bool ok = true;
  const DataType t = a.dtype;
  const bool is_unsigned = t.is_uint() || t.is_bool();
  walk_pair(a, b, out.shape, [&](int64_t o, int64_t x, int64_t y) {
    out.i[o] = wrap_int(t, int_op(kKind, a.i[x], b.i[y], is_unsigned, t.bits, &ok));
  });
  if (!ok) return eval_error("integer division by zero");
  return one(std::move(out));
}

template <class Op, IntKind kKind, int kUlps = 1>
Result<std::vector<Value>> eval_arithmetic(const EvalArgs& args) {
  const Value &a = args.inputs[0], &b = args.inputs[1];
  if (!a.is_float()) return eval_int<kKind>(args);
  Value out = out_value(args);
  out.bound.resize(out.f.size());
  const double u = unit_roundoff(a.dtype) * kUlps;
  walk_pair(a, b, out.shape, [&](int64_t o, int64_t x, int64_t y) {
    double value = Op::f(a.f[x], b.f[y]);
    out.f[o] = value;
    double bound = Op::bound(a.f[x], b.f[y], value, bound_at(a, x), bound_at(b, y)) + u * std::fabs(value);
    out.bound[o] = std::isfinite(value) ? bound : 0;
  });
  return one(std::move(out));
}

enum CompareKind { kEq, kNe, kLt, kLe, kGt, kGe };
template <CompareKind kKind, class T>
bool holds(const T& a, const T& b) {
  switch (kKind) {
    case kEq:
      return a == b;
    case kNe:
      return a != b;
    case kLt:
      return a < b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    case kGe:
      return a >= b;
  }
  return false;
}
template <CompareKind kKind>
Result<std::vector<Value>> eval_compare(const EvalArgs& args) {
  const Value &a = args.inputs[0], &b = args.inputs[1];
  Value out = out_value(args);
  walk_pair(a, b, out.shape, [&](int64_t o, int64_t x, int64_t y) {
    if (a.is_float())
      out.i[o] = holds<kKind>(a.f[x], b.f[y]);
    else if (a.dtype.is_string())
      out.i[o] = holds<kKind>(a.s[x], b.s[y]);
    else if (a.dtype == kUInt64)
      out.i[o] = holds<kKind>(static_cast<uint64_t>(a.i[x]), static_cast<uint64_t>(b.i[y]));
    else
      out.i[o] = holds<kKind>(a.i[x], b.i[y]);
  });
  return one(std::move(out));
}

Result<Type> where_type(const TypeArgs& args) {
  const auto &c = args.tensor(0), &x = args.tensor(1), &y = args.tensor(2);
  if (!c.dtype.is_bool()) return type_error(format("the condition is {}, not bool", c.dtype.str()));
  if (x.dtype != y.dtype)
    return type_error(format("operands are {} and {}", type_str(args.types[1]), type_str(args.types[2])),
                      "cast one of them");
  return tensor_type(TW_TRY(broadcast_shapes(TW_TRY(broadcast_shapes(c.shape, x.shape)), y.shape)), x.dtype);
}

Result<std::vector<Value>> eval_where(const EvalArgs& args) {
  const Value &c = args.inputs[0], &x = args.inputs[1], &y = args.inputs[2];
  Value out = out_value(args);
  if (!x.bound.empty() || !y.bound.empty()) out.bound.resize(out.f.size());
  walk<3>(out.shape,
          {broadcast_strides(c.shape, out.shape), broadcast_strides(x.shape, out.shape),
           broadcast_strides(y.shape, out.shape)},
          [&](int64_t o, const int64_t* at) {
            const Value& from = c.i[at[0]] ? x : y;
            const int64_t k = c.i[at[0]] ? at[1] : at[2];
            if (from.is_float()) {
              out.f[o] = from.f[k];
              if (!out.bound.empty()) out.bound[o] = bound_at(from, k);
            } else if (from.dtype.is_string()) {
              out.s[o] = from.s[k];
            } else {
              out.i[o] = from.i[k];
            }
          });
  return one(std::move(out));
}

// The second operand of bias_add and prelu: a vector along one axis of the first.
Result<Type> along_axis_type(const TypeArgs& args, int64_t axis, const char* what) {
  const auto &x = args.tensor(0), &v = args.tensor(1);
  if (x.dtype != v.dtype) return type_error(format("data is {} but the {} is {}", x.dtype.str(), what, v.dtype.str()));
  TW_TRY_STATUS(number_dtype(x.dtype));
  int64_t k = TW_TRY(checked_axis(axis, x.shape.size()));
  if (v.shape.size() != 1 || dims_differ(v.shape[0], x.shape[k]))
    return type_error(format("the {} is {}, but axis {} of the data {} has {}", what, shape_str(v.shape), k,
                             shape_str(x.shape), x.shape[k].str()));
  return args.types[0];
}
Result<Type> bias_add_type(const TypeArgs& args) {
  return along_axis_type(args, attrs_of<BiasAddAttrs>(args).axis, "bias");
}
Result<Type> prelu_type(const TypeArgs& args) {
  return along_axis_type(args, attrs_of<PReluAttrs>(args).axis, "slope");
}

// A vector as a tensor that broadcasts along `axis` of `shape`.
Value along(const Value& vector, int64_t axis, const std::vector<int64_t>& shape) {
  auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> view(shape.size(), 1);
  view[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = vector.size();
  return reshaped(vector, std::move(view));
}

Result<std::vector<Value>> eval_bias_add(const EvalArgs& args) {
  const Value inputs[] = {args.inputs[0], along(args.inputs[1], args.as<BiasAddAttrs>().axis, args.inputs[0].shape)};
  return eval_arithmetic<Add, kAdd>(EvalArgs{inputs, args.attrs, args.out_type});
}

struct PRelu {
  static double f(double x, double slope) { return x < 0 ? slope * x : x; }
  static double bound(double x, double slope, double, double bx, double bs) {
    return x < 0 ? std::fabs(slope) * bx + std::fabs(x) * bs + bx * bs : std::fmax(1, std::fabs(slope)) * bx;
  }
};
Result<std::vector<Value>> eval_prelu(const EvalArgs& args) {
  const Value inputs[] = {args.inputs[0], along(args.inputs[1], args.as<PReluAttrs>().axis, args.inputs[0].shape)};
  return eval_arithmetic<PRelu, kMul>(EvalArgs{inputs, args.attrs, args.out_type});
}
Result<Type> float_prelu_type(const TypeArgs& args) {
  if (!args.tensor(0).dtype.is_float())
    return type_error(format("it needs a floating dtype, not {}", args.tensor(0).dtype.str()));
  return prelu_type(args);
}

OpDef binary(const char* name, const char* doc, Result<Type> (*type)(const TypeArgs&),
             Result<std::vector<Value>> (*eval)(const EvalArgs&)) {
  return define_op(name, doc, {{"lhs", "any shape"}, {"rhs", "the same dtype, a shape that broadcasts"}},
                   OpPattern::kBroadcast, type, eval, nullptr);
}

}  // namespace

std::vector<OpDef> broadcast_ops() {
  std::vector<OpDef> ops = {
      binary("add", "lhs + rhs; integers wrap.", arithmetic_type, eval_arithmetic<Add, kAdd>)
          .with({.narrowing = Narrowing::kFollows, .keeps_finite = true}),
      binary("subtract", "lhs - rhs; integers wrap.", arithmetic_type, eval_arithmetic<Subtract, kSub>)
          .with({.narrowing = Narrowing::kFollows, .keeps_finite = true}),
      binary("multiply", "lhs * rhs; integers wrap.", arithmetic_type, eval_arithmetic<Multiply, kMul>)
          .with({.narrowing = Narrowing::kFollows, .keeps_finite = true}),
      binary("divide", "lhs / rhs; integers truncate towards zero.", arithmetic_type,
             eval_arithmetic<Divide, kTruncDiv>)
          .with({.narrowing = Narrowing::kFollows}),
      binary("floor_divide", "floor(lhs / rhs).", arithmetic_type, eval_arithmetic<FloorDivide, kFloorDiv>),
      binary("trunc_divide", "trunc(lhs / rhs).", arithmetic_type, eval_arithmetic<TruncDivide, kTruncDiv>),
      binary("mod", "The remainder with the sign of lhs (C's fmod).", arithmetic_type,
             eval_arithmetic<TruncMod, kTruncMod>),
      binary("trunc_mod", "The remainder with the sign of lhs.", arithmetic_type, eval_arithmetic<TruncMod, kTruncMod>),
      binary("floor_mod", "The remainder with the sign of rhs (numpy's mod).", arithmetic_type,
             eval_arithmetic<FloorMod, kFloorMod>),
      binary("power", "lhs to the power rhs; integers wrap.", arithmetic_type, eval_arithmetic<Power, kPow, 8>),
      binary("maximum", "The larger; NaN wins.", arithmetic_type, eval_arithmetic<Maximum, kMax, 0>)
          .with({.narrowing = Narrowing::kFollows, .keeps_finite = true}),
      binary("minimum", "The smaller; NaN wins.", arithmetic_type, eval_arithmetic<Minimum, kMin, 0>)
          .with({.narrowing = Narrowing::kFollows, .keeps_finite = true}),
      binary("equal", "lhs == rhs as bool.", comparison_type, eval_compare<kEq>),
      binary("not_equal", "lhs != rhs as bool.", comparison_type, eval_compare<kNe>),
      binary("less", "lhs < rhs as bool.", comparison_type, eval_compare<kLt>),
      binary("less_equal", "lhs <= rhs as bool.", comparison_type, eval_compare<kLe>),
      binary("greater", "lhs > rhs as bool.", comparison_type, eval_compare<kGt>),
      binary("greater_equal", "lhs >= rhs as bool.", comparison_type, eval_compare<kGe>),
      binary("logical_and", "lhs and rhs. Bool.", logical_type, eval_int<kAnd>),
      binary("logical_or", "lhs or rhs. Bool.", logical_type, eval_int<kOr>),
      binary("logical_xor", "lhs unlike rhs. Bool.", logical_type, eval_int<kXor>),
      binary("bitwise_and", "Bits of both.", bitwise_type, eval_int<kAnd>),
      binary("bitwise_or", "Bits of either.", bitwise_type, eval_int<kOr>),
      binary("bitwise_xor", "Bits of exactly one.", bitwise_type, eval_int<kXor>),
      binary("left_shift", "lhs << rhs; 0 when rhs is the width or more.", bitwise_type, eval_int<kShl>),
      binary("right_shift", "lhs >> rhs; arithmetic for signed integers.", bitwise_type, eval_int<kShr>),
  };
  OpDef where = binary("where", "x where the condition holds, else y; all three broadcast.", where_type, eval_where)
                    .with({.elements = Elements::kMoved, .narrowing = Narrowing::kFollows});
  where.num_inputs = 3;
  where.args = {{"condition", "bool"}, {"x", "any dtype"}, {"y", "x's dtype"}};
  ops.push_back(std::move(where));
  OpDef bias = binary("nn.bias_add", "data + bias, the bias running along `axis`.", bias_add_type, eval_bias_add)
                   .with({.narrowing = Narrowing::kFollows, .operand_type = weight_along_axis<BiasAddAttrs>});
  bias.args = {{"data", "any shape"}, {"bias", "a vector of that axis' size"}};
  bias.make_attrs = make_default_attrs<BiasAddAttrs>;
  ops.push_back(std::move(bias));
  OpDef prelu = binary("nn.prelu", "x, or slope * x below zero, the slope running along `axis`. Floats.",
                       float_prelu_type, eval_prelu)
                    .with({.narrowing = Narrowing::kFollows, .operand_type = weight_along_axis<PReluAttrs>});
  prelu.args = {{"data", "any shape"}, {"alpha", "a vector of that axis' size"}};
  prelu.make_attrs = make_default_attrs<PReluAttrs>;
  ops.push_back(std::move(prelu));
  return ops;
}

}  // namespace tilewright::relay
