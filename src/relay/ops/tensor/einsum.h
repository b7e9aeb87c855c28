// SPDX-License-Identifier: Apache-2.0
// Parsing of einsum equations.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::relay {

// An equation with its ellipses expanded: the axes of an ellipsis are named '0', '1', ... from the right.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string result;
};

// Errors: TypeMismatch when it does not fit operands of these ranks.
Result<EinsumEquation> parse_equation(const std::string& text, const std::vector<size_t>& ranks);

}  // namespace tilewright::relay
