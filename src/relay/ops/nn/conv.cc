// SPDX-License-Identifier: Apache-2.0
// Convolutions and transposed convolutions, plain and with blocked channels.
#include <algorithm>

#include "base/checked.h"
#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/nn/convolution.h"
#include "relay/ops/nn/weight_types.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

std::string layout_letters(const Layout& layout) {
  std::string out;
  for (const auto& axis : layout.axes)
    if (axis.factor == 0) out += axis.letter;
  std::sort(out.begin(), out.end());
  return out;
}

Status require_letters(const Layout& layout, const char* head, size_t spatial, const char* what) {
  std::string want = std::string(head) + spatial_letters(spatial);
  std::sort(want.begin(), want.end());
  if (layout_letters(layout) != want)
    return type_error(
        format("{} \"{}\" does not have the axes {}{}", what, layout.text, head, spatial_letters(spatial)));
  return Ok{};
}

Status fits_layout(const Shape& shape, const Layout& layout, const char* what) {
  if (shape.size() != layout.rank())
    return type_error(format("{} {} is not in layout {}", what, shape_str(shape), layout.text));
  for (size_t i = 0; i < shape.size(); ++i)
    if (layout.axes[i].factor && dims_differ(shape[i], Dim(layout.axes[i].factor)))
      return type_error(format("{} {} is not in layout {}", what, shape_str(shape), layout.text));
  return Ok{};
}

Result<int64_t> constant_dim(const Dim& d, const char* what) {
  if (!d.is_const()) return type_error(format("{} must be constant, not {}", what, d.str()));
  return d.value();
}

// The data's channels; where unknown, those that the kernel takes.
Result<int64_t> data_channels(const Layout& data, const Shape& shape, int64_t kernel_channels, int64_t groups) {
  const Dim channels = data.extent('C', shape);
  int64_t taken = 0;
  if (!channels.is_const() && data.block('C') == 1 && checked_mul(kernel_channels, groups, &taken)) return taken;
  return constant_dim(channels, "the number of input channels");
}

// Copies the fields that all convolutions' attributes share.
template <class A>
Status fill(ConvSpec* s, const A& a, size_t spatial) {
  s->spatial = spatial;
  s->strides = a.strides;
  s->dilation = a.dilation;
  s->groups = a.groups;
  s->padding = TW_TRY(full_padding(a.padding, spatial));
  TW_TRY_STATUS(checked_window("strides", a.strides, spatial));
  TW_TRY_STATUS(checked_window("dilation", a.dilation, spatial));
  s->data = TW_TRY(parse_layout(a.data_layout));
  s->kernel = TW_TRY(parse_layout(a.kernel_layout));
  s->out = TW_TRY(parse_layout(a.out_layout.empty() ? a.data_layout : a.out_layout));
  TW_TRY_STATUS(require_letters(s->data, "NC", spatial, "data_layout"));
  TW_TRY_STATUS(require_letters(s->kernel, "OI", spatial, "kernel_layout"));
  TW_TRY_STATUS(require_letters(s->out, "NC", spatial, "out_layout"));
  if (a.groups < 1) return type_error(format("groups is {}", a.groups));
  return Ok{};
}

std::optional<int64_t> logical_in(const Conv2DNCHWcAttrs& a) { return a.in_channels; }
template <class A>
std::optional<int64_t> logical_in(const A&) {
  return std::nullopt;
}

// Blocked data may be padded to more channels than the kernel takes; otherwise the kernel must take all of them.
int64_t channels_in(int64_t physical, int64_t block, int64_t kernel_channels) {
  int64_t room = 0;
  const bool padded =
      checked_mul(kernel_channels / block + (kernel_channels % block != 0), block, &room) && room == physical;
  return padded ? kernel_channels : physical;
}

Diagnostic too_many_channels(const TensorTypeNode& kernel) {
  return type_error(format("the kernel {} has more channels than can be counted", shape_str(kernel.shape)));
}

// Completes the spec from the operands' types and checks it. `physical` counts include the padding of a blocked axis.
template <class A>
Result<ConvSpec> conv_spec(const A& a, size_t spatial, const TensorTypeNode& data, const TensorTypeNode& kernel) {
  ConvSpec s;
  TW_TRY_STATUS(fill(&s, a, spatial));
  TW_TRY_STATUS(fits_layout(data.shape, s.data, "data"));
  TW_TRY_STATUS(fits_layout(kernel.shape, s.kernel, "kernel"));
  const int64_t o = TW_TRY(constant_dim(s.kernel.extent('O', kernel.shape), "the kernel's output channels"));
  const int64_t i = TW_TRY(constant_dim(s.kernel.extent('I', kernel.shape), "the kernel's input channels"));
  const int64_t in_physical = TW_TRY(data_channels(s.data, data.shape, i, s.groups));
  s.channels = a.channels.value_or(o);
  int64_t kernel_channels = 0;
  // The classic depthwise kernel with several filters per channel: (channels, filters, ...).
  if (s.groups > 1 && o == s.groups && in_physical == s.groups && i > 1 && s.channels != o &&
      checked_mul(o, i, &kernel_channels) && kernel_channels == s.channels && s.kernel.block('O') == 1 &&
      s.kernel.block('I') == 1) {
    s.in_channels = in_physical;
    s.filters = i;
    return s;
  }
  if (!checked_mul(i, s.groups, &kernel_channels)) return too_many_channels(kernel);
  s.in_channels = logical_in(a).value_or(channels_in(in_physical, s.data.block('C'), kernel_channels));
  auto fits = [](int64_t logical, int64_t physical, int64_t block) {
    return logical >= 0 && logical <= physical && (logical + block - 1) / block * block == physical;
  };
  if (!fits(s.in_channels, in_physical, s.data.block('C')))
    return type_error(format("data {} does not have {} input channels", shape_str(data.shape), s.in_channels));
  if (!fits(s.channels, o, s.kernel.block('O')))
    return type_error(format("channels is {}, but the kernel {} has {}", s.channels, shape_str(kernel.shape), o));
  if (s.in_channels % s.groups || s.channels % s.groups)
    return type_error(
        format("{} input and {} output channels do not divide into {} groups", s.in_channels, s.channels, s.groups));
  if (!fits(s.in_channels / s.groups, i, s.kernel.block('I')))
    return type_error(format("data {} has {} channels in {} group{}, but the kernel {} takes {}", shape_str(data.shape),
                             s.in_channels, s.groups, s.groups == 1 ? "" : "s", shape_str(kernel.shape), i));
  return s;
}

Status check_kernel_size(const std::optional<std::vector<int64_t>>& kernel_size, const ConvSpec& s, const Shape& kernel,
                         size_t spatial) {
  if (!kernel_size) return Ok{};
  const char* letters = spatial_letters(spatial);
  if (kernel_size->size() != spatial)
    return type_error(format("kernel_size has {} values for {} spatial axes", kernel_size->size(), spatial));
  for (size_t k = 0; k < spatial; ++k)
    if (dims_differ(Dim((*kernel_size)[k]), s.kernel.extent(letters[k], kernel)))
      return type_error(format("kernel_size {} differs from the kernel {} in axis {}", (*kernel_size)[k],
                               shape_str(kernel), letters[k]));
  return Ok{};
}

// The type for a kernel whose sizes only a run has: what the attributes do not say is unknown.
template <class A>
Result<Type> type_for_free_kernel(const A& a, size_t spatial, const TypeArgs& args) {
  const auto &data = args.tensor(0), &kernel = args.tensor(1);
  ConvSpec s;
  TW_TRY_STATUS(fill(&s, a, spatial));
  TW_TRY_STATUS(fits_layout(data.shape, s.data, "data"));
  TW_TRY_STATUS(fits_layout(kernel.shape, s.kernel, "kernel"));
  TW_TRY_STATUS(check_kernel_size(a.kernel_size, s, kernel.shape, spatial));
  TW_TRY_STATUS(product_dtypes(args));
  const Dim o = s.kernel.extent('O', kernel.shape);
  Shape canonical{s.data.extent('N', data.shape), a.channels ? Dim(*a.channels) : o.is_const() ? o : Dim::any()};
  const char* letters = spatial_letters(spatial);
  for (size_t k = 0; k < spatial; ++k) {
    Dim size = a.kernel_size ? Dim((*a.kernel_size)[k]) : s.kernel.extent(letters[k], kernel.shape);
    if (!size.is_const()) {
      canonical.push_back(Dim::any());
      continue;
    }
    canonical.push_back(TW_TRY(window_output(s.data.extent(letters[k], data.shape), size.value(), s.strides[k],
                                             s.dilation[k], s.padding[k], s.padding[k + spatial])));
  }
  Layout plain = TW_TRY(parse_layout(std::string("NC") + letters));
  return tensor_type(TW_TRY(relayout_shape(plain, s.out, canonical)), TW_TRY(number_dtype_or(a.out_dtype, data.dtype)));
}

template <class A, size_t kSpatial>
Result<Type> conv_type(const TypeArgs& args) {
  const auto& a = attrs_of<A>(args);
  const auto &data = args.tensor(0), &kernel = args.tensor(1);
  if (!std::all_of(kernel.shape.begin(), kernel.shape.end(), [](const Dim& d) { return d.is_const(); }))
    return type_for_free_kernel(a, kSpatial, args);
  ConvSpec s = TW_TRY(conv_spec(a, kSpatial, data, kernel));
  TW_TRY_STATUS(check_kernel_size(a.kernel_size, s, kernel.shape, kSpatial));
  DataType out_dtype = TW_TRY(number_dtype_or(a.out_dtype, data.dtype));
  TW_TRY_STATUS(product_dtypes(args));
  Shape canonical{s.data.extent('N', data.shape), Dim(s.channels)};
  const char* letters = spatial_letters(kSpatial);
  for (size_t k = 0; k < kSpatial; ++k) {
    int64_t size = TW_TRY(constant_dim(s.kernel.extent(letters[k], kernel.shape), "the kernel's size"));
    if (size < 1) return type_error(format("the kernel {} is empty", shape_str(kernel.shape)));
    canonical.push_back(TW_TRY(window_output(s.data.extent(letters[k], data.shape), size, s.strides[k], s.dilation[k],
                                             s.padding[k], s.padding[k + kSpatial])));
  }
  Layout plain = TW_TRY(parse_layout(std::string("NC") + letters));
  return tensor_type(TW_TRY(relayout_shape(plain, s.out, canonical)), out_dtype);
}

TensorTypeNode value_type(const Value& v) { return TensorTypeNode(to_shape(v.shape), v.dtype); }

template <class A, size_t kSpatial>
Result<std::vector<Value>> eval_conv(const EvalArgs& args) {
  ConvSpec s = TW_TRY(conv_spec(args.as<A>(), kSpatial, value_type(args.inputs[0]), value_type(args.inputs[1])));
  return one(convolve(s, args.inputs[0], args.inputs[1], out_tensor(args).dtype));
}

template <class A>
Result<ConvSpec> transpose_spec(const A& a, size_t spatial, const TensorTypeNode& data, const TensorTypeNode& kernel) {
  ConvSpec s;
  TW_TRY_STATUS(fill(&s, a, spatial));
  TW_TRY_STATUS(checked_window("output_padding", a.output_padding, spatial, 0));
  s.transposed = true;
  s.output_padding = a.output_padding;
  TW_TRY_STATUS(fits_layout(data.shape, s.data, "data"));
  TW_TRY_STATUS(fits_layout(kernel.shape, s.kernel, "kernel"));
  s.kernel = TW_TRY(parse_layout(transposed_kernel_layout(s.kernel.text)));
  const int64_t i = TW_TRY(constant_dim(s.kernel.extent('I', kernel.shape), "the kernel's input channels"));
  const int64_t in_physical = TW_TRY(data_channels(s.data, data.shape, i, 1));
  const int64_t o = TW_TRY(constant_dim(s.kernel.extent('O', kernel.shape), "the kernel's output channels"));
  if (!checked_mul(o, s.groups, &s.channels)) return too_many_channels(kernel);
  s.in_channels = channels_in(in_physical, s.data.block('C'), i);
  if (a.channels && *a.channels != s.channels)
    return type_error(
        format("channels is {}, but the kernel {} gives {}", *a.channels, shape_str(kernel.shape), s.channels));
  if (i != s.in_channels || i % s.groups)
    return type_error(format("data {} has {} channels, but the kernel {} takes {} in {} groups", shape_str(data.shape),
                             s.in_channels, shape_str(kernel.shape), i, s.groups));
  return s;
}

template <class A, size_t kSpatial>
Result<Type> transpose_type(const TypeArgs& args) {
  const auto& a = attrs_of<A>(args);
  const auto &data = args.tensor(0), &kernel = args.tensor(1);
  ConvSpec s = TW_TRY(transpose_spec(a, kSpatial, data, kernel));
  TW_TRY_STATUS(check_kernel_size(a.kernel_size, s, kernel.shape, kSpatial));
  DataType out_dtype = TW_TRY(number_dtype_or(a.out_dtype, data.dtype));
  TW_TRY_STATUS(product_dtypes(args));
  Shape canonical{s.data.extent('N', data.shape), Dim(s.channels)};
  const char* letters = spatial_letters(kSpatial);
  for (size_t k = 0; k < kSpatial; ++k) {
    int64_t size = TW_TRY(constant_dim(s.kernel.extent(letters[k], kernel.shape), "the kernel's size"));
    Dim in = s.data.extent(letters[k], data.shape);
    Dim out = (in + Dim(-1)) * Dim(s.strides[k]) +
              Dim((size - 1) * s.dilation[k] + 1 - s.padding[k] - s.padding[k + kSpatial] + s.output_padding[k]);
    if (out.is_const() && out.value() < 0)
      return type_error(format("the padding leaves {} elements of axis {}", out.value(), letters[k]));
    canonical.push_back(std::move(out));
  }
  Layout plain = TW_TRY(parse_layout(std::string("NC") + letters));
  return tensor_type(TW_TRY(relayout_shape(plain, s.out, canonical)), out_dtype);
}

template <class A, size_t kSpatial>
Result<std::vector<Value>> eval_transpose(const EvalArgs& args) {
  ConvSpec s = TW_TRY(transpose_spec(args.as<A>(), kSpatial, value_type(args.inputs[0]), value_type(args.inputs[1])));
  return one(convolve(s, args.inputs[0], args.inputs[1], out_tensor(args).dtype));
}

template <class A>
OpDef conv(const char* name, const char* doc, Result<Type> (*type)(const TypeArgs&),
           Result<std::vector<Value>> (*eval)(const EvalArgs&)) {
  return define_op(name, doc, {{"data", "in data_layout; a floating or integer dtype"}, {"weight", "in kernel_layout"}},
                   OpPattern::kOutEWiseFusable, type, eval, make_default_attrs<A>);
}

}  // namespace

std::vector<OpDef> conv_ops() {
  return {
      conv<Conv1DAttrs>("nn.conv1d", "1-D convolution: (N, C, W) x (O, C/groups, kw) -> (N, O, W').",
                        conv_type<Conv1DAttrs, 1>, eval_conv<Conv1DAttrs, 1>)
          .with({.narrowing = Narrowing::kAlways, .operand_type = convolution_weight<Conv1DAttrs>}),
      conv<Conv2DAttrs>("nn.conv2d", "2-D convolution: (N, C, H, W) x (O, C/groups, kh, kw) -> (N, O, H', W').",
                        conv_type<Conv2DAttrs, 2>, eval_conv<Conv2DAttrs, 2>)
          .with({.narrowing = Narrowing::kAlways, .operand_type = convolution_weight<Conv2DAttrs>}),
      conv<Conv3DAttrs>("nn.conv3d",
                        "3-D convolution: (N, C, D, H, W) x (O, C/groups, kd, kh, kw) -> (N, O, D', H', W').",
                        conv_type<Conv3DAttrs, 3>, eval_conv<Conv3DAttrs, 3>)
          .with({.narrowing = Narrowing::kAlways, .operand_type = convolution_weight<Conv3DAttrs>}),
      conv<Conv2DNCHWcAttrs>(
          "nn.contrib_conv2d_NCHWc",
          "2-D convolution over channel blocks: (N, C/v, H, W, v) x (O/v, C/v, kh, kw, v, v) -> (N, O/v, H', W', v).",
          conv_type<Conv2DNCHWcAttrs, 2>, eval_conv<Conv2DNCHWcAttrs, 2>),
      conv<Conv2DNCHWcAttrs>("nn.contrib_depthwise_conv2d_NCHWc",
                             "Depthwise convolution over channel blocks: (N, C/v, H, W, v) x (C/v, 1, kh, kw, 1, v) -> "
                             "(N, C/v, H', W', v).",
                             conv_type<Conv2DNCHWcAttrs, 2>, eval_conv<Conv2DNCHWcAttrs, 2>),
      conv<Conv1DTransposeAttrs>("nn.conv1d_transpose",
                                 "Transposed 1-D convolution: (N, C, W) x (C, O/groups, kw) -> (N, O, W').",
                                 transpose_type<Conv1DTransposeAttrs, 1>, eval_transpose<Conv1DTransposeAttrs, 1>)
          .with({.narrowing = Narrowing::kAlways, .operand_type = convolution_weight<Conv1DTransposeAttrs, true>}),
      conv<Conv2DTransposeAttrs>("nn.conv2d_transpose",
                                 "Transposed 2-D convolution: (N, C, H, W) x (C, O/groups, kh, kw) -> (N, O, H', W').",
                                 transpose_type<Conv2DTransposeAttrs, 2>, eval_transpose<Conv2DTransposeAttrs, 2>)
          .with({.narrowing = Narrowing::kAlways, .operand_type = convolution_weight<Conv2DTransposeAttrs, true>}),
      conv<Conv3DTransposeAttrs>(
          "nn.conv3d_transpose",
          "Transposed 3-D convolution: (N, C, D, H, W) x (C, O/groups, kd, kh, kw) -> (N, O, D', H', W').",
          transpose_type<Conv3DTransposeAttrs, 3>, eval_transpose<Conv3DTransposeAttrs, 3>)
          .with({.narrowing = Narrowing::kAlways, .operand_type = convolution_weight<Conv3DTransposeAttrs, true>}),
  };
}

}  // namespace tilewright::relay
