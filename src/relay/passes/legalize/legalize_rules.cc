// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/legalize/legalize_rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "relay/calls.h"
#include "relay/ops/attrs.h"
#include "relay/ops/nn/attrs_batch_blocks.h"
#include "relay/passes/legalize/legalize_products.h"

namespace tilewright::relay {
namespace {

using Ints = std::vector<int64_t>;

std::optional<Ints> shape_of(const Expr& e) {
  const auto* type = as_tensor(e->type);
  return type ? static_shape(type->shape) : std::nullopt;
}
// The constant value(0) .. value(count - 1); nothing when it would be large compared with the model.
template <class F>
Expr table_of(int64_t count, F value, Ints shape = {}) {
  constexpr int64_t kLargest = 1 << 24;
  if (count < 1 || count > kLargest) return {};
  if (shape.empty()) shape = {count};
  Tensor data = Tensor::zeros(kInt64, std::move(shape));
  for (int64_t i = 0; i < count; ++i) data.set_int(i, value(i));
  return make_constant(std::move(data));
}
Expr take_along(const Expr& x, const Expr& indices, int64_t axis) {
  return call("take", {x, indices}, make_attrs<TakeAttrs>([&](auto& a) { a.axis = axis; }), x->span);
}

// (N, S1, .., R) -> (B1 .. Bm, N, S1/B1, .., R) -> (N * B1 .. Bm, S1/B1, .., R)
Expr space_to_batch(const Expr& e) {
  const auto& a = attrs_of<SpaceToBatchNDAttrs>(e);
  auto in = static_shape(tensor_of(arg(e, 0)).shape), out = static_shape(tensor_of(e).shape);
  if (!in || !out) return e;
  const size_t m = a.block_shape.size();
  DataType dtype = tensor_of(e).dtype;
  Expr x = arg(e, 0);
  std::vector<Ints> widths(in->size(), {0, 0});
  bool pads = false;
  for (size_t i = 0; i < m; ++i) {
    widths[i + 1] = a.paddings[i];
    pads |= a.paddings[i][0] != 0 || a.paddings[i][1] != 0;
  }
  if (pads)
    x = call("nn.pad", {x, full_constant(a.pad_value, dtype)},
             make_attrs<PadAttrs>([&](auto& p) { p.pad_width = widths; }), e->span);
  Ints split{(*in)[0]}, order;
  for (size_t i = 0; i < m; ++i) {
    order.push_back(static_cast<int64_t>(2 * i + 2));
    split.push_back((*out)[i + 1]);
    split.push_back(a.block_shape[i]);
  }
  order.push_back(0);
  for (size_t i = 0; i < m; ++i) order.push_back(static_cast<int64_t>(2 * i + 1));
  for (size_t d = m + 1; d < in->size(); ++d) {
    order.push_back(static_cast<int64_t>(split.size()));
    split.push_back((*in)[d]);
  }
  return reshape_to(reordered(reshape_to(x, split), order), *out);
}

// (N * B1 .. Bm, S1, .., R) -> (B1 .. Bm, N, S1, .., R) -> (N, S1 * B1, .., R), cropped
Expr batch_to_space(const Expr& e) {
  const auto& a = attrs_of<BatchToSpaceNDAttrs>(e);
  auto in = static_shape(tensor_of(arg(e, 0)).shape), out = static_shape(tensor_of(e).shape);
  if (!in || !out) return e;
  const size_t m = a.block_shape.size();
  Ints split = a.block_shape, order{static_cast<int64_t>(m)}, joined{(*out)[0]};
  split.push_back((*out)[0]);
  for (size_t i = 0; i < m; ++i) {
    order.push_back(static_cast<int64_t>(split.size()));
    order.push_back(static_cast<int64_t>(i));
    split.push_back((*in)[i + 1]);
    joined.push_back((*in)[i + 1] * a.block_shape[i]);
  }
  for (size_t d = m + 1; d < in->size(); ++d) {
    order.push_back(static_cast<int64_t>(split.size()));
    split.push_back((*in)[d]);
    joined.push_back((*in)[d]);
  }
  Expr x = reshape_to(reordered(reshape_to(arg(e, 0), split), order), joined);
  if (joined == *out) return x;
  return call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([&](auto& s) {
                for (size_t i = 0; i < m; ++i) {
                  s.begin.push_back(a.crops[i][0]);
                  s.end.push_back(joined[i + 1] - a.crops[i][1]);
                }
                s.strides.assign(m, 1);
                s.axes.emplace();
                for (size_t i = 0; i < m; ++i) s.axes->push_back(static_cast<int64_t>(i + 1));
              }),
              e->span);
}

// --- reductions

template <const char* const* kExtreme>
Expr all_or_any(const Expr& e) {
  return cast(call(*kExtreme, {cast(arg(e, 0), kInt32)}, as<CallNode>(e)->attrs, e->span), kBool);
}
constexpr const char *kReduceMin = "min", *kReduceMax = "max";
// max and min of bools, computed as int32 like all and any.
Expr extreme(const Expr& e) {
  if (tensor_of(e).dtype != kBool) return e;
  return cast(call(called_op(e)->name, {cast(arg(e, 0), kInt32)}, as<CallNode>(e)->attrs, e->span), kBool);
}

// A reduction of a scalar is the scalar.
bool is_scalar_reduction(const Expr& e) {
  static const std::string_view kReductions[] = {"all", "any", "logsumexp", "max", "mean", "min", "prod", "sum"};
  const OpDef* op = called_op(e);
  return op && std::find(std::begin(kReductions), std::end(kReductions), op->name) != std::end(kReductions) &&
         tensor_of(arg(e, 0)).shape.empty() && same_tensor_type(e, arg(e, 0));
}

AttrsRef kept(const ReduceAttrs& a) {
  return make_attrs<ReduceAttrs>([&](auto& k) {
    k.axis = a.axis;
    k.exclude = a.exclude;
    k.keepdims = true;
  });
}

Expr logsumexp(const Expr& e) {
  const auto& a = attrs_of<ReduceAttrs>(e);
  const Expr& x = arg(e, 0);
  auto out = shape_of(e);
  if (!out) return e;
  Expr high = call("max", {x}, kept(a), e->span);
  // inf - inf is NaN: replaced by zero before the subtraction.
  high = call("where", {one("isfinite", high), high, full_constant(0, tensor_of(x).dtype)}, {}, e->span);
  Expr sum = call("sum", {one("exp", both("subtract", x, high))}, as<CallNode>(e)->attrs, e->span);
  return both("add", one("log", sum), reshape_to(high, *out));
}

Expr variance(const Expr& e) {
  const auto& a = attrs_of<VarianceAttrs>(e);
  const Expr& x = arg(e, 0);
  auto in = shape_of(x), out = shape_of(e);
  if (!in || !out) return e;
  auto over = [&](bool keepdims) {
    return make_attrs<ReduceAttrs>([&](auto& r) {
      r.axis = a.axis;
      r.exclude = a.exclude;
      r.keepdims = keepdims;
    });
  };
  Expr d = both("subtract", x, call("mean", {x}, over(true), e->span));
  Expr v = call("mean", {both("multiply", d, d)}, over(a.keepdims), e->span);
  if (!a.unbiased) return v;
  auto count = [](const Ints& shape) { return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>()); };
  const double n = count(*in) / count(*out);
  return both("multiply", v, full_constant(n / (n - 1), tensor_of(v).dtype));
}

// Over several axes: reduces along one merged axis.
Expr flat_argument(const Expr& e) {
  const auto& a = attrs_of<ArgReduceAttrs>(e);
  auto in = shape_of(arg(e, 0)), out = shape_of(e);
  if (!in || !out || in->empty()) return e;
  std::vector<bool> reduced(in->size(), !a.axis);
  for (int64_t axis : a.axis.value_or(Ints{})) reduced[static_cast<size_t>(positive_axis(axis, in->size()))] = true;
  if (a.axis && a.exclude) reduced.flip();
  Ints order, kept;
  int64_t count = 1, axes = 0;
  for (bool inside : {false, true})
    for (size_t d = 0; d < in->size(); ++d) {
      if (reduced[d] != inside) continue;
      order.push_back(static_cast<int64_t>(d));
      if (inside) {
        count *= (*in)[d];
        ++axes;
      } else {
        kept.push_back((*in)[d]);
      }
    }
  if (axes == 0 || (axes == 1 && !a.exclude && a.axis)) return e;
  const auto last = static_cast<int64_t>(kept.size());
  kept.push_back(count);
  Expr flat = reshape_to(reordered(arg(e, 0), order), kept);
  return reshape_to(call(called_op(e)->name, {flat}, make_attrs<ArgReduceAttrs>([&](auto& r) {
                           r = a;
                           r.axis = Ints{last};
                           r.exclude = false;
                           r.keepdims = false;
                         }),
                         e->span),
                    *out);
}
Expr flat_scan(const Expr& e) {
  const auto& a = attrs_of<ScanopAttrs>(e);
  auto out = shape_of(e);
  if (a.axis || !out) return e;
  return call(called_op(e)->name, {reshape_to(arg(e, 0), *out)}, make_attrs<ScanopAttrs>([&](auto& s) {
                s = a;
                s.axis = 0;
              }),
              e->span);
}

// --- indices and masks

// Wraps negative indices.
Expr wrapped(const Expr& index, int64_t extent) {
  const DataType t = tensor_of(index).dtype;
  if (t.is_uint()) return index;
  return call("where",
              {both("less", index, full_constant(0, t)),
               both("add", index, full_constant(static_cast<double>(extent), t)), index},
              {}, index->span);
}

Expr one_hot(const Expr& e) {
  const auto& a = attrs_of<OneHotAttrs>(e);
  auto in = shape_of(arg(e, 0));
  if (!in) return e;
  const int64_t axis = positive_axis(a.axis, in->size() + 1);
  Ints wide = *in, row(in->size() + 1, 1);
  wide.insert(wide.begin() + axis, 1);
  row[static_cast<size_t>(axis)] = a.depth;
  Expr places = table_of(
      a.depth, [](int64_t i) { return i; }, row);
  if (!places) return e;
  Expr index = reshape_to(wrapped(cast(arg(e, 0), kInt64), a.depth), wide);
  return call("where", {both("equal", index, places), cast(arg(e, 1), a.dtype), cast(arg(e, 2), a.dtype)}, {}, e->span);
}

Expr trilu(const Expr& e) {
  auto in = shape_of(e);
  if (!in || in->size() < 2) return e;
  const int64_t rows = (*in)[in->size() - 2], cols = in->back();
  auto place = [](int64_t i) { return i; };
  Expr row = table_of(rows, place, {rows, 1}), column = table_of(cols, place);
  if (!row || !column) return e;
  Expr k = cast(reshape_to(arg(e, 1), {}), kInt64);
  Expr inside = both(attrs_of<TriluAttrs>(e).upper ? "greater_equal" : "less_equal", both("subtract", column, row), k);
  return call("where", {inside, arg(e, 0), full_constant(0, tensor_of(e).dtype)}, {}, e->span);
}

Expr meshgrid(const Expr& e) {
  const auto* fields = as<TupleNode>(arg(e, 0));
  const auto* types = as_tuple(e->type);
  if (!fields || !types) return e;
  const bool xy = attrs_of<MeshgridAttrs>(e).indexing == "xy";
  const size_t n = fields->fields.size();
  std::vector<Expr> out;
  for (size_t i = 0; i < n; ++i) {
    const auto* type = as_tensor(types->fields[i]);
    auto shape = type ? static_shape(type->shape) : std::nullopt;
    if (!shape) return e;
    const size_t axis = xy && n > 1 && i < 2 ? 1 - i : i;
    Ints row(n, 1);
    row[axis] = (*shape)[axis];
    out.push_back(call("broadcast_to", {reshape_to(fields->fields[i], row)},
                       make_attrs<InitOpAttrs>([&](auto& a) { a.shape = *shape; }), e->span));
  }
  return make_tuple(std::move(out));
}

// A take along the merged indexed axes.
Expr gather_nd(const Expr& e) {
  const auto& a = attrs_of<GatherNDAttrs>(e);
  auto in = shape_of(arg(e, 0)), index = shape_of(arg(e, 1)), out = shape_of(e);
  if (!in || !index || !out || index->empty()) return e;
  const auto batch = static_cast<size_t>(a.batch_dims), m = static_cast<size_t>((*index)[0]);
  Ints rest(index->begin() + 1, index->end());
  int64_t rows = 1;
  for (size_t i = 0; i < batch + m; ++i) rows *= (*in)[i];
  Expr flat;
  int64_t stride = 1;
  for (size_t k = m; k-- > 0;) {
    const int64_t extent = (*in)[batch + k];
    Expr place =
        reshape_to(sliced(arg(e, 1), 0, static_cast<int64_t>(k), static_cast<int64_t>(k) + 1, arg(e, 1)->span), rest);
    place = both("multiply", wrapped(cast(place, kInt64), extent), full_constant(static_cast<double>(stride), kInt64));
    flat = flat ? both("add", flat, place) : place;
    stride *= extent;
  }
  if (!flat) return e;
  for (size_t b = batch; b-- > 0;) {
    Ints row(rest.size(), 1);
    row[b] = (*in)[b];
    Expr starts = table_of((*in)[b], [=](int64_t i) { return i * stride; }, row);
    if (!starts) return e;
    flat = both("add", flat, starts);
    stride *= (*in)[b];
  }
  Ints joined{rows};
  joined.insert(joined.end(), in->begin() + static_cast<int64_t>(batch + m), in->end());
  return reshape_to(take_along(reshape_to(arg(e, 0), joined), flat, 0), *out);
}

Expr mirror_pad(const Expr& e) {
  const auto& a = attrs_of<MirrorPadAttrs>(e);
  auto in = shape_of(arg(e, 0));
  if (!in) return e;
  const bool symmetric = a.mode == "SYMMETRIC";
  Expr x = arg(e, 0);
  for (size_t d = 0; d < in->size(); ++d) {
    const int64_t n = (*in)[d], before = a.pad_width[d][0], after = a.pad_width[d][1];
    if (before == 0 && after == 0) continue;
    if (n == 0 || n + before + after <= 0) return e;
    const int64_t period = n == 1 ? 1 : symmetric ? 2 * n : 2 * n - 2;
    Expr from = table_of(n + before + after, [=](int64_t i) {
      const int64_t j = ((i - before) % period + period) % period;
      return j < n ? j : (symmetric ? period - 1 - j : period - j);
    });
    if (!from) return e;
    x = take_along(x, from, static_cast<int64_t>(d));
  }
  return x;
}

Expr full_like(const Expr& e) {
  auto shape = shape_of(e);
  if (!shape) return e;
  return call("full", {reshape_to(cast(arg(e, 1), tensor_of(e).dtype), {})},
              make_attrs<InitOpAttrs>([&](auto& a) { a.shape = *shape; }), e->span);
}

template <int kValue>
Expr filled(const Expr& e) {
  auto shape = shape_of(e);
  if (!shape) return e;
  return call("full", {full_constant(kValue, tensor_of(e).dtype)},
              make_attrs<InitOpAttrs>([&](auto& a) { a.shape = *shape; }), e->span);
}

// At inference batch_norm returns its statistics unchanged.
Expr batch_norm(const Expr& e) { return make_tuple({make_get(e, 0, e->span), arg(e, 3), arg(e, 4)}); }

using LegalizeRule = Expr (*)(const Expr&);
const std::map<std::string_view, LegalizeRule>& legalize_rules() {
  static const std::map<std::string_view, LegalizeRule> kRules = {
      {"all", all_or_any<&kReduceMin>},
      {"max", extreme},
      {"min", extreme},
      {"any", all_or_any<&kReduceMax>},
      {"argmax", flat_argument},
      {"argmin", flat_argument},
      {"cumprod", flat_scan},
      {"cumsum", flat_scan},
      {"einsum", einsum_of_products},
      {"full_like", full_like},
      {"gather_nd", gather_nd},
      {"image.resize2d", legal_resize2d},
      {"image.resize3d", legal_resize3d},
      {"logsumexp", logsumexp},
      {"meshgrid", meshgrid},
      {"nn.adaptive_avg_pool1d", legal_adaptive_pool1d},
      {"nn.adaptive_avg_pool2d", legal_adaptive_pool2d},
      {"nn.adaptive_avg_pool3d", legal_adaptive_pool3d},
      {"nn.adaptive_max_pool1d", legal_adaptive_pool1d},
      {"nn.adaptive_max_pool2d", legal_adaptive_pool2d},
      {"nn.adaptive_max_pool3d", legal_adaptive_pool3d},
      {"nn.avg_pool3d", legal_avg_pool3d},
      {"nn.global_avg_pool2d", legal_global_pool},
      {"nn.global_max_pool2d", legal_global_pool},
      {"nn.batch_norm", batch_norm},
      {"nn.batch_to_space_nd", batch_to_space},
      {"nn.batch_matmul", legal_product},
      {"nn.dense", legal_product},
      {"nn.matmul", legal_product},
      {"nn.mirror_pad", mirror_pad},
      {"nn.space_to_batch_nd", space_to_batch},
      {"nn.upsampling", legal_upsampling},
      {"one_hot", one_hot},
      {"ones_like", filled<1>},
      {"trilu", trilu},
      {"variance", variance},
      {"zeros_like", filled<0>},
  };
  return kRules;
}

}  // namespace

Expr legalize_operator(const Expr& e) {
  if (is_scalar_reduction(e)) return arg(e, 0);
  if (const auto* get = as<TupleGetItemNode>(e))
    if (const auto* tuple = as<TupleNode>(get->tuple)) return tuple->fields[static_cast<size_t>(get->index)];
  const OpDef* op = called_op(e);
  auto rule = op ? legalize_rules().find(op->name) : legalize_rules().end();
  return rule == legalize_rules().end() ? e : rule->second(e);
}

}  // namespace tilewright::relay
