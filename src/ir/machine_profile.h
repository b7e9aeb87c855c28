// SPDX-License-Identifier: Apache-2.0
// What was measured of one machine (`tilewright calibrate`), kept in the user's cache folder: a text file for each CPU
// and width of vectors. A target for this machine's own CPU counts with it in place of the table.
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
  // Of one core: 1e9 operations a second (a multiply-add is two; int8: products summed in fours, 0 where there is no
  // such instruction), 1e9 cycles a second (0: unknown), 1e9 bytes read a second.
  double gigahertz = 0, float32_gflops = 0, float64_gflops = 0, int8_gops = 0;
  double l1_gbps = 0, l2_gbps = 0, l3_gbps = 0, dram_gbps = 0;
  int64_t l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  int64_t threads = 1;
  double thread_us = 0;  // starting and meeting of all threads, once
};

std::string to_text(const MachineProfile& profile);
// Error: ParseError naming `origin`; a number that no machine has is one.
Result<MachineProfile> parse_machine_profile(std::string_view text, const std::string& origin);

// Where the profile of a CPU lies; empty without a home.
std::string machine_profile_path(std::string_view cpu, int vector_bits);
// Nothing where none was stored. Error: ParseError.
Result<std::optional<MachineProfile>> stored_machine_profile(std::string_view cpu, int vector_bits);
// Error: CannotWrite.
Status store_machine_profile(const MachineProfile& profile);

// Lines for a person.
std::string describe(const MachineProfile& profile);

// The model with what was measured in place of what was known.
void apply(const MachineProfile& profile, MachineModel* machine);

}  // namespace tilewright
