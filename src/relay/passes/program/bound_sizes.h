// SPDX-License-Identifier: Apache-2.0
// Compiles free sizes with an upper bound as a module of fixed (largest) shapes.
// What: the module for the largest sizes, in which elements beyond the actual sizes are unspecified and never affect
// valid ones: where an operator reads across a free size (softmax, sums, matrix products), they are masked by a neutral
// value. Everything else stays as it is, at full speed.
// Requires: the same model imported for the largest sizes and for smaller ones; inputs that are zero beyond their
// sizes.
// Test: tests/driver/bounds_test.cc.
#pragma once
#include <string>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

struct FreeDim {
  size_t tensor = 0, axis = 0;  // index of the input or output, and its dimension
  size_t size = 0;              // index of the free size
  int64_t add = 0, divide = 1;  // for outputs: (size + add) / divide, rounded down, as windows give it
};

struct FreeSizeRange {
  std::string name;
  int64_t low = 1, largest = 1, smaller = 1;  // `smaller`: the size used in the second module
};

struct BoundedModule {
  Module module;                 // main has an additional int64 (1) parameter per size: the actual size
  std::vector<FreeDim> outputs;  // output dimensions that depend on a free size
};

// Errors: UnsupportedModel, naming the operator that needs a size at compile time.
Result<BoundedModule> bound_sizes(const Module& largest, const Module& smaller, const std::vector<FreeSizeRange>& sizes,
                                  const std::vector<FreeDim>& inputs);

}  // namespace tilewright::relay
