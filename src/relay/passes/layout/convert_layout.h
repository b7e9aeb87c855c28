// SPDX-License-Identifier: Apache-2.0
// ConvertLayout: a network written in one layout becomes one in another (NCHW to NHWC and back).
// What: the operators named in relay.ConvertLayout.desired_layouts ("nn.conv2d=NHWC,HWIO"; "default" for a layout's
// usual
//   kernel) run in the layout wanted; pools, normalisations, elementwise operators, concatenates, pads and reductions
//   around them follow, so that layout_transform stands only where such an island begins and ends.
// Requires: typed module. Ensures: the same values; results keep their layout.
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
