// SPDX-License-Identifier: Apache-2.0
// com.microsoft: the gates and the normalisations beside them of recent decoders (gated delta networks,
// hyper-connections, memories of n-grams). They compute in float32 where their operands are smaller.
#include <cmath>

#include "base/format.h"
#include "frontend/onnx/converters/activation.h"
#include "frontend/onnx/converters/attention.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

DataType wide_type(DataType t) { return t == kFloat64 ? t : kFloat32; }
Expr wide(NodeContext& c, const Expr& e) { return c.cast(e, wide_type(c.dtype(e))); }
Expr sigmoid(NodeContext& c, const Expr& e) { return c.call("sigmoid", {e}); }

// A decay, log(1 + exp(x)) times a factor; and how much is written.
Values linear_attention_gate(NodeContext& c) {
  const Expr x = c.add(wide(c, c.input(0)), c.input(1));
  Values out = {c.cast(c.mul(softplus_of(c, x), c.input(2)), c.dtype(c.input(0)))};
  if (c.wants(1)) out.push_back(c.cast(sigmoid(c, wide(c, c.input(3))), c.dtype(c.input(3))));
  return out;
}

// Rows of as many elements as the scale has are normalised each.
Values gated_norm(NodeContext& c) {
  const Expr x = c.input(0);
  const int64_t size = dims_of_rank(c, c.input(1), 1, "scale")[0];
  const Ints d = c.dims(x);
  if (d.empty() || size < 1 || d.back() % size != 0)
    c.fail_type(format("a scale of {} does not divide its rows", size));
  auto rows = [&](const Expr& e) { return c.reshape(wide(c, e), {-1, size}); };
  const std::string name = c.string_attr("activation", "silu");
  if (name != "silu" && name != "swish" && name != "sigmoid") c.fail(format("its activation '{}' is unknown", name));
  const Expr gate = rows(c.input(2));
  const Expr open = name == "sigmoid" ? sigmoid(c, gate) : c.mul(gate, sigmoid(c, gate));
  const Expr y = c.mul(over_root_mean_square(c, rows(x), c.float_attr("epsilon", 1e-5f)), wide(c, c.input(1)));
  return {c.cast(c.reshape(c.mul(y, open), d), c.dtype(x))};
}
Values gated_add(NodeContext& c) { return {c.add(c.input(0), c.mul(c.input(1), c.input(2)))}; }

Values scaled_silu(NodeContext& c) {
  const Expr x = c.input(0);
  const DataType dtype = c.dtype(x);
  const Expr factor =
      c.has(1) ? c.reshape(wide(c, c.input(1)), {}) : c.scalar(c.float_attr("alpha", 1), wide_type(dtype));
  const Expr scaled = c.cast(c.mul(wide(c, x), factor), dtype);
  return {c.mul(scaled, c.cast(sigmoid(c, wide(c, scaled)), dtype))};
}

// Keys that agree with the queries open the way for the value that all connections share.
Values engram_gate(NodeContext& c) {
  const double epsilon = c.float_attr("epsilon", 1e-5f);
  const Ints d = dims_of_rank(c, c.input(0), 4, "keys");
  const DataType dtype = c.dtype(c.input(0));
  auto scaled = [&](size_t i, size_t scale) {
    return c.mul(over_root_mean_square(c, wide(c, c.input(i)), epsilon), wide(c, c.input(scale)));
  };
  const Expr sum = c.reduce("sum", c.mul(scaled(0, 3), scaled(1, 4)), {3}, true);
  const Expr dot = c.mul(sum, c.scalar_like(1 / std::sqrt(static_cast<double>(d[3])), sum));
  const Expr least = c.call("maximum", {c.call("abs", {dot}), c.scalar_like(1e-6, dot)});
  const Expr gate = sigmoid(c, c.mul(c.call("sign", {dot}), c.call("sqrt", {least})));
  const Expr y = c.mul(gate, c.expand(wide(c, c.input(2)), 2));
  Values out = {c.cast(y, dtype)};
  if (c.wants(1)) out.push_back(c.cast(c.mul(over_root_mean_square(c, y, epsilon), wide(c, c.input(5))), dtype));
  return out;
}

// (..., branches, size) of what may be (..., branches * size).
Expr grouped(NodeContext& c, const Expr& e) {
  const int64_t branches = c.int_attr("num_branches", 0);
  if (branches == 0) return e;
  Ints d = c.dims(e);
  if (d.empty() || branches < 1 || d.back() % branches != 0)
    c.fail(format("{} branches do not divide its rows", branches));
  d.push_back(d.back() / branches);
  d[d.size() - 2] = branches;
  return c.reshape(e, d);
}
// Gates of streams (..., C, H): they may be (..., C), (..., C, 1), (..., C, H) or (..., C * H).
Expr gates_of(NodeContext& c, const Expr& gate, const Expr& streams) {
  const Ints s = c.dims(streams), g = c.dims(gate);
  Expr w = c.cast(gate, wide_type(c.dtype(streams)));
  if (g.size() == s.size()) return w;
  if (g.size() + 1 != s.size() || g.empty()) c.fail_type("its gates do not fit its streams");
  return g.back() == s[s.size() - 2] ? c.expand(w, static_cast<int64_t>(g.size())) : c.reshape(w, s);
}
void check_streams(NodeContext& c, const Expr& streams) {
  if (c.rank(streams) < 2) c.fail_type("its streams must be (..., branches, size)");
}

Values branch_norm(NodeContext& c) {
  const Expr x = grouped(c, wide(c, c.input(0)));
  check_streams(c, x);
  Expr y = over_root_mean_square(c, x, c.float_attr("epsilon", 1e-6f));
  if (c.has(1)) {
    const Ints d = c.dims(x);
    Expr scale = c.cast(c.input(1), c.dtype(x));
    if (c.rank(scale) == 1 && c.dims(scale)[0] != d.back()) scale = c.reshape(scale, {d[d.size() - 2], d.back()});
    y = c.mul(y, scale);
  }
  return {c.cast(c.reshape(y, c.dims(c.input(0))), c.dtype(c.input(0)))};
}

// The sum of the streams, each by its gate.
Values hyper_connections_in(NodeContext& c) {
  const Expr x = grouped(c, wide(c, c.input(0)));
  check_streams(c, x);
  const Expr sum = c.reduce("sum", c.mul(x, gates_of(c, c.input(1), x)), {c.rank(x) - 2}, false);
  return {c.cast(c.mul(sum, c.scalar_like(c.float_attr("reduction_scale", 1), sum)), c.dtype(c.input(0)))};
}
// The streams, mixed among themselves, and a block's result into each by its gate.
Values hyper_connections_out(NodeContext& c) {
  const Expr x = grouped(c, wide(c, c.input(0)));
  check_streams(c, x);
  const Ints d = c.dims(x);
  const int64_t rank = c.rank(x), branches = d[d.size() - 2], size = d.back();
  Expr y = x;
  if (c.has(3)) {
    const Expr mix = c.reshape(c.cast(c.input(3), c.dtype(x)), {-1, branches, branches});
    const Expr turned = c.transpose(mix, {0, 2, 1});
    y = c.reshape(c.call("nn.batch_matmul", {turned, c.reshape(x, {-1, branches, size})},
                         make_attrs<relay::BatchMatmulAttrs>([](auto& a) { a.transpose_b = false; })),
                  d);
  }
  y = c.add(y, c.mul(gates_of(c, c.input(2), x), c.expand(wide(c, c.input(1)), rank - 2)));
  return {c.cast(c.reshape(y, c.dims(c.input(0))), c.dtype(c.input(0)))};
}

constexpr ConverterEntry kMicrosoftGates[] = {
    {"LinearAttentionGate", 1, linear_attention_gate, "com.microsoft"},
    {"GatedRMSNorm", 1, gated_norm, "com.microsoft"},
    {"GatedAdd", 1, gated_add, "com.microsoft"},
    {"ScaledSiLU", 1, scaled_silu, "com.microsoft"},
    {"EngramGate", 1, engram_gate, "com.microsoft"},
    {"BranchwiseRMSNorm", 1, branch_norm, "com.microsoft"},
    {"HyperConnectionPreMix", 1, hyper_connections_in, "com.microsoft"},
    {"HyperConnectionPostMix", 1, hyper_connections_out, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> gates_microsoft_converters() { return kMicrosoftGates; }

}  // namespace tilewright::onnx
