// SPDX-License-Identifier: Apache-2.0
#include "ir/machine_model.h"

#include "base/format.h"

namespace tilewright {
namespace {

// Per-core rates by CPU family. Zen 4's and Zen 5's FMA units and L1/L2 rates
// are measured; the others follow from FMA units, usual sustained clock and
// cache sizes. Of prefixes of a family's name the longest comes first.
struct Units {
  int count, bits;
  double l1_rate, l2_rate, l3_rate;  // bytes per cycle
  int loads = 2;                     // per cycle
  double bf16_rate = 1;  // as in MachineModel; of Intel's server cores measured on Emerald Rapids, 0.75 and 0.19 ns
};
constexpr Units kTwoOf512{2, 512, 109, 43, 24}, kIntelServer{2, 512, 109, 40, 12, 2, 0.25},
    kTwoOf256{2, 256, 54, 25, 16}, kTwoOf128{2, 128, 27, 16, 10}, kFourOf128{4, 128, 41, 25, 16},
    kOneOf128{1, 128, 16, 12, 8}, kTwoOf64{2, 64, 14, 8, 4}, kOneOf64{1, 64, 7, 4, 2, 1};

struct Family {
  const char* prefix{};
  Units units;
  double gflops{}, l1_gbps{}, l2_gbps{}, l3_gbps{}, dram_gbps{};
  int64_t l1_bytes{}, l2_bytes{}, l3_bytes{32 << 20};
};
constexpr Family kFamilies[] = {
    {"znver5", kTwoOf512, 262, 380, 190, 90, 40, 48 << 10, 1 << 20},
    {"znver4", kTwoOf256, 115, 190, 100, 75, 30, 32 << 10, 1 << 20},
    {"znver3", kTwoOf256, 105, 200, 100, 80, 25, 32 << 10, 512 << 10},
    {"znver2", kTwoOf256, 100, 180, 90, 70, 20, 32 << 10, 512 << 10, 16 << 20},
    {"znver1", kTwoOf128, 50, 90, 60, 40, 18, 32 << 10, 512 << 10, 8 << 20},
    {"sapphirerapids", kIntelServer, 190, 300, 120, 30, 12, 48 << 10, 2 << 20, 60 << 20},
    {"emeraldrapids", kIntelServer, 190, 300, 120, 30, 12, 48 << 10, 2 << 20, 60 << 20},
    {"graniterapids", kIntelServer, 190, 300, 120, 30, 12, 48 << 10, 2 << 20, 60 << 20},
    {"icelake-server", kIntelServer, 180, 300, 110, 30, 12, 48 << 10, 1280 << 10, 40 << 20},
    {"cascadelake", kIntelServer, 150, 250, 100, 25, 12, 32 << 10, 1 << 20},
    {"skylake-avx512", kIntelServer, 150, 250, 100, 25, 12, 32 << 10, 1 << 20},
    {"x86-64-v4", kTwoOf256, 115, 190, 100, 50, 20, 32 << 10, 1 << 20},
    {"x86-64-v2", kOneOf128, 28, 90, 60, 40, 15, 32 << 10, 256 << 10},
    {"x86-64-v3", kTwoOf256, 100, 180, 80, 50, 18, 32 << 10, 512 << 10},
    {"x86-64", kOneOf128, 28, 90, 60, 40, 15, 32 << 10, 256 << 10},
    {"haswell", kTwoOf256, 100, 180, 70, 40, 15, 32 << 10, 256 << 10},
    {"skylake", kTwoOf256, 110, 190, 80, 40, 18, 32 << 10, 256 << 10, 8 << 20},
    {"alderlake", kTwoOf256, 140, 250, 110, 50, 25, 48 << 10, 1280 << 10, 24 << 20},
    // From the vendors' optimisation guides, not measured. In order, half a vector per instruction:
    {"cortex-a53", kOneOf64, 5, 10, 6, 2, 2, 32 << 10, 512 << 10},
    {"cortex-a55", kOneOf64, 7, 14, 9, 5, 4, 32 << 10, 128 << 10},
    {"cortex-a7", kOneOf64, 3, 5, 3, 2, 1.5, 32 << 10, 512 << 10},
    {"cortex-a35", kOneOf64, 4, 8, 5, 2, 2, 32 << 10, 512 << 10},
    {"cortex-a9", kOneOf64, 4, 8, 4, 2, 1, 32 << 10, 512 << 10},
    // Out of order; a vector as a whole or in two halves.
    {"cortex-a72", kTwoOf64, 12, 24, 14, 8, 4, 32 << 10, 1 << 20},
    {"cortex-a57", kTwoOf64, 12, 24, 12, 8, 5, 32 << 10, 1 << 20},
    {"cortex-a73", kTwoOf64, 14, 30, 16, 10, 6, 32 << 10, 1 << 20},
    {"cortex-a15", kTwoOf64, 10, 16, 10, 6, 4, 32 << 10, 1 << 20},
    {"cortex-a75", kTwoOf128, 36, 70, 40, 25, 12, 64 << 10, 256 << 10},
    {"cortex-a76", kTwoOf128, 40, 80, 45, 28, 14, 64 << 10, 512 << 10},
    {"cortex-a77", kTwoOf128, 42, 85, 48, 30, 14, 64 << 10, 512 << 10},
    {"cortex-a78", kTwoOf128, 42, 90, 50, 30, 15, 64 << 10, 512 << 10},
    {"cortex-x", kFourOf128, 90, 170, 80, 45, 20, 64 << 10, 1 << 20},
    {"apple-m", kFourOf128, 100, 150, 100, 80, 40, 128 << 10, 4 << 20},
    {"generic-aarch64", kTwoOf64, 12, 24, 14, 8, 4, 32 << 10, 512 << 10},
    {"generic-arm", kOneOf64, 4, 8, 4, 2, 1.5, 32 << 10, 512 << 10},
    {"generic-riscv", kOneOf64, 3, 8, 4, 2, 1.5, 32 << 10, 512 << 10},
    {"sifive-", kOneOf64, 3, 8, 4, 2, 1.5, 32 << 10, 1 << 20},
    {"neoverse-n2", kTwoOf128, 45, 90, 55, 32, 16, 64 << 10, 1 << 20},
    {"neoverse-n1", kTwoOf128, 40, 80, 50, 30, 15, 64 << 10, 1 << 20},
    {"neoverse-v1", kFourOf128, 80, 160, 70, 40, 20, 64 << 10, 1 << 20},
};

}  // namespace

MachineModel machine_model_of(std::string_view cpu) {
  MachineModel machine;
  for (const Family& family : kFamilies)
    if (cpu.substr(0, std::string_view(family.prefix).size()) == family.prefix) {
      machine.source = MachineModel::Source::kTable, machine.family = family.prefix;
      machine.gflops = family.gflops, machine.l1_gbps = family.l1_gbps, machine.l2_gbps = family.l2_gbps;
      machine.l3_gbps = family.l3_gbps, machine.dram_gbps = family.dram_gbps;
      machine.l1_bytes = family.l1_bytes, machine.l2_bytes = family.l2_bytes;
      machine.l3_bytes = family.l3_bytes;
      machine.fma_units = family.units.count, machine.unit_bits = family.units.bits;
      machine.l1_rate = family.units.l1_rate, machine.l2_rate = family.units.l2_rate;
      machine.l3_rate = family.units.l3_rate;
      machine.load_units = family.units.loads, machine.bf16_rate = family.units.bf16_rate;
      break;
    }
  return machine;
}

std::string describe(const MachineModel& machine) {
  std::string from;
  switch (machine.source) {
    case MachineModel::Source::kAssumed:
      from =
          "assumed: this CPU is in no table, and kernels are chosen as for a usual one; `tilewright calibrate` "
          "measures";
      break;
    case MachineModel::Source::kTable:
      from = format("from the table ({})", machine.family);
      break;
    case MachineModel::Source::kMeasured:
      from = "measured on this machine";
      break;
  }
  return format(
      "one core: {:.0f} GFLOP/s of float32; {:.0f}, {:.0f}, {:.0f}, {:.0f} GB/s from L1 ({} KiB), L2 ({} KiB), L3 "
      "({} KiB), memory; {}",
      machine.gflops, machine.l1_gbps, machine.l2_gbps, machine.l3_gbps, machine.dram_gbps, machine.l1_bytes >> 10,
      machine.l2_bytes >> 10, machine.l3_bytes >> 10, from);
}

}  // namespace tilewright
