// SPDX-License-Identifier: Apache-2.0
#include "relay/passes/pipeline/fuse_attention.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "relay/ops/attrs.h"
#include "relay/ops/nn/attrs_attention.h"
#include "relay/rewrite.h"

namespace tilewright::relay {
namespace {

constexpr int64_t kMinQueries = 8;

// The shape of a tensor; empty when a size is free.
std::vector<int64_t> dims_of(const Expr& e) {
  return static_shape(tensor_of(e).shape).value_or(std::vector<int64_t>{});
}
bool is_static_float(const Expr& e, size_t rank) {
  const auto* t = as_tensor(e->type);
  return t && t->dtype == kFloat32 && t->shape.size() == rank && static_shape(t->shape);
}

std::vector<int64_t> permutation_of(const Expr& transpose) {
  size_t rank = tensor_of(transpose).shape.size();
  std::vector<int64_t> axes(rank);
  auto given = attrs_of<TransposeAttrs>(transpose).axes;
  for (size_t i = 0; i < rank; ++i)
    axes[i] = given ? positive_axis((*given)[i], rank) : static_cast<int64_t>(rank - 1 - i);
  return axes;
}

// Strips a factor or divisor that is constant, and multiplies it into `scale`.
Expr without_scale(const Expr& e, double* scale) {
  for (size_t i : {size_t{0}, size_t{1}}) {
    bool divide = is_call_to(e, "divide");
    if (!divide && !is_call_to(e, "multiply")) return {};
    if (divide && i == 1) return {};
    auto constant = uniform_value(arg(e, 1 - i));
    if (!constant || *constant == 0 || !same_tensor_type(arg(e, i), e)) continue;
    *scale *= divide ? 1 / *constant : *constant;
    return arg(e, i);
  }
  return {};
}

// A slice of a tensor along one axis, however it was expressed; `dropped`: the axis (of extent 1) was removed.
struct Part {
  Expr whole;
  int64_t axis = 0, begin = 0;
  bool dropped = false;
};

std::optional<Part> sliced_part(const Expr& e) {
  const auto* get = as<TupleGetItemNode>(e);
  if (get && is_call_to(get->tuple, "split")) {
    const auto& attrs = attrs_of<SplitAttrs>(get->tuple);
    Part part{arg(get->tuple, 0), 0, 0, false};
    auto all = dims_of(part.whole);
    if (all.empty()) return {};
    part.axis = positive_axis(attrs.axis, all.size());
    if (get->index > 0)
      part.begin = attrs.sections > 0 ? all[static_cast<size_t>(part.axis)] / attrs.sections * get->index
                                      : attrs.indices_or_sections[static_cast<size_t>(get->index) - 1];
    return part;
  }
  if (!is_call_to(e, "strided_slice") || as<CallNode>(e)->args.size() != 1) return {};
  Part part{arg(e, 0), -1, 0, false};
  auto all = dims_of(part.whole), cut = dims_of(e);
  if (all.size() != cut.size()) return {};
  for (size_t d = 0; d < all.size(); ++d) {
    if (all[d] == cut[d]) continue;
    if (part.axis >= 0) return {};
    part.axis = static_cast<int64_t>(d);
  }
  const auto& attrs = attrs_of<StridedSliceAttrs>(e);
  if (part.axis < 0 || std::any_of(attrs.strides.begin(), attrs.strides.end(), [](int64_t s) { return s != 1; }))
    return {};
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    const int64_t axis = attrs.axes && !attrs.axes->empty() ? (*attrs.axes)[i] : static_cast<int64_t>(i),
                  extent = all[static_cast<size_t>(part.axis)];
    if (positive_axis(axis, all.size()) == part.axis)
      part.begin = attrs.begin[i] < 0 ? attrs.begin[i] + extent : attrs.begin[i];
  }
  return part;
}

std::optional<Part> part_of(const Expr& e) {
  if (is_call_to(e, "take")) {
    auto axis = attrs_of<TakeAttrs>(e).axis;
    auto index = uniform_value(arg(e, 1));
    if (!axis || !index || !tensor_of(arg(e, 1)).shape.empty()) return {};
    auto all = dims_of(arg(e, 0));
    if (all.empty()) return {};
    Part part{arg(e, 0), positive_axis(*axis, all.size()), static_cast<int64_t>(*index), true};
    if (part.begin < 0) part.begin += all[static_cast<size_t>(part.axis)];
    return part;
  }
  if (!is_call_to(e, "reshape") && !is_call_to(e, "squeeze")) return sliced_part(e);
  auto part = sliced_part(arg(e, 0));
  if (!part) return {};
  auto shape = dims_of(arg(e, 0));
  if (shape[static_cast<size_t>(part->axis)] != 1) return {};
  shape.erase(shape.begin() + part->axis);
  if (shape != dims_of(e)) return {};
  part->dropped = true;
  return part;
}

// Where query, key or value can be read from: a tensor with named axes, leading ones first.
struct Source {
  Expr tensor;
  // a permutation of BHSD; without B where B and H are one axis; with T where one of several is selected
  std::string layout;
  int64_t first = 0, group = 1;
};

// Recognises heads that are cut from a slice of x's last axis, (..., H * D) -> (..., H, D).
bool cut_from_merged(Source* s) {
  const Expr& e = s->tensor;
  size_t rank = tensor_of(e).shape.size();
  if (!is_call_to(e, "reshape") || s->layout.substr(rank - 2) != "HD") return false;
  auto part = sliced_part(arg(e, 0));
  if (!part) return false;
  auto shape = dims_of(e), sliced = dims_of(arg(e, 0)), all = dims_of(part->whole);
  const int64_t size = shape.back(), heads = shape[rank - 2];
  if (sliced.back() != heads * size || all.back() % size != 0 || part->begin % size != 0 ||
      part->axis != static_cast<int64_t>(all.size()) - 1)
    return false;
  shape[rank - 2] = all.back() / size;
  s->tensor = reshape_to(part->whole, shape);
  s->first = part->begin / size;
  return true;
}

// Recognises grouped-query heads, which are broadcast and merged: (B, H, S, D) -> (B, H, 1, S, D) -> (B, H, times, S,
// D) -> (B, H * times, S, D).
bool shared_heads(Source* s) {
  const Expr& e = s->tensor;
  if (s->layout != "BHSD" || s->group != 1 || !is_call_to(e, "reshape")) return false;
  const Expr& wide = arg(e, 0);
  if (!is_call_to(wide, "broadcast_to") && !is_call_to(wide, "tile") && !is_call_to(wide, "repeat")) return false;
  auto merged = dims_of(e), all = dims_of(wide), narrow = dims_of(arg(wide, 0));
  if (all.size() != 5 || narrow.size() != 5 || narrow[2] != 1 || all[2] < 2) return false;
  for (size_t d : {size_t{0}, size_t{1}, size_t{3}, size_t{4}})
    if (all[d] != narrow[d]) return false;
  if (merged != std::vector<int64_t>{all[0], all[1] * all[2], all[3], all[4]}) return false;
  s->group = all[2];
  s->tensor = arg(wide, 0);
  while (is_call_to(s->tensor, "expand_dims") || is_call_to(s->tensor, "reshape")) {
    s->tensor = arg(s->tensor, 0);
    if (dims_of(s->tensor) == std::vector<int64_t>{all[0], all[1], all[3], all[4]}) return true;
  }
  s->tensor = reshape_to(arg(wide, 0), {all[0], all[1], all[3], all[4]});
  return true;
}

// Merges the selecting axis into the heads; a null tensor if the two are not adjacent.
Source with_picked_heads(const Source& s) {
  const size_t at = s.layout.find('T');
  if (at == std::string::npos) return s;
  Source out = s;
  if (s.layout.compare(at, 2, "TH") != 0) return out.tensor = nullptr, out;
  auto shape = dims_of(s.tensor);
  out.first = s.first * shape[at + 1];
  shape[at + 1] *= shape[at];
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  out.layout.erase(at, 1);
  out.tensor = reshape_to(s.tensor, shape);
  return out;
}

// Traces an operand through transposes, scales, shared heads and slices. `last_is_size`: its D axis must remain last.
Source trace(const Expr& e, std::string layout, bool last_is_size, double* scale) {
  Source s{e, layout, 0, 1}, accepted = s;
  double accepted_scale = scale ? *scale : 1, own = accepted_scale;
  for (bool more = true; more;) {
    if (is_call_to(s.tensor, "transpose")) {
      auto axes = permutation_of(s.tensor);
      std::string source(axes.size(), ' ');
      for (size_t i = 0; i < axes.size(); ++i) source[static_cast<size_t>(axes[i])] = s.layout[i];
      s.layout = source;
      s.tensor = arg(s.tensor, 0);
    } else if (is_call_to(s.tensor, "repeat") && s.group == 1 && attrs_of<RepeatAttrs>(s.tensor).axis) {
      const auto& attrs = attrs_of<RepeatAttrs>(s.tensor);
      size_t axis = static_cast<size_t>(positive_axis(*attrs.axis, s.layout.size()));
      if (s.layout[axis] != 'H' || s.layout.find('B') == std::string::npos) break;
      s.group = attrs.repeats;
      s.tensor = arg(s.tensor, 0);
    } else if (Expr inner = scale ? without_scale(s.tensor, &own) : Expr()) {
      s.tensor = inner;
    } else if (auto part = part_of(s.tensor); part && part->dropped && s.layout.find('T') == std::string::npos) {
      s.layout.insert(static_cast<size_t>(part->axis), "T");
      s.tensor = part->whole;
      s.first = part->begin;
    } else if (!shared_heads(&s)) {
      if (!cut_from_merged(&s)) break;
      more = false;
    }
    Source whole = with_picked_heads(s);
    if (whole.tensor && (!last_is_size || whole.layout.back() == 'D')) accepted = whole, accepted_scale = own;
  }
  if (scale) *scale = accepted_scale;
  if (accepted.layout.size() == 3) {
    auto shape = dims_of(accepted.tensor);
    shape.insert(shape.begin(), 1);
    accepted.tensor = reshape_to(accepted.tensor, shape);
    accepted.layout = "B" + accepted.layout;
  }
  return accepted;
}

struct Scores {
  Expr product;  // batch_matmul(Q, K)
  double scale = 1;
  std::vector<Expr> masks;
};

// The product behind scales and masks; every expression in between must have a single use.
bool find_scores(const Expr& e, const std::function<bool(const Expr&)>& read_once, Scores* out) {
  if (!read_once(e)) return false;
  if (is_call_to(e, "nn.batch_matmul")) return out->product = e, true;
  double scale = 1;
  if (Expr inner = without_scale(e, &scale)) {
    size_t before = out->masks.size();
    if (!find_scores(inner, read_once, out)) return false;
    out->scale *= scale;
    return out->masks.size() == before;  // a scale outside of a mask is another function
  }
  if (is_call_to(e, "add"))
    for (size_t i : {size_t{0}, size_t{1}}) {
      if (!same_tensor_type(arg(e, i), e)) continue;
      Scores inner;
      if (!find_scores(arg(e, i), read_once, &inner)) continue;
      out->product = inner.product, out->scale *= inner.scale;
      out->masks.insert(out->masks.end(), inner.masks.begin(), inner.masks.end());
      out->masks.push_back(arg(e, 1 - i));
      return true;
    }
  if (is_call_to(e, "reshape") && is_call_to(arg(e, 0), "add") && read_once(arg(e, 0))) {
    // A mask added with the batch split: (B * W, H, S, S) -> (B, W, H, S, S) + mask -> (B * W, H, S, S).
    const Expr& sum = arg(e, 0);
    auto own = static_shape(tensor_of(e).shape), apart = static_shape(tensor_of(sum).shape);
    for (size_t i : {size_t{0}, size_t{1}}) {
      const Expr &part = arg(sum, i), &mask = arg(sum, 1 - i);
      if (!own || !apart || apart->size() != own->size() + 1 ||
          !std::equal(own->begin() + 1, own->end(), apart->begin() + 2))
        break;
      if (!is_call_to(part, "reshape") || !read_once(part) || !same_tensor_type(part, sum) ||
          !same_tensor_type(arg(part, 0), e))
        continue;
      auto mask_dims = static_shape(tensor_of(mask).shape);
      if (!mask_dims || mask_dims->size() != apart->size() || !find_scores(arg(part, 0), read_once, out)) continue;
      (*mask_dims)[0] = (*apart)[0], (*mask_dims)[1] = (*apart)[1];
      Expr wide = mask_dims == static_shape(tensor_of(mask).shape)
                      ? mask
                      : call("broadcast_to", {mask}, make_attrs<InitOpAttrs>([&](auto& a) { a.shape = *mask_dims; }),
                             mask->span);
      std::vector<int64_t> merged(mask_dims->begin() + 1, mask_dims->end());
      merged[0] *= (*apart)[0];
      out->masks.push_back(reshape_to(wide, merged));
      return true;
    }
  }
  if (is_call_to(e, "where"))
    for (size_t i : {size_t{1}, size_t{2}}) {
      // A constant so low that the softmax of any score plus it is zero.
      auto low = uniform_value(arg(e, 3 - i));
      if (!low || *low > -1e4 || !same_tensor_type(arg(e, i), e) || !find_scores(arg(e, i), read_once, out)) continue;
      Expr none = make_scalar(0, kFloat32), hidden = make_scalar(*low, kFloat32);
      out->masks.push_back(call("where", {arg(e, 0), i == 1 ? none : hidden, i == 1 ? hidden : none}, {}, e->span));
      return true;
    }
  return false;
}

// The sum of the masks, reshaped to rank 4; null without masks; false when they do not fit.
bool sum_masks(const std::vector<Expr>& masks, size_t rank, Expr* out) {
  Expr sum;
  for (const Expr& mask : masks) {
    if (!as_tensor(mask->type) || tensor_of(mask).dtype != kFloat32 || !static_shape(tensor_of(mask).shape))
      return false;
    sum = sum ? call("add", {sum, mask}, {}, mask->span) : mask;
  }
  if (sum) {
    auto shape = dims_of(sum);
    if (shape.size() > rank) return false;
    shape.insert(shape.begin(), 4 - shape.size(), 1);
    sum = reshape_to(sum, shape);
  }
  *out = sum;
  return true;
}

// The single head of keys or values that were broadcast to all heads.
Expr of_one_head(const Expr& e) {
  if (!is_call_to(e, "broadcast_to") || !static_shape(tensor_of(e).shape)) return e;
  auto all = dims_of(e), own = dims_of(arg(e, 0));
  return own.size() == 4 && own[1] == 1 && (own[1] = all[1], own == all) ? arg(e, 0) : e;
}

// The attention call, of rank 4 in the order BHSD; null when `e` does not match.
Expr match(const Expr& e, const std::function<bool(const Expr&)>& read_once) {
  if (!is_call_to(e, "nn.batch_matmul")) return {};
  const auto& mix = attrs_of<BatchMatmulAttrs>(e);
  const Expr softmax = arg(e, 0), value = of_one_head(arg(e, 1));
  size_t rank = tensor_of(e).shape.size();
  if (mix.transpose_a || rank < 3 || rank > 4 || !is_static_float(e, rank) || !is_static_float(value, rank)) return {};
  if (!is_call_to(softmax, "nn.softmax") || !read_once(softmax) || !is_static_float(softmax, rank)) return {};
  if (positive_axis(attrs_of<SoftmaxAttrs>(softmax).axis, rank) != static_cast<int64_t>(rank) - 1) return {};
  Scores scores;
  if (!find_scores(arg(softmax, 0), read_once, &scores)) return {};
  const auto& product = attrs_of<BatchMatmulAttrs>(scores.product);
  const Expr query = arg(scores.product, 0), key = of_one_head(arg(scores.product, 1));
  if (!is_static_float(query, rank) || !is_static_float(key, rank) || !is_static_float(scores.product, rank)) return {};
  // The batch must not be broadcast below; a single head of keys and values may serve all.
  const auto s_dims = dims_of(softmax), wanted = dims_of(e);
  if (s_dims[rank - 2] < kMinQueries || dims_of(scores.product) != s_dims) return {};
  auto fits = [&](const Expr& x) { return std::equal(wanted.begin(), wanted.end() - 2, dims_of(x).begin()); };
  auto one_head = [&](const Expr& x) {
    return rank == 4 && wanted[1] > 1 && dims_of(x)[0] == wanted[0] && dims_of(x)[1] == 1;
  };
  const bool one_for_all = one_head(key) && one_head(value);
  if (!fits(query) || (!one_for_all && !(fits(key) && fits(value)))) return {};
  const std::string heads = rank == 4 ? "BH" : "H";
  double scale = scores.scale;
  Source q = trace(query, heads + (product.transpose_a ? "DS" : "SD"), true, &scale);
  if (q.layout.back() != 'D' || q.group != 1) return {};
  Source k = trace(key, heads + (product.transpose_b ? "SD" : "DS"), false, &scale);
  Source v = trace(value, heads + (mix.transpose_b ? "DS" : "SD"), false, nullptr);
  if (one_for_all && k.group == 1 && v.group == 1) k.group = v.group = wanted[1];
  if (k.group != v.group) return {};
  Expr mask;
  if (!sum_masks(scores.masks, rank, &mask)) return {};
  auto attrs = make_attrs<AttentionAttrs>([&](auto& a) {
    a.query_layout = q.layout, a.key_layout = k.layout, a.value_layout = v.layout;
    a.query_head = q.first, a.key_head = k.first, a.value_head = v.first;
    a.num_heads = dims_of(e)[rank - 3];
    a.group = k.group;
    a.scale = scale;
  });
  std::vector<Expr> args{q.tensor, k.tensor, v.tensor};
  if (mask) args.push_back(mask);
  auto out = try_call("nn.attention", args, attrs, join_spans(softmax->span, e->span));
  return out.ok() ? *out : Expr();
}

// transpose(attention), possibly behind a reshape that drops a batch of one: the attention with that output layout.
Expr absorb_transpose(const Expr& e) {
  if (!is_call_to(e, "transpose")) return {};
  Expr inner = arg(e, 0);
  bool dropped =
      is_call_to(inner, "reshape") && is_call_to(arg(inner, 0), "nn.attention") && tensor_of(inner).shape.size() == 3;
  if (dropped) inner = arg(inner, 0);
  if (!is_call_to(inner, "nn.attention")) return {};
  const auto& old = attrs_of<AttentionAttrs>(inner);
  std::string from = old.out_layout, to = dropped ? "B" : "";
  if (dropped && (from[0] != 'B' || dims_of(inner)[0] != 1)) return {};
  for (int64_t axis : permutation_of(e)) to += from[static_cast<size_t>(axis) + (dropped ? 1 : 0)];
  if (to.back() != 'D') return {};
  auto out = try_call("nn.attention", as<CallNode>(inner)->args, make_attrs<AttentionAttrs>([&](auto& a) {
                        a = old;
                        a.out_layout = to;
                      }),
                      join_spans(inner->span, e->span));
  if (!out.ok()) return {};
  return dropped ? reshape_to(*out, dims_of(e)) : *out;
}

}  // namespace

Result<Module> fuse_attention(const Module& module, PassContext&) {
  return rewrite_functions(module, [](const Expr& function) {
    UseCounts uses = count_uses(function);
    // Replacements made here, by the attention call, with what they replace.
    std::unordered_map<const ExprNode*, Expr> original_of;
    std::vector<Expr> kept;
    return rewrite_expr(function, [&](const Expr& original, const Expr& e) {
      auto read_once = [&](const Expr& x) {
        auto it = original_of.find(x.get());
        auto count = uses.find(it == original_of.end() ? x.get() : it->second.get());
        return count != uses.end() && count->second == 1;
      };
      if (!(original == e)) original_of.emplace(e.get(), original), kept.push_back(e);
      Expr out;
      if (is_call_to(e, "transpose") && read_once(arg(e, 0))) out = absorb_transpose(e);
      if (!out && (out = match(e, read_once)) && tensor_of(e).shape.size() == 3) out = reshape_to(out, dims_of(e));
      if (!out) return e;
      original_of[out.get()] = original;
      kept.push_back(out);
      return out;
    });
  });
}

}  // namespace tilewright::relay
