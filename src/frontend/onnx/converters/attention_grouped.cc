// SPDX-License-Identifier: Apache-2.0
// com.microsoft: attention of queries that share keys, over caches with room for keys to come.
#include <algorithm>
#include <array>
#include <limits>

#include "base/format.h"
#include "frontend/onnx/converters/attention.h"

namespace tilewright::onnx {
namespace {

using Ints = std::vector<int64_t>;

// Positions of keys and queries.
struct Timeline {
  int64_t queries = 0, keys = 0;  // keys: length of the present cache
  bool prompt = false;            // no past: all keys are new
  Expr past, lengths;             // (batch, 1): numbers of keys before the new ones, and with them
  Expr places;                    // (batch, queries): positions of the new keys and queries
};

// `total`: the number of keys of the longest sequence; `lengths`: of each, new ones included. Operand 3 is the cache of
// keys.
Timeline timeline_of(NodeContext& c, int64_t batch, int64_t queries, int64_t total, const Expr& lengths) {
  Timeline t;
  t.queries = queries;
  t.keys = std::max(total, c.has(3) ? dims_of_rank(c, c.input(3), 4, "past keys")[2] : 0);
  t.prompt = total == queries;
  if (total > (int64_t{1} << 31)) c.fail(format("a sequence of {} is too long", total));
  if (total < queries) c.fail(format("{} new tokens are more than the {} of the whole sequence", queries, total));
  t.lengths = c.reshape(lengths, {batch, 1});
  const Expr new_keys = c.scalar(static_cast<double>(queries), kInt64);
  t.past = t.prompt ? c.zeros(kInt64, {batch, 1}) : c.sub(t.lengths, new_keys);
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

// The cache: past keys (or values), then the new ones, then `rest`, (batch, heads, keys, size), or zeros.
Expr extended_cache(NodeContext& c, const Timeline& t, const Expr& past, const Expr& fresh, const Expr& rest = {}) {
  const Ints d = c.dims(fresh);
  if (t.prompt && rest) return c.concat({fresh, c.slice(rest, 2, t.queries, t.keys)}, 2);
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
  const Expr behind = rest ? rest : c.scalar_like(0, fresh), end = c.scalar(static_cast<double>(t.queries), kInt64);
  const Expr tail = c.where(c.call("less", {offset, end}), placed, behind);
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
  Expr seen = causal ? c.call("less_equal", {index, place}) : less(index, c.reshape(t.lengths, {batch, 1, 1, 1}));
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

struct Heads {
  int64_t queries, keys;
};
Heads heads_of(NodeContext& c) {
  const Heads n = {c.int_attr("num_heads"), c.int_attr("kv_num_heads")};
  constexpr int64_t kMostHeads = 1 << 20;
  if (n.queries < 1 || n.keys < 1 || n.queries > kMostHeads || n.keys > kMostHeads || n.queries % n.keys != 0)
    c.fail(format("{} query heads do not share {} key heads evenly", n.queries, n.keys));
  return n;
}

Values group_query_attention(NodeContext& c) {
  const auto [heads, kv_heads] = heads_of(c);
  if (c.int_attr("kv_cache_bit_width", 0) != 0 || c.has(12) || c.has(13)) c.unsupported("a quantised cache");
  if (c.wants(3)) c.unsupported("its scores as an output");
  if (c.int_attr("sliding_window_cache", 0) != 0) c.unsupported("a cache that slides");
  auto [q, k, v] = grouped_operands(c, heads, kv_heads);
  const Ints d = c.dims(q);  // (batch, queries, heads, size)
  const DataType dtype = c.dtype(q);
  // seqlens_k has each sequence's number of keys less one.
  const Expr lengths = c.add(c.cast(c.input(5), kInt64), c.scalar(1, kInt64));
  const Timeline t = timeline_of(c, d[0], d[1], c.int_scalar(6, "total sequence length"), lengths);
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

// --- SparseAttention

// Which blocks of keys a block of queries attends to in each layout, (layouts, blocks, blocks), from rows that begin
// where operand 5 says among the columns of operand 6.
Tensor blocks_of(NodeContext& c) {
  const Tensor begins = c.constant(5, "rows of blocks"), columns = c.constant(6, "columns of blocks");
  if (begins.rank() != 2 || columns.rank() != 2 || begins.shape()[0] != columns.shape()[0] || begins.shape()[1] < 2)
    c.fail_type("its rows and columns of blocks do not fit each other");
  const int64_t layouts = begins.shape()[0], count = begins.shape()[1] - 1, most = columns.shape()[1];
  Tensor seen = Tensor::zeros(kBool, {layouts, count, count});
  for (int64_t l = 0; l < layouts; ++l) {
    for (int64_t row = 0; row < count; ++row) {
      const int64_t begin = begins.at_int(l * (count + 1) + row), end = begins.at_int(l * (count + 1) + row + 1);
      if (begin < 0 || begin > end || end > most)
        c.fail(format("its row of blocks {} ends at {} of {}", row, end, most));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = columns.at_int(l * most + i);
        if (column < 0 || column >= count) c.fail(format("it has no column {} of {} blocks", column, count));
        seen.set_int((l * count + row) * count + column, 1);
      }
    }
  }
  return seen;
}

// (batch, heads, queries, keys): whether the key's block is one of the query's. Layouts take turns among the heads.
Expr in_blocks(NodeContext& c, const Timeline& t, int64_t batch, int64_t heads) {
  const int64_t size = c.int_attr("sparse_block_size");
  const Tensor blocks = blocks_of(c);
  const int64_t layouts = blocks.shape()[0], count = blocks.shape()[1];
  if (heads % layouts != 0) c.fail(format("{} heads do not share {} layouts evenly", heads, layouts));
  if (size < 1 || t.keys / size > count || t.keys > count * size)
    c.fail(format("{} blocks of {} do not hold {} keys", count, size, t.keys));
  auto taken = [&](const Expr& table, const Expr& places, int64_t axis) {
    const Expr block = c.call("floor_divide", {places, c.scalar(static_cast<double>(size), kInt64)});
    return c.call("take", {table, block}, make_attrs<relay::TakeAttrs>([&](auto& a) { a.axis = axis; }));
  };
  const Expr by_query = taken(c.constant_of(blocks), t.places, 1);  // (layouts, batch, queries, blocks)
  const Expr seen = c.transpose(taken(by_query, c.counting(t.keys), 3), {1, 0, 2, 3});
  const Ints apart = {batch, heads / layouts, layouts, t.queries, t.keys};
  return c.reshape(c.broadcast_to(c.expand(seen, 1), apart), {batch, heads, t.queries, t.keys});
}

Values sparse_attention(NodeContext& c) {
  const auto [heads, kv_heads] = heads_of(c);
  auto [q, k, v] = grouped_operands(c, heads, kv_heads);
  const Ints d = c.dims(q);  // (batch, queries, heads, size)
  const DataType dtype = c.dtype(q);
  const Timeline t = timeline_of(c, d[0], d[1], c.int_scalar(7, "total sequence length"), c.cast(c.input(8), kInt64));
  if (c.int_attr("do_rotary", 0) != 0) q = rotated_by_cache(c, q, t.places, 9), k = rotated_by_cache(c, k, t.places, 9);
  auto as_heads = [&](const Expr& x) { return c.transpose(x, {0, 2, 1, 3}); };
  if (t.keys != c.dims(c.input(3))[2]) c.fail(format("its cache has no room for {} keys", t.keys));
  const Expr present_key = extended_cache(c, t, c.input(3), as_heads(k), c.input(3));
  const Expr present_value = extended_cache(c, t, c.input(4), as_heads(v), c.input(4));
  const int64_t share = heads / kv_heads;
  Expr scores = batched_product(c, c.mul(as_heads(q), c.scalar(scale_of(c, d[3]), dtype)),
                                repeated(c, present_key, share, 1), true);
  const double lowest = dtype == kFloat16 ? -65504 : std::numeric_limits<float>::lowest();
  scores = c.where(in_blocks(c, t, d[0], heads), scores, c.scalar(lowest, dtype));
  scores = c.where(visible_keys(c, t, d[0]), scores, hidden_score(c, dtype));
  const Expr y = batched_product(c, softmax_of_rows(c, scores), repeated(c, present_value, share, 1), false);
  return {merge_heads(c, y), present_key, present_value};
}

constexpr ConverterEntry kGroupedAttention[] = {
    {"GroupQueryAttention", 1, group_query_attention, "com.microsoft"},
    {"SparseAttention", 1, sparse_attention, "com.microsoft"},
};

}  // namespace

std::span<const ConverterEntry> attention_grouped_converters() { return kGroupedAttention; }

}  // namespace tilewright::onnx
