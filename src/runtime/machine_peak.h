// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, measured now: the rooflines that kernels are held against.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace tilewright::runtime {

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

// What one core computes, 1e9 a second, in 0.1 s.
struct ComputePeak {
  double float32 = 0, float64 = 0;  // multiply-adds, two operations each
  double int8 = 0;                  // products and sums of the dot product instruction; 0: there is none
  double gigahertz = 0;             // cycles; 0: not known how to count them
};
ComputePeak measure_compute_peak();

// Microseconds until `threads` threads have been started and have met once; the median of many.
double measure_thread_us(int threads);

}  // namespace tilewright::runtime
