// SPDX-License-Identifier: Apache-2.0
#include "ir/machine_model.h"

#include "base/format.h"

namespace tilewright {
namespace {

// Per-core rates of CPU families the cost model starts from. Zen 4 and the FMA rate of Zen 5 are measured; the others
// follow from their number of 512-bit or 256-bit FMA units, usual sustained clock and cache sizes. The longest prefix
// of a family comes first.
struct Family {
  const char* prefix;
  double gflops, l1_gbps, l2_gbps, l3_gbps, dram_gbps;
  int64_t l1_bytes, l2_bytes;
};
constexpr Family kFamilies[] = {
    {"znver5", 262, 380, 190, 90, 40, 48 << 10, 1 << 20},
    {"znver4", 115, 190, 100, 75, 30, 32 << 10, 1 << 20},
    {"znver3", 105, 200, 100, 80, 25, 32 << 10, 512 << 10},
    {"znver2", 100, 180, 90, 70, 20, 32 << 10, 512 << 10},
    {"znver1", 50, 90, 60, 40, 18, 32 << 10, 512 << 10},
    {"sapphirerapids", 190, 300, 120, 30, 12, 48 << 10, 2 << 20},
    {"emeraldrapids", 190, 300, 120, 30, 12, 48 << 10, 2 << 20},
    {"graniterapids", 190, 300, 120, 30, 12, 48 << 10, 2 << 20},
    {"icelake-server", 180, 300, 110, 30, 12, 48 << 10, 1280 << 10},
    {"cascadelake", 150, 250, 100, 25, 12, 32 << 10, 1 << 20},
    {"skylake-avx512", 150, 250, 100, 25, 12, 32 << 10, 1 << 20},
    {"x86-64-v4", 115, 190, 100, 50, 20, 32 << 10, 1 << 20},
    {"x86-64-v2", 28, 90, 60, 40, 15, 32 << 10, 256 << 10},
    {"x86-64-v3", 100, 180, 80, 50, 18, 32 << 10, 512 << 10},
    {"x86-64", 28, 90, 60, 40, 15, 32 << 10, 256 << 10},
    {"haswell", 100, 180, 70, 40, 15, 32 << 10, 256 << 10},
    {"skylake", 110, 190, 80, 40, 18, 32 << 10, 256 << 10},
    {"alderlake", 140, 250, 110, 50, 25, 48 << 10, 1280 << 10},
    {"neoverse-n1", 40, 80, 50, 30, 15, 64 << 10, 1 << 20},
    {"neoverse-v1", 80, 160, 70, 40, 20, 64 << 10, 1 << 20},
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
