// SPDX-License-Identifier: Apache-2.0
// Guards executors, which serve one call at a time.
#pragma once
#include <atomic>

#include "base/result.h"

namespace tilewright::runtime {

// Marks the executor as busy for the duration of a call.
class Claim {
 public:
  explicit Claim(std::atomic<bool>& flag) : flag_(flag), mine_(!flag.exchange(true, std::memory_order_acquire)) {}
  ~Claim() {
    if (mine_) flag_.store(false, std::memory_order_release);
  }
  // Error: InvalidArgument when it is busy already.
  Status status() const {
    if (mine_) return Ok{};
    return Diagnostic(ErrorCode::kInvalidArgument, "the executor is running in another thread", {},
                      "make one executor for each thread; they share the module's weights");
  }

 private:
  std::atomic<bool>& flag_;
  bool mine_;
};

}  // namespace tilewright::runtime
