// SPDX-License-Identifier: Apache-2.0
// fuzz-room: ir
// A target string that is read has a canonical form that reads alike, and so has a dtype.
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "ir/target.h"

using namespace tilewright;

extern "C" void FuzzSeeds(std::vector<std::string>* seeds) {
  for (const char* text :
       {"llvm", "llvm -mcpu=znver4 -mattr=+avx2,-avx512f", "llvm -mtriple=x86_64-linux-gnu -math=strict",
        "cuda -arch=sm_90", "float32", "float8_e4m3fn", "int4", "uint64", "bfloat16", "float32x16"})
    seeds->push_back(text);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto target = parse_target(text); target.ok()) {
    auto again = parse_target(target->str());
    if (!again.ok() || again->str() != target->str()) __builtin_trap();
  }
  if (auto dtype = parse_dtype(text); dtype.ok()) {
    auto again = parse_dtype(dtype->str());
    if (!again.ok() || !(*again == *dtype)) __builtin_trap();
  }
  return 0;
}
