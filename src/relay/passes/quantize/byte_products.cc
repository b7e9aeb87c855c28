// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/quantize/byte_products.h"

#include <algorithm>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/passes/pipeline/fold_constant.h"

namespace tilewright::relay {
namespace {

// Input and output channels from which on Winograd's 3x3 kernels are faster than direct ones of halves.
constexpr int64_t kWinogradChannels = 32;
// A byte minus a zero point up to this fits int16.
constexpr int64_t kLargestZero = 32512;

// bytes - zero, where zero is null or one int32 number.
struct CentredBytes {
  Expr bytes, zero;
};

// Strips casts that do not change the value.
Expr strip_widening_casts(const Expr& e) {
  if (!is_call_to(e, "cast") || !as_tensor(arg(e, 0)->type)) return e;
  const DataType from = tensor_of(arg(e, 0)).dtype, to = tensor_of(e).dtype;
  const bool keeps = from.is_integral() && to.is_int() && to.bits > from.bits;
  return keeps ? strip_widening_casts(arg(e, 0)) : e;
}
bool are_bytes(const Expr& e) {
  const auto* t = as_tensor(e->type);
  return t && (t->dtype == kUInt8 || t->dtype == kInt8);
}

std::optional<CentredBytes> centred_bytes(const Expr& e) {
  if (Expr x = strip_widening_casts(e); are_bytes(x)) return CentredBytes{x, nullptr};
  if (!is_call_to(e, "subtract") || tensor_of(e).dtype != kInt32) return std::nullopt;
  const Expr x = strip_widening_casts(arg(e, 0)), zero = arg(e, 1);
  const auto shape = static_shape(tensor_of(zero).shape);
  if (!are_bytes(x) || !shape || !same_tensor_type(arg(e, 0), e)) return std::nullopt;
  // Only a single zero point, of any rank, can be corrected for in each sum.
  if (std::any_of(shape->begin(), shape->end(), [](int64_t d) { return d != 1; })) return std::nullopt;
  return CentredBytes{x, shape->empty() ? zero : reshape_to(zero, {})};
}

// The value of an int32 scalar expression with constant operands.
std::optional<int64_t> folded_number(const Expr& e) {
  const Expr folded = fold_expr(e, 16);
  const Tensor* t = constant_data(folded);
  return t && t->size() == 1 ? std::optional<int64_t>(t->at_int(0)) : std::nullopt;
}

// Flips int8 to uint8 by adding 128.
Expr flip_to_unsigned(const Expr& x) { return cast(both("add", cast(x, kInt16), full_constant(128, kInt16)), kUInt8); }

// The output axes of the weight and of the result.
struct ByteProduct {
  size_t weight_axis = 0, result_axis = 0;
  AttrsRef attrs;       // the call's attributes with int32 results
  bool padded = false;  // a convolution with non-zero padding
  bool one_group = true;
};

template <class A>
AttrsRef with_int32(const Expr& e) {
  AttrsRef copy(attrs_of<A>(e).clone());
  const_cast<A*>(attrs_as<A>(copy))->out_dtype = "int32";
  return copy;
}

// Whether AlterOpLayout gives this convolution a channel-blocked kernel.
bool blocks_take(const Conv2DAttrs& a, const std::vector<int64_t>& weight, const Target& target) {
  const int64_t lanes = target.lanes(32), in = weight[a.kernel_layout.find('I')] * a.groups,
                out = weight[a.kernel_layout.find('O')];
  if (target.vector_bits < 128) return false;
  // A plain image with few channels: words are formed of adjacent taps.
  if (a.groups == 1) return in > 4 || a.dilation == std::vector<int64_t>{1, 1};
  return in / a.groups % lanes == 0 && out / a.groups % lanes == 0;
}

bool has_any(const Target& target, std::initializer_list<std::string_view> features) {
  return std::any_of(target.cpu_features.begin(), target.cpu_features.end(), [&](const std::string& f) {
    return std::find(features.begin(), features.end(), f) != features.end();
  });
}
bool has_byte_instruction(const Target& target) {
  return has_any(target, {"avx512vnni", "avxvnni", "dotprod", "i8mm"});
}
// Without one, bytes are widened to halves (one instruction since SSE4.1), of which x86 multiplies pairs and adds the
// two products: twice the products of a float instruction in two. Words of bytes would have to be taken apart in the
// kernel, for both operands.
// C's vectors have no form for it.
bool has_pair_instruction(const Target& target) {
  return target.kind == "llvm" && target.vector_bits >= 128 && has_any(target, {"sse4.1"});
}

std::optional<ByteProduct> byte_product(const Expr& e, const Target& target) {
  ByteProduct out;
  if (!has_byte_instruction(target) && !has_pair_instruction(target)) return std::nullopt;
  const size_t rank = tensor_of(e).shape.size();
  if (is_call_to(e, "nn.conv2d")) {
    const auto& a = attrs_of<Conv2DAttrs>(e);
    const auto weight = static_shape(tensor_of(arg(e, 1)).shape);
    if (!weight || a.data_layout.size() != 4 || a.kernel_layout.size() != 4 || weight->size() != 4 ||
        !(a.out_layout.empty() || a.out_layout == a.data_layout) || !blocks_take(a, *weight, target))
      return std::nullopt;
    out.weight_axis = a.kernel_layout.find('O');
    out.result_axis = a.data_layout.find('C');
    out.attrs = with_int32<Conv2DAttrs>(e);
    out.padded = std::any_of(a.padding.begin(), a.padding.end(), [](int64_t p) { return p != 0; });
    out.one_group = a.groups == 1;
    return out;
  }
  if (is_call_to(e, "nn.dense")) {
    out.attrs = with_int32<DenseAttrs>(e);
  } else if (is_call_to(e, "nn.matmul") && !attrs_of<MatmulAttrs>(e).transpose_a) {
    out.weight_axis = attrs_of<MatmulAttrs>(e).transpose_b ? 0 : 1;
    out.attrs = with_int32<MatmulAttrs>(e);
  } else {
    return std::nullopt;
  }
  out.result_axis = rank - 1;
  return out;
}

// The sum of the weights per output.
std::vector<int64_t> sums_by_output(const Tensor& w, size_t axis) {
  int64_t inner = 1;
  for (size_t i = axis + 1; i < w.shape().size(); ++i) inner *= w.shape()[i];
  std::vector<int64_t> sums(static_cast<size_t>(w.shape()[axis]), 0);
  for (int64_t i = 0; i < w.size(); ++i) sums[static_cast<size_t>(i / inner % w.shape()[axis])] += w.at_int(i);
  return sums;
}

// A per-output vector reshaped to broadcast against the result.
Expr broadcast_per_output(const std::vector<int64_t>& values, const ByteProduct& p, size_t rank) {
  std::vector<int64_t> shape(rank - p.result_axis, 1);
  shape[0] = static_cast<int64_t>(values.size());
  Tensor t(kInt32, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set_int(i, static_cast<int32_t>(values[static_cast<size_t>(i)]));
  return make_constant(std::move(t));
}

// Pads the data with the zero point and removes the padding from the attributes.
Expr pad_with_zero_point(const Expr& x, const Expr& zero, ByteProduct* p) {
  auto* a = const_cast<Conv2DAttrs*>(attrs_as<Conv2DAttrs>(p->attrs));
  std::vector<int64_t> pad = a->padding;
  if (pad.size() == 1) pad.assign(4, pad[0]);
  if (pad.size() == 2) pad = {pad[0], pad[1], pad[0], pad[1]};
  std::vector<std::vector<int64_t>> widths(4, {0, 0});
  widths[a->data_layout.find('H')] = {pad[0], pad[2]};
  widths[a->data_layout.find('W')] = {pad[1], pad[3]};
  a->padding = {0, 0, 0, 0};
  return call("nn.pad", {x, cast(zero, kUInt8)}, make_attrs<PadAttrs>([&](auto& attrs) { attrs.pad_width = widths; }),
              x->span);
}

// The same product with all-one weights, whose single output sums the operand.
std::optional<Expr> data_sums(const Expr& e, const Expr& x, const Tensor& w, const ByteProduct& p) {
  std::vector<int64_t> shape = w.shape();
  shape[p.weight_axis] = 1;
  AttrsRef attrs(p.attrs->clone());
  if (auto* a = const_cast<Conv2DAttrs*>(attrs_as<Conv2DAttrs>(attrs))) a->channels = 1;
  if (auto* a = const_cast<DenseAttrs*>(attrs_as<DenseAttrs>(attrs))) a->units = 1;
  if (auto* a = const_cast<MatmulAttrs*>(attrs_as<MatmulAttrs>(attrs))) a->units = 1;
  auto made = try_call(called_op(e)->name, {x, full_constant(1, kInt8, shape)}, attrs, e->span);
  if (!made.ok()) return std::nullopt;
  return *made;
}

}  // namespace

bool keeps_bytes(const Target& target) { return target.kind == "c" && target.mcpu.starts_with("cortex-m"); }

namespace {

bool plain_conv2d(const Expr& e) {
  const auto& a = attrs_of<Conv2DAttrs>(e);
  return a.data_layout == "NCHW" && a.kernel_layout == "OIHW" && (a.out_layout.empty() || a.out_layout == "NCHW");
}

}  // namespace

bool may_keep_bytes(const Expr& e, const Target& target) {
  if (!keeps_bytes(target)) return false;
  if (is_call_to(e, "nn.conv2d")) return plain_conv2d(e);
  return (is_call_to(e, "nn.dense") || (is_call_to(e, "nn.matmul") && !attrs_of<MatmulAttrs>(e).transpose_a)) &&
         tensor_of(arg(e, 0)).shape.size() == 2;
}

bool keeps_bytes(const Expr& e, const Target& target) {
  if (!keeps_bytes(target)) return false;
  if (is_call_to(e, "qnn.conv2d") ? !plain_conv2d(e)
                                  : !is_call_to(e, "qnn.dense") || tensor_of(arg(e, 0)).shape.size() != 2)
    return false;
  const Expr weight = fold_expr(arg(e, 1), int64_t{1} << 28);
  const Tensor* w = constant_data(weight);
  if (!are_bytes(arg(e, 0)) || w == nullptr || w->dtype() != kInt8 || !is_uniform(arg(e, 3), 0) ||
      !static_shape(tensor_of(e).shape))
    return false;
  const Expr zero = fold_expr(arg(e, 2), 16);
  const Tensor* z = constant_data(zero);
  return z != nullptr && z->size() == 1;
}

namespace {
// A convolution with a Winograd kernel, which takes bytes themselves and widens them as it transforms them.
bool is_winograd(const Expr& e) {
  if (!is_call_to(e, "nn.conv2d")) return false;
  const auto& a = attrs_of<Conv2DAttrs>(e);
  const std::vector<int64_t> ones{1, 1}, weight = *static_shape(tensor_of(arg(e, 1)).shape);
  const auto size = [&](char axis) { return weight[a.kernel_layout.find(axis)]; };
  return a.groups == 1 && a.strides == ones && size('H') == 3 && size('W') == 3 && size('I') >= kWinogradChannels &&
         size('O') >= kWinogradChannels;
}
// Whether the larger tiles of Winograd's float kernels fit a convolution's rows so often that they save more than its
// kernels of halves do. On AVX2 both take the same time at 56x56, floats 1.6 to 2.2 times as long at 14x14 and 7x7,
// where they read more bytes of weights than the cache holds.
bool has_room_for_large_tiles(const Expr& e) {
  const auto& shape = tensor_of(arg(e, 0)).shape;
  const size_t axis = attrs_of<Conv2DAttrs>(e).data_layout.find('W');
  constexpr int64_t kLargeMap = 28;
  return axis >= shape.size() || !shape[axis].is_const() || shape[axis].value() > kLargeMap;
}
}  // namespace

bool gains_by_bytes(const Expr& e, const Target& target) {
  return byte_product(e, target) && (has_byte_instruction(target) || !is_winograd(e) || !has_room_for_large_tiles(e));
}

namespace {

// The product of int16: the zero point is subtracted from the data, so that padding is zero.
std::optional<Expr> as_half_product(const Expr& e, const Tensor& w, const CentredBytes& data, const ByteProduct& p) {
  Tensor halves(kInt16, w.shape());
  for (int64_t i = 0; i < w.size(); ++i) {
    if (w.at_int(i) != static_cast<int16_t>(w.at_int(i))) return std::nullopt;
    halves.set_int(i, w.at_int(i));
  }
  Expr x = cast(data.bytes, kInt16);
  if (data.zero) {
    const auto known = folded_number(data.zero);
    if (known ? std::abs(*known) > kLargestZero : !are_bytes(strip_widening_casts(data.zero))) return std::nullopt;
    if (known != 0) x = both("subtract", x, cast(data.zero, kInt16));
  }
  auto made = try_call(called_op(e)->name, {x, make_constant(halves, e->span)}, p.attrs, e->span);
  return made.ok() ? std::optional(cast(*made, tensor_of(e).dtype)) : std::nullopt;
}

}  // namespace

bool is_half_product(const Expr& e, const Tensor& weight, const Target& target) {
  return has_pair_instruction(target) && tensor_of(arg(e, 0)).dtype == kInt16 && weight.dtype() == kInt16 &&
         tensor_of(e).dtype == kInt32 && byte_product(e, target);
}

std::optional<Expr> as_byte_product(const Expr& e, const Expr& weight, const Target& target) {
  const Tensor* w = constant_data(weight);
  auto data = centred_bytes(arg(e, 0));
  if (!w || w->size() < 2 || !data) return std::nullopt;
  auto p = byte_product(e, target);
  if (!p) return std::nullopt;
  if (!has_byte_instruction(target) && !is_winograd(e)) return as_half_product(e, *w, *data, *p);
  int64_t low = w->at_int(0), high = low;
  for (int64_t i = 0; i < w->size(); ++i) low = std::min(low, w->at_int(i)), high = std::max(high, w->at_int(i));
  const int64_t shift = high > 127 ? high - 127 : low < -128 ? low + 128 : 0;
  if (low - shift < -128 || high - shift > 127 || (shift != 0 && !p->one_group)) return std::nullopt;
  Tensor bytes(kInt8, w->shape());
  for (int64_t i = 0; i < w->size(); ++i) bytes.set_int(i, w->at_int(i) - shift);

  const bool flips = tensor_of(data->bytes).dtype == kInt8;
  Expr x = flips ? flip_to_unsigned(data->bytes) : data->bytes, zero = data->zero ? cast(data->zero, kInt32) : Expr();
  if (flips) zero = zero ? both("add", zero, full_constant(128, kInt32)) : full_constant(128, kInt32);
  const auto known = zero ? folded_number(zero) : std::optional<int64_t>(0);
  if (known) zero = *known == 0 ? Expr() : full_constant(static_cast<double>(*known), kInt32);
  if (zero && p->padded) x = pad_with_zero_point(x, zero, &*p);

  auto made = try_call(called_op(e)->name, {x, make_constant(bytes, weight->span)}, p->attrs, e->span);
  if (!made.ok()) return std::nullopt;
  Expr sum = *made;
  const size_t rank = tensor_of(e).shape.size();
  if (shift != 0) {
    auto of_data = data_sums(e, x, *w, *p);
    if (!of_data) return std::nullopt;
    sum = both("add", sum, both("multiply", *of_data, full_constant(static_cast<double>(shift), kInt32)));
  }
  if (zero) {
    std::vector<int64_t> shares = sums_by_output(*w, p->weight_axis);
    if (known) {
      for (int64_t& share : shares) share *= -*known;
      sum = both("add", sum, broadcast_per_output(shares, *p, rank));
    } else {
      sum = both("subtract", sum, both("multiply", broadcast_per_output(shares, *p, rank), zero));
    }
  }
  return cast(sum, tensor_of(e).dtype);
}

}  // namespace tilewright::relay
