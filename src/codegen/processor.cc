// SPDX-License-Identifier: Apache-2.0
#include "codegen/processor.h"

#include <elf.h>

#include <algorithm>

#include "base/result.h"

namespace tilewright::codegen {
namespace {

// The first feature is common to all x86-64 processors.
constexpr const char* kX86Features[] = {"sse2",       "sse3",         "ssse3",
                                        "sse4.1",     "sse4.2",       "popcnt",
                                        "movbe",      "avx",          "f16c",
                                        "fma",        "avx2",         "bmi",
                                        "bmi2",       "lzcnt",        "gfni",
                                        "avx512f",    "avx512cd",     "avx512bw",
                                        "avx512dq",   "avx512vl",     "avx512ifma",
                                        "avx512vbmi", "avxvnni",      "avx512vbmi2",
                                        "avx512vnni", "avx512bitalg", "avx512vpopcntdq",
                                        "avx512bf16", "avx512fp16"};
constexpr const char* kAArch64Features[] = {"neon", "fullfp16", "dotprod", "bf16", "i8mm", "sve"};
constexpr const char* kArmFeatures[] = {"neon", "vfp3", "vfp4", "hwdiv-arm", "fullfp16", "dotprod", "bf16", "i8mm"};
constexpr const char* kRiscvFeatures[] = {"m", "a", "f", "d", "c", "v", "zba", "zbb", "zbs", "zfh", "zvfh"};
// Old AMD extensions that newer CPUs lack, and gathers, which are microcoded on AMD: kernels never use them.
constexpr const char* kX86Unwanted = "-xop,-fma4,-tbm,-sse4a,-fast-gather";
constexpr const char* kAArch64Abis[] = {"aapcs", "lp64"};
constexpr const char* kArmAbis[] = {"aapcs", "aapcs-linux"};
constexpr const char* kRiscv64Abis[] = {"lp64", "lp64f", "lp64d"};
constexpr const char* kRiscv32Abis[] = {"ilp32", "ilp32f", "ilp32d"};

constexpr const char* kX86Cpus = "native, x86-64-v2, x86-64-v3, x86-64-v4, znver4, skylake-avx512";
constexpr const char* kX86Form = "+avx2, +fma, +avx512f, -avx512f";
const Processor kProcessors[] = {
    {Architecture::kX86_64,
     "x86-64",
     "x86_64-linux-gnu",
     kX86Cpus,
     kX86Form,
     "generic",
     "generic",
     EM_X86_64,
     64,
     std::span(kX86Features).subspan(1),
     kX86Unwanted,
     {}},
    {Architecture::kX86,
     "x86 (32 bits)",
     "i686-linux-gnu",
     "pentium4, atom, prescott",
     kX86Form,
     "pentium4",
     "x86-64",
     EM_386,
     32,
     kX86Features,
     kX86Unwanted,
     {}},
    {Architecture::kAArch64, "AArch64", "aarch64-linux-gnu",
     "native, generic, cortex-a53, cortex-a72, neoverse-n1, neoverse-v1, apple-m1", "+dotprod, +i8mm, -sve", "generic",
     "generic-aarch64", EM_AARCH64, 64, kAArch64Features, "", kAArch64Abis},
    {Architecture::kArm, "ARM (32 bits)", "armv7a-linux-gnueabihf",
     "generic, cortex-a7, cortex-a15, cortex-a53, cortex-m4, cortex-m7", "+neon, +vfp4, -neon", "generic",
     "generic-arm", EM_ARM, 32, kArmFeatures, "", kArmAbis},
    {Architecture::kRiscv64, "RISC-V (64 bits)", "riscv64-linux-gnu", "generic, sifive-u74, sifive-x280, rocket-rv64",
     "+m, +a, +f, +d, +c, +v", "generic", "generic-riscv", EM_RISCV, 64, kRiscvFeatures, "", kRiscv64Abis},
    {Architecture::kRiscv32, "RISC-V (32 bits)", "riscv32-unknown-elf", "generic, sifive-e31, sifive-e76",
     "+m, +a, +f, +d, +c, +v", "generic", "generic-riscv", EM_RISCV, 32, kRiscvFeatures, "", kRiscv32Abis},
};

bool names(Architecture architecture, std::string_view word) {
  auto begins = [&](std::string_view start) { return word.starts_with(start); };
  switch (architecture) {
    case Architecture::kX86_64:
      return word == "x86_64" || word == "amd64";
    case Architecture::kX86:
      return word.size() == 4 && word[0] == 'i' && word[1] >= '3' && word[1] <= '6' && word.substr(2) == "86";
    case Architecture::kAArch64:
      return word == "aarch64" || word == "arm64";
    case Architecture::kArm:
      return (begins("arm") || begins("thumb")) && !begins("arm64") && !begins("armeb") && !begins("thumbeb");
    case Architecture::kRiscv64:
      return word == "riscv64";
    case Architecture::kRiscv32:
      return word == "riscv32";
  }
  return false;
}

}  // namespace

std::span<const Processor> processors() { return kProcessors; }

const Processor* find_processor(std::string_view triple) {
  const std::string_view word = triple.substr(0, triple.find('-'));
  for (const Processor& p : kProcessors)
    if (names(p.architecture, word)) return &p;
  return nullptr;
}

const Processor& processor_of(const Target& target) {
  const Processor* found = find_processor(target.mtriple);
  TW_ICHECK(found != nullptr, "the target is not resolved");
  return *found;
}

bool is_x86_64(const Target& target) { return processor_of(target).architecture == Architecture::kX86_64; }
bool is_x86(const Target& target) {
  return is_x86_64(target) || processor_of(target).architecture == Architecture::kX86;
}

bool has_feature(const Target& target, std::string_view name) {
  return std::find(target.cpu_features.begin(), target.cpu_features.end(), name) != target.cpu_features.end();
}

bool is_bare_metal(const Target& target) {
  return target.mtriple.find("-linux") == std::string::npos && target.mtriple.find("-none-") != std::string::npos;
}

uint32_t elf_flags(const Target& target) {
  constexpr uint32_t kRiscvCompressed = 1, kRiscvSingle = 2, kRiscvDouble = 4;
  switch (processor_of(target).architecture) {
    case Architecture::kArm:
      return EF_ARM_EABI_VER5;
    case Architecture::kRiscv64:
    case Architecture::kRiscv32:
      return (has_feature(target, "c") ? kRiscvCompressed : 0) | (target.mabi.ends_with('d')   ? kRiscvDouble
                                                                  : target.mabi.ends_with('f') ? kRiscvSingle
                                                                                               : 0);
    default:
      return 0;
  }
}

}  // namespace tilewright::codegen
