// SPDX-License-Identifier: Apache-2.0
// ELF record types for 64-bit and 32-bit words, as template parameters.
#pragma once
#include <elf.h>

#include <cstdint>

namespace tilewright {

struct ElfWords64 {
  using Ehdr = Elf64_Ehdr;
  using Phdr = Elf64_Phdr;
  using Shdr = Elf64_Shdr;
  using Dyn = Elf64_Dyn;
  using Sym = Elf64_Sym;
  using Rel = Elf64_Rel;
  using Rela = Elf64_Rela;
  using Word = uint64_t;
  static constexpr unsigned char kClass = ELFCLASS64;
  static uint32_t type_of(uint64_t info) { return ELF64_R_TYPE(info); }
  static uint64_t symbol_of(uint64_t info) { return ELF64_R_SYM(info); }
};

struct ElfWords32 {
  using Ehdr = Elf32_Ehdr;
  using Phdr = Elf32_Phdr;
  using Shdr = Elf32_Shdr;
  using Dyn = Elf32_Dyn;
  using Sym = Elf32_Sym;
  using Rel = Elf32_Rel;
  using Rela = Elf32_Rela;
  using Word = uint32_t;
  static constexpr unsigned char kClass = ELFCLASS32;
  static uint32_t type_of(uint64_t info) { return static_cast<uint32_t>(ELF32_R_TYPE(info)); }
  static uint64_t symbol_of(uint64_t info) { return ELF32_R_SYM(info); }
};

}  // namespace tilewright
