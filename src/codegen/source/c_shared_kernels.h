// SPDX-License-Identifier: Apache-2.0
// Kernels that differ in whole numbers only (the sizes of their layers) become one function that takes these numbers:
// on a small device code is memory, too.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace tilewright::codegen {

struct CKernelText {
  std::string name, text;  // the definition, in which the name stands once
};
struct CKernelCall {
  std::string name, numbers;  // ", 64, 125": behind the other arguments
};
struct CSharedKernels {
  std::vector<CKernelText> definitions;  // the first kernel's name and place stands for all that share it
  std::vector<size_t> first;             // of each definition: which of the kernels it is of
  std::vector<CKernelCall> calls;        // of each kernel
};
CSharedKernels share_kernels(std::span<const CKernelText> kernels);

}  // namespace tilewright::codegen
