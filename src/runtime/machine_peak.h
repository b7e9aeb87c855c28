// SPDX-License-Identifier: Apache-2.0
// Measures this machine's peak rates: the rooflines that kernels are compared with.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace tilewright::runtime {

// A memory level: bandwidth of reading a working set of that size repeatedly.
struct MemoryLevel {
  const char* name = "";  // "L1", "L2", "L3", "memory"
  uint64_t capacity = 0;  // bytes that fit, per core (L3: all cores); the last level is unlimited
  double gbps = 0;        // read bandwidth of all threads together
};

struct MachinePeak {
  int threads = 1;
  double gflops = 0;  // float32 multiply-adds counted as two operations, all threads together
  std::array<MemoryLevel, 4> levels;
  const MemoryLevel& level_of(double bytes) const;
};

// Takes about 0.2 s. Threads run concurrently, each on its own memory.
MachinePeak measure_peak(int threads);

// The peak rates of one core in 1e9 per second, measured in 0.1 s.
struct ComputePeak {
  double float32 = 0, float64 = 0;  // multiply-adds counted as two operations
  double int8 = 0;                  // by the dot product instruction; 0: there is none
  double gigahertz = 0;             // clock rate; 0: unknown
};
ComputePeak measure_compute_peak();

// Microseconds to start `threads` threads and pass one barrier; the median of many.
double measure_thread_us(int threads);

}  // namespace tilewright::runtime
