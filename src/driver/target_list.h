// SPDX-License-Identifier: Apache-2.0
// A list of processors in a target ("llvm -mcpu=a,b,c", "portable"): one library with kernels for each of them. Only
// the driver knows of lists: everything else is given one target after another.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/build.h"
#include "ir/target.h"

namespace tilewright::driver {

struct ListedTarget {
  std::string text;  // of one target
  Target target;     // resolved
};
// The targets of the text, the best first: the widest vectors, then the most features. In a list the vectors of all are
// as wide as those of the best, so that they read weights packed alike. Errors: UnknownTarget.
Result<std::vector<ListedTarget>> targets_of(const std::string& text);
// The text of the one that this machine runs best, or that TILEWRIGHT_ISA names; one target is itself. Errors also:
// InvalidArgument, CpuMismatch.
Result<std::string> target_here(const std::string& text);

// Kernels of several processors lie in one library: each has its processor in its name.
void name_kernels_for(const Target& target, lower::Lowered* lowered);
// The same model for further processors, the best of them first, joins `into`: weights that are the same are kept once,
// and every plan describes those of the whole library.
void add_instruction_sets(Built* into, std::vector<Built> others);

}  // namespace tilewright::driver
