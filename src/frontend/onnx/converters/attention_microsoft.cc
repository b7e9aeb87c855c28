// SPDX-License-Identifier: Apache-2.0
// com.microsoft: attention as onnxruntime's optimiser and language model exporters write it, expressed by the same
// products and softmax as ONNX's own.
#include <array>
#include <cmath>
#include <limits>

#include "base/format.h"
#include "frontend/onnx/converters/attention.h"
#include "frontend/onnx/converters/linear.h"
#include "frontend/onnx/converters/quant.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// The score of a key that causality hides: -inf, so that no mask can raise it.
Expr hidden_score(NodeContext& c, DataType dtype) { return c.scalar(-std::numeric_limits<double>::infinity(), dtype); }
Expr score_of(NodeContext& c, const Expr& seen, double hidden, DataType dtype) {
  return c.where(seen, c.scalar(0, dtype), c.scalar(hidden, dtype));
}

// The additive mask for the scores. Accepted shapes: (batch), the number of keys; (2 * batch), end then begin
// positions; (3 * batch + 2), numbers of keys and two prefix sums that repeat them; (batch, keys); (batch, queries,
// keys); and (batch, 1, n, n), of which the last rows and the first columns are used.
Expr mask_scores(NodeContext& c, const Expr& mask, const Ints& scores, DataType dtype) {
  const int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  const double hidden = c.float_attr("mask_filter_value", -10000);
  const Ints d = c.dims(mask);
  if (d.size() == 1) {
    if (d[0] != batch && d[0] != 2 * batch && d[0] != 3 * batch + 2)
      c.fail_type(format("a mask of {} elements does not fit a batch of {}", d[0], batch));
    const Expr index = c.reshape(c.cast(c.counting(keys), c.dtype(mask)), {1, 1, 1, keys});
    auto part = [&](int64_t begin) {
      return c.reshape(d[0] == batch ? mask : c.slice(mask, 0, begin, begin + batch), {batch, 1, 1, 1});
    };
    Expr seen = c.call("less", {index, part(0)});
    if (d[0] == 2 * batch) seen = c.call("logical_and", {seen, c.call("greater_equal", {index, part(batch)})});
    return score_of(c, seen, hidden, dtype);
  }
  Expr wide = mask;
  if (d.size() == 4) {
    if (d[2] < keys || d[3] < keys) c.fail_type(format("a mask {} is too small for {} keys", shape_str(d), keys));
    wide = c.slice(c.slice(mask, 2, keys - queries, keys), 3, 0, keys);
  } else if (d.size() == 2 || d.size() == 3) {
    if (d.back() != keys) c.fail_type(format("a mask {} does not fit {} keys", shape_str(d), keys));
    wide = c.expand(mask, 1, 4 - static_cast<int64_t>(d.size()));
  } else {
    c.fail_type(format("a mask of rank {} is none", d.size()));
  }
  return score_of(c, c.call("greater", {wide, c.scalar(0, c.dtype(mask))}), hidden, dtype);
}

// Causal mask: query i stands at position past + i and attends to the keys up to there.
Expr order_scores(NodeContext& c, int64_t queries, int64_t keys, int64_t past, DataType dtype) {
  Expr seen = c.call("greater_equal", {c.expand(c.counting(queries, past), 1), c.expand(c.counting(keys), 0)});
  return c.where(seen, c.scalar(0, dtype), hidden_score(c, dtype));
}

double scale_of(NodeContext& c, int64_t size) {
  const double scale = c.float_attr("scale", 0);
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size));
}

struct AttentionResult {
  Expr y, scores;  // y: (batch, sequence, heads * size); scores: before the softmax
};
// Attention of split heads; mask, causality (`unidirectional`) and bias are the node's.
AttentionResult attend(NodeContext& c, const Expr& q, const Expr& k, const Expr& v, const Expr& mask,
                       const Expr& bias) {
  const DataType dtype = c.dtype(q);
  const int64_t size = dims_of_rank(c, q, 4, "queries")[3];
  dims_of_rank(c, k, 4, "keys"), dims_of_rank(c, v, 4, "values");
  Expr scores = batched_product(c, c.mul(q, c.scalar(scale_of(c, size), dtype)), k, true);
  const Ints d = dims_of_rank(c, scores, 4, "product of queries and keys");
  if (bias) scores = c.add(scores, bias);
  if (mask) scores = c.add(scores, mask_scores(c, mask, d, dtype));
  if (c.int_attr("unidirectional", 0) != 0) scores = c.add(scores, order_scores(c, d[2], d[3], d[3] - d[2], dtype));
  return {merge_heads(c, batched_product(c, softmax_of_rows(c, scores), v, false)), scores};
}

Expr given(NodeContext& c, size_t i) { return c.has(i) ? c.input(i) : Expr(); }

// Self-attention from one projection that holds queries, keys and values side by side; past and present are (2, batch,
// heads, keys, size).
Values attend_to_itself(NodeContext& c, const Expr& qkv, Ints widths, const Expr& mask, const Expr& past,
                        const Expr& bias) {
  const int64_t heads = c.int_attr("num_heads"), width = dims_of_rank(c, qkv, 3, "queries, keys and values")[2];
  if (past) dims_of_rank(c, past, 5, "past");
  if (widths.empty()) widths = {width / 3, width / 3, width / 3};
  for (int64_t w : widths)
    if (w < 0 || w > width) c.fail(format("a width of {} is more than its weight's {} columns", w, width));
  if (widths.size() != 3 || widths[0] != widths[1] || widths[0] + widths[1] + widths[2] != width)
    c.fail(format("its weight of {} columns does not hold queries, keys and values of {}", width, shape_str(widths)));
  auto part = [&](int64_t begin, int64_t size) { return split_heads(c, c.slice(qkv, 2, begin, begin + size), heads); };
  Expr q = part(0, widths[0]), k = part(widths[0], widths[1]), v = part(2 * widths[0], widths[2]);
  if (past) {
    auto before = [&](int64_t i) { return c.squeeze(c.slice(past, 0, i, i + 1), {0}); };
    k = c.concat({before(0), k}, 2), v = c.concat({before(1), v}, 2);
  }
  Values out = {attend(c, q, k, v, mask, bias).y};
  if (c.wants(1)) out.push_back(c.concat({c.expand(k, 0), c.expand(v, 0)}, 0));
  return out;
}

void refuse_shared_buffers(NodeContext& c) {
  if (c.int_attr("do_rotary", 0) != 0) c.unsupported("rotary positions inside the operator");
  if (c.int_attr("past_present_share_buffer", 0) != 0) c.unsupported("a past and a present in one buffer");
}

Values attention_of_input(NodeContext& c) {
  refuse_shared_buffers(c);
  if (c.rank(c.input(0)) != 3) c.fail_type("its input must be (batch, sequence, size)");
  Expr qkv = matmul_of(c, c.input(0), c.input(1));
  if (c.has(2)) qkv = c.add(qkv, c.input(2));
  return attend_to_itself(c, qkv, c.ints_attr("qkv_hidden_sizes"), given(c, 3), given(c, 4), given(c, 5));
}

Values quantized_attention(NodeContext& c) {
  refuse_shared_buffers(c);
  if (c.rank(c.input(0)) != 3) c.fail_type("its input must be (batch, sequence, size)");
  Expr sum = matmul_of(c, without_zero_point(c, c.input(0), given(c, 6), -1),
                       without_zero_point(c, c.input(1), given(c, 7), -1));
  Expr scale = c.mul(along_axis(c, c.input(3), sum, -1), along_axis(c, c.input(4), sum, -1));
  Expr qkv = c.add(c.mul(c.cast(sum, c.dtype(scale)), scale), c.input(2));
  return attend_to_itself(c, qkv, {}, given(c, 5), given(c, 8), Expr());
}

// The queries, keys and values of MultiHeadAttention, in any of its forms: separate; keys and values split into heads;
// or packed as (batch, sequence, heads, 3, size) or (batch, sequence, heads, 2, size).
std::array<Expr, 3> multi_head_operands(NodeContext& c, int64_t heads) {
  const Expr query = c.input(0);
  auto of_packed = [&](const Expr& packed, int64_t i) {
    return c.transpose(c.squeeze(c.slice(packed, 3, i, i + 1), {3}), {0, 2, 1, 3});
  };
  if (c.rank(query) == 5) return {of_packed(query, 0), of_packed(query, 1), of_packed(query, 2)};
  if (c.rank(query) != 3) c.fail_type("its queries must be (batch, sequence, size)");
  const int64_t width = c.dims(query)[2];
  auto biased = [&](const Expr& x, int64_t begin) {
    const int64_t size = dims_of_rank(c, x, 3, "queries, keys and values")[2];
    return c.has(3) ? c.add(x, c.slice(c.input(3), 0, begin, begin + size)) : x;
  };
  const Expr q = split_heads(c, biased(query, 0), heads), key = c.input(1);
  if (c.rank(key) == 5) return {q, of_packed(key, 0), of_packed(key, 1)};
  const Expr value = c.input(2);
  if (c.rank(key) == 4) return {q, key, value};
  return {q, split_heads(c, biased(key, width), heads), split_heads(c, biased(value, 2 * width), heads)};
}

Values multi_head_attention(NodeContext& c) {
  if (c.has(8) || c.has(9)) c.unsupported("a past in a buffer that is written in place");
  auto [q, k, v] = multi_head_operands(c, c.int_attr("num_heads"));
  if (c.has(6)) k = c.concat({c.input(6), k}, 2);
  if (c.has(7)) v = c.concat({c.input(7), v}, 2);
  const AttentionResult out = attend(c, q, k, v, given(c, 4), given(c, 5));
  return {out.y, k, v, out.scores};
}

// --- GroupQueryAttention

// Positions of keys and queries, from the input seqlens_k, which holds each batch's number of keys minus one.
struct Timeline {
  int64_t queries = 0, keys = 0;  // keys: length of the present cache
  bool prompt = false;            // no past: all keys are new
  Expr past;                      // (batch, 1): number of keys before the new ones
  Expr places;                    // (batch, queries): positions of the new keys and queries
};

Timeline timeline_of(NodeContext& c, int64_t batch, int64_t queries) {
  Timeline t;
  t.queries = queries;
  const int64_t total = c.int_scalar(6, "total sequence length");
  t.keys = std::max(total, c.has(3) ? dims_of_rank(c, c.input(3), 4, "past keys")[2] : 0);
  t.prompt = total == queries;
  if (total > (int64_t{1} << 31)) c.fail(format("a sequence of {} is too long", total));
  if (total < queries) c.fail(format("{} new tokens are more than the {} of the whole sequence", queries, total));
  const Expr known = c.cast(c.reshape(c.input(5), {batch, 1}), kInt64);
  auto number = [&](int64_t v) { return c.scalar(static_cast<double>(v), kInt64); };
  t.past = t.prompt ? c.zeros(kInt64, {batch, 1}) : c.sub(known, number(queries - 1));
  t.places = c.add(t.past, c.reshape(c.counting(queries), {1, queries}));
  return t;
}

// x (batch, heads, sequence, size) cut or zero-padded to `keys` positions of the sequence.
Expr with_places(NodeContext& c, const Expr& x, int64_t keys) {
  const int64_t missing = keys - dims_of_rank(c, x, 4, "cache")[2];
  if (missing <= 0) return x;
  return c.call("nn.pad", {x, c.scalar_like(0, x)}, make_attrs<relay::PadAttrs>([&](auto& a) {
                  a.pad_width = {{0, 0}, {0, 0}, {0, missing}, {0, 0}};
                }));
}

// The cache: past keys (or values), then the new ones, then zeros.
Expr extended_cache(NodeContext& c, const Timeline& t, const Expr& past, const Expr& fresh) {
  const Ints d = c.dims(fresh);
  if (t.prompt) return with_places(c, fresh, t.keys);
  if (!past) c.fail("it has no past, and its sequence is longer than its queries");
  const Expr index = c.reshape(c.counting(t.keys), {1, 1, t.keys, 1});
  const Expr begin = c.reshape(t.past, {d[0], 1, 1, 1});
  const Expr offset = c.sub(index, begin);  // (batch, 1, keys, 1)
  Expr placed = fresh;
  if (t.queries > 1) {
    const Expr last = c.scalar(static_cast<double>(t.queries - 1), kInt64), none = c.scalar(0, kInt64);
    const Expr row = c.call("minimum", {c.call("maximum", {offset, none}), last});
    placed = c.call("gather", {fresh, c.broadcast_to(row, {d[0], d[1], t.keys, d[3]})},
                    make_attrs<relay::GatherAttrs>([](auto& a) { a.axis = 2; }));
  }
  const Expr zero = c.scalar_like(0, fresh), end = c.scalar(static_cast<double>(t.queries), kInt64);
  const Expr tail = c.where(c.call("less", {offset, end}), placed, zero);
  return c.where(c.call("less", {index, begin}), with_places(c, past, t.keys), tail);
}

// Queries, keys and values as (batch, sequence, heads, size).
std::array<Expr, 3> grouped_operands(NodeContext& c, int64_t heads, int64_t kv_heads) {
  const Expr query = c.input(0);
  if (c.rank(query) != 3) c.fail_type("its queries must be (batch, sequence, size)");
  const Ints d = c.dims(query);
  auto as_heads = [&](const Expr& x, int64_t n) {
    const int64_t width = dims_of_rank(c, x, 3, "queries, keys and values")[2];
    if (width % n != 0) c.fail(format("{} heads do not divide a size of {}", n, width));
    return c.reshape(x, {d[0], d[1], n, width / n});
  };
  if (c.has(1)) return {as_heads(query, heads), as_heads(c.input(1), kv_heads), as_heads(c.input(2), kv_heads)};
  const int64_t all = heads + 2 * kv_heads;
  const Expr packed = as_heads(query, all);
  return {c.slice(packed, 2, 0, heads), c.slice(packed, 2, heads, heads + kv_heads),
          c.slice(packed, 2, heads + kv_heads, all)};
}

// Rows of a table (positions, pairs) by position.
Expr rows_of(NodeContext& c, const Expr& table, const Expr& positions) {
  return c.call("take", {table, positions}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
}

Expr rotated_by_cache(NodeContext& c, const Expr& x, const Expr& positions, size_t cosines) {
  auto angles = [&](const Expr& cache) { return c.expand(rows_of(c, cache, positions), 2); };
  const Expr cosine = angles(c.input(cosines)), sine = angles(c.input(cosines + 1));
  const int64_t pairs = dims_of_rank(c, cosine, 4, "table of angles by position")[3];
  return rotary_turned(c, x, cosine, sine, 2 * pairs, c.int_attr("rotary_interleaved", 0) != 0);
}

Expr normalized_heads(NodeContext& c, const Expr& x, size_t weight) {
  if (!c.has(weight)) return x;
  return c.mul(over_root_mean_square(c, x, c.float_attr("qk_norm_epsilon", 1e-6f)), c.input(weight));
}

// The attention mask: which keys each query attends to, (batch or 1, 1, queries, keys).
Expr visible_keys(NodeContext& c, const Timeline& t, int64_t batch) {
  const int64_t window = c.int_attr("local_window_size", -1);
  const Expr index = c.reshape(c.counting(t.keys), {1, 1, 1, t.keys});
  const Expr place =
      t.prompt ? c.reshape(c.counting(t.queries), {1, 1, t.queries, 1}) : c.reshape(t.places, {batch, 1, t.queries, 1});
  auto less = [&](const Expr& a, const Expr& b) { return c.call("less", {a, b}); };
  auto number = [&](int64_t v) { return c.scalar(static_cast<double>(v), kInt64); };
  const bool causal = c.int_attr("causal", 1) != 0;
  const Expr end = c.reshape(c.add(c.cast(c.input(5), kInt64), number(1)), {batch, 1, 1, 1});
  Expr seen = causal ? c.call("less_equal", {index, place}) : less(index, end);
  if (window > 0) seen = c.call("logical_and", {seen, less(c.sub(place, number(window)), index)});
  return seen;
}

// Softmax whose denominator has one more term: the exponential of the head's sink, or of 0.
Expr softmax_with_sink(NodeContext& c, const Expr& scores, const Expr& sink) {
  const Ints d = c.dims(scores);
  const Expr column = sink ? c.broadcast_to(c.reshape(sink, {1, d[1], 1, 1}), {d[0], d[1], d[2], 1})
                           : c.zeros(c.dtype(scores), {d[0], d[1], d[2], 1});
  return c.slice(softmax_of_rows(c, c.concat({scores, column}, 3)), 3, 0, d[3]);
}

Values group_query_attention(NodeContext& c) {
  const int64_t heads = c.int_attr("num_heads"), kv_heads = c.int_attr("kv_num_heads");
  constexpr int64_t kMostHeads = 1 << 20;
  if (heads < 1 || kv_heads < 1 || heads > kMostHeads || kv_heads > kMostHeads || heads % kv_heads != 0)
    c.fail(format("{} query heads do not share {} key heads evenly", heads, kv_heads));
  if (c.int_attr("kv_cache_bit_width", 0) != 0 || c.has(12) || c.has(13)) c.unsupported("a quantised cache");
  if (c.wants(3)) c.unsupported("its scores as an output");
  if (c.int_attr("sliding_window_cache", 0) != 0) c.unsupported("a cache that slides");
  auto [q, k, v] = grouped_operands(c, heads, kv_heads);
  const Ints d = c.dims(q);  // (batch, queries, heads, size)
  const DataType dtype = c.dtype(q);
  const Timeline t = timeline_of(c, d[0], d[1]);
  q = normalized_heads(c, q, 14), k = normalized_heads(c, k, 15);
  if (c.int_attr("do_rotary", 0) != 0) {
    const Expr positions = c.has(9) ? c.input(9) : t.places;
    q = rotated_by_cache(c, q, positions, 7), k = rotated_by_cache(c, k, positions, 7);
  }
  auto as_heads = [&](const Expr& x) { return c.transpose(x, {0, 2, 1, 3}); };
  const Expr present_key = extended_cache(c, t, given(c, 3), as_heads(k));
  const Expr present_value = extended_cache(c, t, given(c, 4), as_heads(v));
  const int64_t share = heads / kv_heads;
  Expr scores = batched_product(c, c.mul(as_heads(q), c.scalar(scale_of(c, d[3]), dtype)),
                                repeated(c, present_key, share, 1), true);
  const double cap = c.float_attr("softcap", 0);
  if (cap > 0) scores = c.mul(c.call("tanh", {c.div(scores, c.scalar(cap, dtype))}), c.scalar(cap, dtype));
  if (c.has(10)) scores = c.add(scores, c.input(10));
  scores = c.add(scores, c.where(visible_keys(c, t, d[0]), c.scalar(0, dtype), hidden_score(c, dtype)));
  const bool sink = c.has(11) || c.int_attr("smooth_softmax", 0) == 1;
  const Expr weights = sink ? softmax_with_sink(c, scores, given(c, 11)) : softmax_of_rows(c, scores);
  Expr y = batched_product(c, weights, repeated(c, present_value, share, 1), false);
  return {merge_heads(c, y), present_key, present_value};
}

// Turns operand 0 by what `angles` gives, (batch, sequence, pairs), of the table at operands 2 and 3.
template <class Angles>
Values turned_by(NodeContext& c, const Angles& angles) {
  if (c.int_attr("is_packed_batching", 0) != 0) c.unsupported("sequences packed without padding");
  const Expr x = c.input(0);
  const int64_t rank = c.rank(x);
  if (rank != 3 && rank != 4) c.fail_type("its input must have rank 3 or 4");
  const Ints d = c.dims(x);
  const int64_t rotated = 2 * dims_of_rank(c, c.input(2), 2, "table of angles")[1];
  int64_t heads = c.int_attr("num_heads", 0);
  // Without a head count, the head size follows from the tables of angles: they cover a whole head.
  if (rank == 3 && heads == 0) heads = rotated > 0 ? d[2] / rotated : 0;
  if (rank == 3 && (heads < 1 || d[2] % heads != 0)) c.fail(format("{} heads do not divide a size of {}", heads, d[2]));
  const Expr whole = rank == 3 ? c.reshape(x, {d[0], d[1], heads, d[2] / heads}) : c.transpose(x, {0, 2, 1, 3});
  const Ints w = c.dims(whole);
  if (rotated < 2 || rotated > w[3]) c.fail(format("it rotates {} of {} elements", rotated, w[3]));
  const Expr cosine = c.expand(angles(c.input(2), w[1]), 2), sine = c.expand(angles(c.input(3), w[1]), 2);
  const Expr turned = rotary_turned(c, whole, cosine, sine, rotated, c.int_attr("interleaved", 0) != 0);
  return {rank == 3 ? c.reshape(turned, d) : c.transpose(turned, {0, 2, 1, 3})};
}
// Positions are one start for the whole batch, or (batch, sequence).
Values rotary_embedding_by_position(NodeContext& c) {
  return turned_by(c, [&](const Expr& table, int64_t steps) {
    Expr positions = c.input(1);
    if (c.rank(positions) == 1)
      positions = c.add(c.reshape(positions, {1, 1}), c.reshape(c.counting(steps), {1, steps}));
    return rows_of(c, table, positions);
  });
}
// Positions in time, height and width, (3, batch, sequence); each turns its own pairs: three sections side by side, or
// every third pair from the first, second and third on, as far as height's and width's sections reach.
Values rotary_embedding_of_pictures(NodeContext& c) {
  const Ints sections = c.ints_attr("mrope_section"), d = dims_of_rank(c, c.input(1), 3, "positions");
  const int64_t pairs = dims_of_rank(c, c.input(2), 2, "table of angles")[1];
  const bool mixed = c.int_attr("mrope_layout", 0) == 1;
  if (sections.size() != 3 || d[0] != 3 ||
      std::any_of(sections.begin(), sections.end(), [&](int64_t s) { return s < 0 || s > pairs; }) ||
      sections[0] + sections[1] + sections[2] != pairs)
    c.fail(format("its sections {} are not those of {} pairs", shape_str(sections), pairs));
  Tensor owner(kInt64, {pairs});
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t third = i % 3, begin = i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
    owner.set_int(i, !mixed ? begin : third > 0 && i < 3 * sections[static_cast<size_t>(third)] ? third : 0);
  }
  const Expr whose = c.constant_of(owner);
  return turned_by(c, [&](const Expr& table, int64_t) {
    auto by = [&](int64_t i) { return rows_of(c, table, c.squeeze(c.slice(c.input(1), 0, i, i + 1), {0})); };
    auto is = [&](int64_t i) { return c.call("equal", {whose, c.scalar(static_cast<double>(i), kInt64)}); };
    return c.where(is(0), by(0), c.where(is(1), by(1), by(2)));
  });
}

constexpr ConverterEntry kMicrosoftAttention[] = {
    {"Attention", 1, attention_of_input, "com.microsoft"},
    {"QAttention", 1, quantized_attention, "com.microsoft"},
    {"MultiHeadAttention", 1, multi_head_attention, "com.microsoft"},
    {"GroupQueryAttention", 1, group_query_attention, "com.microsoft"},
    {"RotaryEmbedding", 1, rotary_embedding_by_position, "com.microsoft"},
    {"MRotaryEmbedding", 1, rotary_embedding_of_pictures, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> attention_microsoft_converters() { return kMicrosoftAttention; }

}  // namespace tilewright::onnx
