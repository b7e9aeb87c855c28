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
  // Units that multiply and add, and how wide they and the loads are: a wider vector passes in pieces.
  int fma_units = 2, unit_bits = 256;
  int load_units = 2;  // of the same width
  // Bytes a cycle that a panel of weights arrives with beside the arithmetic it is for, from each level.
  double l1_rate = 54, l2_rate = 25, l3_rate = 16;

  double flops_per_cycle() const { return fma_units * unit_bits / 16.0; }  // of float32
  double cycles_per_microsecond() const { return gflops * 1e3 / flops_per_cycle(); }
  // Whole vectors of so many bits in a cycle.
  double fmas_per_cycle(int bits) const { return fma_units * pieces(bits); }
  double loads_per_cycle(int bits) const { return load_units * pieces(bits); }
  // Whether half of such a vector costs half of its time.
  bool halves_pay(int bits) const { return bits > unit_bits; }

 private:
  double pieces(int bits) const { return bits > unit_bits ? static_cast<double>(unit_bits) / bits : 1; }
};

// The model of a CPU by LLVM's name for it ("znver4", "skylake-avx512", "x86-64-v3"; "generic-riscv" of an
// architecture).
MachineModel machine_model_of(std::string_view cpu);

// "one core: 115 GFLOP/s float32, ...; from the table (znver4)", for a person.
std::string describe(const MachineModel& machine);

}  // namespace tilewright
