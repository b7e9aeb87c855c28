// SPDX-License-Identifier: Apache-2.0
// What the processor and the container around this process offer.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// Those of `needed` (LLVM's names: "avx512f", "sse4.2") that this machine lacks or that are unknown.
std::vector<std::string> missing_cpu_features(std::span<const std::string> needed);
// The same of a list in one text, separated by commas.
std::vector<std::string> missing_cpu_features(std::string_view needed);
// One thread per physical core that the affinity mask allows, at most the container's CPU quota;
// TILEWRIGHT_NUM_THREADS (or OMP_NUM_THREADS) overrides it.
int default_thread_count();

// Flushes denormals to zero on this thread while it lives, and restores what was set before.
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
