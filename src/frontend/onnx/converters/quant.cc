// SPDX-License-Identifier: Apache-2.0
// Quantised operators. QuantizeLinear and DequantizeLinear are qnn.quantize and qnn.dequantize where these have their
// form, so that passes see what is quantised; the others, whose rounding to even no qnn operator has, are written out
// in arithmetic: scaling, rounding to even and saturating are exact in float32 for 8-bit values. Products are integer
// ones; the pass IntegerProducts makes them fast.
#include <array>

#include "base/format.h"
#include "frontend/onnx/converters/linear.h"
#include "relay/ops/quantize/attrs_qnn.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// A scale or zero point against a tensor: a scalar, a vector along `axis`, or blocks of `block` elements along it.
Expr spread(NodeContext& c, Expr v, const Expr& x, int64_t axis, int64_t block) {
  int64_t rank = c.rank(x);
  if (c.rank(v) == 0) return v;
  if (c.rank(v) == 1) {
    auto n = c.shape(v)[0].constant();
    if (n && *n == 1) return c.reshape(v, {});
    axis = c.axis(axis, rank);
    return c.expand(v, 1, rank - axis - 1);
  }
  if (c.rank(v) != rank || block < 1)
    c.fail_type(format("scales of rank {} do not fit an operand of rank {}", c.rank(v), rank));
  axis = c.axis(axis, rank);
  Expr wide = c.call("repeat", {v}, make_attrs<relay::RepeatAttrs>([&](auto& a) {
                       a.repeats = block;
                       a.axis = axis;
                     }));
  int64_t size = c.dims(x)[static_cast<size_t>(axis)];
  return c.slice(wide, axis, 0, size);
}

// The range of an integer type of at most 32 bits.
std::pair<double, double> limits(DataType t) {
  if (t.is_uint()) return {0, static_cast<double>((uint64_t{1} << t.bits) - 1)};
  auto half = static_cast<double>(uint64_t{1} << (t.bits - 1));
  return {-half, half - 1};
}

// saturate(round(x) + zero_point) as `to`; x is float32.
Expr to_integers(NodeContext& c, const Expr& x, const Expr& zero_point, DataType to) {
  Expr rounded = c.call("nearbyint", {x});
  if (zero_point) rounded = c.add(rounded, c.cast(zero_point, c.dtype(x)));
  auto [low, high] = limits(to);
  Expr bounded = c.call("clip", {rounded}, make_attrs<relay::ClipAttrs>([l = low, h = high](auto& a) {
                          a.a_min = l;
                          a.a_max = h;
                        }));
  return c.cast(bounded, to);
}

// Scales and zero points that are scalars or vectors along an axis, of integers that qnn operators take.
bool has_qnn_form(NodeContext& c, const Expr& scale, DataType quantized) {
  return c.rank(scale) <= 1 && c.dtype(scale).is_float() && (!c.has(2) || c.rank(c.input(2)) <= 1) &&
         quantized.is_integral() && quantized.bits >= 8 && quantized.bits <= 32;
}
// The axis of such vectors, checked; any where there are none.
int64_t vector_axis(NodeContext& c, const Expr& scale, const Expr& x) {
  const bool vector = c.rank(scale) == 1 && !(c.shape(scale)[0] == Dim(1));
  return vector ? c.axis(c.int_attr("axis", 1), c.rank(x)) : -1;
}
Expr zero_point(NodeContext& c, DataType quantized) { return c.has(2) ? c.input(2) : c.scalar(0, quantized); }

Values quantize(NodeContext& c) {
  Expr x = c.input(0), scale = c.input(1);
  int64_t axis = c.int_attr("axis", 1), block = c.int_attr("block_size", 0);
  DataType to = c.has(2) ? c.dtype(c.input(2)) : c.dtype_attr("output_dtype", kUInt8);
  DataType work = c.dtype(x).is_float() && c.dtype(x).bits >= 32 ? c.dtype(x) : kFloat32;
  if (has_qnn_form(c, scale, to))
    return {c.call("qnn.quantize", {c.dtype(x).is_float() ? x : c.cast(x, work), scale, zero_point(c, to)},
                   make_attrs<relay::QuantizeAttrs>([&](auto& a) {
                     a.rounding = "TONEVEN";
                     a.out_dtype = to.str();
                     a.axis = vector_axis(c, scale, x);
                   }))};
  Expr ratio = c.div(c.cast(x, work), c.cast(spread(c, scale, x, axis, block), work));
  if (to.is_float()) return {c.cast(ratio, to)};
  Expr zero = c.has(2) ? spread(c, c.input(2), x, axis, block) : Expr();
  return {to_integers(c, ratio, zero, to)};
}

Expr dequantized(NodeContext& c, const Expr& x, const Expr& scale, const Expr& zero_point, int64_t axis, int64_t block,
                 DataType to) {
  // Differences of 32-bit integers need more than float32.
  DataType work = c.dtype(x).is_integral() && c.dtype(x).bits > 16 ? kFloat64 : kFloat32;
  Expr value = c.cast(x, work);
  if (zero_point) value = c.sub(value, c.cast(spread(c, zero_point, x, axis, block), work));
  Expr product = c.mul(value, c.cast(spread(c, scale, x, axis, block), work));
  return c.cast(product, to);
}

Values dequantize(NodeContext& c) {
  DataType to = c.opset() >= 23 ? c.dtype_attr("output_dtype", c.dtype(c.input(1))) : c.dtype(c.input(1));
  const Expr x = c.input(0), scale = c.input(1);
  if (has_qnn_form(c, scale, c.dtype(x)))
    return {c.call("qnn.dequantize", {x, scale, zero_point(c, c.dtype(x))},
                   make_attrs<relay::DequantizeAttrs>([&](auto& a) {
                     a.out_dtype = to.str();
                     a.axis = vector_axis(c, scale, x);
                   }))};
  return {
      dequantized(c, x, scale, c.has(2) ? c.input(2) : Expr(), c.int_attr("axis", 1), c.int_attr("block_size", 0), to)};
}

// Operand 0 as uint8, its scale and its zero point, by its own range.
std::array<Expr, 3> dynamically_quantized(NodeContext& c) {
  Expr x = c.input(0), zero = c.scalar(0, kFloat32);
  Ints axes;
  for (int64_t i = 0; i < c.rank(x); ++i) axes.push_back(i);
  // The range holds zero.
  Expr high = c.call("maximum", {c.reduce("max", x, axes, false), zero}),
       low = c.call("minimum", {c.reduce("min", x, axes, false), zero});
  // Zeros alone have a range of nothing; onnxruntime gives them the scale 1.
  Expr range = c.div(c.sub(high, low), c.scalar(255, kFloat32));
  Expr scale = c.where(c.call("equal", {range, zero}), c.scalar(1, kFloat32), range);
  Expr zero_point = to_integers(c, c.div(c.call("negative", {low}), scale), {}, kUInt8);
  return {to_integers(c, c.div(x, scale), zero_point, kUInt8), scale, zero_point};
}
Values dynamic_quantize(NodeContext& c) {
  auto [integers, scale, zero_point] = dynamically_quantized(c);
  return {integers, scale, zero_point};
}

// value - zero_point in int32; a vector of zero points runs along `axis`.
Expr centered(NodeContext& c, const Expr& x, const Expr& zero_point, int64_t axis) {
  Expr value = c.cast(x, kInt32);
  return zero_point ? c.sub(value, c.cast(spread(c, zero_point, x, axis, 0), kInt32)) : value;
}

Values matmul_integer(NodeContext& c) {
  if (c.rank(c.input(0)) < 1) c.fail_type("its operand is a scalar");
  Expr a = centered(c, c.input(0), c.has(2) ? c.input(2) : Expr(), c.rank(c.input(0)) - 2);
  Expr b = centered(c, c.input(1), c.has(3) ? c.input(3) : Expr(), -1);
  return {matmul_of(c, a, b)};
}

// The sum of products in the result's scale, as its integers.
Values rescaled(NodeContext& c, const Expr& sum, const Expr& scale, const Expr& other_scale) {
  Expr ratio = c.div(c.mul(c.cast(scale, kFloat64), c.cast(other_scale, kFloat64)), c.cast(c.input(6), kFloat64));
  return {to_integers(c, c.mul(c.cast(sum, kFloat64), ratio), c.input(7), c.dtype(c.input(7)))};
}

Values qlinear_matmul(NodeContext& c) {
  Expr a = c.input(0), b = c.input(3);
  if (c.rank(a) < 1) c.fail_type("its operand is a scalar");
  Expr product = matmul_of(c, centered(c, a, c.input(2), c.rank(a) - 2), centered(c, b, c.input(5), -1));
  return rescaled(c, product, spread(c, c.input(1), product, c.rank(product) - 2, 0),
                  spread(c, c.input(4), product, -1, 0));
}

// A two-dimensional convolution of integers, with the attributes of Conv.
Expr integer_conv(NodeContext& c, const Expr& x, const Expr& w) {
  if (c.rank(x) != 4) c.unsupported("another number of spatial axes than two");
  Ints kernel = {c.dims(w)[2], c.dims(w)[3]};
  std::string mode = c.string_attr("auto_pad", "NOTSET");
  Ints strides = c.ints_attr("strides", {1, 1}), dilations = c.ints_attr("dilations", {1, 1}),
       pads = c.ints_attr("pads", {0, 0, 0, 0});
  if (strides.size() != 2 || dilations.size() != 2 || pads.size() != 4)
    c.fail("its strides, dilations or pads have the wrong length");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") c.unsupported("auto_pad");
  return c.call("nn.conv2d", {x, w}, make_attrs<relay::Conv2DAttrs>([&](auto& a) {
                  a.strides = strides;
                  a.padding = pads;
                  a.dilation = dilations;
                  a.groups = c.int_attr("group", 1);
                  a.channels = c.dims(w)[0];
                  a.kernel_size = kernel;
                }));
}

Values conv_integer(NodeContext& c) {
  Expr x = centered(c, c.input(0), c.has(2) ? c.input(2) : Expr(), 1);
  Expr w = centered(c, c.input(1), c.has(3) ? c.input(3) : Expr(), 0);
  return {integer_conv(c, x, w)};
}

Values qlinear_conv(NodeContext& c) {
  Expr y = integer_conv(c, centered(c, c.input(0), c.input(2), 1), centered(c, c.input(3), c.input(5), 0));
  if (c.has(8)) y = c.add(y, c.expand(c.cast(c.input(8), kInt32), 1, c.rank(y) - 2));
  return rescaled(c, y, c.input(1), spread(c, c.input(4), y, 1, 0));
}

// --- com.microsoft: what onnxruntime's quantisation writes beside the operators above

Expr optional(NodeContext& c, int64_t i) { return c.has(i) ? c.input(i) : Expr(); }

// Operands first, first + 1 and first + 2 are a value, its scale and its zero point, which may be missing.
Expr real_operand(NodeContext& c, int64_t first) {
  return dequantized(c, c.input(first), c.input(first + 1), optional(c, first + 2), 0, 0, kFloat32);
}
// y as integers of the scale and the zero point that operands `scale` and scale + 1 are.
Values quantized_result(NodeContext& c, const Expr& y, int64_t scale, DataType like) {
  Expr ratio = c.div(y, c.cast(c.input(scale), kFloat32));
  return {to_integers(c, ratio, optional(c, scale + 1), like)};
}
template <Expr (frontend::ExpressionBuilder::*op)(const Expr&, const Expr&) const>
Values qlinear_binary(NodeContext& c) {
  Expr y = (c.*op)(real_operand(c, 0), real_operand(c, 3));
  return quantized_result(c, y, 6, c.dtype(c.input(0)));
}
Values qlinear_sigmoid(NodeContext& c) {
  return quantized_result(c, c.call("sigmoid", {real_operand(c, 0)}), 3, c.dtype(c.input(0)));
}
Values qlinear_leaky_relu(NodeContext& c) {
  const double alpha = c.float_attr("alpha", 0.01);
  Expr y = c.call("nn.leaky_relu", {real_operand(c, 0)},
                  make_attrs<relay::LeakyReluAttrs>([&](auto& a) { a.alpha = alpha; }));
  return quantized_result(c, y, 3, c.dtype(c.input(0)));
}
Values qlinear_global_average_pool(NodeContext& c) {
  if (c.int_attr("channels_last", 0) != 0) c.unsupported("channels_last");
  Expr x = real_operand(c, 0);
  Ints axes;
  for (int64_t i = 2; i < c.rank(x); ++i) axes.push_back(i);
  return quantized_result(c, c.reduce("mean", x, axes, true), 3, c.dtype(c.input(0)));
}
// The result's scale and zero point, then a value, its scale and its zero point again and again.
Values qlinear_concat(NodeContext& c) {
  const auto count = static_cast<int64_t>(c.all_inputs().size());
  if (count < 5 || count % 3 != 2) c.fail("it takes a scale, a zero point and triples of value, scale and zero point");
  std::vector<Expr> parts;
  for (int64_t i = 2; i < count; i += 3) parts.push_back(real_operand(c, i));
  const int64_t axis = c.axis(c.int_attr("axis", 1), c.rank(parts[0]));
  Expr y = c.call("concatenate", {relay::make_tuple(std::move(parts))},
                  make_attrs<relay::ConcatenateAttrs>([&](auto& a) { a.axis = axis; }));
  return quantized_result(c, y, 0, c.dtype(c.input(2)));
}
Values qgemm(NodeContext& c) {
  const bool trans_a = c.int_attr("transA", 0) != 0, trans_b = c.int_attr("transB", 0) != 0;
  auto turned = [&](const Expr& e, bool turn) { return turn ? transposed_matrix(c, e) : e; };
  // Zero points of B, one for each column of the product.
  Expr a = turned(centered(c, c.input(0), c.input(2), -1), trans_a);
  Expr b = turned(centered(c, c.input(3), c.input(5), trans_b ? 0 : -1), trans_b);
  Expr sum = matmul_of(c, a, b);
  if (c.has(6)) sum = c.add(sum, c.cast(c.input(6), kInt32));
  Expr scale = c.mul(c.cast(c.input(1), kFloat64), c.cast(spread(c, c.input(4), sum, -1, 0), kFloat64));
  Expr y = c.mul(c.cast(sum, kFloat64), c.mul(scale, c.scalar(c.float_attr("alpha", 1), kFloat64)));
  if (!c.has(7)) return {c.cast(y, kFloat32)};
  return {to_integers(c, c.div(y, c.cast(c.input(7), kFloat64)), optional(c, 8),
                      c.has(8) ? c.dtype(c.input(8)) : c.dtype(c.input(0)))};
}
// A product of integers in float32: (scales of a and b), then the bias.
Values scaled_product(NodeContext& c, const Expr& sum, const Expr& a_scale, const Expr& b_scale, const Expr& bias) {
  Expr y = c.mul(c.cast(sum, kFloat32), c.mul(a_scale, spread(c, b_scale, sum, -1, 0)));
  return {bias ? c.add(y, bias) : y};
}
Values matmul_integer_to_float(NodeContext& c) {
  Expr a = centered(c, c.input(0), optional(c, 4), -1), b = centered(c, c.input(1), optional(c, 5), -1);
  return scaled_product(c, matmul_of(c, a, b), c.input(2), c.input(3), optional(c, 6));
}
Values dynamic_quantize_matmul(NodeContext& c) {
  const auto [a, a_scale, a_zero] = dynamically_quantized(c);
  Expr sum = matmul_of(c, centered(c, a, a_zero, -1), centered(c, c.input(1), optional(c, 3), -1));
  return scaled_product(c, sum, a_scale, c.input(2), optional(c, 4));
}

constexpr ConverterEntry kQuantConverters[] = {
    {"QuantizeLinear", 10, quantize},
    {"DequantizeLinear", 10, dequantize},
    {"DynamicQuantizeLinear", 11, dynamic_quantize},
    {"MatMulInteger", 10, matmul_integer},
    {"QLinearMatMul", 10, qlinear_matmul},
    {"ConvInteger", 10, conv_integer},
    {"QLinearConv", 10, qlinear_conv},
    {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul, "com.microsoft"},
    {"MatMulIntegerToFloat", 1, matmul_integer_to_float, "com.microsoft"},
    {"QGemm", 1, qgemm, "com.microsoft"},
    {"QLinearAdd", 1, qlinear_binary<&NodeContext::add>, "com.microsoft"},
    {"QLinearConcat", 1, qlinear_concat, "com.microsoft"},
    {"QLinearGlobalAveragePool", 1, qlinear_global_average_pool, "com.microsoft"},
    {"QLinearLeakyRelu", 1, qlinear_leaky_relu, "com.microsoft"},
    {"QLinearMul", 1, qlinear_binary<&NodeContext::mul>, "com.microsoft"},
    {"QLinearSigmoid", 1, qlinear_sigmoid, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> quant_converters() { return kQuantConverters; }

}  // namespace tilewright::onnx
