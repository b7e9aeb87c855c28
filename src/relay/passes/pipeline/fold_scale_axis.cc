// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/fold_scale_axis.h"

#include <algorithm>
#include <cmath>

#include "relay/constant_call.h"
#include "relay/ops/attrs.h"
#include "relay/ops/nn/weight_types.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

// Limit on the chain that a scale is pushed through; real ones are three or four operators long.
constexpr int kMaxChain = 16;

Tensor multiply_tensors(const Tensor& a, const Tensor& b) {
  return evaluate_constant_call(call("multiply", {make_constant(a), make_constant(b)})).value()[0];
}

// Whether it is a weight: a constant or parameter, possibly scaled, but not computed at run time.
bool is_weight(Expr e) {
  for (const auto* product = as_call(e, "multiply"); product && same_tensor_type(product->args[0], e);
       product = as_call(e, "multiply"))
    e = Expr(product->args[0]);
  return constant_data(e) || as<VarNode>(e);
}

// The channel axes of convolutions and dense layers of floating dtype.
std::optional<WeightAxes> linear_info(const Expr& e) {
  const auto* call = as<CallNode>(e);
  const OpDef* op = called_op(e);
  if (!op || call->args.size() < 2) return std::nullopt;
  if (!is_weight(call->args[1]) || !is_float_tensor(call->args[1]) ||
      tensor_of(call->args[0]).dtype != tensor_of(call->args[1]).dtype)
    return std::nullopt;
  return weight_axes(e);
}

// weights * s, where s runs over the output (or input) channels. When the other axis enumerates the groups, the
// weights' own axis has only the channels of one group.
Tensor scale_weights(const Tensor& weights, const WeightAxes& info, const Tensor& s, bool output) {
  int64_t axis = output ? info.weight_out : info.weight_in;
  int64_t other = output ? info.weight_in : info.weight_out;
  std::vector<int64_t> shape(static_cast<size_t>(weights.rank()), 1);
  int64_t size = weights.shape()[static_cast<size_t>(axis)];
  shape[static_cast<size_t>(axis)] = size;
  bool axis_spans_groups = output != info.transposed;
  if (info.groups == 1 || axis_spans_groups) return multiply_tensors(weights, s.reshaped(shape));
  // One scale per (group, channel in group); the group is that of the index along the other axis.
  int64_t others = weights.shape()[static_cast<size_t>(other)];
  shape[static_cast<size_t>(other)] = others;
  Tensor spread = Tensor::zeros(s.dtype(), shape);
  bool axis_first = axis < other;
  for (int64_t o = 0; o < others; ++o)
    for (int64_t c = 0; c < size; ++c)
      spread.set_double(axis_first ? c * others + o : o * size + c, s.at_double(o / (others / info.groups) * size + c));
  return multiply_tensors(weights, spread);
}

std::optional<int64_t> extent(const Expr& e, int64_t axis) {
  const auto& shape = tensor_of(e).shape;
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) return std::nullopt;
  return shape[static_cast<size_t>(axis)].constant();
}

// The weights' axis along which one scale per channel of the result (or data) applies, independent of the weights'
// values; nothing where a table of scales would be needed.
std::optional<int64_t> weight_axis(const Expr& e, const WeightAxes& info, bool output) {
  if (info.groups == 1) return output ? info.weight_out : info.weight_in;
  // The axis that is divided into groups has all output channels (for a transposed convolution, input channels); the
  // other cases are depthwise.
  const auto channels = extent(output ? e : arg(e, 0), output ? info.out_channel : info.data_channel);
  const int64_t axis = info.transposed ? info.weight_in : info.weight_out;
  const bool own = output != info.transposed || channels == info.groups;
  return own && channels && extent(arg(e, 1), axis) == channels ? std::optional(axis) : std::nullopt;
}

bool all_positive(const Expr& e) {
  const Tensor* t = constant_data(e);
  if (!t) return false;
  for (int64_t i = 0; i < t->size(); ++i)
    if (!(t->at_double(i) > 0)) return false;
  return true;
}

// Folds a call whose operands are all constants.
Expr computed(Expr e) {
  if (!is_constant_call(e)) return e;
  auto value = evaluate_constant_call(e);
  return value.ok() && value->size() == 1 ? make_constant(std::move((*value)[0]), e->span) : e;
}

// Reshapes a vector of scales to broadcast along `axis` of a tensor of that rank.
Expr along(const Expr& scale, size_t rank, int64_t axis) {
  const int64_t after = static_cast<int64_t>(rank) - axis - 1;
  if (after <= 0) return scale;
  return call("expand_dims", {scale}, make_attrs<ExpandDimsAttrs>([&](auto& a) {
                a.axis = 1;
                a.num_newaxis = after;
              }));
}

// x times the scales, where x has `rank` axes or broadcasts to that.
Expr scaled_along(const Expr& x, const Expr& scale, size_t rank, int64_t axis, const char* how = "multiply") {
  Expr factor = along(scale, rank, axis);
  if (constant_data(x)) factor = computed(factor);
  return computed(call(how, {x, factor}, {}, x->span));
}

// Whether `e` varies only along `axis` of `like`.
bool varies_along(const Expr& e, const Expr& like, int64_t axis) {
  const auto &own = tensor_of(e).shape, &shape = tensor_of(like).shape;
  if (own.size() > shape.size() || axis < 0) return false;
  const size_t base = shape.size() - own.size();
  for (size_t i = base; i < shape.size(); ++i)
    if (i == static_cast<size_t>(axis) ? own[i - base] != shape[i] : own[i - base] != Dim(1)) return false;
  return static_cast<size_t>(axis) >= base;
}

// The factor of a product as a vector along `axis`; null if it varies otherwise.
Expr channel_scale(const Expr& factor, const Expr& product, int64_t axis) {
  const size_t rank = tensor_of(product).shape.size();
  if (varies_along(factor, product, axis)) {
    const size_t own = tensor_of(factor).shape.size(), base = rank - own;
    std::vector<int64_t> unit;
    for (size_t i = 0; i < own; ++i)
      if (i + base != static_cast<size_t>(axis)) unit.push_back(static_cast<int64_t>(i));
    if (unit.empty()) return factor;
    return call("squeeze", {factor}, make_attrs<SqueezeAttrs>([&](auto& a) { a.axis = std::vector<int64_t>(unit); }));
  }
  const auto channels = extent(product, axis);
  if (!channels || !constant_data(factor)) return {};
  auto values = per_channel(factor, rank, axis, *channels);
  return values ? make_constant(std::move(*values)) : Expr();
}

// Whether dividing offsets by the scale is safe: no infinite quotients, nor any larger by orders of magnitude.
bool is_moderate(const Expr& e) {
  const Tensor* t = constant_data(e);
  if (!t) return false;
  for (int64_t i = 0; i < t->size(); ++i) {
    const double size = std::fabs(t->at_double(i));
    if (!(size >= 1.0 / 1024 && size <= 1024)) return false;
  }
  return true;
}

// A path from a scale to weights: the axis, and whether the scale must be positive. The scale must be constant: weights
// scaled by run-time values could not be packed in advance.
struct ScaleWay {
  int64_t axis = 0;
  bool positive = false, divides = false;
  bool admits(const Expr& factor) const {
    return constant_data(factor) && (!positive || all_positive(factor)) && (!divides || is_moderate(factor));
  }
  bool merge(const ScaleWay& other) {
    positive |= other.positive;
    divides |= other.divides;
    return axis == other.axis;
  }
};

// Elementwise operators that commute with a positive factor.
bool is_scaled_elementwise(const OpDef& op) {
  return op.facts.scaling != Scaling::kOther && op.pattern == OpPattern::kElemWise;
}
// Whether `axis` is the channel axis of an operator with its own layout (a pool); along other axes its windows would
// mix different scales.
bool keeps_channels(const Expr& e, int64_t axis) {
  const auto& attrs = as<CallNode>(e)->attrs;
  if (!attrs) return true;
  for (const auto& [name, text] : attr_texts(attrs))
    if (name == "layout") return text.find('C') == static_cast<size_t>(axis) + 1;  // after the opening quotation mark
  return true;
}

// The layer with its weights scaled along the channels of its result or data.
Expr with_scaled_weights(const Expr& e, const WeightAxes& info, const Expr& scale, bool output) {
  std::vector<Expr> args = as<CallNode>(e)->args;
  const Expr values = constant_data(args[1]) ? computed(scale) : scale;
  if (auto axis = weight_axis(e, info, output))
    args[1] = scaled_along(args[1], values, tensor_of(args[1]).shape.size(), *axis);
  else
    args[1] =
        make_constant(scale_weights(*constant_data(args[1]), info, *constant_data(values), output), args[1]->span);
  return with_children(e, args);
}

// multiply(... conv(x, w) ..., s) -> ... conv(x, w * s) ...
class BackwardFolder {
 public:
  explicit BackwardFolder(const Expr& root) : uses_(count_uses(root)) {}

  Expr fold(const Expr& root) {
    return rewrite_expr(root, [this](const Expr& original, const Expr& e) {
      Expr out = fold_product(e);
      // The replacement has the uses of what it replaces, so that it can be folded through again.
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

  Expr fold_product(const Expr& e) {
    const auto* product = as_call(e, "multiply");
    if (!product || !is_float_tensor(e)) return e;
    for (size_t i : {size_t{0}, size_t{1}}) {
      const Expr &factor = product->args[1 - i], &data = product->args[i];
      if (!same_tensor_type(data, e)) continue;
      const auto way = way_to_weights(data, 0);
      if (!way || !way->admits(factor)) continue;
      if (Expr scale = channel_scale(factor, e, way->axis)) return push(data, scale, way->axis, e->span);
    }
    return e;
  }

  // How a scale of `e` can reach weights without additional operators.
  std::optional<ScaleWay> way_to_weights(const Expr& e, int depth) {
    const OpDef* op = called_op(e);
    if (!op || depth > kMaxChain || !used_once(e)) return std::nullopt;
    std::string_view name = op->name;
    if (auto info = linear_info(e)) {
      const auto channels = extent(e, info->out_channel), rows = extent(arg(e, 1), info->weight_out);
      const bool table =
          constant_data(arg(e, 1)) && channels && rows && *channels == *rows * (info->transposed ? info->groups : 1);
      if (!table && !weight_axis(e, *info, true)) return std::nullopt;
      return ScaleWay{info->out_channel, false};
    }
    if (name == "add" || name == "subtract") {
      std::optional<ScaleWay> ways[2];
      for (size_t i : {size_t{0}, size_t{1}})
        if (same_tensor_type(arg(e, i), e)) ways[i] = way_to_weights(arg(e, i), depth + 1);
      if (ways[0] && ways[1]) return ways[0]->merge(*ways[1]) ? ways[0] : std::nullopt;
      for (size_t i : {size_t{0}, size_t{1}})
        if (ways[i] && is_offset(arg(e, 1 - i), e, ways[i]->axis)) return ways[i];
      return std::nullopt;
    }
    if (name == "nn.bias_add") {
      auto way = way_to_weights(arg(e, 0), depth + 1);
      if (!way || way->axis != positive_axis(attrs_of<BiasAddAttrs>(e).axis, tensor_of(e).shape.size()))
        return std::nullopt;
      return way;
    }
    if (op->facts.scaling == Scaling::kOther) return std::nullopt;
    auto way = way_to_weights(arg(e, 0), depth + 1);
    if (!way || !keeps_channels(e, way->axis)) return std::nullopt;
    way->positive |= op->facts.scaling == Scaling::kPositive;
    return way;
  }

  // Whether the added operand can be scaled: a constant, or one value per channel.
  static bool is_offset(const Expr& e, const Expr& sum, int64_t axis) {
    return constant_data(e) || varies_along(e, sum, axis);
  }

  // Multiplies `e` by its channels' scale along the path found by way_to_weights.
  Expr push(const Expr& e, const Expr& scale, int64_t axis, const Span& span) {
    std::string_view name = called_op(e)->name;
    if (auto info = linear_info(e)) {
      Expr scaled = with_scaled_weights(e, *info, scale, true);
      const auto& node = *as<CallNode>(scaled);
      return made(make_node<CallNode>(node.callee, node.args, node.attrs, node.type, join_spans(e->span, span)));
    }
    if (name == "nn.bias_add") {
      Expr inside = push(arg(e, 0), scale, axis, span);
      return made(with_children(e, {inside, scaled_along(arg(e, 1), scale, 1, 0)}));
    }
    if (name != "add" && name != "subtract") return made(with_children(e, {push(arg(e, 0), scale, axis, span)}));
    std::vector<Expr> args = as<CallNode>(e)->args;
    for (Expr& operand : args)
      operand = same_tensor_type(operand, e) && way_to_weights(operand, 0)
                    ? push(operand, scale, axis, span)
                    : scaled_along(operand, beside(operand, scale), tensor_of(e).shape.size(), axis);
    return made(with_children(e, args));
  }

  // Applies the scale to an operand; constants are folded.
  static Expr beside(const Expr& operand, const Expr& scale) {
    return constant_data(operand) ? computed(scale) : scale;
  }

  UseCounts uses_;
  std::vector<Expr> kept_;  // keeps addresses that are keys of uses_ from being reused
};

// conv(... multiply(x, s) ..., w) -> conv(... x ..., w * s), where every use of the product can do so.
class ForwardFolder {
 public:
  Expr fold(const Expr& root) {
    const std::vector<Expr> order = post_order(root, true);
    for (auto e = order.rbegin(); e != order.rend(); ++e) send(*e);
    return rewrite_expr(root, [this](const Expr& original, const Expr& e) { return rewritten(original, e); });
  }

 private:
  struct Scaled {
    Expr result, value, scale;  // result = value * scale; held so that their addresses stay valid
  };

  // Propagates from `e` to its operands what this use could do with a scale.
  void send(const Expr& e) {
    const std::vector<Expr> operands = children(e);
    std::vector<std::optional<ScaleWay>> to(operands.size());
    const auto own = way_of(e);
    const OpDef* op = called_op(e);
    if (auto info = op ? linear_info(e) : std::nullopt) {
      if (weight_axis(e, *info, false) || constant_data(arg(e, 1))) to[0] = ScaleWay{info->data_channel, false};
    } else if (op && own) {
      std::string_view name = op->name;
      if (is_scaled_elementwise(*op)) {
        to[0] = own;
        to[0]->positive |= op->facts.scaling == Scaling::kPositive;
      } else if (name == "add" || name == "subtract") {
        for (size_t i : {size_t{0}, size_t{1}})
          if (same_tensor_type(operands[i], e) && varies_along(operands[1 - i], e, own->axis)) {
            to[i] = own;
            to[i]->divides = true;
            break;
          }
      }
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      auto [it, fresh] = ways_.try_emplace(operands[i].get(), to[i]);
      if (!fresh && it->second && (!to[i] || !it->second->merge(*to[i]))) it->second.reset();
    }
  }
  std::optional<ScaleWay> way_of(const Expr& e) const {
    auto it = ways_.find(e.get());
    return it == ways_.end() ? std::nullopt : it->second;
  }
  const Scaled* scaled(const Expr& e) const {
    auto it = scaled_.find(e.get());
    return it == scaled_.end() ? nullptr : &it->second;
  }
  Expr keep(const Expr& result, Expr value, Expr scale) {
    scaled_[result.get()] = {result, std::move(value), std::move(scale)};
    return result;
  }

  Expr rewritten(const Expr& original, const Expr& e) {
    const OpDef* op = called_op(e);
    if (!op) return e;
    std::string_view name = op->name;
    const auto way = way_of(original);
    const auto& args = as<CallNode>(e)->args;
    if (name == "multiply" && way) {
      for (size_t i : {size_t{0}, size_t{1}}) {
        if (!same_tensor_type(args[i], e) || !way->admits(args[1 - i])) continue;
        if (Expr scale = channel_scale(args[1 - i], e, way->axis)) return keep(e, args[i], scale);
      }
      return e;
    }
    const Scaled* data = args.empty() ? nullptr : scaled(args[0]);
    if (auto info = data ? linear_info(e) : std::nullopt) {
      std::vector<Expr> operands = args;
      operands[0] = data->value;
      return with_scaled_weights(with_children(e, operands), *info, data->scale, false);
    }
    if (data && way && is_scaled_elementwise(*op)) return keep(e, with_children(e, {data->value}), data->scale);
    if (way && (name == "add" || name == "subtract"))
      for (size_t i : {size_t{0}, size_t{1}})
        if (const Scaled* side = scaled(args[i])) {
          std::vector<Expr> operands = args;
          operands[i] = side->value;
          operands[1 - i] = scaled_along(args[1 - i], side->scale, tensor_of(e).shape.size(), way->axis, "divide");
          return keep(e, with_children(e, operands), side->scale);
        }
    return e;
  }

  std::unordered_map<const ExprNode*, std::optional<ScaleWay>> ways_;
  std::unordered_map<const ExprNode*, Scaled> scaled_;
};

Result<Module> fold_scales(const Module& module, bool backward, bool forward) {
  return rewrite_functions(module, [&](const Expr& function) {
    Expr out = backward ? BackwardFolder(function).fold(function) : function;
    return forward ? ForwardFolder().fold(out) : out;
  });
}

}  // namespace

Result<Module> backward_fold_scale_axis(const Module& module, PassContext&) { return fold_scales(module, true, false); }
Result<Module> forward_fold_scale_axis(const Module& module, PassContext&) { return fold_scales(module, false, true); }
Result<Module> fold_scale_axis(const Module& module, PassContext&) { return fold_scales(module, true, true); }

}  // namespace tilewright::relay
