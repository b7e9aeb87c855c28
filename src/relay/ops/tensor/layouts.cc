// SPDX-License-Identifier: Apache-2.0
// Layout rules of operators along axes and of data movement.
#include <algorithm>
#include <climits>

#include "relay/ops/attrs.h"
#include "relay/ops/layout_inference.h"

namespace tilewright::relay {
namespace layouts {
namespace {

// Its axes correspond to other axes of the second operand.
Inferred in_one_layout(const LayoutQuery&) { return std::nullopt; }

Inferred top(const LayoutQuery& q) {
  if (q.inputs() != 1) return std::nullopt;
  Inferred out = along_axis<TopKAttrs>(q);
  if (out && attrs_as<TopKAttrs>(q.attrs)->ret_type == "both") out->out.push_back(out->out[0]);
  return out;
}

Inferred split(const LayoutQuery& q) {
  if (!q.tensors()) return std::nullopt;
  const auto& a = *attrs_as<SplitAttrs>(q.attrs);
  AxisLayout layout = q.before[0];
  AttrsRef attrs = q.attrs;
  if (q.moves()) {
    const char letter = letter_at(*q.before[0], a.axis, q.shape(0).size());
    layout = letter && is_split(*(*q.now)[0], letter) ? q.before[0] : (*q.now)[0];
    if (layout == (*q.now)[0]) {
      auto at = axis_after(q, a.axis);
      if (!at) return std::nullopt;
      attrs = changed<SplitAttrs>(q.attrs, [&](auto& c) { c.axis = *at; });
    }
  }
  const size_t parts = a.sections > 0 ? static_cast<size_t>(a.sections) : a.indices_or_sections.size() + 1;
  return LayoutInference{{layout}, AxisLayouts(parts, layout), attrs};
}

template <class A>
Inferred reduced(const LayoutQuery& q) {
  if (!q.tensors()) return std::nullopt;
  const A& a = *attrs_as<A>(q.attrs);
  const size_t rank = q.shape(0).size();
  std::vector<bool> listed(rank, !a.axis);
  if (a.axis)
    for (int64_t axis : *a.axis)
      if (int64_t at = positive_axis(axis, rank); at >= 0 && at < static_cast<int64_t>(rank))
        listed[static_cast<size_t>(at)] = true;
  if (a.exclude && a.axis) listed.flip();
  // Removes the reduced letters from a layout.
  auto rest = [&](const std::string& layout, const std::string& gone) {
    std::vector<LayoutAxis> left;
    for (const LayoutAxis& axis : layout_axes(layout))
      if (a.keepdims || gone.find(upper(axis.letter)) == std::string::npos) left.push_back(axis);
    return layout_text(left);
  };
  if (!q.before[0]) return std::nullopt;
  const auto old = layout_axes(*q.before[0]);
  if (old.size() != rank) return std::nullopt;
  std::string gone;
  for (size_t i = 0; i < rank; ++i)
    if (listed[i]) gone += old[i].letter;
  AxisLayout layout = q.before[0];
  AttrsRef attrs = q.attrs;
  if (q.moves()) {
    const std::string& now = *(*q.now)[0];
    std::vector<int64_t> axes;
    const auto axes_now = layout_axes(now);
    bool blocked = false;
    for (size_t i = 0; i < axes_now.size(); ++i)
      if (gone.find(upper(axes_now[i].letter)) != std::string::npos) {
        axes.push_back(static_cast<int64_t>(i));
        blocked |= !axes_now[i].whole();
      }
    // With keepdims, reducing a blocked axis would leave a block of one.
    if (!(blocked && a.keepdims)) {
      layout = now;
      attrs = changed<A>(q.attrs, [&](A& c) {
        c.axis = axes;
        c.exclude = false;
      });
    }
  }
  return LayoutInference{{layout}, {rest(*layout, gone)}, attrs};
}

Inferred squeezed(const LayoutQuery& q) {
  if (!q.tensors()) return std::nullopt;
  const auto& a = *attrs_as<SqueezeAttrs>(q.attrs);
  AxisLayout layout = q.now && (*q.now)[0] ? (*q.now)[0] : q.before[0];
  if (!layout || !q.before[0]) return std::nullopt;
  const Shape& shape = q.shape(0);
  std::string gone;
  for (size_t i = 0; i < shape.size(); ++i) {
    bool named = !a.axis && shape[i] == Dim(1);
    for (int64_t k : a.axis.value_or(std::vector<int64_t>{}))
      named |= positive_axis(k, shape.size()) == static_cast<int64_t>(i);
    if (named) gone += letter_at(*q.before[0], static_cast<int64_t>(i), shape.size());
  }
  std::vector<int64_t> axes;
  std::vector<LayoutAxis> left;
  const auto all = layout_axes(*layout);
  for (size_t i = 0; i < all.size(); ++i) {
    if (gone.find(upper(all[i].letter)) == std::string::npos) {
      left.push_back(all[i]);
      continue;
    }
    if (!all[i].whole()) return std::nullopt;
    axes.push_back(static_cast<int64_t>(i));
  }
  AttrsRef attrs = q.attrs;
  if (q.now) attrs = changed<SqueezeAttrs>(q.attrs, [&](auto& c) { c.axis = axes; });
  return LayoutInference{{layout}, {layout_text(left)}, attrs};
}

Inferred sliced_strided(const LayoutQuery& q) {
  if (q.inputs() != 1 || !q.tensors()) return std::nullopt;
  const auto& a = *attrs_as<StridedSliceAttrs>(q.attrs);
  if (!q.moves() || *(*q.now)[0] == *q.before[0]) {
    AxisLayout layout = q.before[0];
    return LayoutInference{{layout}, {layout}, q.attrs};
  }
  const std::string &old = *q.before[0], &now = *(*q.now)[0];
  const size_t rank = q.shape(0).size();
  if (layout_axes(old).size() != rank) return std::nullopt;
  const LayoutInference stays{{old}, {old}, q.attrs};
  // Begin, end and stride of each letter that the slice names.
  std::vector<int64_t> begin, end, strides, axes;
  for (size_t i = 0; i < a.begin.size(); ++i) {
    const int64_t axis = positive_axis(a.axes ? (*a.axes)[i] : static_cast<int64_t>(i), rank);
    const char letter = letter_at(old, axis, rank);
    const int64_t to = letter ? place_of(now, letter) : -1;
    if (to < 0) return stays;
    int64_t from = a.begin[i], until = i < a.end.size() ? a.end[i] : INT64_MAX,
            step = i < a.strides.size() ? a.strides[i] : 1;
    if (is_split(now, letter)) {
      // The slice must cut whole blocks.
      int64_t factor = 1;
      for (const LayoutAxis& block : layout_axes(now))
        if (block.letter == lower(letter)) factor = block.factor;
      const Dim& size = q.shape(0)[static_cast<size_t>(axis)];
      if (!size.is_const() || a.slice_mode != "end" || step != 1) return stays;
      from = std::clamp<int64_t>(from < 0 ? from + size.value() : from, 0, size.value());
      until = std::clamp<int64_t>(until < 0 ? until + size.value() : until, 0, size.value());
      if (from % factor || until % factor) return stays;
      from /= factor;
      until /= factor;
    }
    begin.push_back(from);
    end.push_back(until);
    strides.push_back(step);
    axes.push_back(to);
  }
  AttrsRef attrs = changed<StridedSliceAttrs>(q.attrs, [&](auto& c) {
    c.begin = begin;
    c.end = end;
    c.strides = strides;
    c.axes = axes;
    if (a.axes) return;
    const bool same_places = [&] {
      for (size_t i = 0; i < axes.size(); ++i)
        if (axes[i] != static_cast<int64_t>(i)) return false;
      return true;
    }();
    if (same_places) {
      c.axes.reset();
      return;
    }
    // Without axes, the attributes apply to the leading axes in order: list them explicitly.
    const auto all = layout_axes(now);
    c.begin.assign(all.size(), 0);
    c.end.assign(all.size(), a.slice_mode == "size" ? -1 : INT32_MAX);
    c.strides.assign(all.size(), 1);
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto at = static_cast<size_t>(axes[i]);
      c.begin[at] = begin[i], c.end[at] = end[i], c.strides[at] = strides[i];
    }
    c.axes.reset();
  });
  return LayoutInference{{now}, {now}, attrs};
}

// The permutation is adapted to the operand's new layout, so that the result keeps its own.
Inferred transposition(const LayoutQuery& q) {
  if (!q.tensors() || !q.before[0]) return std::nullopt;
  const auto& a = *attrs_as<TransposeAttrs>(q.attrs);
  const std::string& old = *q.before[0];
  const size_t rank = q.shape(0).size();
  if (layout_axes(old).size() != rank) return std::nullopt;
  std::string out;
  for (size_t i = 0; i < rank; ++i)
    out += letter_at(old, a.axes ? (*a.axes)[i] : static_cast<int64_t>(rank - 1 - i), rank);
  std::string in = old;
  AttrsRef attrs = q.attrs;
  if (q.moves() && whole_axes(*(*q.now)[0]) == layout_axes(*(*q.now)[0]).size()) {
    in = *(*q.now)[0];
    std::vector<int64_t> axes;
    for (char letter : out) axes.push_back(place_of(in, letter));
    if (std::find(axes.begin(), axes.end(), -1) != axes.end()) return std::nullopt;
    attrs = changed<TransposeAttrs>(q.attrs, [&](auto& c) { c.axes = axes; });
  }
  return LayoutInference{{in}, {out}, attrs};
}

constexpr Entry kTensorLayouts[] = {
    {"cast", same_everywhere},
    {"clip", same_everywhere},
    {"concatenate", joined},
    {"max", reduced<ReduceAttrs>},
    {"mean", reduced<ReduceAttrs>},
    {"min", reduced<ReduceAttrs>},
    {"prod", reduced<ReduceAttrs>},
    {"reshape_like", in_one_layout},
    {"split", split},
    {"squeeze", squeezed},
    {"strided_slice", sliced_strided},
    {"sum", reduced<ReduceAttrs>},
    {"topk", top},
    {"transpose", transposition},
};

}  // namespace
}  // namespace layouts

void tensor_layouts(const FactsOf& facts) { layouts::add(facts, layouts::kTensorLayouts); }

}  // namespace tilewright::relay
