// SPDX-License-Identifier: Apache-2.0
// Deferred nodes: calls of onnx.node with the domain "torch" that hold the node in the schema's JSON form (docs/vm.md).
// onnx::convert_deferred converts them once sizes and values are known.
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

// The dtype and rank of a tensor, from its type or from what produced it.
std::optional<Likeness> likeness_of(const Value& v);
// The same where perhaps the dtype alone is known, and the rank is -1.
std::optional<Likeness> known_of(const Value& v);

// Converts a deferred node for these operands. Fails by ConversionFailure.
std::vector<relay::Expr> convert_waiting(const std::string& node, const std::vector<relay::Expr>& operands,
                                         onnx::Importer& importer);

}  // namespace tilewright::torch
