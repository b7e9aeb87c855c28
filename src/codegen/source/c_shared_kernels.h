// SPDX-License-Identifier: Apache-2.0
// Kernels that differ only in integers (layer sizes) share one function that takes these as parameters: code size
// matters on small devices.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace tilewright::codegen {

struct CKernelText {
  std::string name, text;  // the definition, which contains the name once
};
struct CKernelCall {
  std::string name, numbers;  // ", 64, 125": appended to the other arguments
};
struct CSharedKernels {
  std::vector<CKernelText> definitions;  // each with the name and position of the first kernel that shares it
  std::vector<size_t> first;             // for each definition: its first kernel
  std::vector<CKernelCall> calls;        // for each kernel
};
CSharedKernels share_kernels(std::span<const CKernelText> kernels);

}  // namespace tilewright::codegen
