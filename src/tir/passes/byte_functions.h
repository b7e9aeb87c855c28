// SPDX-License-Identifier: Apache-2.0
// Vectors of bytes that are functions of other vectors of bytes, lane by lane: what a quantised network computes
// between two layers (an activation in the scale of one, then of the next) takes dozens of instructions, and has 256
// results.
//
// Requires: the final form. The table is what the loop IR's interpreter computes, so that a processor which looks it up
// gives what the definition says. Test: tests/tir/byte_functions_test.cc
#pragma once
#include <array>
#include <unordered_map>

#include "tir/stmt.h"

namespace tilewright::tir {

struct ByteFunction {
  PrimExpr source;                   // bytes, as many lanes
  std::array<uint8_t, 256> table{};  // of the result, by the bits of the source
};

// The expressions of a function with 4 to 16 lanes of bytes that take more operations than a look-up, which costs about
// as much as `least` of them.
std::unordered_map<const ExprNode*, ByteFunction> byte_functions(const PrimFunc& function, int least);

}  // namespace tilewright::tir
