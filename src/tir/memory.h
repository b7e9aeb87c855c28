// SPDX-License-Identifier: Apache-2.0
// Lanes (tir/scalar.h) in memory: element `index` of packed elements of a dtype.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace tilewright::tir {

union Lane {
  int64_t i;  // integers and bool
  double f;   // floats
};

Lane read_lane(const void* memory, DataType element, int64_t index);
void write_lane(void* memory, DataType element, int64_t index, Lane value);

}  // namespace tilewright::tir
