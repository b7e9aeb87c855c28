// SPDX-License-Identifier: Apache-2.0
#include "relay/ops/layout_inference.h"

#include <map>

#include "relay/ops/attrs.h"

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

std::optional<LayoutInference> infer_layouts(const OpDef& op, const LayoutQuery& query) {
  if (op.facts.layouts) return op.facts.layouts(query);
  if (is_layout_free(op, query.inputs())) return layouts::same_everywhere(query);
  if (query.inputs() == 2 && op.pattern == OpPattern::kBroadcast) return layouts::broadcast(query);
  return std::nullopt;
}

namespace layouts {

void add(const FactsOf& facts, std::span<const Entry> entries) {
  for (const Entry& entry : entries) facts(entry.op).layouts = entry.rule;
}

char upper(char c) { return static_cast<char>(c >= 'a' ? c - 'a' + 'A' : c); }
char lower(char c) { return static_cast<char>(c >= 'a' ? c : c - 'A' + 'a'); }
int64_t place_of(const std::string& layout, char letter) {
  const auto axes = layout_axes(layout);
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].letter == letter) return static_cast<int64_t>(i);
  return -1;
}
bool is_split(const std::string& layout, char letter) { return place_of(layout, lower(letter)) >= 0; }
char letter_at(const std::string& layout, int64_t axis, size_t rank) {
  const auto axes = layout_axes(layout);
  const int64_t at = positive_axis(axis, rank);
  return at >= 0 && at < static_cast<int64_t>(axes.size()) ? axes[static_cast<size_t>(at)].letter : '\0';
}
std::optional<int64_t> axis_after(const LayoutQuery& q, int64_t axis) {
  const char letter = letter_at(*q.before[0], axis, q.shape(0).size());
  const int64_t at = letter ? place_of(*(*q.now)[0], letter) : -1;
  return at < 0 ? std::nullopt : std::optional(at);
}

Inferred same_everywhere(const LayoutQuery& q) {
  AxisLayout layout;
  if (q.now) {
    layout = (*q.now)[0];
  } else {
    for (const AxisLayout& l : q.before)
      if (!layout) layout = l;
  }
  return LayoutInference{AxisLayouts(q.inputs(), layout), {layout}, q.attrs};
}

namespace {

std::string last_axes(const std::string& layout, size_t count) {
  auto axes = layout_axes(layout);
  if (axes.size() < count) return layout;
  return layout_text({axes.end() - static_cast<int64_t>(count), axes.end()});
}

// Whether the two lists of axes are equal up to renaming letters.
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

// Changes `layout` as `from` changes to `to`; ranks are aligned at the last axis.
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
  std::map<char, char> name;  // from the reference's letters
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

// Blocked axes of size 1 get blocks of one.
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

}  // namespace

Inferred broadcast(const LayoutQuery& q) {
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

Inferred joined(const LayoutQuery& q) {
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
    // The first layout whose blocks divide every part, by the classic stack's rule.
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

}  // namespace layouts
}  // namespace tilewright::relay
