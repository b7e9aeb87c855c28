// SPDX-License-Identifier: Apache-2.0
// Operators that PyTorch has as one and that are written out here: recurrent cells (one step of a batch), and the fused
// layers that nn.TransformerEncoder and nn.MultiheadAttention use at inference.
#include "base/format.h"
#include "frontend/torch/importer.h"

namespace tilewright::torch {
namespace cells {
namespace {

Expr affine(NodeContext& c, const Expr& x, const char* weight, const char* bias) {
  Expr y = c.call("nn.dense", {x, c.tensor(weight)});
  return c.has(bias) ? c.add(y, c.tensor(bias)) : y;
}
std::vector<Expr> gates_of(NodeContext& c, const Expr& e, int64_t count) {
  const int64_t width = c.dims(e).back(), last = c.rank(e) - 1;
  if (width % count != 0) c.fail_type(format("{} values do not hold {} gates", width, count));
  const int64_t hidden = width / count;
  std::vector<Expr> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(c.slice(e, last, i * hidden, (i + 1) * hidden));
  return out;
}
Expr sigmoid(NodeContext& c, const Expr& e) { return c.call("sigmoid", {e}); }
Expr tanh(NodeContext& c, const Expr& e) { return c.call("tanh", {e}); }

// One step, from what the input and the state give to the gates: the new state, and of an LSTM the cell.
struct State {
  Expr hidden, cell;
};
// Gates: input, forget, cell, output.
State lstm_step(NodeContext& c, const Expr& x, const Expr& r, const State& before) {
  const std::vector<Expr> g = gates_of(c, c.add(x, r), 4);
  Expr cell = c.add(c.mul(sigmoid(c, g[1]), before.cell), c.mul(sigmoid(c, g[0]), tanh(c, g[2])));
  return {c.mul(sigmoid(c, g[3]), tanh(c, cell)), cell};
}
// Gates: reset, update, new.
State gru_step(NodeContext& c, const Expr& x_gates, const Expr& r_gates, const State& before) {
  const std::vector<Expr> x = gates_of(c, x_gates, 3), r = gates_of(c, r_gates, 3);
  Expr reset = sigmoid(c, c.add(x[0], r[0])), update = sigmoid(c, c.add(x[1], r[1]));
  Expr fresh = tanh(c, c.add(x[2], c.mul(reset, r[2])));
  return {c.add(fresh, c.mul(update, c.sub(before.hidden, fresh))), nullptr};
}

Values lstm_cell(NodeContext& c) {
  const std::vector<Expr> hx = c.tensors("hx");
  if (hx.size() != 2) c.fail(format("it has {} states, not 2", hx.size()));
  const State now =
      lstm_step(c, affine(c, c.tensor("input"), "w_ih", "b_ih"), affine(c, hx[0], "w_hh", "b_hh"), {hx[0], hx[1]});
  return {now.hidden, now.cell};
}
Values gru_cell(NodeContext& c) {
  const Expr h = c.tensor("hx");
  return {gru_step(c, affine(c, c.tensor("input"), "w_ih", "b_ih"), affine(c, h, "w_hh", "b_hh"), {h, nullptr}).hidden};
}
Expr plain_step(NodeContext& c) {
  return c.add(affine(c, c.tensor("input"), "w_ih", "b_ih"), affine(c, c.tensor("hx"), "w_hh", "b_hh"));
}
Values rnn_tanh_cell(NodeContext& c) { return {tanh(c, plain_step(c))}; }
Values rnn_relu_cell(NodeContext& c) { return {c.call("nn.relu", {plain_step(c)})}; }

Expr converted(NodeContext& c, const char* target, NamedValues arguments) {
  const Values made = c.aten(target, std::move(arguments));
  if (made.empty() || !made[0].expr) c.fail(format("{} made nothing", target));
  return made[0].expr;
}
Expr linear(NodeContext& c, const Expr& x, const char* weight, const char* bias) {
  return converted(c, "aten.linear.default",
                   {{"input", Value(x)}, {"weight", Value(c.tensor(weight))}, {"bias", Value(c.tensor(bias))}});
}
Expr layer_norm(NodeContext& c, const Expr& x, const char* weight, const char* bias) {
  Values sizes = {Value::number(relay::make_constant(Tensor::scalar<int64_t>(kInt64, c.dims(x).back())))};
  return converted(c, "aten.layer_norm.default",
                   {{"input", Value(x)},
                    {"normalized_shape", Value::of_list(std::move(sizes))},
                    {"weight", Value(c.tensor(weight))},
                    {"bias", Value(c.tensor(bias))},
                    {"eps", c.value("eps")}});
}

// The mask of keys that each query attends to; PyTorch's mask marks those it does not. Types: 0 (L, L), 1 (N, L).
Expr visible(NodeContext& c) {
  Expr mask = c.tensor("mask");
  const int64_t type = c.integer("mask_type", 0);
  if (!c.dtype(mask).is_bool() || type < 0 || type > 1) c.unsupported(format("a mask of type {}", type));
  Expr seen = c.call("logical_not", {mask});
  return type == 0 ? seen : c.expand(seen, 1, 2);
}
// Multi-head self-attention of x (N, L, E).
Expr self_attention(NodeContext& c, const Expr& x, const char* heads_name) {
  const std::vector<int64_t> d = c.dims(x);
  const int64_t heads = c.integer(heads_name);
  if (d.size() != 3 || heads < 1 || d[2] % heads != 0) c.fail_type("its operand is not (batch, length, heads * size)");
  Expr all = linear(c, x, "qkv_weight", "qkv_bias");
  auto part = [&](int64_t i) {
    Expr own = c.slice(all, 2, i * d[2], (i + 1) * d[2]);
    return Value(c.transpose(c.reshape(own, {d[0], d[1], heads, d[2] / heads}), {0, 2, 1, 3}));
  };
  NamedValues arguments = {{"query", part(0)}, {"key", part(1)}, {"value", part(2)}};
  if (c.has("mask")) arguments.emplace_back("attn_mask", Value(visible(c)));
  Expr y = converted(c, "aten.scaled_dot_product_attention.default", std::move(arguments));
  return linear(c, c.reshape(c.transpose(y, {0, 2, 1, 3}), d), "proj_weight", "proj_bias");
}
Values encoder_layer(NodeContext& c) {
  auto feed_forward = [&](const Expr& x) {
    Expr h = linear(c, x, "ffn_weight_1", "ffn_bias_1");
    h = c.flag("use_gelu", false) ? converted(c, "aten.gelu.default", {{"self", Value(h)}}) : c.call("nn.relu", {h});
    return linear(c, h, "ffn_weight_2", "ffn_bias_2");
  };
  Expr x = c.tensor("src");
  if (c.flag("norm_first", false)) {
    x = c.add(x, self_attention(c, layer_norm(c, x, "norm_weight_1", "norm_bias_1"), "num_heads"));
    return {c.add(x, feed_forward(layer_norm(c, x, "norm_weight_2", "norm_bias_2")))};
  }
  x = layer_norm(c, c.add(x, self_attention(c, x, "num_heads")), "norm_weight_1", "norm_bias_1");
  return {layer_norm(c, c.add(x, feed_forward(x)), "norm_weight_2", "norm_bias_2")};
}
Values multi_head_attention(NodeContext& c) {
  Expr x = c.tensor("query");
  if (c.tensor("key") != x || c.tensor("value") != x) c.unsupported("queries, keys and values that are not one tensor");
  if (c.flag("need_weights", true)) c.unsupported("the weights as a result");
  return {self_attention(c, x, "num_head"), c.zeros(c.dtype(x), {0})};
}

// Layers whose products are quantised as they run. Of each layer and direction torch_script.py writes the packed
// weights of both products, and whether seven bits hold the operands. The input's product is one for all steps; the
// state's has a grid of its own in every step.
template <bool kLstm>
class DynamicLayers {
 public:
  explicit DynamicLayers(NodeContext& c) : c_(c) {}

  Values run() {
    if (!c_.has("params") || !c_.value("params").list) c_.unsupported("packed sequences");
    const bool batch_first = c_.flag("batch_first", false);
    directions_ = c_.flag("bidirectional", false) ? 2 : 1;
    const int64_t layers = c_.integer("num_layers");
    const Values& params = *c_.value("params").list;
    if (static_cast<int64_t>(params.size()) != layers * directions_)
      c_.fail(format("it has {} weights for {} layers", params.size(), layers));
    Expr x = c_.tensor("input");
    if (batch_first) x = c_.transpose(x, {1, 0, 2});
    std::vector<Expr> hidden, cells;
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::vector<Expr> sides;
      for (int64_t side = 0; side < directions_; ++side) {
        const int64_t at = layer * directions_ + side;
        State last = initial(at);
        sides.push_back(one_direction(x, params.at(static_cast<size_t>(at)), side == 1, &last));
        hidden.push_back(c_.expand(last.hidden, 0));
        if (kLstm) cells.push_back(c_.expand(last.cell, 0));
      }
      x = c_.concat(std::move(sides), 2);
    }
    if (batch_first) x = c_.transpose(x, {1, 0, 2});
    Values out = {x, c_.concat(std::move(hidden), 0)};
    if (kLstm) out.emplace_back(c_.concat(std::move(cells), 0));
    return out;
  }

 private:
  Expr at_step(const Expr& e, int64_t i) { return c_.squeeze(c_.slice(e, 0, i, i + 1), {0}); }
  State initial(int64_t at) {
    if (!kLstm) return {at_step(c_.tensor("hx"), at), nullptr};
    const std::vector<Expr> hx = c_.tensors("hx");
    if (hx.size() != 2) c_.fail(format("it has {} states, not 2", hx.size()));
    return {at_step(hx[0], at), at_step(hx[1], at)};
  }
  Expr product(const Expr& x, const Values& weights, size_t which) {
    return c_.one_of("quantized.linear_dynamic",
                     {{"X", Value(x)}, {"W_prepack", weights.at(which)}, {"reduce_range", weights.at(2)}});
  }
  Expr one_direction(const Expr& x, const Value& weights, bool backwards, State* state) {
    if (!weights.list || weights.list->size() != 3) c_.fail_type("its weights are not those of a recurrent layer");
    const int64_t steps = c_.dims(x).at(0);
    if (steps < 1 || steps > kMostSteps) c_.unsupported(format("{} steps", steps));
    const Expr of_input = product(x, *weights.list, 0);
    std::vector<Expr> out(static_cast<size_t>(steps));
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t at = backwards ? steps - 1 - i : i;
      const Expr gates = at_step(of_input, at), recurrent = product(state->hidden, *weights.list, 1);
      *state = kLstm ? lstm_step(c_, gates, recurrent, *state) : gru_step(c_, gates, recurrent, *state);
      out[static_cast<size_t>(at)] = c_.expand(state->hidden, 0);
    }
    return c_.concat(std::move(out), 0);
  }

  static constexpr int64_t kMostSteps = 4096;
  NodeContext& c_;
  int64_t directions_ = 1;
};
template <bool kLstm>
Values dynamic_layers(NodeContext& c) {
  return DynamicLayers<kLstm>(c).run();
}

constexpr ConverterEntry kTable[] = {
    {"aten.quantized_lstm", dynamic_layers<true>},
    {"aten.quantized_gru", dynamic_layers<false>},
    {"aten._transformer_encoder_layer_fwd", encoder_layer},
    {"aten._native_multi_head_attention", multi_head_attention},
    {"aten.lstm_cell", lstm_cell},
    {"aten.gru_cell", gru_cell},
    {"aten.rnn_tanh_cell", rnn_tanh_cell},
    {"aten.rnn_relu_cell", rnn_relu_cell},
};

}  // namespace
}  // namespace cells

std::span<const ConverterEntry> cells_converters() { return cells::kTable; }

}  // namespace tilewright::torch
