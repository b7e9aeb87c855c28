// SPDX-License-Identifier: Apache-2.0
// Zero padding around a tensor in memory, which kernels read.
#pragma once
#include <cstdint>
#include <vector>

namespace tilewright::lower {

struct Halo {
  std::vector<int64_t> before, after;  // per dimension; empty: none
  bool empty() const;
  void merge(const Halo& other);  // the maximum of both on each side
};

}  // namespace tilewright::lower
