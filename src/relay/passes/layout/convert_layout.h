// SPDX-License-Identifier: Apache-2.0
// ConvertLayout: converts a network from one layout to another (NCHW to NHWC and back).
// What: the operators named in relay.ConvertLayout.desired_layouts ("nn.conv2d=NHWC,HWIO"; "default" for a layout's
// usual kernel) run in the desired layout; pools, normalisations, elementwise operators, concatenates, pads and
// reductions around them follow, so that layout_transform is needed only at the borders of such an island.
// Requires: typed module.
// Ensures: the same values; results keep their layout.
// Why here: on request, before the default pipeline, whose AlterOpLayout knows NCHW.
// Test: tests/relay/passes/convert_layout*.txt
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
// Operator name -> data layout and, for convolutions, kernel layout.
using DesiredLayouts = std::map<std::string, std::vector<std::string>>;
// Error: InvalidArgument for an operator or a layout it does not know.
Result<Module> convert_layout(const Module& module, const DesiredLayouts& desired);
Result<Module> convert_layout(const Module& module, PassContext& context);
}  // namespace tilewright::relay
