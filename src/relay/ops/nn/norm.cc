// SPDX-License-Identifier: Apache-2.0
// Softmax and normalisations. Kernels exist for softmax as a
// whole; batch_norm and dropout are expanded before fusion.
#include <algorithm>

#include "relay/ops/attrs.h"
#include "relay/ops/define.h"
#include "relay/ops/nn/weight_types.h"
#include "relay/ops/reference.h"
#include "relay/ops/typing.h"

namespace tilewright::relay {
namespace {

Status require_float(const TypeArgs& args) {
  DataType t = args.tensor(0).dtype;
  if (!t.is_float()) return type_error(format("it needs a floating dtype, not {}", t.str()));
  return Ok{};
}

// A tensor viewed as (outer, n, inner) around one axis.
struct AxisView {
  int64_t outer, n, inner;
  AxisView(const std::vector<int64_t>& shape, int64_t axis) {
    const size_t k = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
    outer = product(shape, 0, k);
    n = shape[k];
    inner = product(shape, k + 1, shape.size());
  }
};

Result<Type> softmax_type(const TypeArgs& args) {
  TW_TRY_STATUS(require_float(args));
  TW_TRY(checked_axis(attrs_of<SoftmaxAttrs>(args).axis, args.tensor(0).shape.size()));
  return args.types[0];
}

template <bool kLog>
Result<std::vector<Value>> eval_softmax(const EvalArgs& args) {
  const Value& x = args.inputs[0];
  Value out = make_value(x.dtype, x.shape);
  out.bound.resize(out.f.size());
  AxisView v(x.shape, args.as<SoftmaxAttrs>().axis);
  const double u = 8 * unit_roundoff(x.dtype);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t in = 0; in < v.inner; ++in) {
      auto at = [&](int64_t j) { return (o * v.n + j) * v.inner + in; };
      double top = -HUGE_VAL, sum = 0, spread = 0;
      for (int64_t j = 0; j < v.n; ++j) top = std::fmax(top, x.f[at(j)]);
      for (int64_t j = 0; j < v.n; ++j) sum += std::exp(x.f[at(j)] - top);
      // d softmax_i = y_i (dx_i - sum of y_j dx_j)
      for (int64_t j = 0; j < v.n && !x.bound.empty(); ++j) spread += std::exp(x.f[at(j)] - top) / sum * x.bound[at(j)];
      for (int64_t j = 0; j < v.n; ++j) {
        const double shifted = x.f[at(j)] - top, y = std::exp(shifted) / sum, moved = bound_at(x, at(j)) + spread;
        out.f[at(j)] = kLog ? shifted - std::log(sum) : y;
        const double bound = kLog ? moved + u * (1 + std::fabs(shifted)) : y * (moved + u * (1 + std::fabs(shifted)));
        out.bound[at(j)] = std::isfinite(bound) ? bound : 0;
      }
    }
  return one(std::move(out));
}

// Operand i must be a vector whose size is that of the data's `axis`.
Status channel_vector(const TypeArgs& args, size_t i, int64_t axis, const char* name) {
  const auto &x = args.tensor(0), &v = args.tensor(i);
  if (v.shape.size() != 1 || dims_differ(v.shape[0], x.shape[static_cast<size_t>(axis)]))
    return type_error(format("{} is {}, but axis {} of the data {} has {}", name, shape_str(v.shape), axis,
                             shape_str(x.shape), x.shape[static_cast<size_t>(axis)].str()));
  if (!v.dtype.is_float()) return type_error(format("{} is {}, not a floating dtype", name, v.dtype.str()));
  return Ok{};
}

Result<Type> batch_norm_type(const TypeArgs& args) {
  TW_TRY_STATUS(require_float(args));
  int64_t axis = TW_TRY(checked_axis(attrs_of<BatchNormAttrs>(args).axis, args.tensor(0).shape.size()));
  const char* names[] = {"data", "gamma", "beta", "moving_mean", "moving_var"};
  for (size_t i = 1; i < 5; ++i) TW_TRY_STATUS(channel_vector(args, i, axis, names[i]));
  return tuple_type({args.types[0], args.types[3], args.types[4]});
}
Result<std::vector<Value>> eval_batch_norm(const EvalArgs& args) {
  const auto& a = args.as<BatchNormAttrs>();
  const Value &x = args.inputs[0], &gamma = args.inputs[1], &beta = args.inputs[2], &mean = args.inputs[3],
              &var = args.inputs[4];
  Value out = make_value(x.dtype, x.shape);
  out.bound.resize(out.f.size());
  AxisView v(x.shape, a.axis);
  const double u = 4 * unit_roundoff(x.dtype);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t c = 0; c < v.n; ++c) {
      const double scale = (a.scale ? gamma.f[c] : 1) / std::sqrt(var.f[c] + a.epsilon),
                   shift = a.center ? beta.f[c] : 0;
      for (int64_t i = (o * v.n + c) * v.inner, end = i + v.inner; i < end; ++i) {
        out.f[i] = (x.f[i] - mean.f[c]) * scale + shift;
        out.bound[i] = std::fabs(scale) * bound_at(x, i) +
                       u * ((std::fabs(x.f[i]) + std::fabs(mean.f[c])) * std::fabs(scale) + std::fabs(shift));
      }
    }
  std::vector<Value> all;
  all.push_back(std::move(out));
  all.push_back(mean);
  all.push_back(var);
  return all;
}

// Normalises n elements at `index(j)`, with scale and shift per element.
template <class Index, class Gamma, class Beta>
void normalize(const Value& x, Value* out, int64_t n, double epsilon, Index&& index, Gamma&& gamma, Beta&& beta) {
  double mean = 0, var = 0, spread = 0;
  for (int64_t j = 0; j < n; ++j) mean += x.f[index(j)];
  mean /= static_cast<double>(n);
  for (int64_t j = 0; j < n; ++j) {
    const double d = x.f[index(j)] - mean, b = bound_at(x, index(j));
    var += d * d;
    spread += b * b;
  }
  const double r = 1 / std::sqrt(var / static_cast<double>(n) + epsilon),
               shared = std::sqrt(spread) / static_cast<double>(n);
  const double u = 8 * unit_roundoff(x.dtype);
  for (int64_t j = 0; j < n; ++j) {
    const int64_t i = index(j);
    const double hat = (x.f[i] - mean) * r, g = gamma(j), b = beta(j);
    out->f[i] = hat * g + b;
    // Errors move mean and variance by the elements' root-mean-square error over sqrt(n).
    out->bound[i] = std::fabs(g) * r * (bound_at(x, i) + shared * (1 + std::fabs(hat))) +
                    u * (std::fabs(g) * r * (std::fabs(x.f[i]) + std::fabs(mean)) + std::fabs(g * hat) + std::fabs(b));
  }
}

Result<Type> layer_norm_type(const TypeArgs& args) {
  TW_TRY_STATUS(require_float(args));
  int64_t axis = TW_TRY(checked_axis(attrs_of<LayerNormAttrs>(args).axis, args.tensor(0).shape.size()));
  TW_TRY_STATUS(channel_vector(args, 1, axis, "gamma"));
  TW_TRY_STATUS(channel_vector(args, 2, axis, "beta"));
  return args.types[0];
}
Result<std::vector<Value>> eval_layer_norm(const EvalArgs& args) {
  const auto& a = args.as<LayerNormAttrs>();
  const Value &x = args.inputs[0], &gamma = args.inputs[1], &beta = args.inputs[2];
  Value out = make_value(x.dtype, x.shape);
  out.bound.resize(out.f.size());
  AxisView v(x.shape, a.axis);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t in = 0; in < v.inner; ++in)
      normalize(
          x, &out, v.n, a.epsilon, [&](int64_t j) { return (o * v.n + j) * v.inner + in; },
          [&](int64_t j) { return a.scale ? gamma.f[j] : 1; }, [&](int64_t j) { return a.center ? beta.f[j] : 0; });
  return one(std::move(out));
}

template <class A>
Result<Type> channel_norm_type(const TypeArgs& args) {
  TW_TRY_STATUS(require_float(args));
  const auto& a = attrs_of<A>(args);
  const auto& x = args.tensor(0);
  int64_t axis = TW_TRY(checked_axis(a.axis, x.shape.size()));
  if (axis == 0) return type_error("the channel axis is not that of the samples", "transpose the data");
  TW_TRY_STATUS(channel_vector(args, 1, axis, "gamma"));
  TW_TRY_STATUS(channel_vector(args, 2, axis, "beta"));
  if constexpr (requires { a.num_groups; }) {
    const Dim& channels = x.shape[static_cast<size_t>(axis)];
    if (a.num_groups < 1 || (channels.is_const() && channels.value() % a.num_groups))
      return type_error(format("{} channels do not divide into {} groups", channels.str(), a.num_groups));
  }
  return args.types[0];
}
template <class A>
Result<std::vector<Value>> eval_channel_norm(const EvalArgs& args) {
  const auto& a = args.as<A>();
  const Value &x = args.inputs[0], &gamma = args.inputs[1], &beta = args.inputs[2];
  Value out = make_value(x.dtype, x.shape);
  out.bound.resize(out.f.size());
  AxisView v(x.shape, a.axis);
  int64_t per_group = 1;
  if constexpr (requires { a.num_groups; }) per_group = v.n / a.num_groups;
  // The elements of a group: of each place between samples and channels, its channels, and the places behind them.
  const int64_t samples = x.shape[0], between = v.outer / std::max<int64_t>(samples, 1);
  for (int64_t sample = 0; sample < samples; ++sample)
    for (int64_t first = 0; first < v.n; first += per_group) {
      auto channel = [&](int64_t j) { return first + j / v.inner % per_group; };
      auto index = [&](int64_t j) {
        const int64_t place = sample * between + j / (per_group * v.inner);
        return (place * v.n + channel(j)) * v.inner + j % v.inner;
      };
      normalize(
          x, &out, between * per_group * v.inner, a.epsilon, index,
          [&](int64_t j) { return a.scale ? gamma.f[channel(j)] : 1; },
          [&](int64_t j) { return a.center ? beta.f[channel(j)] : 0; });
    }
  return one(std::move(out));
}

Result<Type> l2_normalize_type(const TypeArgs& args) {
  TW_TRY_STATUS(require_float(args));
  TW_TRY(checked_axes(attrs_of<L2NormalizeAttrs>(args).axis, args.tensor(0).shape.size()));
  return args.types[0];
}
Result<std::vector<Value>> eval_l2_normalize(const EvalArgs& args) {
  const auto& a = args.as<L2NormalizeAttrs>();
  const Value& x = args.inputs[0];
  std::vector<int64_t> axes = TW_TRY(checked_axes(a.axis, x.shape.size()));
  std::vector<int64_t> reduced = x.shape;
  for (size_t k = 0; k < reduced.size(); ++k)
    if (axes.empty() || std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(k))) reduced[k] = 1;
  Value sums = make_value(x.dtype, reduced), out = make_value(x.dtype, x.shape);
  out.bound.resize(out.f.size());
  std::vector<int64_t> strides = broadcast_strides(reduced, x.shape);
  walk<1>(x.shape, {strides}, [&](int64_t i, const int64_t* at) { sums.f[at[0]] += x.f[i] * x.f[i]; });
  const double u = 8 * unit_roundoff(x.dtype);
  walk<1>(x.shape, {strides}, [&](int64_t i, const int64_t* at) {
    const double norm = std::sqrt(std::fmax(sums.f[at[0]], a.eps));
    out.f[i] = x.f[i] / norm;
    out.bound[i] = 2 * bound_at(x, i) / norm + u * std::fabs(out.f[i]);
  });
  return one(std::move(out));
}

Result<Type> lrn_type(const TypeArgs& args) {
  TW_TRY_STATUS(require_float(args));
  const auto& a = attrs_of<LRNAttrs>(args);
  TW_TRY(checked_axis(a.axis, args.tensor(0).shape.size()));
  if (a.size < 1) return type_error(format("size is {}", a.size));
  return args.types[0];
}
Result<std::vector<Value>> eval_lrn(const EvalArgs& args) {
  const auto& a = args.as<LRNAttrs>();
  const Value& x = args.inputs[0];
  Value out = make_value(x.dtype, x.shape);
  out.bound.resize(out.f.size());
  AxisView v(x.shape, a.axis);
  const double u = 16 * unit_roundoff(x.dtype), scale = a.alpha / static_cast<double>(a.size);
  for (int64_t o = 0; o < v.outer; ++o)
    for (int64_t c = 0; c < v.n; ++c)
      for (int64_t in = 0; in < v.inner; ++in) {
        const int64_t i = (o * v.n + c) * v.inner + in;
        double sum = 0, slope = 0;
        for (int64_t j = std::max<int64_t>(0, c - (a.size - 1) / 2); j <= std::min(v.n - 1, c + a.size / 2); ++j) {
          const int64_t at = (o * v.n + j) * v.inner + in;
          sum += x.f[at] * x.f[at];
          slope += 2 * std::fabs(x.f[at]) * bound_at(x, at);
        }
        const double base = a.bias + scale * sum, power = std::pow(base, -a.beta);
        out.f[i] = x.f[i] * power;
        out.bound[i] = bound_at(x, i) * power + std::fabs(out.f[i]) * (a.beta * scale * slope / base + u);
      }
  return one(std::move(out));
}

Result<Type> dropout_type(const TypeArgs& args) {
  TW_TRY_STATUS(require_float(args));
  return tuple_type({args.types[0], args.types[0]});
}
Result<std::vector<Value>> eval_dropout(const EvalArgs& args) {
  Value mask = make_value(args.inputs[0].dtype, args.inputs[0].shape);
  std::fill(mask.f.begin(), mask.f.end(), 1.0);
  std::vector<Value> out;
  out.push_back(args.inputs[0]);
  out.push_back(std::move(mask));
  return out;
}

}  // namespace

std::vector<OpDef> norm_ops() {
  constexpr OpPattern kOut = OpPattern::kOutEWiseFusable, kOpaque = OpPattern::kOpaque;
  const std::vector<ArgDoc> data = {{"data", "floats"}};
  const std::vector<ArgDoc> affine = {{"data", "floats"}, {"gamma", "scale along axis"}, {"beta", "shift along axis"}};
  return {
      define_op("nn.fast_softmax", "nn.softmax with the approximated exponential.", data, kOut, softmax_type,
                eval_softmax<false>, make_default_attrs<SoftmaxAttrs>),
      define_op("nn.softmax", "exp(x - max) over its sum along axis.", data, kOut, softmax_type, eval_softmax<false>,
                make_default_attrs<SoftmaxAttrs>)
          .with({.fast_form = "nn.fast_softmax"}),
      define_op("nn.log_softmax", "The logarithm of softmax along axis.", data, kOut, softmax_type, eval_softmax<true>,
                make_default_attrs<SoftmaxAttrs>),
      define_op(
          "nn.batch_norm",
          "(x - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta, with the two statistics as results 1 and 2.",
          {{"data", "floats"}, {"gamma", "(C)"}, {"beta", "(C)"}, {"moving_mean", "(C)"}, {"moving_var", "(C)"}}, kOut,
          batch_norm_type, eval_batch_norm, make_default_attrs<BatchNormAttrs>)
          .with({.operand_type = weight_along_axis<BatchNormAttrs>}),
      define_op("nn.layer_norm", "Zero mean and unit variance along axis, then gamma and beta.", affine, kOut,
                layer_norm_type, eval_layer_norm, make_default_attrs<LayerNormAttrs>)
          .with({.operand_type = weight_along_axis<LayerNormAttrs>}),
      define_op("nn.instance_norm",
                "Zero mean and unit variance of every channel of every sample, then gamma and beta.", affine, kOut,
                channel_norm_type<InstanceNormAttrs>, eval_channel_norm<InstanceNormAttrs>,
                make_default_attrs<InstanceNormAttrs>)
          .with({.operand_type = weight_along_axis<InstanceNormAttrs>}),
      define_op("nn.group_norm",
                "Zero mean and unit variance of every group of channels of every sample, then gamma and beta.", affine,
                kOpaque, channel_norm_type<GroupNormAttrs>, eval_channel_norm<GroupNormAttrs>,
                make_default_attrs<GroupNormAttrs>)
          .with({.operand_type = weight_along_axis<GroupNormAttrs>}),
      define_op("nn.l2_normalize", "x / sqrt(max(sum of squares along axis, eps)).", data, kOut, l2_normalize_type,
                eval_l2_normalize, make_default_attrs<L2NormalizeAttrs>),
      define_op("nn.lrn", "Local response normalisation across `size` neighbours of axis.", data, kOpaque, lrn_type,
                eval_lrn, make_default_attrs<LRNAttrs>),
      define_op("nn.dropout", "The identity (inference); result 1 is a mask of ones.", data, kOpaque, dropout_type,
                eval_dropout, make_default_attrs<DropoutAttrs>)
          .with({.elements = Elements::kSame}),
  };
}

}  // namespace tilewright::relay
