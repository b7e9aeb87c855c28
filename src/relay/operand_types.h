// SPDX-License-Identifier: Apache-2.0
// Types of weights that a script left open: what an operator's attributes and the type of its data say about its other
// operands.
#pragma once
#include "relay/op.h"

namespace tilewright::relay {

// The type of operand `index` of a call on data of the type `data`, or null when the operator says nothing about it.
Type operand_type(const OpDef& op, const AttrsRef& attrs, size_t index, const Type& data);

}  // namespace tilewright::relay
