// SPDX-License-Identifier: Apache-2.0
// Attention and related operators, written out as matrix products and softmax, the form that the compiler's attention
// matching recognises.
#include <cmath>
#include <limits>

#include "base/format.h"
#include "frontend/onnx/converters/attention.h"

namespace tilewright::onnx {

std::vector<int64_t> dims_of_rank(NodeContext& c, const Expr& e, int64_t rank, const char* what) {
  if (c.rank(e) != rank) c.fail_type(format("its {} must have rank {}, not {}", what, rank, c.rank(e)));
  return c.dims(e);
}

Expr batched_product(NodeContext& c, const Expr& a, const Expr& b, bool transpose_b) {
  return c.call("nn.batch_matmul", {a, b},
                make_attrs<relay::BatchMatmulAttrs>([&](auto& attrs) { attrs.transpose_b = transpose_b; }));
}
Expr softmax_of_rows(NodeContext& c, const Expr& x) {
  return c.call("nn.softmax", {x}, make_attrs<relay::SoftmaxAttrs>([](auto& a) { a.axis = -1; }));
}
Expr over_root_mean_square(NodeContext& c, const Expr& x, double epsilon) {
  const Expr power = c.reduce("mean", c.mul(x, x), {c.rank(x) - 1}, true);
  return c.mul(x, c.call("rsqrt", {c.add(power, c.scalar_like(epsilon, power))}));
}

Expr repeated(NodeContext& c, const Expr& x, int64_t times, int64_t axis) {
  if (times == 1) return x;
  return c.call("repeat", {x}, make_attrs<relay::RepeatAttrs>([&](auto& a) {
                  a.repeats = times;
                  a.axis = axis;
                }));
}

// (batch, sequence, heads * size) to (batch, heads, sequence, size).
Expr split_heads(NodeContext& c, const Expr& x, int64_t heads) {
  const auto d = dims_of_rank(c, x, 3, "queries, keys and values");
  if (heads < 1 || d[2] % heads != 0) c.fail(format("{} heads do not divide a size of {}", heads, d[2]));
  return c.transpose(c.reshape(x, {d[0], d[1], heads, d[2] / heads}), {0, 2, 1, 3});
}
Expr merge_heads(NodeContext& c, const Expr& x) {
  const auto d = dims_of_rank(c, x, 4, "heads");
  return c.reshape(c.transpose(x, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
}

Expr rotary_turned(NodeContext& c, const Expr& x, const Expr& cosine, const Expr& sine, int64_t rotated,
                   bool interleaved) {
  const auto d = dims_of_rank(c, x, 4, "input");
  const int64_t size = d[3];
  Expr part = rotated == size ? x : c.slice(x, 3, 0, rotated);
  Expr a = interleaved ? c.slice(part, 3, 0, rotated, 2) : c.slice(part, 3, 0, rotated / 2);
  Expr b = interleaved ? c.slice(part, 3, 1, rotated, 2) : c.slice(part, 3, rotated / 2, rotated);
  Expr real = c.sub(c.mul(cosine, a), c.mul(sine, b)), imaginary = c.add(c.mul(sine, a), c.mul(cosine, b));
  Expr turned = interleaved
                    ? c.reshape(c.concat({c.expand(real, 4), c.expand(imaginary, 4)}, 4), {d[0], d[1], d[2], rotated})
                    : c.concat({real, imaginary}, 3);
  return rotated < size ? c.concat({turned, c.slice(x, 3, rotated, size)}, 3) : turned;
}

namespace {

using Ints = std::vector<int64_t>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Values attention(NodeContext& c) {
  Expr q = c.input(0), k = c.input(1), v = c.input(2);
  int64_t rank = c.rank(q);
  if ((rank != 3 && rank != 4) || c.rank(k) != rank || c.rank(v) != rank)
    c.fail_type("its queries, keys and values must all have rank 3 or 4");
  DataType dtype = c.dtype(q);
  if (rank == 3) {
    int64_t q_heads = c.int_attr("q_num_heads"), kv_heads = c.int_attr("kv_num_heads");
    q = split_heads(c, q, q_heads), k = split_heads(c, k, kv_heads), v = split_heads(c, v, kv_heads);
  }
  double scale = c.float_attr("scale", 1 / std::sqrt(static_cast<double>(c.dims(q)[3])));
  int64_t past = 0;
  if (c.has(4)) {
    past = dims_of_rank(c, c.input(4), 4, "past keys")[2];
    k = c.concat({c.input(4), k}, 2);
  }
  if (c.has(5)) v = c.concat({c.input(5), v}, 2);
  Expr present_key = k, present_value = v;
  int64_t q_heads = c.dims(q)[1], kv_heads = c.dims(k)[1], queries = c.dims(q)[2], keys = c.dims(k)[2];
  if (kv_heads < 1 || q_heads % kv_heads != 0)
    c.fail_type(format("{} query heads do not share {} key heads evenly", q_heads, kv_heads));
  // Grouped queries: each key/value head is shared by q_heads / kv_heads query heads.
  k = repeated(c, k, q_heads / kv_heads, 1), v = repeated(c, v, q_heads / kv_heads, 1);

  Expr scores = batched_product(c, c.mul(q, c.scalar(scale, dtype)), k, true);
  int64_t mode = c.int_attr("qk_matmul_output_mode", 0);
  double cap = c.float_attr("softcap", 0);
  if (cap > 0) scores = c.mul(c.call("tanh", {c.div(scores, c.scalar(cap, dtype))}), c.scalar(cap, dtype));
  Expr shown = scores;
  Expr low = c.scalar(-kInfinity, dtype), zero = c.scalar(0, dtype);
  if (c.has(3)) {
    Expr mask = c.input(3);
    bool boolean = c.dtype(mask).is_bool();
    // A mask with fewer columns than there are keys masks the keys past its end.
    int64_t missing = keys - c.dims(mask).back();
    if (missing > 0) {
      std::vector<Ints> widths(static_cast<size_t>(c.rank(mask)), Ints{0, 0});
      widths.back()[1] = missing;
      mask = c.call("nn.pad", {mask, boolean ? c.scalar(0, kBool) : c.scalar(-kInfinity, c.dtype(mask))},
                    make_attrs<relay::PadAttrs>([&](auto& a) { a.pad_width = widths; }));
    }
    scores = c.add(scores, boolean ? c.where(mask, zero, low) : c.cast(mask, dtype));
  }
  if (c.int_attr("is_causal", 0) != 0) {
    // Causal: query i attends to the past and to the keys up to its own position.
    Expr seen = c.call("greater_equal", {c.expand(c.counting(queries, past), 1), c.expand(c.counting(keys), 0)});
    scores = c.add(scores, c.where(seen, zero, low));
  }
  if (c.has(6)) {
    // For each batch, the number of keys that are not padding.
    Expr limit = c.expand(c.cast(c.input(6), kInt64), 1, 3);
    Expr index = c.reshape(c.counting(keys), {1, 1, 1, keys});
    scores = c.add(scores, c.where(c.call("less", {index, limit}), zero, low));
  }
  if (mode == 2) shown = scores;
  DataType precision = c.dtype_attr("softmax_precision", dtype);
  Expr weights = softmax_of_rows(c, c.cast(scores, precision));
  if (mode == 3) shown = c.cast(weights, dtype);
  Expr y = c.cast(batched_product(c, c.cast(weights, c.dtype(v)), v, false), dtype);
  if (rank == 3) y = merge_heads(c, y);
  return {y, present_key, present_value, shown};
}

Values rotary_embedding(NodeContext& c) {
  Expr x = c.input(0), cosine = c.input(1), sine = c.input(2);
  int64_t rank = c.rank(x);
  if (rank != 3 && rank != 4) c.fail_type("its input must have rank 3 or 4");
  // (batch, sequence, heads, size)
  Expr heads = x;
  if (rank == 3) {
    Ints d = c.dims(x);
    int64_t n = c.int_attr("num_heads", 0);
    if (n < 1 || d[2] % n != 0) c.fail(format("{} heads do not divide a size of {}", n, d[2]));
    heads = c.reshape(x, {d[0], d[1], n, d[2] / n});
  } else {
    heads = c.transpose(x, {0, 2, 1, 3});
  }
  Ints d = c.dims(heads);
  int64_t size = d[3], rotated = c.int_attr("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = size;
  if (rotated < 2 || rotated > size || rotated % 2 != 0) c.fail(format("it rotates {} of {} elements", rotated, size));
  auto angles = [&](Expr cache) {
    if (c.has(3))
      cache = c.call("take", {cache, c.input(3)}, make_attrs<relay::TakeAttrs>([](auto& a) {
                       a.axis = 0;
                       a.mode = "fast";
                     }));
    return c.expand(cache, 2);
  };
  cosine = angles(cosine), sine = angles(sine);
  const Expr turned = rotary_turned(c, heads, cosine, sine, rotated, c.int_attr("interleaved", 0) != 0);
  return {rank == 3 ? c.reshape(turned, c.dims(x)) : c.transpose(turned, {0, 2, 1, 3})};
}

// Linear attention: a recurrence over time on a state of shape (key, value), unrolled.
Values linear_attention(NodeContext& c) {
  if (c.int_attr("state_window", 0) != 0) c.unsupported("the states of several steps");
  int64_t q_heads = c.int_attr("q_num_heads"), kv_heads = c.int_attr("kv_num_heads");
  std::string rule = c.string_attr("update_rule", "gated_delta");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") c.fail(format("its update_rule '{}' is unknown", rule));
  if (gated != c.has(4) || delta != c.has(5))
    c.fail(format("its decay and beta inputs do not fit the update_rule '{}'", rule));
  const int64_t all = std::max(q_heads, kv_heads);  // com.microsoft's queries may be shared, too
  if (q_heads < 1 || kv_heads < 1 || all % kv_heads != 0 || all % q_heads != 0)
    c.fail(format("{} query heads do not share {} key heads", q_heads, kv_heads));
  DataType dtype = c.dtype(c.input(0));
  auto heads = [&](size_t i, int64_t n) { return split_heads(c, c.cast(c.input(i), kFloat32), n); };
  Expr q = repeated(c, heads(0, q_heads), all / q_heads, 1), k = heads(1, kv_heads), v = heads(2, kv_heads);
  Ints kd = c.dims(k), vd = c.dims(v);
  int64_t batch = kd[0], steps = kd[2], key = kd[3], value = vd[3];
  if (steps > 4096) c.unsupported(format("{} steps", steps));
  double scale = c.float_attr("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(key));
  Expr decay, beta;
  if (gated) {
    int64_t width = c.dims(c.input(4))[2];
    decay = heads(4, kv_heads);
    if (width != kv_heads && width != kv_heads * key) c.fail_type(format("a decay of width {} does not fit", width));
  }
  if (delta) beta = heads(5, c.dims(c.input(5))[2]);
  DataType state_type = c.has(3) ? c.dtype(c.input(3)) : dtype;
  Expr state = c.has(3) ? c.cast(c.input(3), kFloat32) : c.zeros(kFloat32, {batch, kv_heads, key, value});
  auto at = [&](const Expr& x, int64_t t) { return c.slice(x, 2, t, t + 1); };  // (batch, heads, 1, size)
  auto column = [&](const Expr& x) { return c.transpose(x, {0, 1, 3, 2}); };    // (batch, heads, size, 1)
  std::vector<Expr> outputs;
  for (int64_t t = 0; t < steps; ++t) {
    Expr kt = column(at(k, t)), vt = at(v, t);
    if (gated) state = c.mul(state, c.call("exp", {column(at(decay, t))}));
    if (delta) vt = c.mul(at(beta, t), c.sub(vt, c.reduce("sum", c.mul(state, kt), {2}, true)));
    state = c.add(state, c.mul(kt, vt));
    Expr shared = repeated(c, state, all / kv_heads, 1);
    outputs.push_back(c.reduce("sum", c.mul(shared, column(at(q, t))), {2}, true));
  }
  Expr y = merge_heads(c, c.mul(c.concat(outputs, 2), c.scalar(scale, kFloat32)));
  return {c.cast(y, dtype), c.cast(state, state_type)};
}

// A causal depthwise convolution over time: each output depends on the current and earlier inputs only. com.microsoft's
// may have (batch, time, channels...).
Values causal_conv(NodeContext& c) {
  if (c.int_attr("state_window", 0) != 0) c.unsupported("the states of several steps");
  const bool last = c.int_attr("channels_last", 0) != 0;
  const int64_t apart = c.int_attr("dilation", 1);
  if (c.int_attr("ndim", 1) != 1) c.unsupported("more than one axis of space");
  // (batch, channels, time) and back.
  auto first = [&](const Expr& e) {
    if (!last) return e;
    const Ints d = c.dims(e);
    return c.transpose(c.reshape(e, {d[0], d[1], c.product(d, 2)}), {0, 2, 1});
  };
  auto as_given = [&](const Expr& e) {
    if (!last) return e;
    Ints d = c.dims(c.input(0));
    d[1] = c.dims(e)[2];
    return c.reshape(c.transpose(e, {0, 2, 1}), d);
  };
  if (c.rank(c.input(0)) < 3) c.fail_type("its input must have rank 3");
  Expr x = first(c.input(0)), weight = c.input(1);
  if (c.rank(x) != 3 || c.rank(weight) != 3) c.fail_type("its input and weight must have rank 3");
  Ints d = c.dims(x);
  int64_t width = c.dims(weight)[2], before = (width - 1) * apart;
  if (apart < 1 || before > (int64_t{1} << 31)) c.fail(format("its dilation is {}", apart));
  std::string activation = c.string_attr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    c.fail(format("its activation '{}' is unknown", activation));
  Expr past = c.has(3) ? first(c.input(3)) : c.zeros(c.dtype(x), {d[0], d[1], before});
  Expr padded = width > 1 ? c.concat({past, x}, 2) : x;
  Expr y = c.call("nn.conv1d", {padded, weight}, make_attrs<relay::Conv1DAttrs>([&](auto& a) {
                    a.groups = d[1];
                    a.channels = d[1];
                    a.kernel_size = Ints{width};
                    a.dilation = Ints{apart};
                    a.padding = {0, 0};
                  }));
  if (c.has(2))
    y = c.call("nn.bias_add", {y, c.input(2)}, make_attrs<relay::BiasAddAttrs>([](auto& a) { a.axis = 1; }));
  if (activation != "none") y = c.mul(y, c.call("sigmoid", {y}));
  return {as_given(y), as_given(c.slice(padded, 2, d[2], d[2] + before))};
}

// Attention with user-supplied subgraphs that modify its scores and probabilities.
Values flex_attention(NodeContext& c) {
  Expr q = c.input(0), k = c.input(1), v = c.input(2);
  if (c.rank(q) != 4 || c.rank(k) != 4 || c.rank(v) != 4) c.fail_type("its queries, keys and values must have rank 4");
  DataType dtype = c.dtype(q), narrow = dtype.bits < 32 ? kFloat32 : dtype;
  DataType precision = c.dtype_attr("softmax_precision", narrow);
  int64_t q_heads = c.dims(q)[1], kv_heads = c.dims(k)[1];
  if (kv_heads < 1 || q_heads % kv_heads != 0)
    c.fail_type(format("{} query heads do not share {} key heads evenly", q_heads, kv_heads));
  k = repeated(c, k, q_heads / kv_heads, 1), v = repeated(c, v, q_heads / kv_heads, 1);
  double scale = c.float_attr("scale", 1 / std::sqrt(static_cast<double>(c.dims(q)[3])));
  auto modified = [&](Expr x, const char* name) {
    const Attribute* a = c.attr(name, AttributeKind::kGraph);
    if (!a) return x;
    Values out = c.inline_graph(*a->graphs.at(0), {x});
    if (out.size() != 1 || !out[0].expr) c.fail(format("its {} must make one tensor", name));
    return c.cast(out[0].expr, precision);
  };
  Expr scores = c.cast(batched_product(c, c.mul(q, c.scalar(scale, dtype)), k, true), precision);
  Expr weights = modified(softmax_of_rows(c, modified(scores, "score_mod")), "prob_mod");
  return {c.cast(batched_product(c, weights, c.cast(v, precision), false), c.dtype(v))};
}

// Writes new keys or values into a cache along an axis, at an offset per batch; a circular cache wraps around.
Values tensor_scatter(NodeContext& c) {
  Expr cache = c.input(0), update = c.input(1);
  Ints d = c.dims(update);
  int64_t rank = c.rank(cache), axis = c.axis(c.int_attr("axis", -2), rank);
  if (static_cast<int64_t>(d.size()) != rank || axis == 0) c.fail_type("its update and cache do not fit");
  int64_t size = c.dims(cache)[static_cast<size_t>(axis)];
  std::string mode = c.string_attr("mode", "linear");
  if (mode != "linear" && mode != "circular") c.fail(format("its mode '{}' is unknown", mode));
  Expr places = c.expand(c.counting(d[static_cast<size_t>(axis)]), 1, rank - axis - 1);  // positions along the axis
  if (c.has(2)) places = c.add(places, c.expand(c.cast(c.input(2), kInt64), 1, rank - 1));
  if (mode == "circular") places = c.call("floor_mod", {places, c.scalar(static_cast<double>(size), kInt64)});
  return {c.call("scatter_elements", {cache, c.broadcast_to(places, d), update},
                 make_attrs<relay::ScatterElementsAttrs>([&](auto& a) { a.axis = axis; }))};
}

constexpr ConverterEntry kAttentionConverters[] = {
    {"TensorScatter", 24, tensor_scatter},
    {"FlexAttention", 1, flex_attention, "ai.onnx.preview"},
    {"Attention", 23, attention},
    {"RotaryEmbedding", 23, rotary_embedding},
    {"LinearAttention", 26, linear_attention},
    {"LinearAttention", 1, linear_attention, "com.microsoft"},
    {"CausalConvWithState", 26, causal_conv},
    {"CausalConvWithState", 1, causal_conv, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> attention_converters() { return kAttentionConverters; }

}  // namespace tilewright::onnx
