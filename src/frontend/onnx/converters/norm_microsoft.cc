// SPDX-License-Identifier: Apache-2.0
// com.microsoft: normalisation of a residual sum, which onnxruntime's optimiser makes of transformers.
#include "frontend/onnx/converters/attention.h"
#include "frontend/onnx/converters/norm.h"
#include "frontend/onnx/converters/quant.h"

namespace tilewright::onnx {
namespace {

// x + skip + bias, normalised. Statistics are float32 and keep the normalised axis with extent 1.
Expr skipped_sum(NodeContext& c, size_t bias) {
  Expr sum = c.add(c.input(0), c.input(1));
  return c.has(bias) ? c.add(sum, c.input(bias)) : sum;
}

Expr mean_of_rows(NodeContext& c, const Expr& x) { return c.reduce("mean", x, {c.rank(x) - 1}, true); }

Expr normalized_rows(NodeContext& c, const Expr& x, const Expr& gamma, const Expr& beta, double epsilon) {
  const int64_t last = c.axis(-1, c.rank(x));
  const int64_t size = dims_of_rank(c, gamma, 1, "scale")[0];
  return c.call("nn.layer_norm", {x, gamma, beta ? beta : c.zeros(c.dtype(x), {size})},
                make_attrs<relay::LayerNormAttrs>([&](auto& a) {
                  a.axis = last;
                  a.epsilon = epsilon;
                }));
}

// Results: y, mean, inverse standard deviation, sum.
Values skip_layer_norm(NodeContext& c) {
  const double epsilon = c.float_attr("epsilon", 1e-12f);
  const Expr sum = skipped_sum(c, 4);
  Values out = {normalized_rows(c, sum, c.input(2), c.has(3) ? c.input(3) : Expr(), epsilon), {}, {}, sum};
  if (c.wants(1) || c.wants(2)) {
    const Expr wide = c.cast(sum, kFloat32), mean = mean_of_rows(c, wide), centered = c.sub(wide, mean);
    out[1] = mean;
    out[2] = inverse_root(c, mean_of_rows(c, c.mul(centered, centered)), epsilon);
  }
  return out;
}

Values skip_simplified_layer_norm(NodeContext& c) {
  const Expr sum = skipped_sum(c, 3);
  const int64_t last = c.axis(-1, c.rank(sum));
  const auto out = root_mean_square_norm(c, sum, last, c.input(2), c.float_attr("epsilon", 1e-12f));
  return {out.y, {}, out.inverse, sum};
}
Values simplified_layer_norm(NodeContext& c) {
  const Expr x = c.input(0);
  const int64_t axis = c.axis(c.int_attr("axis", -1), c.rank(x));
  const auto out = root_mean_square_norm(c, x, axis, c.input(1), c.float_attr("epsilon", 1e-5f));
  return {out.y, out.inverse};
}

// Layer normalisation of the sum of word, position and segment embeddings; also counts the tokens per row in the mask.
// The tables, scale and shift are operands 2 to 6, whose values `real` gives.
template <class Real>
Values embedded(NodeContext& c, const Expr& given_places, const Real& real) {
  const auto d = dims_of_rank(c, c.input(0), 2, "words");
  auto rows = [&](size_t table, const Expr& index) {
    dims_of_rank(c, c.input(table), 2, "table of embeddings");
    return real(table,
                c.call("take", {c.input(table), index}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; })));
  };
  const Expr places = given_places ? given_places : c.reshape(c.counting(d[1]), {1, d[1]});
  Expr sum = c.add(rows(2, c.input(0)), rows(3, places));
  if (c.has(1) && c.has(4)) sum = c.add(sum, rows(4, c.input(1)));
  const Expr scale = real(5, c.input(5)), shift = real(6, c.input(6));
  const Expr y = normalized_rows(c, sum, scale, shift, c.float_attr("epsilon", 1e-12f));
  Expr kept = c.zeros(kInt32, {d[0]});
  if (c.has(7)) {
    const Expr one = c.call("equal", {c.input(7), c.scalar(1, c.dtype(c.input(7)))});
    kept = c.reduce("sum", c.cast(one, kInt32), {1}, false);
  }
  return {y, kept, sum};
}
Values embed_layer_norm(NodeContext& c) {
  return embedded(c, c.has(8) ? c.input(8) : Expr(), [](size_t, const Expr& e) { return e; });
}
// Operands 8 to 12 are the scales of 2 to 6, 13 to 17 their zero points.
Values quantized_embed_layer_norm(NodeContext& c) {
  return embedded(c, {}, [&](size_t i, const Expr& e) {
    return dequantized(c, e, c.input(i + 6), c.input(i + 11), 0, 0, kFloat32);
  });
}

constexpr ConverterEntry kMicrosoftNorms[] = {
    {"SkipLayerNormalization", 1, skip_layer_norm, "com.microsoft"},
    {"SkipSimplifiedLayerNormalization", 1, skip_simplified_layer_norm, "com.microsoft"},
    {"SimplifiedLayerNormalization", 1, simplified_layer_norm},
    {"EmbedLayerNormalization", 1, embed_layer_norm, "com.microsoft"},
    {"QEmbedLayerNormalization", 1, quantized_embed_layer_norm, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> norm_microsoft_converters() { return kMicrosoftNorms; }

}  // namespace tilewright::onnx
