// SPDX-License-Identifier: Apache-2.0
// Measured rates of a machine (`tilewright calibrate`), stored in the user's cache folder: one text file per CPU and
// vector width. Targets for this machine's own CPU use it instead of the table.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/machine_model.h"

namespace tilewright {

struct MachineProfile {
  std::string cpu;  // LLVM's name
  int64_t vector_bits = 0;
  // Of one core: 1e9 operations per second (a multiply-add counts as two; int8: by the dot product instruction, 0
  // without), clock in GHz (0: unknown), bandwidths in 1e9 bytes per second.
  double gigahertz = 0, float32_gflops = 0, float64_gflops = 0, int8_gops = 0;
  double l1_gbps = 0, l2_gbps = 0, l3_gbps = 0, dram_gbps = 0;
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  int64_t threads = 1;
  double thread_us = 0;  // to start all threads and pass one barrier
};

std::string to_text(const MachineProfile& profile);
// Error: ParseError naming `origin`, also for implausible numbers.
Result<MachineProfile> parse_machine_profile(std::string_view text, const std::string& origin);

// The path of a CPU's profile; empty without a home folder.
std::string machine_profile_path(std::string_view cpu, int vector_bits);
// Nothing if none is stored. Error: ParseError.
Result<std::optional<MachineProfile>> stored_machine_profile(std::string_view cpu, int vector_bits);
// Error: CannotWrite.
Status store_machine_profile(const MachineProfile& profile);

// For reports.
std::string describe(const MachineProfile& profile);

// Replaces the model's values by measured ones.
void apply(const MachineProfile& profile, MachineModel* machine);

}  // namespace tilewright
