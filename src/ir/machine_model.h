// SPDX-License-Identifier: Apache-2.0
// What the cost model knows of the machine that code is for: rates of one core, and caches.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

struct MachineModel {
  enum class Source {
    kAssumed,   // nobody has measured this CPU: a machine of its instruction set's usual kind
    kTable,     // of this CPU's family (docs/performance.md)
    kMeasured,  // on this machine (machine_profile.h)
  };
  Source source = Source::kAssumed;
  std::string family;  // the table's name for it; empty: none
  // Products and sums of float32, 1e9 a second; and bytes read, 1e9 a second, from each level.
  double gflops = 110, l1_gbps = 190, l2_gbps = 100, l3_gbps = 70, dram_gbps = 30;
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;
  double flops_per_cycle = 32;  // of float32: 32 is two units of 256 bits, or one of 512

  double cycles_per_microsecond() const { return gflops * 1e3 / flops_per_cycle; }
};

// The model of a CPU by LLVM's name for it ("znver4", "skylake-avx512", "x86-64-v3").
MachineModel machine_model_of(std::string_view cpu);

// "one core: 115 GFLOP/s float32, ...; from the table (znver4)", for a person.
std::string describe(const MachineModel& machine);

}  // namespace tilewright
