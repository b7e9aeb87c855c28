// SPDX-License-Identifier: Apache-2.0
// Where CPUID tells of a feature: Intel SDM volume 2A, "CPUID", and AMD APM volume 3, appendix E. For the runtime,
// which asks the processor it is on, and for code generation, which writes code that asks.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace tilewright {

enum CpuidRegister : uint8_t { kEax, kEbx, kEcx, kEdx };
// Which register state the operating system must save for a feature to be usable (bits of XCR0).
enum SavedState : uint32_t { kNoState = 0, kYmmState = 0x6, kZmmState = 0xe6, kTileState = 0x60000 };
inline constexpr uint32_t kOsxsaveBit = 27;  // of leaf 1's ECX: XCR0 can be read

struct X86Feature {
  const char* name;  // LLVM's
  uint32_t leaf, subleaf;
  CpuidRegister reg;
  int bit;
  SavedState state;
};
std::span<const X86Feature> x86_features();
// Null for a name that is not in the table.
const X86Feature* find_x86_feature(std::string_view name);

}  // namespace tilewright
