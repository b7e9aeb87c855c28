// SPDX-License-Identifier: Apache-2.0
// One file, long as it is: each rule is a few lines, and all ask the same few questions about layouts.
#include "relay/passes/layout/layout_rules.h"

#include <algorithm>
#include <array>
#include <climits>
#include <map>

#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/ops/quantize/attrs_qnn.h"
#include "relay/rewrite.h"

namespace tilewright::relay {

std::vector<LayoutAxis> layout_axes(const std::string& layout) {
  std::vector<LayoutAxis> out;
  int64_t factor = 0;
  for (char c : layout) {
    if (c >= '0' && c <= '9') {
      factor = std::min<int64_t>(factor * 10 + (c - '0'), 1 << 20);
      continue;
    }
    out.push_back({c, factor});
    factor = 0;
  }
  return out;
}
std::string layout_text(const std::vector<LayoutAxis>& axes) {
  std::string out;
  for (const LayoutAxis& axis : axes) out += (axis.factor ? std::to_string(axis.factor) : "") + axis.letter;
  return out;
}
size_t whole_axes(const std::string& layout) {
  const auto axes = layout_axes(layout);
  return static_cast<size_t>(std::count_if(axes.begin(), axes.end(), [](const LayoutAxis& a) { return a.whole(); }));
}

namespace {

using Inferred = std::optional<LayoutInference>;
struct Query {
  const AttrsRef& attrs;
  const AxisLayouts* now;
  const AxisLayouts& before;
  const std::vector<Type>& types;
  size_t inputs() const { return before.size(); }
  const Shape& shape(size_t i) const { return as_tensor(types[i])->shape; }
  bool tensors() const {
    return std::all_of(types.begin(), types.end(), [](const Type& t) { return as_tensor(t) != nullptr; });
  }
  // The first operand's layouts, after and before, where both are known.
  bool moves() const { return now && (*now)[0] && before[0]; }
};

char upper(char c) { return static_cast<char>(c >= 'a' ? c - 'a' + 'A' : c); }
char lower(char c) { return static_cast<char>(c >= 'a' ? c : c - 'A' + 'a'); }
// The place of an axis among all of them, or -1.
int64_t place_of(const std::string& layout, char letter) {
  const auto axes = layout_axes(layout);
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].letter == letter) return static_cast<int64_t>(i);
  return -1;
}
bool is_split(const std::string& layout, char letter) { return place_of(layout, lower(letter)) >= 0; }
std::string last_axes(const std::string& layout, size_t count) {
  auto axes = layout_axes(layout);
  if (axes.size() < count) return layout;
  return layout_text({axes.end() - static_cast<int64_t>(count), axes.end()});
}
// The letter of the old layout's axis, or 0.
char letter_at(const std::string& layout, int64_t axis, size_t rank) {
  const auto axes = layout_axes(layout);
  const int64_t at = positive_axis(axis, rank);
  return at >= 0 && at < static_cast<int64_t>(axes.size()) ? axes[static_cast<size_t>(at)].letter : '\0';
}

template <class A, class F>
AttrsRef changed(const AttrsRef& attrs, F&& change) {
  return make_attrs<A>([&](auto& a) {
    a = *attrs_as<A>(attrs);
    change(a);
  });
}

Inferred same_everywhere(const Query& q) {
  AxisLayout layout;
  if (q.now) {
    layout = (*q.now)[0];
  } else {
    for (const AxisLayout& l : q.before)
      if (!layout) layout = l;
  }
  return LayoutInference{AxisLayouts(q.inputs(), layout), {layout}, q.attrs};
}

// --- broadcasting

// Whether two lists of axes differ only in the letters' names.
bool alike(const std::vector<LayoutAxis>& a, const std::vector<LayoutAxis>& b) {
  if (a.size() != b.size()) return false;
  std::map<char, char> there, back;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].whole() != b[i].whole() || a[i].factor != b[i].factor) return false;
    if (there.try_emplace(a[i].letter, b[i].letter).first->second != b[i].letter) return false;
    if (back.try_emplace(b[i].letter, a[i].letter).first->second != a[i].letter) return false;
  }
  return true;
}

// `layout` changed as `from` was to become `to`; the shorter of the two lies along the last axes of the other.
AxisLayout changed_likewise(const std::string& layout, const std::string& from, const std::string& to) {
  const auto own = layout_axes(layout), reference = layout_axes(from);
  const auto &large = reference.size() > own.size() ? reference : own,
             &small = reference.size() > own.size() ? own : reference;
  const auto extra = static_cast<int64_t>(large.size() - small.size());
  const std::vector<LayoutAxis> tail(large.begin() + extra, large.end());
  for (int64_t i = 0; i < extra; ++i)
    for (const LayoutAxis& axis : tail)
      if (upper(axis.letter) == upper(large[static_cast<size_t>(i)].letter)) return std::nullopt;
  if (!alike(tail, small)) return std::nullopt;
  if (own.empty()) return layout;
  std::map<char, char> name;  // of the reference's letters
  std::string used;
  for (size_t i = 0; i < std::min(own.size(), reference.size()); ++i) {
    const char mine = upper(own[own.size() - 1 - i].letter);
    name[upper(reference[reference.size() - 1 - i].letter)] = mine;
    used += mine;
  }
  for (const LayoutAxis& axis : reference) {
    const char letter = upper(axis.letter);
    if (name.count(letter)) continue;
    char free = letter;
    for (char c = 'A'; used.find(free) != std::string::npos && c <= 'Z'; ++c) free = c;
    name[letter] = free;
    used += free;
  }
  auto out = layout_axes(to);
  for (LayoutAxis& axis : out) {
    auto it = name.find(upper(axis.letter));
    if (it == name.end()) return std::nullopt;
    axis.letter = axis.whole() ? it->second : lower(it->second);
  }
  return layout_text(out);
}

// Axes of size 1 are split into blocks of one.
std::string with_fitting_blocks(const std::string& layout, const std::string& old, const Shape& shape) {
  auto axes = layout_axes(layout);
  for (LayoutAxis& axis : axes) {
    if (axis.whole()) continue;
    const int64_t at = place_of(old, upper(axis.letter));
    if (at < 0 || (at < static_cast<int64_t>(shape.size()) && shape[static_cast<size_t>(at)] == Dim(1)))
      axis.factor = 1;
  }
  return layout_text(axes);
}

Inferred broadcast(const Query& q) {
  if (q.inputs() != 2 || q.types.size() != 2 || !q.tensors()) return std::nullopt;
  const size_t large = q.shape(0).size() >= q.shape(1).size() ? 0 : 1;
  AxisLayouts layouts = q.before;
  if (!layouts[0] && !layouts[1]) return std::nullopt;
  AxisLayout result = layouts[large];
  if (!layouts[0] || !layouts[1]) {
    const size_t known = layouts[0] ? 0 : 1, other = 1 - known;
    if (q.shape(known).size() < q.shape(other).size()) return std::nullopt;
    layouts[other] = last_axes(*layouts[known], q.shape(other).size());
    result = layouts[known];
  }
  if (!q.now) return LayoutInference{layouts, {result}, q.attrs};
  const AxisLayouts& now = *q.now;
  if (!now[0] || !now[1]) return std::nullopt;
  result = now[large];
  const size_t leads = whole_axes(*now[0]) >= whole_axes(*now[1]) ? 0 : 1, follows = 1 - leads;
  AxisLayout wanted = changed_likewise(*layouts[follows], *layouts[leads], *now[leads]);
  if (!wanted) return std::nullopt;
  wanted = with_fitting_blocks(*wanted, *layouts[follows], q.shape(follows));
  layouts[leads] = now[leads];
  layouts[follows] = wanted;
  return LayoutInference{layouts, {result}, q.attrs};
}

// --- operators with layouts of their own

template <class A>
Inferred convolution(const Query& q) {
  const A& a = *attrs_as<A>(q.attrs);
  return LayoutInference{
      {a.data_layout, a.kernel_layout}, {a.out_layout.empty() ? a.data_layout : a.out_layout}, q.attrs};
}
// Scales and zero points are vectors of channels or scalars.
template <class A>
Inferred quantized_convolution(const Query& q) {
  Inferred out = convolution<A>(q);
  while (out->in.size() < q.inputs()) out->in.emplace_back("C");
  return out;
}
Inferred deformable(const Query& q) {
  const auto& a = *attrs_as<DeformableConv2DAttrs>(q.attrs);
  return LayoutInference{
      {a.data_layout, a.data_layout, a.kernel_layout}, {a.out_layout.empty() ? a.data_layout : a.out_layout}, q.attrs};
}
Inferred dense(const Query& q) { return LayoutInference{{"NC", "NC"}, {"NC"}, q.attrs}; }
Inferred packed_dense(const Query& q) {
  return LayoutInference{{"NC", attrs_as<DensePackAttrs>(q.attrs)->weight_layout}, {"NC"}, q.attrs};
}

template <class A>
Inferred pool(const Query& q) {
  const A& a = *attrs_as<A>(q.attrs);
  AttrsRef attrs = q.attrs;
  std::string layout = a.layout;
  if (a.out_layout.empty() && q.now && (*q.now)[0] && *(*q.now)[0] != layout) {
    layout = *(*q.now)[0];
    attrs = changed<A>(q.attrs, [&](A& c) { c.layout = layout; });
  }
  return LayoutInference{{layout}, {a.out_layout.empty() ? layout : a.out_layout}, attrs};
}
// Images whose rows and columns stay where they are.
template <class A>
Inferred resized(const Query& q) {
  const A& a = *attrs_as<A>(q.attrs);
  AttrsRef attrs = q.attrs;
  std::string layout = a.layout;
  if (q.now && (*q.now)[0]) {
    const std::string& now = *(*q.now)[0];
    bool stays = true;
    for (char axis : {'D', 'H', 'W'})
      if (place_of(layout, axis) >= 0) stays &= place_of(now, axis) == place_of(layout, axis) && !is_split(now, axis);
    if (stays && now != layout) {
      layout = now;
      attrs = changed<A>(q.attrs, [&](A& c) { c.layout = layout; });
    }
  }
  return LayoutInference{{layout}, {layout}, attrs};
}
template <class A>
Inferred regions(const Query& q) {
  const std::string& layout = attrs_as<A>(q.attrs)->layout;
  return LayoutInference{{layout, "N5"}, {layout}, q.attrs};
}

// --- operators along an axis

// How the axes of an operator's attributes follow; nothing where a block is in the way.
std::optional<int64_t> axis_after(const Query& q, int64_t axis) {
  const char letter = letter_at(*q.before[0], axis, q.shape(0).size());
  const int64_t at = letter ? place_of(*(*q.now)[0], letter) : -1;
  return at < 0 ? std::nullopt : std::optional(at);
}
// The first operand and result lie in any layout; the other operands and results are vectors along the axis.
template <class A, bool kBlocks>
Inferred along_axis(const Query& q) {
  if (q.types.empty() || !as_tensor(q.types[0])) return std::nullopt;
  AxisLayout layout = q.before[0];
  AttrsRef attrs = q.attrs;
  if (q.moves()) {
    const int64_t axis = attrs_as<A>(q.attrs)->axis;
    auto at = axis_after(q, axis);
    if (!at) return std::nullopt;
    const char letter = letter_at(*q.before[0], axis, q.shape(0).size());
    if (!kBlocks && is_split(*(*q.now)[0], letter)) {
      at = positive_axis(axis, q.shape(0).size());  // back to the old layout
    } else {
      layout = (*q.now)[0];
    }
    attrs = changed<A>(q.attrs, [&](A& a) { a.axis = *at; });
  }
  LayoutInference out{{layout}, {layout}, attrs};
  while (out.in.size() < q.inputs()) out.in.emplace_back("C");
  return out;
}
Inferred batch_norm(const Query& q) {
  Inferred out = along_axis<BatchNormAttrs, false>(q);
  if (out) out->out = {out->out[0], "C", "C"};
  return out;
}
Inferred top(const Query& q) {
  if (q.inputs() != 1) return std::nullopt;
  Inferred out = along_axis<TopKAttrs, false>(q);
  if (out && attrs_as<TopKAttrs>(q.attrs)->ret_type == "both") out->out.push_back(out->out[0]);
  return out;
}

Inferred joined(const Query& q) {
  const auto* tuple = q.types.size() == 1 ? as_tuple(q.types[0]) : nullptr;
  if (!tuple || tuple->fields.empty() || !as_tensor(tuple->fields[0])) return std::nullopt;
  const size_t rank = as_tensor(tuple->fields[0])->shape.size();
  const int64_t axis = positive_axis(attrs_as<ConcatenateAttrs>(q.attrs)->axis, rank);
  AxisLayout layout;
  AttrsRef attrs = q.attrs;
  if (!q.now) {
    for (const AxisLayout& l : q.before)
      if (!layout) layout = l;
  } else {
    // The first layout in which every part is a whole number of blocks, as the classic stack picks it.
    for (size_t i = 0; i < q.inputs() && !layout; ++i) {
      if (!q.before[i] || !(*q.now)[i]) continue;
      const char letter = letter_at(*q.before[i], axis, rank);
      const int64_t at = letter ? place_of(*(*q.now)[i], letter) : -1;
      if (at < 0) continue;
      bool fits = true;
      for (const LayoutAxis& block : layout_axes(*(*q.now)[i]))
        if (block.letter == lower(letter))
          for (const Type& field : tuple->fields) {
            const Dim& size = as_tensor(field)->shape[static_cast<size_t>(axis)];
            fits &= size.is_const() && size.value() % block.factor == 0;
          }
      layout = fits ? (*q.now)[i] : q.before[i];
      attrs = changed<ConcatenateAttrs>(q.attrs, [&](auto& a) { a.axis = fits ? at : axis; });
    }
  }
  return LayoutInference{AxisLayouts(q.inputs(), layout), {layout}, attrs};
}
Inferred split(const Query& q) {
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

Inferred padded(const Query& q) {
  if (q.inputs() < 1 || !as_tensor(q.types[0])) return std::nullopt;
  const auto& a = *attrs_as<PadAttrs>(q.attrs);
  AxisLayout layout = q.before[0];
  AttrsRef attrs = q.attrs;
  if (q.moves()) {
    const auto old = layout_axes(*q.before[0]);
    if (old.size() != a.pad_width.size()) return std::nullopt;
    std::map<char, std::vector<int64_t>> widths;
    for (size_t i = 0; i < old.size(); ++i) widths[old[i].letter] = a.pad_width[i];
    std::vector<std::vector<int64_t>> moved;
    bool blocks_stay = true;
    for (const LayoutAxis& axis : layout_axes(*(*q.now)[0])) {
      auto it = widths.find(upper(axis.letter));
      const bool none = it == widths.end() || (it->second[0] == 0 && it->second[1] == 0);
      if (is_split(*(*q.now)[0], axis.letter)) blocks_stay &= none;
      moved.push_back(axis.whole() && !none ? it->second : std::vector<int64_t>{0, 0});
    }
    if (blocks_stay) {
      layout = (*q.now)[0];
      attrs = changed<PadAttrs>(q.attrs, [&](auto& c) { c.pad_width = moved; });
    }
  }
  LayoutInference out{{layout}, {layout}, attrs};
  while (out.in.size() < q.inputs()) out.in.emplace_back("");
  return out;
}

template <class A>
Inferred reduced(const Query& q) {
  if (!q.tensors()) return std::nullopt;
  const A& a = *attrs_as<A>(q.attrs);
  const size_t rank = q.shape(0).size();
  std::vector<bool> listed(rank, !a.axis);
  if (a.axis)
    for (int64_t axis : *a.axis)
      if (int64_t at = positive_axis(axis, rank); at >= 0 && at < static_cast<int64_t>(rank))
        listed[static_cast<size_t>(at)] = true;
  if (a.exclude && a.axis) listed.flip();
  // What is left of a layout without the reduced letters.
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
    // Blocks that are reduced with their axis would leave a block of one behind.
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

Inferred squeezed(const Query& q) {
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

Inferred sliced_strided(const Query& q) {
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
      // Whole blocks only.
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
    // Without a list of axes the leading ones are meant: every axis in order.
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

// The axes follow what the operand has become, so that the result lies as it did.
Inferred transposition(const Query& q) {
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

Inferred requantized(const Query& q) { return along_axis<RequantizeAttrs, false>(q); }
// Scales and zero points of both sides and of the result are scalars or vectors.
Inferred quantized_broadcast(const Query& q) {
  if (q.inputs() != 8) return std::nullopt;
  const AxisLayouts before(q.before.begin(), q.before.begin() + 2);
  const std::vector<Type> types(q.types.begin(), q.types.begin() + 2);
  AxisLayouts now;
  if (q.now) now.assign(q.now->begin(), q.now->begin() + 2);
  Inferred out = broadcast({q.attrs, q.now ? &now : nullptr, before, types});
  if (!out) return out;
  while (out->in.size() < q.inputs()) out->in.emplace_back("C");
  return out;
}
Inferred quantized_join(const Query& q) {
  if (q.types.size() != 5 || !as_tuple(q.types[0])) return std::nullopt;
  const auto n = static_cast<int64_t>(as_tuple(q.types[0])->fields.size());
  const AxisLayouts before(q.before.begin(), q.before.begin() + n);
  const std::vector<Type> types{q.types[0]};
  AxisLayouts now;
  if (q.now) now.assign(q.now->begin(), q.now->begin() + n);
  Inferred out = joined({q.attrs, q.now ? &now : nullptr, before, types});
  if (!out) return out;
  while (out->in.size() < q.inputs()) out->in.emplace_back("C");
  return out;
}

using LayoutRule = Inferred (*)(const Query&);
const std::map<std::string_view, LayoutRule>& layout_rules() {
  static const std::map<std::string_view, LayoutRule> kRules = {
      {"cast", same_everywhere},
      {"clip", same_everywhere},
      {"concatenate", joined},
      {"image.resize1d", resized<Resize1DAttrs>},
      {"image.resize2d", resized<Resize2DAttrs>},
      {"image.resize3d", resized<Resize3DAttrs>},
      {"max", reduced<ReduceAttrs>},
      {"mean", reduced<ReduceAttrs>},
      {"min", reduced<ReduceAttrs>},
      {"nn.adaptive_avg_pool1d", pool<AdaptivePool1DAttrs>},
      {"nn.adaptive_avg_pool2d", pool<AdaptivePool2DAttrs>},
      {"nn.adaptive_avg_pool3d", pool<AdaptivePool3DAttrs>},
      {"nn.adaptive_max_pool1d", pool<AdaptivePool1DAttrs>},
      {"nn.adaptive_max_pool2d", pool<AdaptivePool2DAttrs>},
      {"nn.adaptive_max_pool3d", pool<AdaptivePool3DAttrs>},
      {"nn.avg_pool1d", pool<AvgPool1DAttrs>},
      {"nn.avg_pool2d", pool<AvgPool2DAttrs>},
      {"nn.avg_pool3d", pool<AvgPool3DAttrs>},
      {"nn.batch_norm", batch_norm},
      {"nn.bias_add", along_axis<BiasAddAttrs, false>},
      {"nn.contrib_conv2d_NCHWc", convolution<Conv2DNCHWcAttrs>},
      {"nn.contrib_dense_pack", packed_dense},
      {"nn.contrib_depthwise_conv2d_NCHWc", convolution<Conv2DNCHWcAttrs>},
      {"nn.conv1d", convolution<Conv1DAttrs>},
      {"nn.conv1d_transpose", convolution<Conv1DTransposeAttrs>},
      {"nn.conv2d", convolution<Conv2DAttrs>},
      {"nn.conv2d_transpose", convolution<Conv2DTransposeAttrs>},
      {"nn.conv3d", convolution<Conv3DAttrs>},
      {"nn.conv3d_transpose", convolution<Conv3DTransposeAttrs>},
      {"nn.deformable_conv2d", deformable},
      {"nn.dense", dense},
      {"nn.dropout", same_everywhere},
      {"nn.global_avg_pool2d", pool<GlobalPool2DAttrs>},
      {"nn.global_max_pool2d", pool<GlobalPool2DAttrs>},
      {"nn.layer_norm", along_axis<LayerNormAttrs, false>},
      {"nn.lrn", along_axis<LRNAttrs, false>},
      {"nn.max_pool1d", pool<MaxPool1DAttrs>},
      {"nn.max_pool2d", pool<MaxPool2DAttrs>},
      {"nn.max_pool3d", pool<MaxPool3DAttrs>},
      {"nn.pad", padded},
      {"nn.prelu", along_axis<PReluAttrs, false>},
      {"nn.upsampling", resized<UpSamplingAttrs>},
      {"prod", reduced<ReduceAttrs>},
      {"qnn.add", quantized_broadcast},
      {"qnn.concatenate", quantized_join},
      {"qnn.conv2d", quantized_convolution<Conv2DAttrs>},
      {"qnn.conv2d_transpose", quantized_convolution<Conv2DTransposeAttrs>},
      {"qnn.dequantize", along_axis<DequantizeAttrs, false>},
      {"qnn.mul", quantized_broadcast},
      {"qnn.quantize", along_axis<QuantizeAttrs, false>},
      {"qnn.requantize", requantized},
      {"qnn.subtract", quantized_broadcast},
      {"split", split},
      {"squeeze", squeezed},
      {"strided_slice", sliced_strided},
      {"sum", reduced<ReduceAttrs>},
      {"topk", top},
      {"transpose", transposition},
      {"vision.roi_align", regions<ROIAlignAttrs>},
      {"vision.roi_pool", regions<ROIPoolAttrs>},
  };
  return kRules;
}

}  // namespace

std::optional<LayoutInference> infer_layouts(const OpDef& op, const AttrsRef& attrs, const AxisLayouts* now,
                                             const AxisLayouts& before, const std::vector<Type>& types) {
  const Query q{attrs, now, before, types};
  if (auto it = layout_rules().find(op.name); it != layout_rules().end()) return it->second(q);
  if (before.size() == 1 && op.pattern == OpPattern::kElemWise) return same_everywhere(q);
  static constexpr std::array<std::string_view, 3> kNoBroadcasts = {"broadcast_to", "nn.bias_add", "reshape_like"};
  const bool shaped = std::find(kNoBroadcasts.begin(), kNoBroadcasts.end(), op.name) != kNoBroadcasts.end();
  if (before.size() == 2 && op.pattern == OpPattern::kBroadcast && !shaped) return broadcast(q);
  return std::nullopt;
}

}  // namespace tilewright::relay
