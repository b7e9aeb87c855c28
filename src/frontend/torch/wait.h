// SPDX-License-Identifier: Apache-2.0
// Nodes whose conversion waits for sizes and values that only a run has: calls of onnx.node of the domain "torch",
// which hold the node in the schema's form (docs/vm.md). onnx::convert_deferred meets them again.
#pragma once
#include <string>
#include <vector>

#include "frontend/torch/convert.h"
#include "relay/expr.h"

namespace tilewright::onnx {
class Importer;
}

namespace tilewright::torch {

inline constexpr const char* kWaitingDomain = "torch";

// The dtype and rank of a tensor, by its type or by what made it.
std::optional<Likeness> likeness_of(const Value& v);

// Converts a node that waited, for these operands. Leaves by ConversionFailure.
std::vector<relay::Expr> convert_waiting(const std::string& node, const std::vector<relay::Expr>& operands,
                                         onnx::Importer& importer);

}  // namespace tilewright::torch
