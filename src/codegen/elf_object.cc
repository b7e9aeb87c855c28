// SPDX-License-Identifier: Apache-2.0
// Weights as a relocatable ELF64 file, written without LLVM: headers, the bytes as they are, symbols.
#include <elf.h>

#include <cstring>
#include <fstream>

#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/work_folder.h"
#include "codegen/codegen.h"

namespace tilewright::codegen {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t total_bytes(ByteSpans pieces) {
  uint64_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  return bytes;
}

template <class T>
void append(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A string table: "\0name\0name\0".
struct Strings {
  std::string bytes = std::string(1, '\0');
  uint32_t add(const char* text) {
    const uint32_t at = static_cast<uint32_t>(bytes.size());
    bytes.append(text, std::strlen(text) + 1);
    return at;
  }
};

struct Frame {
  std::string head, tail;  // before and after the weights
};

Frame frame(uint64_t bytes, const Target& target) {
  enum { kNull, kData, kStackNote, kSymbols, kNames, kSectionNames, kSections };
  Strings names, section_names;
  std::string symbols(sizeof(Elf64_Sym), '\0');  // the first symbol is null by definition
  Elf64_Sym symbol{};
  symbol.st_name = names.add(kParamsSymbol);
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbol.st_other = STV_HIDDEN;
  symbol.st_shndx = kData;
  symbol.st_size = bytes;
  append(&symbols, symbol);

  Elf64_Shdr sections[kSections] = {};
  const uint64_t after = kPage + bytes;
  const uint64_t symbols_at = (after + 7) / 8 * 8;
  auto section = [&](int index, const char* name, uint32_t type, uint64_t offset, uint64_t size, uint64_t align) {
    sections[index].sh_name = section_names.add(name);
    sections[index].sh_type = type;
    sections[index].sh_offset = offset;
    sections[index].sh_size = size;
    sections[index].sh_addralign = align;
  };
  section(kData, ".tw_params", SHT_PROGBITS, kPage, bytes, kPage);
  sections[kData].sh_flags = SHF_ALLOC;
  section(kStackNote, ".note.GNU-stack", SHT_PROGBITS, after, 0, 1);
  section(kSymbols, ".symtab", SHT_SYMTAB, symbols_at, symbols.size(), 8);
  sections[kSymbols].sh_link = kNames;
  sections[kSymbols].sh_info = 1;  // the first global symbol
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  section(kNames, ".strtab", SHT_STRTAB, symbols_at + symbols.size(), names.bytes.size(), 1);
  const uint64_t last = symbols_at + symbols.size() + names.bytes.size();
  section(kSectionNames, ".shstrtab", SHT_STRTAB, last, 0, 1);
  sections[kSectionNames].sh_size = section_names.bytes.size();
  const uint64_t table_at = (last + section_names.bytes.size() + 7) / 8 * 8;

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = target.mtriple.rfind("aarch64", 0) == 0 ? EM_AARCH64 : EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = table_at;
  header.e_ehsize = sizeof(header), header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections, header.e_shstrndx = kSectionNames;

  Frame out;
  append(&out.head, header);
  out.head.resize(kPage);
  out.tail.resize(symbols_at - after);
  out.tail += symbols + names.bytes + section_names.bytes;
  out.tail.resize(table_at - after);
  for (const Elf64_Shdr& s : sections) append(&out.tail, s);
  return out;
}

}  // namespace

std::string params_object(ByteSpans pieces, const Target& target) {
  const uint64_t bytes = total_bytes(pieces);
  const Frame around = frame(bytes, target);
  std::string out;
  out.reserve(around.head.size() + bytes + around.tail.size());
  out += around.head;
  for (const auto& piece : pieces) out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return out + around.tail;
}

Status write_params_object(ByteSpans pieces, const Target& target, const std::string& path, const std::string& result) {
  const Frame around = frame(total_bytes(pieces), target);
  std::ofstream file(path, std::ios::binary);
  file.write(around.head.data(), static_cast<std::streamsize>(around.head.size()));
  for (const auto& piece : pieces)
    file.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
  file.write(around.tail.data(), static_cast<std::streamsize>(around.tail.size()));
  file.close();
  if (!file) return cannot_write(result, "no space for the weights");
  return Ok{};
}

}  // namespace tilewright::codegen
