// SPDX-License-Identifier: Apache-2.0
// Runs byte code (base/formats/stackvm.h). Whatever a program holds, it touches nothing but its frame, its own arrays
// and the memory it was called with, and it ends.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/formats/stackvm.h"
#include "base/result.h"

namespace tilewright::stackvm {

struct Step;  // an instruction, ready to run

// How often the loops of one call may turn: far more than any model's kernel does. A file that says more is one that
// wants to hang whoever runs it.
inline constexpr uint64_t kMostTurns = uint64_t{1} << 36;

class Code {
 public:
  // Of a program that was read (read_program), so that it was checked.
  explicit Code(Program program);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  const Program& program() const { return program_; }
  // Thread `tid`'s share. `extents`: the bytes of each buffer; null where each has what its memory says. Errors:
  // BadArtifact (an access outside of its memory), LimitExceeded (turns).
  Status run(void* const* buffers, const uint64_t* extents, int64_t tid, int64_t nthreads,
             uint64_t most_turns = kMostTurns) const;

 private:
  Program program_;
  std::vector<Step> steps_;
  uint64_t local_bytes_ = 0;
};

}  // namespace tilewright::stackvm
