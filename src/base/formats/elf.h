// SPDX-License-Identifier: Apache-2.0
// A checked look at a little-endian ELF shared library, of 64 bits or 32, before anything trusts it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tilewright {

struct ElfSegment {
  uint64_t offset = 0, address = 0, file_bytes = 0, memory_bytes = 0;
  bool writable = false, executable = false;
};

struct ElfSymbol {
  std::string_view name;  // into the file's bytes
  uint64_t address = 0, bytes = 0;
};

struct ElfSection {
  std::string_view name;
  uint64_t offset = 0, bytes = 0;  // in the file
};

// A pointer in the data that the dynamic linker sets: where it is, and where it will point.
struct ElfPointer {
  uint64_t at = 0, to = 0;
};

struct ElfImage {
  std::vector<ElfSegment> segments;  // the ones that are loaded, by rising address
  std::vector<ElfSymbol> symbols;    // defined dynamic symbols
  std::vector<ElfSection> sections;  // those with bytes in the file; a stripped file may have none
  std::vector<ElfPointer> pointers;  // into the library itself
  unsigned machine = 0;              // EM_X86_64, ...
  unsigned word_bits = 0;            // 64, or 32
  uint64_t file_bytes = 0;           // where the ELF file's own content ends; anything after it is a trailer
  const ElfSymbol* find(std::string_view name) const;
  // The segment holding [address, address+bytes), or null.
  const ElfSegment* segment_of(uint64_t address, uint64_t bytes) const;
  // The same range as an offset in the file; nothing when it is not (wholly) stored there.
  std::optional<uint64_t> file_offset(uint64_t address, uint64_t bytes) const;
  // Where the pointer at this address will point; nothing when it is none of `pointers`.
  std::optional<uint64_t> pointer_at(uint64_t address) const;
};

// Every header, segment, section, dynamic entry, symbol and relocation lies within the file and within what is loaded,
// so that the dynamic linker does not fault on it. Errors: BadArtifact.
Result<ElfImage> read_elf(std::span<const std::byte> file);
// The machine this code runs on, as in ElfImage::machine.
unsigned this_elf_machine();
// "x86-64", "AArch64", "ARM", or the number.
std::string elf_machine_name(unsigned machine);
// Types of the relocations that set a pointer: to a place in the library itself, and to a symbol.
struct ElfPointerRelocations {
  uint32_t relative = 0, absolute = 0;
};
ElfPointerRelocations pointer_relocations(unsigned machine, unsigned word_bits);
// The machine that an ELF file's first bytes name, whatever its word size and byte order; with the size where it is not
// 64 bits: "ARM (32 bits)". Empty: no ELF file.
std::string elf_file_machine(std::span<const std::byte> file);
// CpuMismatch: a library for `machine` cannot run here.
Diagnostic for_another_machine(const std::string& machine);

}  // namespace tilewright
