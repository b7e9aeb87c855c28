// SPDX-License-Identifier: Apache-2.0
// Lists of processors in a target ("llvm -mcpu=a,b,c", "portable"): one library with kernels for each. Only the driver
// handles lists; everything else gets one target at a time.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/build.h"
#include "ir/target.h"

namespace tilewright::driver {

struct ListedTarget {
  std::string text;  // target string of one processor
  Target target;     // resolved
};
// The list's targets, best first: widest vectors, then most features. All use the best one's vector width, so that they
// read weights packed alike. Errors: UnknownTarget.
Result<std::vector<ListedTarget>> targets_of(const std::string& text);
// The target string that this machine runs best, or that TILEWRIGHT_ISA names; a single target is returned as it is.
// Further errors: InvalidArgument, CpuMismatch.
Result<std::string> target_here(const std::string& text);

// Puts the processor into the names of kernels, which must differ within a library.
void name_kernels_for(const Target& target, lower::Lowered* lowered);
// Merges builds of the same model for further processors, best first, into `into`: equal weights are kept once, and all
// plans describe those of the whole library.
void add_instruction_sets(Built* into, std::vector<Built> others);

}  // namespace tilewright::driver
