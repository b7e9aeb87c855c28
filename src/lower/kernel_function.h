// SPDX-License-Identifier: Apache-2.0
// One group as one loop function.
#pragma once
#include <string>
#include <vector>

#include "lower/steps.h"
#include "tir/stmt.h"

namespace tilewright::lower {

// Everything a kernel's code depends on, as text: operators, attributes, types, wiring, where its operands lie, and the
// choice with its configuration.
std::string kernel_key(const Graph& graph, const Group& group, const Buffers& buffers);
// A symbol name out of a group's operators: "nn.conv2d+add+nn.relu" -> "tw_conv2d_add_relu".
std::string symbol_of(const std::string& group);
// The group's inputs, each once: the function's parameters before its outputs.
std::vector<int> distinct_inputs(const Group& group);
// Elements that share a byte cannot be written by two threads.
bool is_parallel(const Graph& graph, const Group& group);

// Errors: those of tir::lower_kernel.
Result<tir::PrimFunc> kernel_function(const LoweringState& state, const Group& group, const Target& target,
                                      std::string name);

}  // namespace tilewright::lower
