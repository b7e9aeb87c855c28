// SPDX-License-Identifier: Apache-2.0
// Quantised operators: real = scale * (integer - zero point). CanonicalizeQnn expresses them by plain operators; the
// references here compute their definition.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/ops/quantize/fixed_point.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Result<DataType> quantized_dtype(const std::string& name) {
  DataType dtype = TW_TRY(dtype_or(name, kInt8));
  if (!dtype.is_integral() || dtype.bits > 32 || dtype.bits < 8)
    return type_error(format("out_dtype is \"{}\", not an integer of 8 to 32 bits", name));
  return dtype;
}
Status integer_operand(const TypeArgs& args, size_t i) {
  if (!args.tensor(i).dtype.is_integral())
    return type_error(format("operand {} is {}, not quantised integers", i, type_str(args.types[i])));
  return Ok{};
}

// Checks a scale (float) and zero point (integer), each a scalar or a vector along `axis` of `shape`; a null shape
// accepts scalars only.
Status scale_and_zero(const TypeArgs& args, size_t scale, size_t zero, const Shape* shape, int64_t axis) {
  for (size_t i : {scale, zero}) {
    const auto& t = args.tensor(i);
    const bool right = i == scale ? t.dtype.is_float() : t.dtype.is_integral();
    if (!right) return type_error(format("the {} is {}", i == scale ? "scale" : "zero point", type_str(args.types[i])));
    if (t.shape.empty() || (t.shape.size() == 1 && t.shape[0] == Dim(1))) continue;
    if (!shape || t.shape.size() != 1)
      return type_error(format("the {} {} is not a {}", i == scale ? "scale" : "zero point", shape_str(t.shape),
                               shape ? "scalar or vector" : "scalar"));
    const int64_t k = TW_TRY(checked_axis(axis, shape->size()));
    if (dims_differ((*shape)[k], t.shape[0]))
      return type_error(format("the {} has {} values for axis {} of {}", i == scale ? "scale" : "zero point",
                               t.shape[0].str(), k, shape_str(*shape)));
  }
  return Ok{};
}

// The scale or zero point of a channel.
double parameter(const Value& v, int64_t channel) {
  const size_t i = v.size() == 1 ? 0 : static_cast<size_t>(channel);
  return v.is_float() ? v.f[i] : static_cast<double>(v.i[i]);
}

// Calls fn(element, index along the axis).
template <class F>
void along_axis(const std::vector<int64_t>& shape, int64_t axis, F&& fn) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  // Per-tensor scales may come with any axis.
  const size_t k = axis < 0 || axis >= rank ? 0 : static_cast<size_t>(axis);
  const int64_t total = product(shape, 0, shape.size()), inner = rank ? product(shape, k + 1, shape.size()) : 1,
                extent = rank ? shape[k] : 1;
  for (int64_t j = 0; j < total; ++j) fn(j, inner ? j / inner % extent : 0);
}

int64_t saturate(DataType t, double x) {
  if (std::isnan(x)) return 0;
  if (x >= static_cast<double>(highest(t))) return highest(t);  // 2^63 is representable as double but not as int64
  return x <= static_cast<double>(lowest(t)) ? lowest(t) : static_cast<int64_t>(x);
}

double round_upward(double x) { return std::floor(x + 0.5); }

Value quantized(const Value& real, const Value& scale, const Value& zero, int64_t axis, DataType dtype,
                bool even = false) {
  Value out = make_value(dtype, real.shape);
  along_axis(real.shape, axis, [&](int64_t j, int64_t c) {
    const double steps = real.f[j] / parameter(scale, c);
    out.i[j] = saturate(dtype, (even ? std::nearbyint(steps) : std::round(steps)) + parameter(zero, c));
  });
  return out;
}
Value dequantized(const Value& x, const Value& scale, const Value& zero, int64_t axis, DataType dtype) {
  Value out = make_value(dtype, x.shape);
  out.bound.resize(out.f.size());
  const double u = unit_roundoff(dtype);
  along_axis(x.shape, axis, [&](int64_t j, int64_t c) {
    out.f[j] = (static_cast<double>(x.i[j]) - parameter(zero, c)) * parameter(scale, c);
    out.bound[j] = 2 * u * std::fabs(out.f[j]);
  });
  return out;
}

Result<Type> quantize_type(const TypeArgs& args) {
  const auto& a = attrs_of<QuantizeAttrs>(args);
  const auto& x = args.tensor(0);
  if (!x.dtype.is_float()) return type_error(format("the data is {}, not floats", type_str(args.types[0])));
  TW_TRY_STATUS(scale_and_zero(args, 1, 2, &x.shape, a.axis));
  if (a.rounding != "TONEAREST" && a.rounding != "TONEVEN")
    return type_error(format("rounding is \"{}\", not TONEAREST or TONEVEN", a.rounding));
  return tensor_type(x.shape, TW_TRY(quantized_dtype(a.out_dtype)));
}
Result<std::vector<Value>> eval_quantize(const EvalArgs& args) {
  const auto& a = args.as<QuantizeAttrs>();
  return one(quantized(args.inputs[0], args.inputs[1], args.inputs[2], a.axis, out_tensor(args).dtype,
                       a.rounding == "TONEVEN"));
}

Result<Type> dequantize_type(const TypeArgs& args) {
  const auto& a = attrs_of<DequantizeAttrs>(args);
  TW_TRY_STATUS(integer_operand(args, 0));
  TW_TRY_STATUS(scale_and_zero(args, 1, 2, &args.tensor(0).shape, a.axis));
  DataType dtype = TW_TRY(number_dtype_or(a.out_dtype, kFloat32));
  if (!dtype.is_float()) return type_error(format("out_dtype is {}, not a float", dtype.str()));
  return tensor_type(args.tensor(0).shape, dtype);
}
Result<std::vector<Value>> eval_dequantize(const EvalArgs& args) {
  return one(dequantized(args.inputs[0], args.inputs[1], args.inputs[2], args.as<DequantizeAttrs>().axis,
                         out_tensor(args).dtype));
}

Result<Type> requantize_type(const TypeArgs& args) {
  const auto& a = attrs_of<RequantizeAttrs>(args);
  TW_TRY_STATUS(integer_operand(args, 0));
  TW_TRY_STATUS(scale_and_zero(args, 1, 2, &args.tensor(0).shape, a.axis));
  TW_TRY_STATUS(scale_and_zero(args, 3, 4, nullptr, 0));
  if (a.rounding != "None" && a.rounding != "UPWARD" && a.rounding != "TONEAREST")
    return type_error(format("rounding is \"{}\", not UPWARD or TONEAREST", a.rounding));
  return tensor_type(args.tensor(0).shape, TW_TRY(quantized_dtype(a.out_dtype)));
}
Value requantized(const Value& x, const Value& scale, const Value& zero, int64_t axis, const Value& out_scale,
                  const Value& out_zero, DataType dtype, bool away) {
  Value out = make_value(dtype, x.shape);
  along_axis(x.shape, axis, [&](int64_t j, int64_t c) {
    const double y =
        (static_cast<double>(x.i[j]) - parameter(zero, c)) * fixed_point(parameter(scale, c) / parameter(out_scale, 0));
    out.i[j] = saturate(dtype, (away ? std::round(y) : round_upward(y)) + parameter(out_zero, 0));
  });
  return out;
}
Result<std::vector<Value>> eval_requantize(const EvalArgs& args) {
  const auto& a = args.as<RequantizeAttrs>();
  const auto& in = args.inputs;
  return one(requantized(in[0], in[1], in[2], a.axis, in[3], in[4], out_tensor(args).dtype, a.rounding == "TONEAREST"));
}

Result<Type> binary_type(const TypeArgs& args) {
  const auto& a = attrs_of<BroadcastAttrs>(args);
  TW_TRY_STATUS(integer_operand(args, 0));
  const auto &l = args.tensor(0), &r = args.tensor(1);
  if (l.dtype != r.dtype) return type_error(format("the operands are {} and {}", l.dtype.str(), r.dtype.str()));
  TW_TRY_STATUS(scale_and_zero(args, 2, 3, &l.shape, a.lhs_axis));
  TW_TRY_STATUS(scale_and_zero(args, 4, 5, &r.shape, a.rhs_axis));
  TW_TRY_STATUS(scale_and_zero(args, 6, 7, nullptr, 0));
  return tensor_type(TW_TRY(broadcast_shapes(l.shape, r.shape)), l.dtype);
}
// Calls fn(result index, left index, right index).
template <class F>
void over_pairs(const EvalArgs& args, F&& fn) {
  const std::vector<int64_t> shape = out_shape(args);
  walk<2>(shape, {broadcast_strides(args.inputs[0].shape, shape), broadcast_strides(args.inputs[1].shape, shape)},
          [&](int64_t o, const int64_t* at) { fn(o, at[0], at[1]); });
}
// Each element's index along the axis.
std::vector<int64_t> channels_of(const Value& x, int64_t axis) {
  std::vector<int64_t> out(static_cast<size_t>(x.size()));
  along_axis(x.shape, axis, [&](int64_t j, int64_t c) { out[static_cast<size_t>(j)] = c; });
  return out;
}

// Each operand is requantised to the result's scale, ties rounded upward, before the integers are added.
template <bool kSubtract>
Result<std::vector<Value>> eval_qnn_sum(const EvalArgs& args) {
  const auto& a = args.as<BroadcastAttrs>();
  const auto& in = args.inputs;
  auto steps = [&](size_t x, size_t scale, int64_t axis) {
    std::vector<double> out(static_cast<size_t>(in[x].size()));
    along_axis(in[x].shape, axis, [&](int64_t j, int64_t c) {
      out[static_cast<size_t>(j)] = round_upward((static_cast<double>(in[x].i[j]) - parameter(in[scale + 1], c)) *
                                                 fixed_point(parameter(in[scale], c) / parameter(in[6], 0)));
    });
    return out;
  };
  const std::vector<double> left = steps(0, 2, a.lhs_axis), right = steps(1, 4, a.rhs_axis);
  Value out = out_value(args);
  over_pairs(args, [&](int64_t o, int64_t l, int64_t r) {
    out.i[o] = saturate(out.dtype, (kSubtract ? left[l] - right[r] : left[l] + right[r]) + parameter(in[7], 0));
  });
  return one(std::move(out));
}
// The integer product has the product of both scales, computed in float32.
Result<std::vector<Value>> eval_mul(const EvalArgs& args) {
  const auto& a = args.as<BroadcastAttrs>();
  const auto& in = args.inputs;
  const std::vector<int64_t> left = channels_of(in[0], a.lhs_axis), right = channels_of(in[1], a.rhs_axis);
  Value out = out_value(args);
  over_pairs(args, [&](int64_t o, int64_t l, int64_t r) {
    const int64_t p = left[l], q = right[r];
    const auto scale = static_cast<double>(static_cast<float>(parameter(in[2], p) * parameter(in[4], q)));
    const double product = (static_cast<double>(in[0].i[l]) - parameter(in[3], p)) *
                           (static_cast<double>(in[1].i[r]) - parameter(in[5], q));
    out.i[o] =
        saturate(out.dtype, round_upward(product * fixed_point(scale / parameter(in[6], 0))) + parameter(in[7], 0));
  });
  return one(std::move(out));
}

// Convolutions and products: the real operator on operands minus their zero points, summed in int32.
constexpr const char* kProducts[][2] = {{"qnn.conv2d", "nn.conv2d"},
                                        {"qnn.conv2d_transpose", "nn.conv2d_transpose"},
                                        {"qnn.dense", "nn.dense"},
                                        {"qnn.batch_matmul", "nn.batch_matmul"}};

// The axis of the weight's output channels.
int64_t output_axis(const AttrsRef& attrs) {
  if (const auto* conv = attrs_as<Conv2DAttrs>(attrs)) return static_cast<int64_t>(conv->kernel_layout.find('O'));
  return attrs_as<Conv2DTransposeAttrs>(attrs) ? 1 : 0;
}
template <int kWhich>
Result<Type> product_type(const TypeArgs& args) {
  TW_TRY_STATUS(integer_operand(args, 0));
  TW_TRY_STATUS(integer_operand(args, 1));
  TW_TRY_STATUS(scale_and_zero(args, 4, 2, nullptr, 0));
  // Weight scales and zero points are per tensor or per output channel.
  for (size_t i : {size_t{3}, size_t{5}})
    if (args.tensor(i).shape.size() > 1 || args.tensor(i).dtype.is_float() != (i == 5))
      return type_error(format("the weight's {} is {}", i == 5 ? "scale" : "zero point", type_str(args.types[i])));
  const auto axis = static_cast<size_t>(output_axis(args.attrs));
  const Shape& weight = args.tensor(1).shape;
  for (size_t i : {size_t{3}, size_t{5}}) {
    const Shape& of = args.tensor(i).shape;
    if (!of.empty() && of[0] != Dim(1) && (axis >= weight.size() || dims_differ(of[0], weight[axis])))
      return type_error(format("the weight {} has not {} outputs", shape_str(weight), of[0].str()));
  }
  TypeArgs real{args.types.subspan(0, 2), args.args.subspan(0, 2), args.attrs};
  Type type = TW_TRY(find_op(kProducts[kWhich][1])->infer_type(real));
  const auto* t = as_tensor(type);
  if (t->dtype != kInt32)
    return type_error(format("out_dtype is {}; quantised products are summed in int32", t->dtype.str()));
  return type;
}
Value centered(const Value& x, const Value& zero, int64_t axis) {
  Value out = make_value(kInt32, x.shape);
  along_axis(x.shape, axis,
             [&](int64_t j, int64_t c) { out.i[j] = x.i[j] - static_cast<int64_t>(parameter(zero, c)); });
  return out;
}
template <int kWhich>
Result<std::vector<Value>> eval_product(const EvalArgs& args) {
  std::vector<Value> in{centered(args.inputs[0], args.inputs[2], 0),
                        centered(args.inputs[1], args.inputs[3], output_axis(args.attrs))};
  return find_op(kProducts[kWhich][1])->evaluate({in, args.attrs, args.out_type});
}

// (data...), (scales...), (zero points...), output scale, output zero point
Result<Type> qnn_concatenate_type(const TypeArgs& args) {
  const auto* data = args.types.size() == 5 ? as_tuple(args.types[0]) : nullptr;
  const auto *scales = data ? as_tuple(args.types[1]) : nullptr, *zeros = data ? as_tuple(args.types[2]) : nullptr;
  if (!data || !scales || !zeros || data->fields.size() != scales->fields.size() ||
      data->fields.size() != zeros->fields.size())
    return type_error("it takes tuples of equally many tensors, scales and zero points, a scale and a zero point");
  auto scalar = [](const Type& t, bool floats) {
    const auto* tensor = as_tensor(t);
    return tensor && (floats ? tensor->dtype.is_float() : tensor->dtype.is_integral()) &&
           element_count(tensor->shape) == Dim(1);
  };
  bool right = scalar(args.types[3], true) && scalar(args.types[4], false);
  for (size_t i = 0; i < data->fields.size(); ++i)
    right &= as_tensor(data->fields[i])->dtype.is_integral() && scalar(scales->fields[i], true) &&
             scalar(zeros->fields[i], false);
  if (!right) return type_error("it joins integers, and every scale and zero point is a scalar");
  TypeArgs real{args.types.subspan(0, 1), args.args.subspan(0, 1), args.attrs};
  return find_op("concatenate")->infer_type(real);
}
Result<std::vector<Value>> eval_qnn_concatenate(const EvalArgs& args) {
  const auto& in = args.inputs;
  const size_t n = (in.size() - 2) / 3;
  std::vector<Value> fields;
  for (size_t i = 0; i < n; ++i)
    fields.push_back(
        requantized(in[i], in[n + i], in[2 * n + i], -1, in[3 * n], in[3 * n + 1], out_tensor(args).dtype, false));
  return find_op("concatenate")->evaluate({fields, args.attrs, args.out_type});
}

Result<Type> unary_type(const TypeArgs& args) {
  TW_TRY_STATUS(integer_operand(args, 0));
  TW_TRY_STATUS(scale_and_zero(args, 1, 2, nullptr, 0));
  TW_TRY_STATUS(scale_and_zero(args, 3, 4, nullptr, 0));
  return args.types[0];
}
template <class F>
Result<std::vector<Value>> eval_unary_with(const EvalArgs& args, F&& fn) {
  const auto& in = args.inputs;
  Value real = dequantized(in[0], in[1], in[2], -1, kFloat64);
  for (double& x : real.f) x = fn(x);
  return one(quantized(real, in[3], in[4], -1, out_tensor(args).dtype));
}
double hardswish(double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }
template <double (*kFunction)(double)>
Result<std::vector<Value>> eval_qnn_unary(const EvalArgs& args) {
  return eval_unary_with(args, kFunction);
}
Result<std::vector<Value>> eval_qnn_leaky_relu(const EvalArgs& args) {
  const double alpha = args.as<LeakyReluAttrs>().alpha;
  return eval_unary_with(args, [=](double x) { return x < 0 ? alpha * x : x; });
}

OpDef unary(const char* name, const char* doc, Result<std::vector<Value>> (*eval)(const EvalArgs&),
            AttrsRef (*make)() = nullptr) {
  return define_op(name, doc,
                   {{"x", "integers"},
                    {"input_scale", "a float"},
                    {"input_zero_point", "an integer"},
                    {"output_scale", "a float"},
                    {"output_zero_point", "an integer"}},
                   OpPattern::kElemWise, unary_type, eval, make);
}
OpDef binary(const char* name, const char* doc, Result<std::vector<Value>> (*eval)(const EvalArgs&)) {
  return define_op(name, doc,
                   {{"lhs", "integers"},
                    {"rhs", "integers of the same dtype"},
                    {"lhs_scale", "a float, or a vector along lhs_axis"},
                    {"lhs_zero_point", "as many integers"},
                    {"rhs_scale", "a float, or a vector along rhs_axis"},
                    {"rhs_zero_point", "as many integers"},
                    {"output_scale", "a float"},
                    {"output_zero_point", "an integer"}},
                   OpPattern::kBroadcast, binary_type, eval, make_default_attrs<BroadcastAttrs>);
}
template <int kWhich>
OpDef contraction(const char* doc, AttrsRef (*make)()) {
  return define_op(kProducts[kWhich][0], doc,
                   {{"data", "integers"},
                    {"weight", "integers"},
                    {"input_zero_point", "an integer"},
                    {"kernel_zero_point", "an integer, or one for each output"},
                    {"input_scale", "a float; the result's scale is the product of both"},
                    {"kernel_scale", "a float, or one for each output"}},
                   OpPattern::kOutEWiseFusable, product_type<kWhich>, eval_product<kWhich>, make);
}

}  // namespace

std::vector<OpDef> qnn_ops() {
  OpDef concat = define_op("qnn.concatenate", "Tensors brought to one scale and joined along an axis.",
                           {{"data", "a tuple of integers"},
                            {"input_scales", "a tuple of floats"},
                            {"input_zero_points", "a tuple of integers"},
                            {"output_scale", "a float"},
                            {"output_zero_point", "an integer"}},
                           OpPattern::kInjective, qnn_concatenate_type, eval_qnn_concatenate,
                           make_default_attrs<ConcatenateAttrs>);
  concat.num_inputs = -1;
  return {
      define_op("qnn.quantize", "saturate(round(data / scale) + zero point), ties away from zero or to even.",
                {{"data", "floats"},
                 {"output_scale", "a float, or a vector along axis"},
                 {"output_zero_point", "as many integers"}},
                OpPattern::kElemWise, quantize_type, eval_quantize, make_default_attrs<QuantizeAttrs>),
      define_op("qnn.dequantize", "(data - zero point) * scale.",
                {{"data", "integers"},
                 {"input_scale", "a float, or a vector along axis"},
                 {"input_zero_point", "as many integers"}},
                OpPattern::kElemWise, dequantize_type, eval_dequantize, make_default_attrs<DequantizeAttrs>),
      define_op("qnn.requantize", "Integers of one scale and zero point as those of another.",
                {{"data", "integers"},
                 {"input_scale", "a float, or a vector along axis"},
                 {"input_zero_point", "as many integers"},
                 {"output_scale", "a float"},
                 {"output_zero_point", "an integer"}},
                OpPattern::kElemWise, requantize_type, eval_requantize, make_default_attrs<RequantizeAttrs>),
      binary("qnn.add", "The sum of the requantised operands.", eval_qnn_sum<false>),
      binary("qnn.subtract", "The difference of the requantised operands.", eval_qnn_sum<true>),
      binary("qnn.mul", "The product, requantised.", eval_mul),
      contraction<0>("nn.conv2d of numbers without their zero points, in int32.", make_default_attrs<Conv2DAttrs>),
      contraction<1>("nn.conv2d_transpose of numbers without their zero points, in int32.",
                     make_default_attrs<Conv2DTransposeAttrs>),
      contraction<2>("nn.dense of numbers without their zero points, in int32.", make_default_attrs<DenseAttrs>),
      contraction<3>("nn.batch_matmul of numbers without their zero points, in int32.",
                     make_default_attrs<BatchMatmulAttrs>),
      std::move(concat),
      unary("qnn.leaky_relu", "x, or alpha * x below zero, requantised.", eval_qnn_leaky_relu,
            make_default_attrs<LeakyReluAttrs>),
      unary("qnn.tanh", "Hyperbolic tangent, requantised.", eval_qnn_unary<std::tanh>),
      unary("qnn.exp", "e to the power x, requantised.", eval_qnn_unary<std::exp>),
      unary("qnn.sqrt", "Square root, requantised.", eval_qnn_unary<std::sqrt>),
      unary("qnn.rsqrt", "1 / square root, requantised.", eval_qnn_unary<rsqrt>),
      unary("qnn.erf", "The error function, requantised.", eval_qnn_unary<std::erf>),
      unary("qnn.sigmoid", "1 / (1 + exp(-x)), requantised.", eval_qnn_unary<sigmoid>),
      unary("qnn.log", "Natural logarithm, requantised.", eval_qnn_unary<std::log>),
      unary("qnn.hardswish", "x * clip(x + 3, 0, 6) / 6, requantised.", eval_qnn_unary<hardswish>),
  };
}

}  // namespace tilewright::relay
