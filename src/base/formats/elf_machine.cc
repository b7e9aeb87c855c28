// SPDX-License-Identifier: Apache-2.0
// Names of processors in ELF files.
#include <elf.h>

#include <bit>
#include <cstring>

#include "base/format.h"
#include "base/formats/elf.h"

namespace tilewright {
namespace {

std::string with_word(const std::string& machine, bool narrow, bool big) {
  if (!narrow && !big) return machine;
  return format("{} ({}{}{})", machine, narrow ? "32 bits" : "", big && narrow ? ", " : "", big ? "big-endian" : "");
}

}  // namespace

std::string elf_machine_name(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "AArch64";
    case EM_RISCV:
      return "RISC-V";
    case EM_386:
      return "x86";
    case EM_ARM:
      return "ARM";
    case EM_S390:
      return "s390x";
    case EM_PPC64:
      return "PowerPC";
    default:
      return format("ELF machine {}", machine);
  }
}

std::string elf_file_machine(std::span<const std::byte> file) {
  if (file.size() < EI_NIDENT + 4 || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) return "";
  const bool big = file[EI_DATA] == std::byte{ELFDATA2MSB}, narrow = file[EI_CLASS] == std::byte{ELFCLASS32};
  const auto low = static_cast<unsigned>(file[EI_NIDENT + (big ? 3 : 2)]);
  const auto high = static_cast<unsigned>(file[EI_NIDENT + (big ? 2 : 3)]);
  const std::string name = elf_machine_name(high << 8 | low);
  return with_word(name, narrow, big);
}

Diagnostic for_another_machine(const std::string& machine) {
  const bool big = std::endian::native == std::endian::big, narrow = sizeof(void*) == 4;
  const unsigned own = this_elf_machine();
  return Diagnostic(ErrorCode::kCpuMismatch,
                    format("the library is for {}, this machine is {}", machine,
                           with_word(own == EM_NONE ? "of another kind" : elf_machine_name(own), narrow, big)),
                    {}, "compile the model for this machine with --target");
}

ElfPointerRelocations pointer_relocations(unsigned machine, unsigned word_bits) {
  switch (machine) {
    case EM_AARCH64:
      return {R_AARCH64_RELATIVE, R_AARCH64_ABS64};
    case EM_RISCV:
      return {R_RISCV_RELATIVE, word_bits == 64 ? uint32_t{R_RISCV_64} : uint32_t{R_RISCV_32}};
    case EM_ARM:
      return {R_ARM_RELATIVE, R_ARM_ABS32};
    case EM_386:
      return {R_386_RELATIVE, R_386_32};
    default:
      return {R_X86_64_RELATIVE, R_X86_64_64};
  }
}

unsigned this_elf_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#elif defined(__arm__)
  return EM_ARM;
#elif defined(__i386__)
  return EM_386;
#elif defined(__s390x__)
  return EM_S390;
#elif defined(__powerpc64__)
  return EM_PPC64;
#else
  return EM_NONE;
#endif
}

}  // namespace tilewright
