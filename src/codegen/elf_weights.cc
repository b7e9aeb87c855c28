// SPDX-License-Identifier: Apache-2.0
// Writes weights into ELF64 files without LLVM or a linker. During linking a note of sixteen bytes stands for them;
// then they are appended. So no link copies them or holds them in memory, and what the code addresses by 32-bit offsets
// stays near it: weights lie behind everything else, and their address is only read from data.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/checked.h"
#include "base/format.h"
#include "base/formats/artifact.h"
#include "base/formats/elf.h"
#include "base/formats/elf_words.h"
#include "base/read_whole.h"
#include "base/work_folder.h"
#include "codegen/codegen.h"
#include "codegen/processor.h"

namespace tilewright::codegen {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLoadPage = 65536;           // largest page size of supported processors
constexpr uint64_t kLargeSection = 0x10000000;  // SHF_X86_64_LARGE: x86-64 psABI, "large code model"

// Builds a string table: "\0name\0name\0".
struct Strings {
  std::string bytes = std::string(1, '\0');
  uint32_t add(const char* text) {
    const auto at = static_cast<uint32_t>(bytes.size());
    bytes.append(text, std::strlen(text) + 1);
    return at;
  }
};

template <class T>
void append(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A linked file in memory; its records are read and modified in place.
class LinkedFile {
 public:
  explicit LinkedFile(std::string bytes) : bytes_(std::move(bytes)) {
    if (bytes_.size() >= sizeof(Elf64_Ehdr)) header_ = at<Elf64_Ehdr>(0);
  }
  const std::string& bytes() const { return bytes_; }
  template <class T>
  T at(uint64_t offset) const {
    T value{};
    TW_ICHECK(offset <= bytes_.size() && sizeof(T) <= bytes_.size() - offset, "a record outside of the linked file");
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  template <class T>
  void put(uint64_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
  }
  // Calls change(record) for each record of a table, which returns whether to write it back.
  template <class T, class Change>
  void each(uint64_t offset, uint64_t count, Change change) {
    for (uint64_t i = 0; i < count; ++i) {
      T record = at<T>(offset + i * sizeof(T));
      if (change(record)) put(offset + i * sizeof(T), record);
    }
  }
  template <class Change>
  void each_section(Change change) {
    each<Elf64_Shdr>(header_.e_shoff, header_.e_shnum, change);
  }
  template <class Change>
  void each_segment(Change change) {
    each<Elf64_Phdr>(header_.e_phoff, header_.e_phnum, change);
  }
  const char* section_name(const Elf64_Shdr& s) const {
    const auto names = at<Elf64_Shdr>(header_.e_shoff + header_.e_shstrndx * sizeof(Elf64_Shdr));
    return bytes_.c_str() + std::min<uint64_t>(names.sh_offset + s.sh_name, bytes_.size());
  }
  bool loads() const { return header_.e_type == ET_DYN; }
  uint16_t machine() const { return header_.e_machine; }

  // Moves the placeholder to `offset` and sets its size to `bytes`.
  Status move_weights(uint64_t offset, uint64_t bytes);

 private:
  std::string bytes_;
  Elf64_Ehdr header_{};
};

Status LinkedFile::move_weights(uint64_t offset, uint64_t bytes) {
  auto unexpected = [](const char* what) {
    return Diagnostic(ErrorCode::kInternal, format("the linker laid the library out unexpectedly: {}", what));
  };
  Elf64_Shdr before{};
  unsigned index = 0, found = 0, here = 0;
  each_section([&](const Elf64_Shdr& s) {
    const char* name = section_name(s);
    if (std::strcmp(name, kParamsSection) == 0 || std::strcmp(name, kFarParamsSection) == 0) before = s, found = index;
    ++index;
    return false;
  });
  if (found == 0) return unexpected("no section stands for the weights");
  uint64_t address = 0, end = 0;
  if (loads()) {
    each_segment([&](const Elf64_Phdr& p) {
      if (p.p_type == PT_LOAD) end = std::max(end, p.p_vaddr + p.p_memsz);
      return false;
    });
    address = (end + kLoadPage - 1) / kLoadPage * kLoadPage + offset % kLoadPage;
    unsigned notes = 0;
    each_segment([&](Elf64_Phdr& p) {
      if (p.p_type != PT_NOTE || p.p_vaddr != before.sh_addr) return false;
      ++notes;
      p.p_type = PT_LOAD, p.p_flags = PF_R, p.p_offset = offset, p.p_align = kLoadPage;
      p.p_vaddr = p.p_paddr = address;
      p.p_filesz = p.p_memsz = bytes;
      return true;
    });
    if (notes != 1) return unexpected("no segment stands for the weights");
  }
  uint64_t pointers = 0;
  each_section([&](Elf64_Shdr& s) {
    const bool weights = here++ == found;
    if (weights) {
      s.sh_type = SHT_PROGBITS, s.sh_addr = address, s.sh_offset = offset, s.sh_size = bytes, s.sh_addralign = kPage;
      if (std::strcmp(section_name(s), kFarParamsSection) == 0) s.sh_flags |= kLargeSection;
    } else if (s.sh_type == SHT_SYMTAB) {
      each<Elf64_Sym>(s.sh_offset, s.sh_size / sizeof(Elf64_Sym), [&](Elf64_Sym& symbol) {
        if (symbol.st_shndx != found || ELF64_ST_TYPE(symbol.st_info) == STT_SECTION) return false;
        symbol.st_value = address, symbol.st_size = bytes;
        return true;
      });
    } else if (s.sh_type == SHT_RELA && loads()) {
      const uint32_t relative = pointer_relocations(machine(), 64).relative;
      each<Elf64_Rela>(s.sh_offset, s.sh_size / sizeof(Elf64_Rela), [&](Elf64_Rela& r) {
        if (ELF64_R_TYPE(r.r_info) != relative || static_cast<uint64_t>(r.r_addend) != before.sh_addr) return false;
        r.r_addend = static_cast<int64_t>(address);
        ++pointers;
        return true;
      });
    }
    return weights;
  });
  if (loads() && pointers == 0) return unexpected("nothing points to the weights");
  return Ok{};
}

// ELF records by word size.

// The single data section of an object that only defines kParamsSymbol.
struct Content {
  const char* section;
  uint32_t type;
  const std::string& bytes;
  uint32_t alignment;
};

template <class Words>
std::string params_object(const Content& content, const Target& target) {
  enum { kNull, kData, kStackNote, kSymbols, kNames, kSectionNames, kSections };
  using Symbol = typename Words::Sym;
  using Section = typename Words::Shdr;
  Strings names, section_names;
  std::string symbols(sizeof(Symbol), '\0');  // the first symbol is null by definition
  Symbol symbol{};
  symbol.st_name = names.add(kParamsSymbol);
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbol.st_other = STV_HIDDEN;
  symbol.st_shndx = kData;
  append(&symbols, symbol);

  std::string file(sizeof(typename Words::Ehdr), '\0');
  Section sections[kSections] = {};
  using Extent = decltype(Section::sh_size);
  auto section = [&](int index, const char* name, uint32_t type, const std::string& bytes, uint32_t align) {
    file.resize((file.size() + align - 1) / align * align);
    sections[index].sh_name = section_names.add(name);
    sections[index].sh_type = type;
    sections[index].sh_offset = static_cast<Extent>(file.size());
    sections[index].sh_size = static_cast<Extent>(bytes.size());
    sections[index].sh_addralign = align;
    file += bytes;
  };
  section(kData, content.section, content.type, content.bytes, content.alignment);
  sections[kData].sh_flags = SHF_ALLOC;
  section(kStackNote, ".note.GNU-stack", SHT_PROGBITS, "", 1);
  section(kSymbols, ".symtab", SHT_SYMTAB, symbols, 8);
  sections[kSymbols].sh_link = kNames;
  sections[kSymbols].sh_info = 1;  // index of the first global symbol
  sections[kSymbols].sh_entsize = sizeof(Symbol);
  section(kNames, ".strtab", SHT_STRTAB, names.bytes, 1);
  section(kSectionNames, ".shstrtab", SHT_STRTAB, section_names.bytes, 1);
  file.resize((file.size() + 7) / 8 * 8);

  typename Words::Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = Words::kClass;
  header.e_ident[EI_DATA] = ELFDATA2LSB, header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = static_cast<Elf64_Half>(processor_of(target).elf_machine);
  header.e_flags = elf_flags(target);
  header.e_version = EV_CURRENT;
  header.e_shoff = static_cast<Extent>(file.size());
  header.e_ehsize = sizeof(header), header.e_shentsize = sizeof(Section);
  header.e_shnum = kSections, header.e_shstrndx = kSectionNames;
  std::memcpy(file.data(), &header, sizeof header);
  for (const Section& s : sections) append(&file, s);
  return file;
}

}  // namespace

uint64_t weight_bytes(WeightPieces pieces) {
  uint64_t bytes = 0;
  for (const WeightPiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

std::string weights_stand_in(bool relocatable, const Target& target) {
  // Linkers place .lrodata out of the code's reach; other processors have no such section.
  const bool far = relocatable && is_x86_64(target);
  const Elf64_Nhdr note_head{.n_namesz = 4, .n_descsz = 0, .n_type = 0};
  std::string note;
  append(&note, note_head);
  note.append("TW\0\0", 4);
  return params_object<ElfWords64>({far ? kFarParamsSection : kParamsSection, SHT_NOTE, note, 4}, target);
}

std::string weights_object(WeightPieces pieces, const Target& target) {
  std::string bytes;
  bytes.reserve(weight_bytes(pieces));
  for_each_piece(
      pieces, [&](const std::byte* data, uint64_t size) { bytes.append(reinterpret_cast<const char*>(data), size); });
  return params_object<ElfWords32>({kParamsSection, SHT_PROGBITS, bytes, kPage}, target);
}

Status place_weights(const std::string& path, WeightPieces pieces, const std::string& result) {
  const uint64_t bytes = weight_bytes(pieces);
  auto linked = read_whole(path);
  if (!linked.ok()) return cannot_write(result, "the folder it is made in vanished");
  LinkedFile file(*std::move(linked));
  const uint64_t end = file.bytes().size();
  const uint64_t offset = (end + kPage - 1) / kPage * kPage;
  if (bytes > 0) TW_TRY_STATUS(file.move_weights(offset, bytes));
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  auto write = [&](const void* data, uint64_t size) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  };
  write(file.bytes().data(), end);
  if (bytes > 0) write(std::string(offset - end, '\0').data(), offset - end);
  for_each_piece(pieces, write);
  out.close();
  return out ? Status(Ok{}) : cannot_write(result, "no space for the weights");
}

}  // namespace tilewright::codegen
