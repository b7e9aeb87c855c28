// SPDX-License-Identifier: Apache-2.0
// Zeros that a kernel reads around a tensor.
#pragma once
#include <cstdint>
#include <vector>

namespace tilewright::lower {

struct Halo {
  std::vector<int64_t> before, after;  // per dimension; empty: none
  bool empty() const;
  void merge(const Halo& other);  // the larger of both in each direction
};

}  // namespace tilewright::lower
