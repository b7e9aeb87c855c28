// SPDX-License-Identifier: Apache-2.0
// Checked parsing of little-endian ELF shared libraries, 64 or 32 bits, before anything trusts them.
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
  std::string_view name;  // view of the file's bytes
  uint64_t address = 0, bytes = 0;
};

struct ElfSection {
  std::string_view name;
  uint64_t offset = 0, bytes = 0;  // in the file
};

// A pointer in data that the dynamic linker relocates: its address and its target.
struct ElfPointer {
  uint64_t at = 0, to = 0;
};

struct ElfImage {
  std::vector<ElfSegment> segments;  // loaded segments, by ascending address
  std::vector<ElfSymbol> symbols;    // defined dynamic symbols
  std::vector<ElfSection> sections;  // sections with bytes in the file; none if stripped
  std::vector<ElfPointer> pointers;  // relocated pointers to the library itself
  unsigned machine = 0;              // EM_X86_64, ...
  unsigned word_bits = 0;            // 64, or 32
  uint64_t file_bytes = 0;           // end of the ELF content; anything behind is a trailer
  const ElfSymbol* find(std::string_view name) const;
  // The segment holding [address, address+bytes), or null.
  const ElfSegment* segment_of(uint64_t address, uint64_t bytes) const;
  // The file offset of the range; nothing if it is not entirely stored in the file.
  std::optional<uint64_t> file_offset(uint64_t address, uint64_t bytes) const;
  // The target of the pointer at this address; nothing if it is not in `pointers`.
  std::optional<uint64_t> pointer_at(uint64_t address) const;
};

// Checks that every header, segment, section, dynamic entry, symbol and relocation lies within the file and the loaded
// range, so that the dynamic linker cannot fault on it. Errors: BadArtifact.
// Whether the file, if it is an ELF file, is of this machine's byte order. Error: CpuMismatch.
Status check_elf_byte_order(std::span<const std::byte> file);
Result<ElfImage> read_elf(std::span<const std::byte> file);
// The machine this code runs on, as in ElfImage::machine.
unsigned this_elf_machine();
// "x86-64", "AArch64", "ARM", or the number.
std::string elf_machine_name(unsigned machine);
// The relocation types of pointers: to the library itself, and to a symbol.
struct ElfPointerRelocations {
  uint32_t relative = 0, absolute = 0;
};
ElfPointerRelocations pointer_relocations(unsigned machine, unsigned word_bits);
// The machine named by an ELF file of any word size and byte order; if not 64-bit, with the size: "ARM (32 bits)".
// Empty: not an ELF file.
std::string elf_file_machine(std::span<const std::byte> file);
// The error CpuMismatch: a library for `machine` cannot run here.
Diagnostic for_another_machine(const std::string& machine);

}  // namespace tilewright
