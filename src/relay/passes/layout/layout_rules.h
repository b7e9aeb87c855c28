// SPDX-License-Identifier: Apache-2.0
// How layouts go through operators: the layouts an operator's operands and results have before a change, and those it
// takes and gives where some operands come in others; its attributes follow (axes, widths, its own layout).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// A layout's text ("NCHW16c"; "" of a scalar), or nothing: not known.
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
// Axes that are no blocks.
size_t whole_axes(const std::string& layout);

struct LayoutInference {
  AxisLayouts in, out;  // one for each operand (tuples by their fields) and each result
  AttrsRef attrs;
};
// `now`: the operands' layouts after the change, or null before there is one; `before`: those of the old graph, as far
// as they are known; `types`: the old operands'. Nothing: the operator works in one layout only, or cannot follow.
std::optional<LayoutInference> infer_layouts(const OpDef& op, const AttrsRef& attrs, const AxisLayouts* now,
                                             const AxisLayouts& before, const std::vector<Type>& types);

}  // namespace tilewright::relay
