// SPDX-License-Identifier: Apache-2.0
// Selects which of a library's instruction sets this process uses.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::runtime {

struct InstructionSetChoice {
  std::string name;                  // its name in TILEWRIGHT_ISA
  std::vector<std::string> missing;  // required features that this machine lacks
};

std::string comma_separated(std::span<const std::string> names);

// The first that this machine supports, or the one named by TILEWRIGHT_ISA. Errors: InvalidArgument (no such name),
// CpuMismatch.
Result<size_t> choose_instruction_set(std::span<const InstructionSetChoice> sets);

}  // namespace tilewright::runtime
