// SPDX-License-Identifier: Apache-2.0
// Memory use of a built model: what an executor allocates, and what each kernel accesses.
#pragma once
#include <string>
#include <vector>

#include "lower/lower.h"

namespace tilewright::driver {

// In bytes. Allocating exactly these sizes is sufficient; tests/driver/function_metadata_test.cc checks that with guard
// pages.
struct FunctionMetadata {
  std::string name;
  int32_t device = 1;      // type of the device that has the memory (DLPack's number)
  uint64_t workspace = 0;  // working memory, 64-byte aligned; for the model: all kernels together, one thread
  uint64_t constants = 0;  // weights, mapped from the library
  uint64_t io = 0;         // the caller's tensors (for a kernel: its other arguments)
};

// First the model, named "__tvm_main__", once per device (weights and the caller's tensors belong to the CPU), then its
// kernels and external functions. With variants: the maximum over them.
std::vector<FunctionMetadata> function_metadata(const lower::Lowered& lowered);

}  // namespace tilewright::driver
