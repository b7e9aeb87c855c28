// SPDX-License-Identifier: Apache-2.0
// Which of a library's instruction sets this process runs.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::runtime {

struct InstructionSetChoice {
  std::string name;                  // what TILEWRIGHT_ISA calls it
  std::vector<std::string> missing;  // what it needs and this machine lacks
};

// The first that this machine can run, or the one that TILEWRIGHT_ISA names. Errors: InvalidArgument (there is none of
// this name), CpuMismatch.
Result<size_t> choose_instruction_set(std::span<const InstructionSetChoice> sets);

}  // namespace tilewright::runtime
