// SPDX-License-Identifier: Apache-2.0
// How much memory a built model takes: what an executor allocates, and what each kernel touches.
#pragma once
#include <string>
#include <vector>

#include "lower/lower.h"

namespace tilewright::driver {

// Bytes. Whoever runs the function allocates exactly these: tests/driver/function_metadata_test.cc does, before a guard
// page.
struct FunctionMetadata {
  std::string name;
  int32_t device = 1;      // type of the device whose memory it is (DLPack's number)
  uint64_t workspace = 0;  // working memory, aligned to 64; for the model: of one thread, all kernels together
  uint64_t constants = 0;  // weights, mapped from the library
  uint64_t io = 0;         // the caller's tensors (a kernel: its other arguments)
};

// The model itself, named "__tvm_main__", once for each of its devices (weights and the caller's tensors are the
// processor's); then its kernels and external functions on theirs. With variants: the largest of them.
std::vector<FunctionMetadata> function_metadata(const lower::Lowered& lowered);

}  // namespace tilewright::driver
