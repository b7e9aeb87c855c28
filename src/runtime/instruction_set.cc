// SPDX-License-Identifier: Apache-2.0
#include "runtime/instruction_set.h"

#include <cstdlib>

#include "base/format.h"
#include "base/formats/artifact.h"

namespace tilewright::runtime {

std::string comma_separated(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

Result<size_t> choose_instruction_set(std::span<const InstructionSetChoice> sets) {
  const char* given = std::getenv(kInstructionSetVariable);
  const std::string forced = given ? given : "";
  std::string names;
  for (size_t i = 0; i < sets.size(); ++i) {
    const InstructionSetChoice& set = sets[i];
    names += (names.empty() ? "" : ", ") + set.name;
    if (!forced.empty() && set.name != forced) continue;
    if (set.missing.empty()) return i;
    if (!forced.empty())
      return Diagnostic(ErrorCode::kCpuMismatch,
                        format("{} asks for '{}', and this machine lacks {}", kInstructionSetVariable, forced,
                               comma_separated(set.missing)),
                        {}, "leave the variable unset, or name another of the library's instruction sets");
  }
  if (!forced.empty())
    return Diagnostic(ErrorCode::kInvalidArgument,
                      format("{} asks for '{}', which the library does not have", kInstructionSetVariable, forced), {},
                      "it has " + names);
  return Diagnostic(ErrorCode::kCpuMismatch,
                    format("the model was compiled for {}, and this machine can run none of them: the last lacks {}",
                           names, sets.empty() ? std::string() : comma_separated(sets.back().missing)),
                    {}, "compile the model with --target for an older CPU, too");
}

}  // namespace tilewright::runtime
