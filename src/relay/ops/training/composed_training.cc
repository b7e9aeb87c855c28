// SPDX-License-Identifier: Apache-2.0
// Composed operators for training: losses, gradients of pools and convolutions, dilation, correlation, buffers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "relay/ops/composition.h"
#include "relay/ops/training/attrs_training.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

Status floats(const TypeArgs& args, size_t i) {
  if (!args.tensor(i).dtype.is_float())
    return type_error(format("operand {} is {}, not floats", i, type_str(args.types[i])));
  return Ok{};
}
// Inserts stride - 1 values between the n elements of an axis.
Expr dilated(Composition* c, const Expr& x, Ints* shape, size_t axis, int64_t stride, const Expr& value) {
  const int64_t n = (*shape)[axis];
  if (stride == 1 || n <= 1) return x;
  std::vector<Ints> widths(shape->size() + 1, {0, 0});
  widths[axis + 1] = {0, stride - 1};
  Expr wide = c->pad(c->expand_dims(x, static_cast<int64_t>(axis) + 1), widths, value);
  (*shape)[axis] = n * stride;
  Expr joined = c->reshape(wide, *shape);
  (*shape)[axis] = (n - 1) * stride + 1;
  return c->slice(joined, static_cast<int64_t>(axis), 0, (*shape)[axis]);
}

constexpr int64_t kLongestStride = 1 << 20;
Result<Expr> expand_dilate(const TypeArgs& args) {
  const auto& a = attrs_of<DilateAttrs>(args);
  Composition c(args);
  Ints shape = TW_TRY(known_sizes(args, 0));
  if (a.strides.size() != shape.size())
    return type_error(format("{} strides for {}", a.strides.size(), shape_str(shape)));
  Expr out = c[0], value = c.number(a.dilation_value, args.tensor(0).dtype);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (a.strides[i] < 1 || a.strides[i] > kLongestStride) return type_error(format("a stride is {}", a.strides[i]));
    out = dilated(&c, out, &shape, i, a.strides[i], value);
  }
  return c.result(out);
}

Result<Expr> expand_nll_loss(const TypeArgs& args) {
  const auto& a = attrs_of<NLLLossAttrs>(args);
  Composition c(args);
  const auto &predictions = args.tensor(0), &targets = args.tensor(1);
  TW_TRY_STATUS(floats(args, 0));
  if (!targets.dtype.is_integral()) return type_error(format("the targets are {}, not integers", targets.dtype.str()));
  if (a.reduction != "mean" && a.reduction != "sum" && a.reduction != "none")
    return type_error(format("the reduction is \"{}\", not mean, sum or none", a.reduction));
  if (predictions.shape.size() < 2 || targets.shape.size() + 1 != predictions.shape.size())
    return type_error(format("targets {} do not fit predictions {}", type_str(args.types[1]), type_str(args.types[0])));
  if (args.tensor(2).shape.size() != 1 || dims_differ(args.tensor(2).shape[0], predictions.shape[1]))
    return type_error(format("weights {} do not fit predictions {}", type_str(args.types[2]), type_str(args.types[0])));
  Expr kept = c.compare("not_equal", c[1], static_cast<double>(a.ignore_index));
  Expr safe = c.where(kept, c[1], c.number(0, targets.dtype));
  Expr chosen = c.call<GatherAttrs>("gather", {c[0], c.expand_dims(safe, 1)}, [](auto& g) { g.axis = 1; });
  chosen = c.call<SqueezeAttrs>("squeeze", {chosen}, [](auto& s) { s.axis = Ints{1}; });
  Expr weight = c.times(c.take(c[2], safe, 0), c.cast(kept, args.tensor(2).dtype));
  Expr loss = c.call("negative", {c.times(chosen, weight)});
  if (a.reduction == "none") return c.result(loss);
  auto total = [&](const Expr& x) { return c.call<ReduceAttrs>("sum", {x}, [](auto&) {}); };
  return c.result(a.reduction == "sum" ? total(loss) : c.divide(total(loss), total(weight)));
}

template <bool kLogits>
Result<Expr> expand_cross_entropy(const TypeArgs& args) {
  Composition c(args);
  TW_TRY_STATUS(floats(args, 0));
  const Ints shape = TW_TRY(known_sizes(args, 0)), other = TW_TRY(known_sizes(args, 1));
  if (shape.size() != 2 || shape != other)
    return type_error(
        format("predictions {} and targets {} are not (batch, classes) both", shape_str(shape), shape_str(other)));
  Expr score = kLogits ? c[0] : c.call("log", {c[0]});
  Expr total = c.call<ReduceAttrs>("sum", {c.times(score, c[1])}, [](auto&) {});
  return c.result(c.call("negative", {c.divide(total, static_cast<double>(shape[0]))}));
}

Result<Expr> expand_fifo_buffer(const TypeArgs& args) {
  Composition c(args);
  const auto& buffer = args.tensor(1).shape;
  const int64_t axis = TW_TRY(checked_axis(attrs_of<FIFOBufferAttrs>(args).axis, buffer.size()));
  const auto& data = args.tensor(0).shape;
  if (data.size() != buffer.size())
    return type_error(format("{} does not fit the buffer {}", type_str(args.types[0]), type_str(args.types[1])));
  const Dim &length = buffer[static_cast<size_t>(axis)], &added = data[static_cast<size_t>(axis)];
  if (!length.is_const() || !added.is_const())
    return Diagnostic(ErrorCode::kFreeDimension, "the lengths of the buffer and of what joins it are not known");
  return c.result(c.slice(c.concatenate({c[1], c[0]}, axis), axis, added.value(), added.value() + length.value()));
}
Result<Type> fifo_buffer_type(const TypeArgs& args) {
  auto expanded = expand_fifo_buffer(args);
  if (expanded.ok()) return (*expanded)->type;
  if (expanded.error().code != ErrorCode::kFreeDimension) return std::move(expanded).error();
  return args.types[1];
}

// Top, left, bottom, right.
Result<Ints> four_paddings(const Ints& padding) {
  Ints p = padding;
  if (p.size() == 1) p.assign(4, p[0]);
  if (p.size() == 2) p = {p[0], p[1], p[0], p[1]};
  if (p.size() != 4 || std::any_of(p.begin(), p.end(), [](int64_t v) { return v < 0 || v > kLongestStride; }))
    return type_error(format("the padding is {}", shape_str(padding)));
  return p;
}

// Correlates patches of two images (mean product or mean absolute difference), one channel per displacement.
Result<Expr> expand_correlation(const TypeArgs& args) {
  const auto& a = attrs_of<CorrelationAttrs>(args);
  Composition c(args);
  const Ints shape = TW_TRY(known_sizes(args, 0));
  TW_TRY_STATUS(floats(args, 0));
  if (a.layout != "NCHW" || shape.size() != 4 || shape != TW_TRY(known_sizes(args, 1)))
    return type_error("it is for two tensors of one shape in the layout NCHW");
  constexpr int64_t kMost = 4096;
  if (a.kernel_size < 1 || a.kernel_size % 2 == 0 || a.kernel_size > 64 || a.stride1 < 1 || a.stride2 < 1 ||
      a.stride1 > kLongestStride || a.max_displacement < 0 || a.max_displacement > kLongestStride)
    return type_error("the kernel is odd, strides are positive and the displacement is not negative");
  const Ints p = TW_TRY(four_paddings(a.padding));
  const int64_t radius = a.max_displacement / a.stride2, half = (a.kernel_size - 1) / 2;
  const int64_t border = a.max_displacement + half, span = 2 * radius + 1;
  if (span > kMost || span * span * a.kernel_size * a.kernel_size > kMost)
    return type_error(format("{} displacements of a kernel of {} are too many", span * span, a.kernel_size));
  const int64_t height = shape[2] + p[0] + p[2], width = shape[3] + p[1] + p[3];
  if (height <= 2 * border || width <= 2 * border) return type_error("it leaves no place; pad more");
  const int64_t rows = (height - 2 * border + a.stride1 - 1) / a.stride1,
                cols = (width - 2 * border + a.stride1 - 1) / a.stride1;
  const Expr zero = c.number(0, args.tensor(0).dtype);
  const std::vector<Ints> widths{{0, 0}, {0, 0}, {p[0], p[2]}, {p[1], p[3]}};
  const Expr first = c.pad(c[0], widths, zero), second = c.pad(c[1], widths, zero);
  auto patch = [&](const Expr& x, int64_t dy, int64_t dx) {
    const int64_t y = a.max_displacement + dy, z = a.max_displacement + dx;
    return c.slice(c.slice(x, 2, y, y + (rows - 1) * a.stride1 + 1, a.stride1), 3, z, z + (cols - 1) * a.stride1 + 1,
                   a.stride1);
  };
  std::vector<Expr> channels;
  for (int64_t dy = -radius; dy <= radius; ++dy)
    for (int64_t dx = -radius; dx <= radius; ++dx) {
      Expr total;
      for (int64_t ky = 0; ky < a.kernel_size; ++ky)
        for (int64_t kx = 0; kx < a.kernel_size; ++kx) {
          Expr u = patch(first, ky, kx), v = patch(second, ky + dy * a.stride2, kx + dx * a.stride2);
          Expr term = a.is_multiply ? c.times(u, v) : c.call("abs", {c.minus(u, v)});
          total = total ? c.plus(total, term) : term;
        }
      channels.push_back(c.sum(total, {1}, true));
    }
  return c.result(c.divide(c.concatenate(channels, 1),
                           static_cast<double>(a.kernel_size * a.kernel_size * std::max<int64_t>(shape[1], 1))));
}

// --- gradients

// The data convolved with the gradient. Of the attributes, data_layout is the gradient's, kernel_layout the data's and
// out_layout the result's.
Result<Expr> expand_conv2d_backward_weight(const TypeArgs& args) {
  const auto& a = attrs_of<Conv2DAttrs>(args);
  Composition c(args);
  const Ints grad = TW_TRY(known_sizes(args, 0)), data = TW_TRY(known_sizes(args, 1));
  if (a.data_layout != "NCHW" || a.kernel_layout != "NCHW" || !(a.out_layout.empty() || a.out_layout == "OIHW"))
    return type_error("the layouts of gradient and data are NCHW, that of the weight is OIHW");
  if (grad.size() != 4 || data.size() != 4 || grad[0] != data[0])
    return type_error(format("the gradient {} and the data {} do not fit", shape_str(grad), shape_str(data)));
  constexpr int64_t kMostGroups = 256;
  if (a.groups < 1 || a.groups > kMostGroups || grad[1] % a.groups != 0 || data[1] % a.groups != 0)
    return type_error(format("{} groups of {} and {} channels", a.groups, grad[1], data[1]));
  if (a.kernel_size && a.kernel_size->size() != 2) return type_error("a kernel has two sizes");
  std::vector<Expr> parts;
  const int64_t out = grad[1] / a.groups, in = data[1] / a.groups;
  for (int64_t g = 0; g < a.groups; ++g) {
    auto turned = [&](const Expr& x, int64_t channels) {
      return c.transpose(a.groups == 1 ? x : c.slice(x, 1, g * channels, (g + 1) * channels), {1, 0, 2, 3});
    };
    parts.push_back(c.call<Conv2DAttrs>("nn.conv2d", {turned(c[1], in), turned(c[0], out)}, [&](auto& conv) {
      conv.strides = a.dilation;
      conv.dilation = a.strides;
      conv.padding = a.padding;
      conv.out_dtype = a.out_dtype;
    }));
  }
  Expr weight = c.transpose(c.concatenate(parts, 1), {1, 0, 2, 3});
  if (a.kernel_size)
    for (size_t i = 0; i < 2; ++i) {
      if (!weight) break;
      // Rows that no strided window reaches would make it larger than the kernel: they are cut off.
      const int64_t size = (*a.kernel_size)[i], made = as_tensor(weight->type)->shape[i + 2].value();
      if (size < 1 || size > made) return type_error(format("a kernel of {} does not fit a result of {}", size, made));
      weight = size == made ? weight : c.slice(weight, static_cast<int64_t>(i) + 2, 0, size);
    }
  return c.result(weight);
}

struct PoolGradient {
  Ints data, grad, pads;          // NCHW; top, left, bottom, right
  int64_t height = 0, width = 0;  // extents of the padded data that windows cover
};
template <class A>
Result<PoolGradient> pool_gradient(const TypeArgs& args, const A& a) {
  PoolGradient g;
  for (size_t i : {size_t{0}, size_t{1}})
    if (std::is_same_v<A, MaxPool2DAttrs>)
      TW_TRY_STATUS(floats(args, i));
    else
      TW_TRY_STATUS(number_dtype(args.tensor(i).dtype));
  g.grad = TW_TRY(known_sizes(args, 0));
  g.data = TW_TRY(known_sizes(args, 1));
  auto of_pool = try_call(std::is_same_v<A, MaxPool2DAttrs> ? "nn.max_pool2d" : "nn.avg_pool2d",
                          {make_var("data", args.types[1])}, AttrsRef(a.clone()));
  if (!of_pool.ok()) return std::move(of_pool).error();
  if (a.layout != "NCHW" || !(a.out_layout.empty() || a.out_layout == "NCHW")) return type_error("the layout is NCHW");
  if (static_shape(as_tensor((*of_pool)->type)->shape) != g.grad)
    return type_error(
        format("the gradient is {}, the pool's result {}", shape_str(g.grad), type_str((*of_pool)->type)));
  g.pads = TW_TRY(four_paddings(a.padding));
  auto reach = [&](size_t i, int64_t size) {
    return std::max(size, (g.grad[i + 2] - 1) * a.strides[i] + (a.pool_size[i] - 1) * a.dilation[i] + 1);
  };
  g.height = reach(0, g.data[2] + g.pads[0] + g.pads[2]);
  g.width = reach(1, g.data[3] + g.pads[1] + g.pads[3]);
  return g;
}
// Scatters x to positions top + i * strides of a padded image.
template <class A>
Expr spread(Composition* c, const PoolGradient& g, const A& a, Expr x, int64_t top, int64_t left) {
  Ints shape = g.grad;
  const Expr zero = x ? c->number(0, as_tensor(x->type)->dtype) : x;
  for (size_t i = 0; i < 2; ++i) x = dilated(c, x, &shape, i + 2, a.strides[i], zero);
  return c->pad(x, {{0, 0}, {0, 0}, {top, g.height - top - shape[2]}, {left, g.width - left - shape[3]}}, zero);
}
Expr without_padding(Composition* c, const PoolGradient& g, const Expr& x) {
  return c->slice(c->slice(x, 2, g.pads[0], g.pads[0] + g.data[2]), 3, g.pads[1], g.pads[1] + g.data[3]);
}

// Each window's gradient goes to its first largest element.
Result<Expr> expand_max_pool2d_grad(const TypeArgs& args) {
  const auto& a = attrs_of<MaxPool2DAttrs>(args);
  Composition c(args);
  const PoolGradient g = TW_TRY(pool_gradient(args, a));
  constexpr int64_t kMostTaps = 1024;
  if (a.pool_size[0] * a.pool_size[1] > kMostTaps)
    return type_error(format("windows of {} elements are too large", a.pool_size[0] * a.pool_size[1]));
  const DataType dtype = args.tensor(1).dtype;
  Expr padded = c.pad(
      c[1],
      {{0, 0}, {0, 0}, {g.pads[0], g.height - g.pads[0] - g.data[2]}, {g.pads[1], g.width - g.pads[1] - g.data[3]}},
      c.number(-std::numeric_limits<double>::infinity(), dtype));
  std::vector<Expr> taps;
  Expr largest;
  for (int64_t y = 0; y < a.pool_size[0]; ++y)
    for (int64_t x = 0; x < a.pool_size[1]; ++x) {
      const int64_t top = y * a.dilation[0], left = x * a.dilation[1];
      taps.push_back(c.slice(c.slice(padded, 2, top, top + (g.grad[2] - 1) * a.strides[0] + 1, a.strides[0]), 3, left,
                             left + (g.grad[3] - 1) * a.strides[1] + 1, a.strides[1]));
      largest = largest ? c.call("maximum", {largest, taps.back()}) : taps.back();
    }
  Expr found, total;
  const Expr zero = c.number(0, args.tensor(0).dtype);
  for (size_t i = 0; i < taps.size(); ++i) {
    Expr is = c.call("equal", {taps[i], largest});
    Expr first = found ? c.call("logical_and", {is, c.call("logical_not", {found})}) : is;
    found = found ? c.call("logical_or", {found, is}) : is;
    const auto at = static_cast<int64_t>(i);
    Expr part = spread(&c, g, a, c.where(first, c[0], zero), at / a.pool_size[1] * a.dilation[0],
                       at % a.pool_size[1] * a.dilation[1]);
    total = total ? c.plus(total, part) : part;
  }
  return c.result(without_padding(&c, g, total));
}

// Each gradient is shared equally among its window: window sums over the zero-dilated gradients.
Result<Expr> expand_avg_pool2d_grad(const TypeArgs& args) {
  const auto& a = attrs_of<AvgPool2DAttrs>(args);
  Composition c(args);
  const PoolGradient g = TW_TRY(pool_gradient(args, a));
  TW_TRY_STATUS(fits_constant({g.grad[2], g.grad[3]}));
  std::vector<double> counts[2];
  for (size_t i = 0; i < 2; ++i)
    for (int64_t o = 0; o < g.grad[i + 2]; ++o) {
      // Padding counts if the attribute says so; positions beyond the padding never do.
      const int64_t first = o * a.strides[i] - g.pads[i];
      const int64_t begin = a.count_include_pad ? -g.pads[i] : 0,
                    end = g.data[i + 2] + (a.count_include_pad ? g.pads[i + 2] : 0);
      int64_t n = 0;
      for (int64_t k = 0; k < a.pool_size[i]; ++k) {
        const int64_t at = first + k * a.dilation[i];
        n += at >= begin && at < end;
      }
      counts[i].push_back(static_cast<double>(std::max<int64_t>(n, 1)));
    }
  std::vector<double> shares;
  const double taps = static_cast<double>(a.pool_size[0]) * static_cast<double>(a.pool_size[1]);
  for (double y : counts[0])
    for (double x : counts[1]) shares.push_back(taps / (x * y));  // the pool below divides by the number of taps
  const DataType dtype = args.tensor(0).dtype;
  // Integers: each element's share is divided, and rounded, by itself.
  if (dtype.is_integral())
    for (double& share : shares) share = std::round(taps / share);
  Expr numbers = c.numbers(shares, {g.grad[2], g.grad[3]}, dtype);
  Expr shared = dtype.is_integral() ? c.times(c.call("divide", {c[0], numbers}), taps) : c.times(c[0], numbers);
  const int64_t over[2] = {(a.pool_size[0] - 1) * a.dilation[0], (a.pool_size[1] - 1) * a.dilation[1]};
  Expr wide = c.pad(spread(&c, g, a, shared, 0, 0), {{0, 0}, {0, 0}, {over[0], 0}, {over[1], 0}}, c.number(0, dtype));
  Expr sums = c.call<AvgPool2DAttrs>("nn.avg_pool2d", {wide}, [&](auto& pool) {
    pool.pool_size = a.pool_size;
    pool.dilation = a.dilation;
    pool.count_include_pad = true;
  });
  return c.result(without_padding(&c, g, sums));
}

Result<Expr> expand_upsampling3d(const TypeArgs& args) {
  const auto& a = attrs_of<UpSampling3DAttrs>(args);
  Composition c(args);
  const Shape& shape = args.tensor(0).shape;
  const bool nearest = a.method == "nearest_neighbor";
  if (!nearest && a.method != "trilinear")
    return type_error(format("the method is \"{}\", not nearest_neighbor or trilinear", a.method));
  if (shape.size() != 5 || a.layout.size() != 5)
    return type_error(format("layout \"{}\" for {}", a.layout, shape_str(shape)));
  Ints size;
  const std::pair<char, double> scales[] = {{'D', a.scale_d}, {'H', a.scale_h}, {'W', a.scale_w}};
  for (auto [letter, scale] : scales) {
    const size_t axis = a.layout.find(letter);
    if (axis == std::string::npos) return type_error(format("layout \"{}\" has no {}", a.layout, letter));
    if (!shape[axis].is_const())
      return Diagnostic(ErrorCode::kFreeDimension,
                        format("the size of '{}' in {} is not known", letter, shape_str(shape)));
    const double made = std::round(static_cast<double>(shape[axis].value()) * scale);
    if (!(scale > 0) || !(made < 1e9)) return type_error(format("a scale is {}", scale));
    size.push_back(static_cast<int64_t>(made));
  }
  return c.result(c.call<Resize3DAttrs>("image.resize3d", {c[0]}, [&](auto& r) {
    r.size = size;
    r.layout = a.layout;
    r.method = nearest ? a.method : "linear";
    r.coordinate_transformation_mode = nearest ? "asymmetric" : a.coordinate_transformation_mode;
    if (nearest) r.rounding_method = "floor";
  }));
}
// Free sizes times whole scales are known, too.
Result<Type> upsampling3d_type(const TypeArgs& args) {
  const auto& a = attrs_of<UpSampling3DAttrs>(args);
  Shape shape = args.tensor(0).shape;
  if (static_shape(shape) || shape.size() != 5 || a.layout.size() != 5) return TW_TRY(expand_upsampling3d(args))->type;
  const std::pair<char, double> scales[] = {{'D', a.scale_d}, {'H', a.scale_h}, {'W', a.scale_w}};
  for (auto [letter, scale] : scales) {
    const size_t axis = a.layout.find(letter);
    if (axis == std::string::npos) return type_error(format("layout \"{}\" has no {}", a.layout, letter));
    if (!(scale > 0) || scale > 65536) return type_error(format("a scale is {}", scale));
    if (scale == std::floor(scale))
      shape[axis] = shape[axis] * Dim(static_cast<int64_t>(scale));
    else if (shape[axis].is_const())
      shape[axis] = static_cast<int64_t>(std::round(static_cast<double>(shape[axis].value()) * scale));
    else
      shape[axis] = Dim::any();
  }
  return tensor_type(std::move(shape), args.tensor(0).dtype);
}

}  // namespace

std::vector<OpDef> composed_training_ops() {
  constexpr OpPattern kFusable = OpPattern::kOutEWiseFusable, kInj = OpPattern::kInjective,
                      kOpaque = OpPattern::kOpaque;
  const std::vector<ArgDoc> two = {{"predictions", "(batch, classes) floats"}, {"targets", "the same shape"}};
  const std::vector<ArgDoc> gradient = {{"out_grad", "of the pool's result"},
                                        {"data", "(N, C, H, W), what was pooled"}};
  return {
      define_composed("nn.dilate", "strides[i] - 1 values between the elements of axis i.", {{"data", "numbers"}}, kInj,
                      expand_dilate, make_default_attrs<DilateAttrs>),
      define_composed("nn.nll_loss", "-weights[target] * prediction[target], its sum, or its mean by weight.",
                      {{"predictions", "(batch, classes, ...) floats"},
                       {"targets", "(batch, ...) integers"},
                       {"weights", "(classes)"}},
                      kFusable, expand_nll_loss, make_default_attrs<NLLLossAttrs>),
      define_composed("nn.cross_entropy", "-sum(log(predictions) * targets) / batch: a scalar.", two, kOpaque,
                      expand_cross_entropy<false>),
      define_composed("nn.cross_entropy_with_logits", "-sum(predictions * targets) / batch: a scalar.", two, kOpaque,
                      expand_cross_entropy<true>),
      define_composed("nn.fifo_buffer", "The buffer with data joined at its end, without as much at its beginning.",
                      {{"data", "any dtype"}, {"buffer", "as data, but for the axis"}}, kOpaque, expand_fifo_buffer,
                      make_default_attrs<FIFOBufferAttrs>, fifo_buffer_type),
      define_composed("nn.correlation", "How alike patches of two images are, a channel for each displacement.",
                      {{"data1", "(N, C, H, W) floats"}, {"data2", "the same shape"}}, kFusable, expand_correlation,
                      make_default_attrs<CorrelationAttrs>),
      define_composed("nn.conv2d_backward_weight", "The gradient of a 2-D convolution by its weight.",
                      {{"grad", "(N, O, OH, OW), of the convolution's result"}, {"data", "(N, C, H, W)"}}, kFusable,
                      expand_conv2d_backward_weight, make_default_attrs<Conv2DAttrs>),
      define_composed("nn.max_pool2d_grad", "The gradient of nn.max_pool2d by its data.", gradient, kFusable,
                      expand_max_pool2d_grad, make_default_attrs<MaxPool2DAttrs>),
      define_composed("nn.avg_pool2d_grad", "The gradient of nn.avg_pool2d by its data.", gradient, kFusable,
                      expand_avg_pool2d_grad, make_default_attrs<AvgPool2DAttrs>),
      define_composed("nn.upsampling3d", "D, H and W times a scale each.", {{"data", "5-D, in the layout"}}, kInj,
                      expand_upsampling3d, make_default_attrs<UpSampling3DAttrs>, upsampling3d_type),
  };
}

}  // namespace tilewright::relay
