// SPDX-License-Identifier: Apache-2.0
#include "ir/machine_model.h"

#include "base/format.h"

namespace tilewright {
namespace {

// Per-core rates of CPU families the cost model starts from. Zen 4's and Zen 5's FMA units and near caches are
// measured; the others follow from their FMA units, usual sustained clock and cache sizes. The longest prefix of a
// family comes first.
struct Units {
  int count, bits;
  double l1_rate, l2_rate, l3_rate;  // bytes a cycle
};
constexpr Units kTwoOf512{2, 512, 109, 43, 24}, kIntelServer{2, 512, 109, 40, 12}, kTwoOf256{2, 256, 54, 25, 16},
    kTwoOf128{2, 128, 27, 16, 10}, kFourOf128{4, 128, 41, 25, 16}, kOneOf128{1, 128, 16, 12, 8};

struct Family {
  const char* prefix;
  Units units;
  double gflops, l1_gbps, l2_gbps, l3_gbps, dram_gbps;
  int64_t l1_bytes, l2_bytes;
};
constexpr Family kFamilies[] = {
    {"znver5", kTwoOf512, 262, 380, 190, 90, 40, 48 << 10, 1 << 20},
    {"znver4", kTwoOf256, 115, 190, 100, 75, 30, 32 << 10, 1 << 20},
    {"znver3", kTwoOf256, 105, 200, 100, 80, 25, 32 << 10, 512 << 10},
    {"znver2", kTwoOf256, 100, 180, 90, 70, 20, 32 << 10, 512 << 10},
    {"znver1", kTwoOf128, 50, 90, 60, 40, 18, 32 << 10, 512 << 10},
    {"sapphirerapids", kIntelServer, 190, 300, 120, 30, 12, 48 << 10, 2 << 20},
    {"emeraldrapids", kIntelServer, 190, 300, 120, 30, 12, 48 << 10, 2 << 20},
    {"graniterapids", kIntelServer, 190, 300, 120, 30, 12, 48 << 10, 2 << 20},
    {"icelake-server", kIntelServer, 180, 300, 110, 30, 12, 48 << 10, 1280 << 10},
    {"cascadelake", kIntelServer, 150, 250, 100, 25, 12, 32 << 10, 1 << 20},
    {"skylake-avx512", kIntelServer, 150, 250, 100, 25, 12, 32 << 10, 1 << 20},
    {"x86-64-v4", kTwoOf256, 115, 190, 100, 50, 20, 32 << 10, 1 << 20},
    {"x86-64-v2", kOneOf128, 28, 90, 60, 40, 15, 32 << 10, 256 << 10},
    {"x86-64-v3", kTwoOf256, 100, 180, 80, 50, 18, 32 << 10, 512 << 10},
    {"x86-64", kOneOf128, 28, 90, 60, 40, 15, 32 << 10, 256 << 10},
    {"haswell", kTwoOf256, 100, 180, 70, 40, 15, 32 << 10, 256 << 10},
    {"skylake", kTwoOf256, 110, 190, 80, 40, 18, 32 << 10, 256 << 10},
    {"alderlake", kTwoOf256, 140, 250, 110, 50, 25, 48 << 10, 1280 << 10},
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
      machine.fma_units = family.units.count, machine.unit_bits = family.units.bits;
      machine.l1_rate = family.units.l1_rate, machine.l2_rate = family.units.l2_rate;
      machine.l3_rate = family.units.l3_rate;
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
      "one core: {:.0f} GFLOP/s of float32; {:.0f}, {:.0f}, {:.0f}, {:.0f} GB/s from L1 ({} KiB), L2 ({} KiB), L3, "
      "memory; {}",
      machine.gflops, machine.l1_gbps, machine.l2_gbps, machine.l3_gbps, machine.dram_gbps, machine.l1_bytes >> 10,
      machine.l2_bytes >> 10, from);
}

}  // namespace tilewright
