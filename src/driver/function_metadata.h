// SPDX-License-Identifier: Apache-2.0
// How much memory a built model takes: what an executor allocates, and what each kernel touches.
#pragma once
#include <string>
#include <vector>

#include "base/formats/plan.h"

namespace tilewright::driver {

// Bytes. Whoever runs the function allocates exactly these: tests/driver/function_metadata_test.cc does, before a guard
// page.
struct FunctionMetadata {
  std::string name;
  uint64_t workspace = 0;  // working memory, aligned to 64; for the model: of one thread, all kernels together
  uint64_t constants = 0;  // weights, mapped from the library
  uint64_t io = 0;         // the caller's tensors (a kernel: its other arguments)
};

// The model itself, named "__tvm_main__", then its kernels. With variants: the largest of them.
std::vector<FunctionMetadata> function_metadata(const plan::Plan& plan);

}  // namespace tilewright::driver
