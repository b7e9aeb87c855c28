// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, measured now: the rooflines that kernels are held against.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace tilewright::cli {

// A place data lives in, by size: the whole of it is read again and again.
struct MemoryLevel {
  const char* name = "";  // "L1", "L2", "L3", "memory"
  uint64_t capacity = 0;  // bytes that fit, of one core (of all for L3); the last level holds everything
  double gbps = 0;        // reading, all threads together
};

struct MachinePeak {
  int threads = 1;
  double gflops = 0;  // float32 multiply-adds, two operations each, all threads together
  std::array<MemoryLevel, 4> levels;
  const MemoryLevel& level_of(double bytes) const;
};

// Takes about 0.2 s. The threads compute side by side, each on memory of its own.
MachinePeak measure_peak(int threads);

}  // namespace tilewright::cli
