// SPDX-License-Identifier: Apache-2.0
// What a step of a plan calls: machine code, or byte code that the machine runs (runtime/stackvm/machine.h).
#pragma once
#include "base/formats/artifact.h"
#include "base/result.h"
#include "runtime/stackvm/machine.h"

namespace tilewright::runtime {

class Kernel {
 public:
  Kernel() = default;
  explicit Kernel(KernelFunction native) : native_(native) {}
  explicit Kernel(const stackvm::Code* code) : code_(code) {}
  explicit operator bool() const { return native_ || code_; }
  bool operator==(const Kernel&) const = default;
  // Thread `tid`'s share. `extents`: the buffers' bytes, where the plan does not say them; machine code trusts its
  // caller. Errors: those of Code::run.
  Status run(void* const* buffers, int64_t tid, int64_t nthreads, const uint64_t* extents = nullptr) const {
    if (!native_) return code_->run(buffers, extents, tid, nthreads);
    native_(buffers, tid, nthreads);
    return Ok{};
  }
  const stackvm::Program* program() const { return code_ ? &code_->program() : nullptr; }

 private:
  KernelFunction native_ = nullptr;
  const stackvm::Code* code_ = nullptr;
};

}  // namespace tilewright::runtime
