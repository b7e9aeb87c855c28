// SPDX-License-Identifier: Apache-2.0
// Builds the loop function of one group.
#pragma once
#include <string>
#include <vector>

#include "lower/steps.h"
#include "tir/stmt.h"

namespace tilewright::lower {

// The key of a kernel: everything its code depends on, as text: operators, attributes, types, data flow, placement of
// operands, and the choice with its configuration.
std::string kernel_key(const Graph& graph, const Group& group, const Buffers& buffers);
// A symbol name from a group's operators: "nn.conv2d+add+nn.relu" -> "tw_conv2d_add_relu".
std::string symbol_of(const std::string& group);
// The group's inputs without duplicates: the function's parameters before its outputs.
std::vector<int> distinct_inputs(const Group& group);
// False if elements share bytes: two threads must not write the same byte.
bool is_parallel(const Graph& graph, const Group& group);

// Errors: those of tir::lower_kernel.
Result<tir::PrimFunc> kernel_function(const LoweringState& state, const Group& group, const Target& target,
                                      std::string name);

}  // namespace tilewright::lower
