// SPDX-License-Identifier: Apache-2.0
// How layouts propagate through operators: the layouts of operands and results before a change, and those that an
// operator takes and gives once some operands have another layout; axes, widths and layout attributes are adapted.
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "relay/op.h"
#include "relay/ops/nn/weight_types.h"
#include "relay/rewrite.h"

namespace tilewright::relay {

// A layout ("NCHW16c"; "" for a scalar), or nothing when unknown.
using AxisLayout = std::optional<std::string>;
using AxisLayouts = std::vector<AxisLayout>;

// Letters of a layout with their blocks: {'C', 0}, {'c', 16}.
struct LayoutAxis {
  char letter = 0;
  int64_t factor = 0;
  bool operator==(const LayoutAxis&) const = default;
  bool whole() const { return letter >= 'A' && letter <= 'Z'; }
};
std::vector<LayoutAxis> layout_axes(const std::string& layout);
std::string layout_text(const std::vector<LayoutAxis>& axes);
// The number of axes that are not blocks.
size_t whole_axes(const std::string& layout);

struct LayoutInference {
  AxisLayouts in, out;  // one for each operand (a tuple: for each field) and each result
  AttrsRef attrs;
};
// `now`: the operands' layouts after the change, null when there is none yet; `before`: those of the old graph, where
// known; `types`: the old operands' types.
struct LayoutQuery {
  const AttrsRef& attrs;
  const AxisLayouts* now;
  const AxisLayouts& before;
  const std::vector<Type>& types;
  size_t inputs() const { return before.size(); }
  const Shape& shape(size_t i) const { return as_tensor(types[i])->shape; }
  bool tensors() const {
    return std::all_of(types.begin(), types.end(), [](const Type& t) { return as_tensor(t) != nullptr; });
  }
  // Whether the first operand's layout is known both before and after the change.
  bool moves() const { return now && (*now)[0] && before[0]; }
};
// Elementwise in one operand and without axis attributes, so that any layout will do.
inline bool is_layout_free(const OpDef& op, size_t operands) {
  return operands == 1 && op.pattern == OpPattern::kElemWise;
}
// By the operator's own rule, else by its pattern. Nothing: the operator requires its layout, or cannot follow.
std::optional<LayoutInference> infer_layouts(const OpDef& op, const LayoutQuery& query);

namespace layouts {

using Inferred = std::optional<LayoutInference>;

struct Entry {
  std::string_view op;
  InferLayouts rule;
};
void add(const FactsOf& facts, std::span<const Entry> entries);

char upper(char c);
char lower(char c);
// The index of an axis among all axes, or -1.
int64_t place_of(const std::string& layout, char letter);
bool is_split(const std::string& layout, char letter);
// The letter of an axis in the old layout, or 0.
char letter_at(const std::string& layout, int64_t axis, size_t rank);
// Where an axis named by an attribute is in the new layout; nothing when it has been split into blocks.
std::optional<int64_t> axis_after(const LayoutQuery& q, int64_t axis);

template <class A, class F>
AttrsRef changed(const AttrsRef& attrs, F&& change) {
  return make_attrs<A>([&](auto& a) {
    a = *attrs_as<A>(attrs);
    change(a);
  });
}

// All operands and results in the same layout.
Inferred same_everywhere(const LayoutQuery& q);
// Two operands that broadcast.
Inferred broadcast(const LayoutQuery& q);
// The fields of a tuple, along the axis of ConcatenateAttrs.
Inferred joined(const LayoutQuery& q);

// Operators with layout attributes of their own.
template <class A>
Inferred convolution(const LayoutQuery& q) {
  const A& a = *attrs_as<A>(q.attrs);
  constexpr bool kTransposed = requires(A attrs) { attrs.output_padding; };
  const std::string kernel = kTransposed ? transposed_kernel_layout(a.kernel_layout) : a.kernel_layout;
  return LayoutInference{{a.data_layout, kernel}, {a.out_layout.empty() ? a.data_layout : a.out_layout}, q.attrs};
}

// The first operand and result take any layout; the other operands and results are vectors along the axis.
template <class A>
Inferred along_axis(const LayoutQuery& q) {
  if (q.types.empty() || !as_tensor(q.types[0])) return std::nullopt;
  AxisLayout layout = q.before[0];
  AttrsRef attrs = q.attrs;
  if (q.moves()) {
    const int64_t axis = attrs_as<A>(q.attrs)->axis;
    auto at = axis_after(q, axis);
    if (!at) return std::nullopt;
    const char letter = letter_at(*q.before[0], axis, q.shape(0).size());
    if (is_split(*(*q.now)[0], letter)) {
      at = positive_axis(axis, q.shape(0).size());  // the axis in the old layout
    } else {
      layout = (*q.now)[0];
    }
    attrs = changed<A>(q.attrs, [&](A& a) { a.axis = *at; });
  }
  LayoutInference out{{layout}, {layout}, attrs};
  while (out.in.size() < q.inputs()) out.in.emplace_back("C");
  return out;
}

}  // namespace layouts

}  // namespace tilewright::relay
