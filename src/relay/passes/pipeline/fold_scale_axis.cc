// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/fold_scale_axis.h"

#include <algorithm>

#include "relay/constant_call.h"
#include "relay/ops/attrs.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// How deep a scale is pushed through a chain; real ones are three or four operators long.
constexpr int kMaxChain = 16;

// What a linear operator does to channels: where they lie in the data, the result and the weights.
struct LinearInfo {
  int64_t data_channel = 0, out_channel = 0;  // axes
  int64_t weight_in = 0, weight_out = 0;      // axes of the weights
  int64_t groups = 1;
  bool transposed = false;  // the weights' group axis is the input axis (conv_transpose), else the output axis
};

Tensor multiply_tensors(const Tensor& a, const Tensor& b) {
  return evaluate_constant_call(call("multiply", {make_constant(a), make_constant(b)})).value()[0];
}

bool is_plain_layout(const std::string& layout) {
  return std::all_of(layout.begin(), layout.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

template <class A>
std::optional<LinearInfo> conv_info(const A& attrs, bool transposed) {
  const std::string &data = attrs.data_layout, &kernel = attrs.kernel_layout;
  std::string out = attrs.out_layout.empty() ? data : attrs.out_layout;
  size_t c = data.find('C'), oc = out.find('C'), i = kernel.find('I'), o = kernel.find('O');
  if (!is_plain_layout(data) || !is_plain_layout(kernel) || !is_plain_layout(out)) return std::nullopt;
  if (c == std::string::npos || oc == std::string::npos || i == std::string::npos || o == std::string::npos)
    return std::nullopt;
  if (transposed && attrs.groups != 1 && i > o) return std::nullopt;  // which axis holds the groups is not said
  return LinearInfo{static_cast<int64_t>(c),
                    static_cast<int64_t>(oc),
                    static_cast<int64_t>(i),
                    static_cast<int64_t>(o),
                    attrs.groups,
                    transposed};
}

// Describes convolutions and dense layers whose weights are constants of a floating dtype.
std::optional<LinearInfo> linear_info(const Expr& e) {
  const auto* call = as<CallNode>(e);
  const OpDef* op = called_op(e);
  if (!op || call->args.size() < 2) return std::nullopt;
  const Tensor* weights = constant_data(call->args[1]);
  if (!weights || !weights->dtype().is_float() || tensor_of(call->args[0]).dtype != weights->dtype())
    return std::nullopt;
  std::string_view name = op->name;
  if (name == "nn.dense") {
    int64_t last = static_cast<int64_t>(tensor_of(e).shape.size()) - 1;
    return LinearInfo{last, last, 1, 0, 1, false};
  }
  if (name == "nn.conv1d") return conv_info(attrs_of<Conv1DAttrs>(e), false);
  if (name == "nn.conv2d") return conv_info(attrs_of<Conv2DAttrs>(e), false);
  if (name == "nn.conv3d") return conv_info(attrs_of<Conv3DAttrs>(e), false);
  if (name == "nn.conv1d_transpose") return conv_info(attrs_of<Conv1DTransposeAttrs>(e), true);
  if (name == "nn.conv2d_transpose") return conv_info(attrs_of<Conv2DTransposeAttrs>(e), true);
  if (name == "nn.conv3d_transpose") return conv_info(attrs_of<Conv3DTransposeAttrs>(e), true);
  return std::nullopt;
}

// weights * s, where s runs over the output (or input) channels; the weights' own axis holds a group's channels only
// when the other axis enumerates the groups.
Tensor scale_weights(const Tensor& weights, const LinearInfo& info, const Tensor& s, bool output) {
  int64_t axis = output ? info.weight_out : info.weight_in;
  int64_t other = output ? info.weight_in : info.weight_out;
  std::vector<int64_t> shape(static_cast<size_t>(weights.rank()), 1);
  int64_t size = weights.shape()[static_cast<size_t>(axis)];
  shape[static_cast<size_t>(axis)] = size;
  bool axis_spans_groups = output != info.transposed;
  if (info.groups == 1 || axis_spans_groups) return multiply_tensors(weights, s.reshaped(shape));
  // One scale per (group, channel in group); the group is where the other axis lies.
  int64_t others = weights.shape()[static_cast<size_t>(other)];
  shape[static_cast<size_t>(other)] = others;
  Tensor spread = Tensor::zeros(s.dtype(), shape);
  bool axis_first = axis < other;
  for (int64_t o = 0; o < others; ++o)
    for (int64_t c = 0; c < size; ++c)
      spread.set_double(axis_first ? c * others + o : o * size + c, s.at_double(o / (others / info.groups) * size + c));
  return multiply_tensors(weights, spread);
}

Expr with_weights(const Expr& e, Tensor weights) {
  const auto& call = *as<CallNode>(e);
  std::vector<Expr> args = call.args;
  args[1] = make_constant(std::move(weights), args[1]->span);
  return with_children(e, args);
}

bool all_positive(const Tensor& t) {
  for (int64_t i = 0; i < t.size(); ++i)
    if (!(t.at_double(i) > 0)) return false;
  return true;
}

std::optional<int64_t> channels_at(const Expr& e, int64_t axis) {
  const auto& shape = tensor_of(e).shape;
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) return std::nullopt;
  return shape[static_cast<size_t>(axis)].constant();
}

class Folder {
 public:
  Folder(const Expr& root, bool backward, bool forward)
      : uses_(count_uses(root)), backward_(backward), forward_(forward) {}

  Expr run(const Expr& root) {
    return rewrite_expr(root, [this](const Expr& original, const Expr& e) {
      Expr out = e;
      if (backward_) out = fold_backward(out);
      if (forward_) out = fold_forward(out);
      // The replacement is used as often as what it replaces; it may be looked through again further down.
      if (!(out == original)) uses_[out.get()] = uses_[original.get()];
      kept_.push_back(out);
      return out;
    });
  }

 private:
  bool used_once(const Expr& e) const {
    auto it = uses_.find(e.get());
    return it != uses_.end() && it->second == 1;
  }
  Expr made(Expr e) {
    uses_[e.get()] = 1;
    kept_.push_back(e);
    return e;
  }

  Expr fold_backward(const Expr& e) {
    const auto* product = as_call(e, "multiply");
    if (!product) return e;
    for (size_t i : {size_t{0}, size_t{1}}) {
      const Expr &scale = product->args[i], &data = product->args[1 - i];
      if (!constant_data(scale) || constant_data(data) || !same_tensor_type(data, e) || !is_float_tensor(e)) continue;
      if (Expr pushed = push(data, *constant_data(scale), e->span, 0)) return pushed;
    }
    return e;
  }

  // `e` with every element multiplied by `scale` at no cost, or null.
  Expr push(const Expr& e, const Tensor& scale, const Span& span, int depth) {
    const OpDef* op = called_op(e);
    if (!op || depth > kMaxChain || !used_once(e)) return {};
    const auto& call = *as<CallNode>(e);
    std::string_view name = op->name;
    size_t rank = tensor_of(e).shape.size();
    if (static_cast<size_t>(scale.rank()) > rank) return {};
    if (auto info = linear_info(e)) {
      auto channels = channels_at(e, info->out_channel);
      auto s = channels ? per_channel(make_constant(scale), rank, info->out_channel, *channels) : std::nullopt;
      if (!s || s->dtype() != constant_data(call.args[1])->dtype()) return {};
      Expr scaled = with_weights(e, scale_weights(*constant_data(call.args[1]), *info, *s, true));
      const auto& node = *as<CallNode>(scaled);
      return made(make_node<CallNode>(node.callee, node.args, node.attrs, node.type, join_spans(e->span, span)));
    }
    if (name == "add" || name == "subtract") return push_sum(e, call, scale, span, depth);
    if (name == "nn.bias_add") return push_bias(e, call, scale, span, depth);
    bool positive =
        name == "nn.relu" || name == "nn.leaky_relu" || name == "nn.max_pool2d" || name == "nn.global_max_pool2d";
    bool linear = name == "nn.avg_pool2d" || name == "nn.global_avg_pool2d" || name == "negative";
    if (!linear && !(positive && all_positive(scale))) return {};
    Expr inside = push(call.args[0], scale, span, depth + 1);
    if (!inside) return {};
    // The scale must be the same for all elements that are pooled together: it reached weights, so it is per channel.
    return made(with_children(e, {inside}));
  }

  Expr push_sum(const Expr& e, const CallNode& call, const Tensor& scale, const Span& span, int depth) {
    std::vector<Expr> args = call.args;
    for (Expr& operand : args) {
      if (const Tensor* data = constant_data(operand)) {
        if (data->dtype() != scale.dtype()) return {};
        Tensor scaled = multiply_tensors(*data, scale);
        operand = make_constant(std::move(scaled), operand->span);
      } else {
        // Broadcasting the other way round would scale more elements than there are.
        if (!same_tensor_type(operand, e)) return {};
        operand = push(operand, scale, span, depth + 1);
        if (!operand) return {};
      }
    }
    auto sum = try_call(called_op(e)->name, args, call.attrs, e->span);
    return sum.ok() && type_equal((*sum)->type, e->type) ? made(*sum) : Expr();
  }

  Expr push_bias(const Expr& e, const CallNode& call, const Tensor& scale, const Span& span, int depth) {
    const Tensor* bias = constant_data(call.args[1]);
    size_t rank = tensor_of(e).shape.size();
    auto s = bias ? per_channel(make_constant(scale), rank, positive_axis(attrs_of<BiasAddAttrs>(e).axis, rank),
                                bias->size())
                  : std::nullopt;
    if (!s || s->dtype() != bias->dtype()) return {};
    Expr inside = push(call.args[0], scale, span, depth + 1);
    if (!inside) return {};
    return made(with_children(e, {inside, make_constant(multiply_tensors(*bias, *s), call.args[1]->span)}));
  }

  Expr fold_forward(const Expr& e) {
    auto info = linear_info(e);
    if (!info) return e;
    const auto& call = *as<CallNode>(e);
    Expr data = call.args[0];
    bool through_relu = is_call_to(data, "nn.relu") && used_once(data);
    Expr relu = data;
    if (through_relu) data = arg(data, 0);
    const auto* product = as_call(data, "multiply");
    if (!product || !used_once(data)) return e;
    for (size_t i : {size_t{0}, size_t{1}}) {
      const Expr &scale = product->args[i], &x = product->args[1 - i];
      if (!constant_data(scale) || constant_data(x) || !same_tensor_type(x, data)) continue;
      auto channels = channels_at(data, info->data_channel);
      auto s =
          channels ? per_channel(scale, tensor_of(data).shape.size(), info->data_channel, *channels) : std::nullopt;
      if (!s || s->dtype() != constant_data(call.args[1])->dtype() || (through_relu && !all_positive(*s))) continue;
      Expr input = through_relu ? made(with_children(relu, {x})) : x;
      std::vector<Expr> args = call.args;
      args[0] = input;
      args[1] = make_constant(scale_weights(*constant_data(call.args[1]), *info, *s, false), call.args[1]->span);
      return with_children(e, args);
    }
    return e;
  }

  UseCounts uses_;
  bool backward_, forward_;
  std::vector<Expr> kept_;  // keeps addresses of uses_ from being reused
};

Result<Module> run(const Module& module, bool backward, bool forward) {
  return rewrite_functions(module,
                           [&](const Expr& function) { return Folder(function, backward, forward).run(function); });
}

}  // namespace

Result<Module> backward_fold_scale_axis(const Module& module, PassContext&) { return run(module, true, false); }
Result<Module> forward_fold_scale_axis(const Module& module, PassContext&) { return run(module, false, true); }
Result<Module> fold_scale_axis(const Module& module, PassContext&) { return run(module, true, true); }

}  // namespace tilewright::relay
