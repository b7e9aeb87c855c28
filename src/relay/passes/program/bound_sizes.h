// SPDX-License-Identifier: Apache-2.0
// A model for a size that is free up to a largest, as a module of fixed shapes.
// What: the module for the largest sizes, in which elements beyond the actual sizes hold anything, and no element that
// counts depends on one: where an operator reads across a free size (softmax, sums, products of matrices), what lies
// beyond is replaced by what does not matter there. Everything else stays as it is, at full speed. Requires: the same
// model imported for the largest sizes and for smaller ones; inputs that are zero beyond their sizes. Test:
// tests/driver/bounds_test.cc.
#pragma once
#include <string>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

struct FreeDim {
  size_t tensor = 0, axis = 0;  // input or output, and its dimension
  size_t size = 0;              // which of the free sizes
  int64_t add = 0, divide = 1;  // of an output: (size + add) / divide, rounded down, as windows make it
};

struct FreeSizeRange {
  std::string name;
  int64_t low = 1, largest = 1, smaller = 1;  // `smaller`: in the second module
};

struct BoundedModule {
  Module module;                 // main has a parameter more for each size, int64 (1): how large it is now
  std::vector<FreeDim> outputs;  // dimensions of outputs that follow from a free size
};

// Errors: UnsupportedModel, with the operator that needs to know a size when it is compiled.
Result<BoundedModule> bound_sizes(const Module& largest, const Module& smaller, const std::vector<FreeSizeRange>& sizes,
                                  const std::vector<FreeDim>& inputs);

}  // namespace tilewright::relay
