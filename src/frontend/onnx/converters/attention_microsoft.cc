// SPDX-License-Identifier: Apache-2.0
// com.microsoft: attention as onnxruntime's optimiser and language model exporters write it, expressed by the same
// products and softmax as ONNX's own.
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/format.h"
#include "frontend/onnx/converters/attention.h"
#include "frontend/onnx/converters/linear.h"
#include "frontend/onnx/converters/quant.h"

namespace tilewright::onnx {

Expr given(NodeContext& c, size_t i) { return c.has(i) ? c.input(i) : Expr(); }
Expr hidden_score(NodeContext& c, DataType dtype) { return c.scalar(-std::numeric_limits<double>::infinity(), dtype); }
double scale_of(NodeContext& c, int64_t size) {
  const double scale = c.float_attr("scale", 0);
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size));
}
Expr rows_of(NodeContext& c, const Expr& table, const Expr& positions) {
  return c.call("take", {table, positions}, make_attrs<relay::TakeAttrs>([](auto& a) { a.axis = 0; }));
}

namespace {

using Ints = std::vector<int64_t>;

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
// or packed as (batch, sequence, heads, 3, size) or (batch, sequence, heads, 2, size). `bias` is the operand with those
// of all three projections.
std::array<Expr, 3> multi_head_operands(NodeContext& c, int64_t heads, size_t bias) {
  const Expr query = c.input(0);
  auto of_packed = [&](const Expr& packed, int64_t i) {
    return c.transpose(c.squeeze(c.slice(packed, 3, i, i + 1), {3}), {0, 2, 1, 3});
  };
  if (c.rank(query) == 5) return {of_packed(query, 0), of_packed(query, 1), of_packed(query, 2)};
  if (c.rank(query) != 3) c.fail_type("its queries must be (batch, sequence, size)");
  const int64_t width = c.dims(query)[2];
  auto biased = [&](const Expr& x, int64_t begin) {
    const int64_t size = dims_of_rank(c, x, 3, "queries, keys and values")[2];
    return c.has(bias) ? c.add(x, c.slice(c.input(bias), 0, begin, begin + size)) : x;
  };
  const Expr q = split_heads(c, biased(query, 0), heads), key = c.input(1);
  if (c.rank(key) == 5) return {q, of_packed(key, 0), of_packed(key, 1)};
  const Expr value = c.input(2);
  if (c.rank(key) == 4) return {q, key, value};
  return {q, split_heads(c, biased(key, width), heads), split_heads(c, biased(value, 2 * width), heads)};
}

Values multi_head_attention(NodeContext& c) {
  if (c.has(8) || c.has(9)) c.unsupported("a past in a buffer that is written in place");
  auto [q, k, v] = multi_head_operands(c, c.int_attr("num_heads"), 3);
  if (c.has(6)) k = c.concat({c.input(6), k}, 2);
  if (c.has(7)) v = c.concat({c.input(7), v}, 2);
  const AttentionResult out = attend(c, q, k, v, given(c, 4), given(c, 5));
  return {out.y, k, v, out.scores};
}

// --- DecoderMaskedMultiHeadAttention: one query, and caches with room for keys to come

// A cache as the rows of a beam search see it: at each place that of the beam which operand 9, (batch, beams, places),
// names.
Expr seen_by_beams(NodeContext& c, const Expr& cache) {
  const Ints d = c.dims(cache), whose = dims_of_rank(c, c.input(9), 3, "beams of places");
  if (whose[0] < 1 || d[0] != c.product(whose, 0, 2) || whose[2] < d[2])
    c.fail_type(format("its beams of places {} do not fit a cache {}", shape_str(whose), shape_str(d)));
  const Ints apart = {whose[0], whose[1], d[1], d[2], d[3]};
  const Expr origin = c.reshape(c.slice(c.input(9), 2, 0, d[2]), {whose[0], whose[1], 1, d[2], 1});
  return c.reshape(c.call("gather", {c.reshape(cache, apart), c.broadcast_to(c.cast(origin, kInt64), apart)},
                          make_attrs<relay::GatherAttrs>([](auto& a) { a.axis = 1; })),
                   d);
}

// The number of keys, the new one included; nothing where only a run has it.
std::optional<int64_t> known_keys(NodeContext& c) {
  if (c.has(3)) return dims_of_rank(c, c.input(3), 2, "mask")[1];
  if (c.has(4)) return dims_of_rank(c, c.input(4), 4, "bias of the scores")[3];
  if (c.wants(3) || c.known(c.input(7))) return c.int_scalar(7, "past sequence length") + 1;
  return std::nullopt;
}

// A cache with the new key (or value) in its place: behind the last of `keys`, or where operand 7 says.
Expr with_newest(NodeContext& c, const Expr& cache, const Expr& fresh, std::optional<int64_t> keys) {
  const int64_t room = c.dims(cache)[2];
  if (keys) return c.concat({c.slice(cache, 2, 0, *keys - 1), fresh, c.slice(cache, 2, *keys, room)}, 2);
  const Expr place = c.reshape(c.cast(c.input(7), kInt64), {1, 1, 1, 1});
  return c.where(c.call("equal", {c.reshape(c.counting(room), {1, 1, room, 1}), place}), fresh, cache);
}

Values decoder_masked_attention(NodeContext& c) {
  const int64_t heads = c.int_attr("num_heads");
  if (dims_of_rank(c, c.input(0), 3, "queries")[1] != 1) c.fail_type("it has more than one query");
  std::array<Expr, 3> qkv;
  if (c.has(1)) {
    qkv = multi_head_operands(c, heads, 10);
  } else {
    const Expr all = c.has(10) ? c.add(c.input(0), c.input(10)) : c.input(0);
    const int64_t width = c.dims(all)[2] / 3;
    for (int64_t i = 0; i < 3; ++i)
      qkv[static_cast<size_t>(i)] = split_heads(c, c.slice(all, 2, i * width, (i + 1) * width), heads);
  }
  if (!c.has(5)) {  // of other sequences' keys, which do not change
    const AttentionResult out = attend(c, qkv[0], qkv[1], qkv[2], given(c, 3), given(c, 4));
    return {out.y, Expr(), Expr(), out.scores};
  }
  if (c.int_attr("past_present_share_buffer", 0) == 0) c.unsupported("a past without room for its new key");
  const int64_t room = dims_of_rank(c, c.input(5), 4, "past keys")[2];
  const std::optional<int64_t> keys = known_keys(c);
  if (keys && (*keys < 1 || *keys > room)) c.fail(format("{} keys do not fit a cache of {}", *keys, room));
  Expr bias = given(c, 4);
  if (!keys) {
    const Expr last = c.reshape(c.cast(c.input(7), kInt64), {1, 1, 1, 1});
    const Expr seen = c.call("less_equal", {c.reshape(c.counting(room), {1, 1, 1, room}), last});
    bias = c.where(seen, c.scalar_like(0, qkv[0]), hidden_score(c, c.dtype(qkv[0])));
  }
  auto attended = [&](size_t i) {
    const Expr past = c.slice(c.input(5 + i), 2, 0, keys.value_or(room));
    return with_newest(c, c.has(9) ? seen_by_beams(c, past) : past, qkv[1 + i], keys);
  };
  const AttentionResult out = attend(c, qkv[0], attended(0), attended(1), given(c, 3), bias);
  return {out.y, with_newest(c, c.input(5), qkv[1], keys), with_newest(c, c.input(6), qkv[2], keys), out.scores};
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
    {"DecoderMaskedMultiHeadAttention", 1, decoder_masked_attention, "com.microsoft"},
    {"RotaryEmbedding", 1, rotary_embedding_by_position, "com.microsoft"},
    {"MRotaryEmbedding", 1, rotary_embedding_of_pictures, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> attention_microsoft_converters() { return kMicrosoftAttention; }

}  // namespace tilewright::onnx
