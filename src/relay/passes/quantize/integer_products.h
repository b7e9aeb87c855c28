// SPDX-License-Identifier: Apache-2.0
// IntegerProducts: convolutions and matrix products of integers become products of bytes, or of floats that are exact.
// What: two-dimensional convolutions and matrix products of bytes (without a zero point) by constant ones become
// products of unsigned bytes by signed ones, or of int16, where the target has kernels for them (byte_products.h).
// Else, where no sum of products can leave float32's whole numbers (2^24), by the ranges of the operands (dtypes,
// casts, differences, constants) and the weights themselves, the operands become float32 and the result an integer
// again. Reductions that are too long for that are split along the channels and the parts added as integers. Max pools
// of small integers are computed in floats, too.
// Requires: typed module.
// Ensures: the same values; products whose operands have no known range stay.
// Why here: before Legalize, which lowers the remaining integer products to plain loops.
// Test: tests/relay/passes/integer_products*.txt
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> integer_products(const Module& module, PassContext& context);
}  // namespace tilewright::relay
