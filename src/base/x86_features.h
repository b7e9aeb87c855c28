// SPDX-License-Identifier: Apache-2.0
// The CPUID bits of features: Intel SDM volume 2A, "CPUID", and AMD APM volume 3, appendix E. Used by the runtime,
// which queries its processor, and by code generation, which emits code that does.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace tilewright {

enum CpuidRegister : uint8_t { kEax, kEbx, kEcx, kEdx };
// Register state that the operating system must save for a feature to be usable (bits of XCR0).
enum SavedState : uint32_t { kNoState = 0, kYmmState = 0x6, kZmmState = 0xe6, kTileState = 0x60000 };
inline constexpr uint32_t kOsxsaveBit = 27;  // in leaf 1's ECX: XCR0 can be read

struct X86Feature {
  const char* name;  // LLVM's name
  uint32_t leaf, subleaf;
  CpuidRegister reg;
  int bit;
  SavedState state;
};
std::span<const X86Feature> x86_features();
// Null for an unknown name.
const X86Feature* find_x86_feature(std::string_view name);

}  // namespace tilewright
