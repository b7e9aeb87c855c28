// SPDX-License-Identifier: Apache-2.0
// Quantised operators. QuantizeLinear and DequantizeLinear become qnn.quantize and qnn.dequantize where those can
// express them, so that passes see what is quantised. The others round half to even, which no qnn operator does, and
// are written out: scaling, rounding and saturating in float32 is exact for 8-bit values. Products stay integer; the
// pass IntegerProducts makes them fast.
#include "frontend/onnx/converters/quant.h"
#include "base/format.h"

#include "frontend/onnx/converters/linear.h"
#include "relay/ops/quantize/attrs_qnn.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// The range of an integer type of at most 32 bits.
std::pair<double, double> limits(DataType t) {
  if (t.is_uint()) return {0, static_cast<double>((uint64_t{1} << t.bits) - 1)};
  auto half = static_cast<double>(uint64_t{1} << (t.bits - 1));
  return {-half, half - 1};
}

}  // namespace

Expr along_axis(NodeContext& c, Expr v, const Expr& x, int64_t axis, int64_t block) {
  int64_t rank = c.rank(x);
  if (c.rank(v) == 0) return v;
  if (c.rank(v) == 1 && !(block > 0 && rank == 1)) {
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

Expr dequantized(NodeContext& c, const Expr& x, const Expr& scale, const Expr& zero_point, int64_t axis, int64_t block,
                 DataType to) {
  // The differences of 32-bit integers do not fit float32 exactly.
  DataType work = c.dtype(x).is_integral() && c.dtype(x).bits > 16 ? kFloat64 : kFloat32;
  Expr value = c.cast(x, work);
  if (zero_point) value = c.sub(value, c.cast(along_axis(c, zero_point, x, axis, block), work));
  Expr product = c.mul(value, c.cast(along_axis(c, scale, x, axis, block), work));
  return c.cast(product, to);
}

std::array<Expr, 3> dynamically_quantized(NodeContext& c, const Expr& x) {
  Expr zero = c.scalar(0, kFloat32);
  // The range always contains zero.
  const Expr extremes = c.call("min_max", {x});
  Expr low = c.call("minimum", {relay::make_get(extremes, 0), zero}),
       high = c.call("maximum", {relay::make_get(extremes, 1), zero});
  // An all-zero tensor has an empty range; onnxruntime gives it the scale 1.
  Expr range = c.div(c.sub(high, low), c.scalar(255, kFloat32));
  Expr scale = c.where(c.call("equal", {range, zero}), c.scalar(1, kFloat32), range);
  Expr zero_point = to_integers(c, c.div(c.call("negative", {low}), scale), {}, kUInt8);
  return {to_integers(c, c.div(x, scale), zero_point, kUInt8), scale, zero_point};
}

Expr without_zero_point(NodeContext& c, const Expr& x, const Expr& zero_point, int64_t axis) {
  Expr value = c.cast(x, kInt32);
  return zero_point ? c.sub(value, c.cast(along_axis(c, zero_point, x, axis, 0), kInt32)) : value;
}

namespace {

// Whether qnn operators can express it: scale and zero point are scalars or vectors along an axis, of a supported
// integer type.
bool has_qnn_form(NodeContext& c, const Expr& scale, DataType quantized) {
  if (c.int_attr("block_size", 0) != 0) return false;
  return c.rank(scale) <= 1 && c.dtype(scale).is_float() && (!c.has(2) || c.rank(c.input(2)) <= 1) &&
         quantized.is_integral() && quantized.bits >= 8 && quantized.bits <= 32;
}
// The axis of per-axis scales, checked; any value for per-tensor ones.
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
  Expr ratio = c.div(c.cast(x, work), c.cast(along_axis(c, scale, x, axis, block), work));
  if (to.is_float()) return {c.cast(ratio, to)};
  Expr zero = c.has(2) ? along_axis(c, c.input(2), x, axis, block) : Expr();
  return {to_integers(c, ratio, zero, to)};
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

Values dynamic_quantize(NodeContext& c) {
  auto [integers, scale, zero_point] = dynamically_quantized(c, c.input(0));
  return {integers, scale, zero_point};
}

Values matmul_integer(NodeContext& c) {
  if (c.rank(c.input(0)) < 1) c.fail_type("its operand is a scalar");
  Expr a = without_zero_point(c, c.input(0), c.has(2) ? c.input(2) : Expr(), c.rank(c.input(0)) - 2);
  Expr b = without_zero_point(c, c.input(1), c.has(3) ? c.input(3) : Expr(), -1);
  return {matmul_of(c, a, b)};
}

// Requantises an int32 sum of products to the result's type.
Expr rescaled(NodeContext& c, const Expr& sum, const Expr& scale, const Expr& other_scale) {
  Expr ratio = c.div(c.mul(c.cast(scale, kFloat64), c.cast(other_scale, kFloat64)), c.cast(c.input(6), kFloat64));
  return to_integers(c, c.mul(c.cast(sum, kFloat64), ratio), c.input(7), c.dtype(c.input(7)));
}

Values qlinear_matmul(NodeContext& c) {
  Expr a = c.input(0), b = c.input(3);
  if (c.rank(a) < 1) c.fail_type("its operand is a scalar");
  Expr product =
      matmul_of(c, without_zero_point(c, a, c.input(2), c.rank(a) - 2), without_zero_point(c, b, c.input(5), -1));
  return {rescaled(c, product, along_axis(c, c.input(1), product, c.rank(product) - 2, 0),
                   along_axis(c, c.input(4), product, -1, 0))};
}

// A 2-D integer convolution by the attributes of Conv.
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
  Expr x = without_zero_point(c, c.input(0), c.has(2) ? c.input(2) : Expr(), 1);
  Expr w = without_zero_point(c, c.input(1), c.has(3) ? c.input(3) : Expr(), 0);
  return {integer_conv(c, x, w)};
}

}  // namespace

Expr quantized_convolution(NodeContext& c, const Expr& x) {
  Expr y = integer_conv(c, without_zero_point(c, x, c.input(2), 1), without_zero_point(c, c.input(3), c.input(5), 0));
  if (c.has(8)) y = c.add(y, c.expand(c.cast(c.input(8), kInt32), 1, c.rank(y) - 2));
  return rescaled(c, y, c.input(1), along_axis(c, c.input(4), y, 1, 0));
}

namespace {

Values qlinear_conv(NodeContext& c) { return {quantized_convolution(c, c.input(0))}; }

constexpr ConverterEntry kQuantConverters[] = {
    {"QuantizeLinear", 10, quantize},
    {"DequantizeLinear", 10, dequantize},
    {"QuantizeLinear", 1, quantize, "com.microsoft"},
    {"DequantizeLinear", 1, dequantize, "com.microsoft"},
    {"DynamicQuantizeLinear", 11, dynamic_quantize},
    {"MatMulInteger", 10, matmul_integer},
    {"QLinearMatMul", 10, qlinear_matmul},
    {"ConvInteger", 10, conv_integer},
    {"QLinearConv", 10, qlinear_conv},
};

}  // namespace

std::span<const ConverterEntry> quant_converters() { return kQuantConverters; }

}  // namespace tilewright::onnx
