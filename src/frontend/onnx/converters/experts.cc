// SPDX-License-Identifier: Apache-2.0
// com.microsoft: mixtures of experts. Where tokens choose fewer weights than there are, these are gathered; otherwise
// every expert computes every token, and what a token did not choose counts nothing.
#include "base/format.h"
#include "frontend/onnx/converters/activation.h"
#include "frontend/onnx/converters/attention.h"
#include "frontend/onnx/converters/weight_blocks.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// An expert's layer: weights (experts, rows, columns) and biases (experts, rows), which may be null.
struct Layer {
  Expr weight, bias;
};
struct Experts {
  Layer in, out, gate;  // gate: a second product of the input, in some
  int64_t count = 0, chosen = 0;
};

// Which experts each token has, and how much each counts: both (tokens, chosen).
struct Routing {
  Expr experts, shares;
};
// `normalized`: the shares of a token's experts are 1 together.
Routing routing_of(NodeContext& c, const Experts& e, bool normalized, const Expr& shares) {
  const Expr scores = c.input(1);
  const Expr top = c.call("topk", {scores}, make_attrs<relay::TopKAttrs>([&](auto& a) {
                            a.k = e.chosen;
                            a.axis = -1;
                            a.dtype = kInt64;
                          }));
  const Expr experts = c.get(top, 1);
  auto of_chosen = [&](const Expr& values) {
    return c.call("gather", {values, experts}, make_attrs<relay::GatherAttrs>([](auto& a) { a.axis = 1; }));
  };
  if (shares) {
    const Expr own = of_chosen(shares);
    return {experts, normalized ? c.div(own, c.reduce("sum", own, {1}, true)) : own};
  }
  if (normalized) return {experts, softmax_of_rows(c, c.get(top, 0))};
  return {experts, of_chosen(softmax_of_rows(c, scores))};
}

// What lies between an expert's two layers; h is (groups, rows, width).
Expr between(NodeContext& c, const Expr& h, const Expr& gate) {
  const std::string name = c.string_attr("activation_type", "relu");
  if (name != "swiglu") {
    Expr y = h;
    if (name == "gelu")
      y = gelu_of(c, h, true);
    else if (name == "silu")
      y = c.mul(h, c.call("sigmoid", {h}));
    else if (name == "relu")
      y = c.call("nn.relu", {h});
    else if (name != "identity")
      c.fail(format("its activation_type '{}' is unknown", name));
    return gate ? c.mul(y, gate) : y;
  }
  const int64_t fusion = c.int_attr("swiglu_fusion", 0), width = c.dims(h)[2];
  if (fusion < 0 || fusion > 2 || (fusion == 0) != static_cast<bool>(gate) || (fusion != 0 && width % 2 != 0))
    c.fail(format("its swiglu_fusion {} does not fit its weights", fusion));
  Expr a = h, b = gate;
  if (fusion == 1) a = c.slice(h, 2, 0, width, 2), b = c.slice(h, 2, 1, width, 2);
  if (fusion == 2) a = c.slice(h, 2, 0, width / 2), b = c.slice(h, 2, width / 2, width);
  if (c.has_attr("swiglu_limit")) {
    const Expr limit = c.scalar_like(c.float_attr("swiglu_limit", 0), h);
    a = c.call("minimum", {a, limit});
    b = c.call("minimum", {c.call("maximum", {b, c.call("negative", {limit})}), limit});
  }
  const Expr turned = c.mul(a, c.scalar_like(c.float_attr("activation_alpha", 1), h));
  return c.mul(c.mul(a, c.call("sigmoid", {turned})), c.add(b, c.scalar_like(c.float_attr("activation_beta", 0), h)));
}

// x (groups, rows, columns) by the layer of each group.
Expr through(NodeContext& c, const Layer& layer, const Expr& x) {
  const Expr y = batched_product(c, x, layer.weight, true);
  return layer.bias ? c.add(y, c.expand(layer.bias, 1)) : y;
}
Expr through_all(NodeContext& c, const Experts& e, const Expr& x) {
  const Expr gate = e.gate.weight ? through(c, e.gate, x) : Expr();
  return through(c, e.out, between(c, through(c, e.in, x), gate));
}

Values mixed(NodeContext& c, const Experts& e, bool normalized, const Expr& shares) {
  const Expr x = c.input(0);
  const Ints d = c.dims(x);
  if (d.size() != 2 && d.size() != 3) c.fail_type("its input must be (tokens, size) or (batch, sequence, size)");
  const int64_t size = d.back(), tokens = c.product(d, 0, static_cast<int64_t>(d.size()) - 1);
  if (dims_of_rank(c, c.input(1), 2, "scores of experts") != Ints{tokens, e.count} || e.chosen < 1 ||
      e.chosen > e.count)
    c.fail_type(format("{} of {} experts for {} tokens do not fit its scores", e.chosen, e.count, tokens));
  const Expr rows = c.reshape(x, {tokens, size});
  const Routing r = routing_of(c, e, normalized, shares);
  if (tokens * e.chosen <= e.count) {
    const Expr which = c.reshape(r.experts, {tokens * e.chosen});
    auto own = [&](const Expr& of_all) {
      return of_all ? c.call("take", {of_all, which}, make_attrs<relay::TakeAttrs>([](auto& a) {
                               a.axis = 0;
                               a.mode = "fast";
                             }))
                    : Expr();
    };
    auto chosen = [&](const Layer& l) { return Layer{own(l.weight), own(l.bias)}; };
    const Experts theirs{chosen(e.in), chosen(e.out), chosen(e.gate)};
    const Expr y = through_all(c, theirs, c.expand(repeated(c, rows, e.chosen, 0), 1));
    const Expr shared = c.mul(c.reshape(y, {tokens, e.chosen, size}), c.expand(r.shares, 2));
    return {c.reshape(c.reduce("sum", shared, {1}, false), d)};
  }
  // (tokens, experts): an expert's share of a token.
  const Expr on = c.call("equal", {c.expand(r.experts, 2), c.reshape(c.counting(e.count), {1, 1, e.count})});
  const Expr none = c.scalar_like(0, r.shares);
  const Expr weights = c.reduce("sum", c.where(on, c.expand(r.shares, 2), none), {1}, false);
  const Expr y = through_all(c, e, c.broadcast_to(c.expand(rows, 0), {e.count, tokens, size}));
  const Expr shared = c.mul(y, c.expand(c.transpose(weights, {1, 0}), 2));
  return {c.reshape(c.reduce("sum", shared, {0}, false), d)};
}

void check_routing(NodeContext& c) {
  if (c.int_attr("use_sparse_mixer", 0) != 0) c.unsupported("the sparse mixer");
}

Values mixture(NodeContext& c) {
  check_routing(c);
  auto layer = [&](size_t i) {
    if (!c.has(i)) return Layer{};
    dims_of_rank(c, c.input(i), 3, "weights of experts");
    return Layer{c.input(i), c.has(i + 1) ? c.input(i + 1) : Expr()};
  };
  const Experts e{layer(2), layer(4), layer(6), c.dims(c.input(2))[0], c.int_attr("k", 1)};
  return mixed(c, e, c.int_attr("normalize_routing_weights", 0) != 0, {});
}

// Quantised weights are dequantised at import. Their shares are 1 together in onnxruntime, whatever the node says.
Values quantized_mixture(NodeContext& c) {
  check_routing(c);
  if (c.string_attr("quant_type", "int") != "int") c.unsupported("weights quantised to floats");
  if (c.int_attr("weights_prepacked", 0) > 0) c.unsupported("weights that are packed for one kind of processor");
  auto layer = [&](size_t i, size_t zeros, const char* bits) {
    if (!c.has(i)) return Layer{};
    const QuantizedExperts stored{i, i + 1, zeros, c.int_attr(bits, c.int_attr("expert_weight_bits", 4)),
                                  c.int_attr("block_size", 0)};
    return Layer{c.cast(c.constant_of(expert_weights(c, stored)), c.dtype(c.input(0))),
                 c.has(i + 2) ? c.input(i + 2) : Expr()};
  };
  const Experts e{layer(2, 11, "fc1_expert_weight_bits"), layer(5, 12, "fc2_expert_weight_bits"),
                  layer(8, 13, "fc3_expert_weight_bits"), c.dims(c.input(2))[0], c.int_attr("k", 1)};
  if (!c.has(14)) return mixed(c, e, true, {});
  return mixed(c, e, c.int_attr("normalize_routing_weights", 0) != 0, c.input(14));
}

constexpr ConverterEntry kExperts[] = {
    {"MoE", 1, mixture, "com.microsoft"},
    {"QMoE", 1, quantized_mixture, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> experts_converters() { return kExperts; }

}  // namespace tilewright::onnx
