// SPDX-License-Identifier: Apache-2.0
// The cost model's view of the machine that code is for: rates of one core, and caches.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

struct MachineModel {
  enum class Source {
    kAssumed,   // an unknown CPU: typical for its instruction set
    kTable,     // by CPU family (docs/performance.md)
    kMeasured,  // on this machine (machine_profile.h)
  };
  Source source = Source::kAssumed;
  std::string family;  // the table's name of the family; empty: none
  // float32 operations in 1e9 per second; read bandwidth of each level in 1e9 bytes per second.
  double gflops = 110, l1_gbps = 190, l2_gbps = 100, l3_gbps = 70, dram_gbps = 30;
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;
  int64_t l3_bytes = 32 << 20;  // as far as one core uses it
  // FMA units; width of these and of the load units: a wider vector is processed in pieces.
  int fma_units = 2, unit_bits = 256;
  int load_units = 2;    // of the same width
  double bf16_rate = 1;  // instructions that add up products of pairs of bfloat16, in the time of a multiply-add
  // Bytes per cycle at which a panel of weights streams from each level in parallel to its arithmetic.
  double l1_rate = 54, l2_rate = 25, l3_rate = 16;

  // What a kernel may read and write in all for its results to be in the last cache when they are read; beyond it they
  // are stored past the caches. Measured with 32 MiB: five eighths, three quarters where most of it are results, since
  // these are what going past the caches costs time for.
  int64_t most_cached(bool mostly_results) const { return l3_bytes / 8 * (mostly_results ? 6 : 5); }
  double flops_per_cycle() const { return fma_units * unit_bits / 16.0; }  // of float32
  double cycles_per_microsecond() const { return gflops * 1e3 / flops_per_cycle(); }
  // FMAs per cycle on vectors of this width.
  double fmas_per_cycle(int bits) const { return fma_units * pieces(bits); }
  double loads_per_cycle(int bits) const { return load_units * pieces(bits); }
  // Whether half a vector takes half the time.
  bool halves_pay(int bits) const { return bits > unit_bits; }

 private:
  double pieces(int bits) const { return bits > unit_bits ? static_cast<double>(unit_bits) / bits : 1; }
};

// The model for a CPU by LLVM's name ("znver4", "skylake-avx512",
// "x86-64-v3"; "generic-riscv" for an architecture).
MachineModel machine_model_of(std::string_view cpu);

// "one core: 115 GFLOP/s float32, ...; from the table (znver4)", for reports.
std::string describe(const MachineModel& machine);

}  // namespace tilewright
