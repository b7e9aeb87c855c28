// SPDX-License-Identifier: Apache-2.0
// Properties of the processor and of the container around this process.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// The features of `needed` (LLVM's names: "avx512f", "sse4.2") that this machine lacks or that are unknown.
std::vector<std::string> missing_cpu_features(std::span<const std::string> needed);
// The same for a comma-separated list.
std::vector<std::string> missing_cpu_features(std::string_view needed);
// One thread per physical core that the affinity mask allows, at most the container's CPU quota;
// TILEWRIGHT_NUM_THREADS (or OMP_NUM_THREADS) overrides it.
int default_thread_count();

// Flushes denormals to zero on this thread during its lifetime, then restores the previous mode.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned long saved_;
};

}  // namespace tilewright::runtime
