// SPDX-License-Identifier: Apache-2.0
// Layout: System V ABI gABI chapters 4 and 5; GNU hash and version tables as glibc's dynamic linker walks them.
#include "base/formats/elf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/format.h"
#include "base/formats/elf_words.h"

namespace tilewright {
namespace {

constexpr uint64_t kMaxImageBytes = uint64_t{1} << 42;

template <class Words>
class Reader {
  using Word = typename Words::Word;
  static constexpr uint64_t kWordBytes = sizeof(Word);

 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {}

  Result<ElfImage> read() {
    TW_TRY_STATUS(header());
    TW_TRY_STATUS(segments());
    TW_TRY_STATUS(sections());
    TW_TRY_STATUS(dynamic());
    TW_TRY_STATUS(symbols());
    TW_TRY_STATUS(relocations());
    return std::move(image_);
  }

 private:
  static Diagnostic bad(std::string what) {
    return Diagnostic(ErrorCode::kBadArtifact, std::move(what), {}, "the file is damaged; compile the model again");
  }
  static bool fits(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }
  template <class T>
  T at(uint64_t offset) const {  // bounds are checked by the caller
    T value{};
    std::memcpy(&value, file_.data() + offset, sizeof(T));
    return value;
  }
  // A value in the loaded image, read from the file; nullopt if it is not stored in the file.
  template <class T>
  std::optional<T> loaded(uint64_t address) const {
    auto offset = image_.file_offset(address, sizeof(T));
    if (!offset) return std::nullopt;
    return at<T>(*offset);
  }

  Status header() {
    if (file_.size() < sizeof(typename Words::Ehdr)) return bad("the file is shorter than its header");
    header_ = at<typename Words::Ehdr>(0);
    if (header_.e_ident[EI_CLASS] != Words::kClass || header_.e_ident[EI_VERSION] != EV_CURRENT ||
        header_.e_version != EV_CURRENT || header_.e_type != ET_DYN)
      return bad("the file is not a shared library");
    image_.machine = header_.e_machine;
    image_.word_bits = 8 * static_cast<unsigned>(kWordBytes);
    if (header_.e_ehsize != sizeof(typename Words::Ehdr) || header_.e_phentsize != sizeof(typename Words::Phdr) ||
        header_.e_phnum == 0 ||
        !fits(header_.e_phoff, uint64_t{header_.e_phnum} * sizeof(typename Words::Phdr), file_.size()))
      return bad("the program headers lie outside of the file");
    image_.file_bytes = header_.e_phoff + uint64_t{header_.e_phnum} * sizeof(typename Words::Phdr);
    return Ok{};
  }

  Status segments() {
    std::vector<typename Words::Phdr> others;
    for (unsigned i = 0; i < header_.e_phnum; ++i) {
      auto p = at<typename Words::Phdr>(header_.e_phoff + i * sizeof(typename Words::Phdr));
      if (!fits(p.p_offset, p.p_filesz, file_.size()) || p.p_memsz > kMaxImageBytes || p.p_vaddr > kMaxImageBytes)
        return bad(format("segment {} covers bytes {} to {}+{} of a file of {} bytes", i, p.p_offset, p.p_offset,
                          p.p_filesz, file_.size()));
      if (p.p_type != PT_NULL)
        image_.file_bytes = std::max<uint64_t>(image_.file_bytes, uint64_t{p.p_offset} + p.p_filesz);
      if (p.p_type != PT_LOAD) {
        others.push_back(p);
        continue;
      }
      bool aligned = p.p_align >= 4096 && (p.p_align & (p.p_align - 1)) == 0 && p.p_align <= (1u << 26) &&
                     p.p_vaddr % p.p_align == p.p_offset % p.p_align;
      uint64_t end = image_.segments.empty() ? 0 : image_.segments.back().address + image_.segments.back().memory_bytes;
      if (!aligned || p.p_filesz > p.p_memsz || p.p_vaddr < end)
        return bad(format("segment {} is laid out wrongly", i));
      image_.segments.push_back(
          {p.p_offset, p.p_vaddr, p.p_filesz, p.p_memsz, (p.p_flags & PF_W) != 0, (p.p_flags & PF_X) != 0});
    }
    if (image_.segments.empty()) return bad("the library loads nothing");
    for (const auto& p : others) {
      const ElfSegment* home =
          image_.segment_of(p.p_vaddr, 1);  // one byte: the previous segment ends where this page begins
      bool mapped = image_.segment_of(p.p_vaddr, p.p_memsz) != nullptr;
      switch (p.p_type) {
        case PT_DYNAMIC:
          if (dynamic_bytes_ != 0 || !image_.file_offset(p.p_vaddr, p.p_filesz))
            return bad("the dynamic section is misplaced");
          dynamic_ = p.p_vaddr;
          dynamic_bytes_ = p.p_filesz;
          break;
        case PT_TLS:
          if (!mapped || p.p_filesz > p.p_memsz || p.p_memsz > (1u << 20) || p.p_align > 4096)
            return bad("the thread-local segment is laid out wrongly");
          break;
        case PT_GNU_RELRO:  // whole pages, which may end behind the segment's bytes
          if (!home || p.p_vaddr + p.p_memsz > (home->address + home->memory_bytes + 4095) / 4096 * 4096)
            return bad("the read-only part of the data is misplaced");
          break;
        case PT_PHDR:
        case PT_NOTE:
        case PT_GNU_PROPERTY:
        case PT_GNU_EH_FRAME:
          if (!mapped) return bad(format("a segment of type {:#x} lies outside of what is loaded", p.p_type));
          break;
        default:
          break;
      }
    }
    if (dynamic_bytes_ == 0) return bad("the library has no dynamic section");
    return Ok{};
  }

  // Sections are not needed for loading, but a table outside the file indicates truncation.
  Status sections() {
    if (header_.e_shnum == 0) return Ok{};
    uint64_t bytes = uint64_t{header_.e_shnum} * sizeof(typename Words::Shdr);
    if (header_.e_shentsize != sizeof(typename Words::Shdr) || !fits(header_.e_shoff, bytes, file_.size()))
      return bad("the section headers lie outside of the file");
    image_.file_bytes = std::max<uint64_t>(image_.file_bytes, header_.e_shoff + bytes);
    auto section = [&](unsigned i) {
      return at<typename Words::Shdr>(header_.e_shoff + i * sizeof(typename Words::Shdr));
    };
    std::span<const std::byte> names;
    if (header_.e_shstrndx < header_.e_shnum) {
      auto s = section(header_.e_shstrndx);
      if (s.sh_type == SHT_STRTAB && fits(s.sh_offset, s.sh_size, file_.size()))
        names = file_.subspan(s.sh_offset, s.sh_size);
      if (names.empty() || names.back() != std::byte{0}) return bad("the names of the sections are damaged");
    }
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      auto s = section(i);
      if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL) continue;
      if (!fits(s.sh_offset, s.sh_size, file_.size())) return bad(format("section {} lies outside of the file", i));
      if (!names.empty() && s.sh_name >= names.size()) return bad(format("section {} has no name", i));
      image_.file_bytes = std::max<uint64_t>(image_.file_bytes, uint64_t{s.sh_offset} + s.sh_size);
      const char* name = names.empty() ? "" : reinterpret_cast<const char*>(names.data() + s.sh_name);
      image_.sections.push_back({name, s.sh_offset, s.sh_size});
    }
    return Ok{};
  }

  Status dynamic() {
    for (uint64_t i = 0; i + sizeof(typename Words::Dyn) <= dynamic_bytes_; i += sizeof(typename Words::Dyn)) {
      auto entry = *loaded<typename Words::Dyn>(dynamic_ + i);
      if (entry.d_tag == DT_NULL) {
        terminated_ = true;
        break;
      }
      tags_.push_back(entry);
    }
    if (!terminated_) return bad("the dynamic section has no end");
    strings_ = tag(DT_STRTAB);
    strings_bytes_ = tag(DT_STRSZ);
    auto strings_at = image_.file_offset(strings_, strings_bytes_);
    if (!strings_at || strings_bytes_ == 0 || at<char>(*strings_at + strings_bytes_ - 1) != 0)
      return bad("the table of names is damaged");
    for (const auto& entry : tags_) {
      uint64_t v = entry.d_un.d_val;
      switch (entry.d_tag) {
        case DT_NEEDED:
        case DT_SONAME:
        case DT_RPATH:
        case DT_RUNPATH:
          if (v >= strings_bytes_) return bad("a library name lies outside of the table of names");
          break;
        case DT_INIT:
        case DT_FINI: {
          const ElfSegment* s = image_.segment_of(v, 1);
          if (!s || !s->executable) return bad("an entry function lies outside of the code");
          break;
        }
        case DT_SYMENT:
          if (v != sizeof(typename Words::Sym)) return bad("symbols have a wrong size");
          break;
        case DT_RELAENT:
          if (v != sizeof(typename Words::Rela)) return bad("relocations have a wrong size");
          break;
        case DT_RELENT:
          if (v != sizeof(typename Words::Rel)) return bad("relocations have a wrong size");
          break;
        case DT_PLTREL:
          if (v != (addends_in_place() ? DT_REL : DT_RELA))
            return bad("the relocations have a kind that is not used on this machine");
          break;
        case DT_REL:
          if (!addends_in_place()) return bad(never_has(entry.d_tag));
          break;
        case DT_TEXTREL:
        case DT_AUDIT:
        case DT_DEPAUDIT:
        case DT_FILTER:
        case DT_AUXILIARY:
          return bad(never_has(entry.d_tag));
        default:
          break;
      }
    }
    for (auto [where, size] : {std::pair{DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, std::pair{DT_FINI_ARRAY, DT_FINI_ARRAYSZ}})
      if (tag(size) % kWordBytes != 0 || (tag(size) && !image_.segment_of(tag(where), tag(size))))
        return bad("an array of entry functions lies outside of what is loaded");
    return Ok{};
  }

  Status symbols() {
    uint64_t table = tag(DT_SYMTAB);
    uint64_t count = 0;
    if (has(DT_GNU_HASH)) {
      count = TW_TRY(gnu_hash_symbols(tag(DT_GNU_HASH)));
    } else if (has(DT_HASH)) {
      count = TW_TRY(sysv_hash_symbols(tag(DT_HASH)));
    } else {
      return bad("the library has no symbol hash table");
    }
    // Hash tables index defined symbols only; the undefined ones before them are counted by the section.
    if (!image_.file_offset(table, count * sizeof(typename Words::Sym)))
      return bad("the symbol table lies outside of the file");
    symbol_count_ = count;
    for (uint64_t i = 0; i < count; ++i) {
      auto s = *loaded<typename Words::Sym>(table + i * sizeof(typename Words::Sym));
      if (s.st_name >= strings_bytes_) return bad(format("symbol {} has no name", i));
      if (s.st_shndx == SHN_UNDEF) continue;
      if (s.st_shndx != SHN_ABS && ELF64_ST_TYPE(s.st_info) != STT_TLS && !image_.segment_of(s.st_value, 0))
        return bad(format("symbol {} lies outside of what is loaded", i));
      if (ELF64_ST_TYPE(s.st_info) == STT_GNU_IFUNC && !executable(s.st_value))
        return bad(format("symbol {} is no code", i));
      auto name_at = *image_.file_offset(strings_ + s.st_name, 1);
      image_.symbols.push_back({reinterpret_cast<const char*>(file_.data() + name_at), s.st_value, s.st_size});
    }
    return versions();
  }

  Result<uint64_t> gnu_hash_symbols(uint64_t table) {
    auto head = loaded<std::array<uint32_t, 4>>(table);
    if (!head) return bad("the symbol hash table lies outside of the file");
    auto [buckets, first, masks, shift] = *head;
    uint64_t bucket_at = table + 16 + uint64_t{masks} * kWordBytes, chain_at = bucket_at + uint64_t{buckets} * 4;
    if (buckets == 0 || masks == 0 || (masks & (masks - 1)) || shift > 63 ||
        !image_.file_offset(table, chain_at - table))
      return bad("the symbol hash table is damaged");
    uint64_t count = first;
    for (uint32_t b = 0; b < buckets; ++b) {
      uint64_t i = *loaded<uint32_t>(bucket_at + b * 4);
      if (i == 0) continue;
      if (i < first) return bad("the symbol hash table is damaged");
      for (;; ++i) {
        auto hash = loaded<uint32_t>(chain_at + (i - first) * 4);
        if (!hash) return bad("a chain of the symbol hash table has no end");
        if (*hash & 1) break;
      }
      count = std::max(count, i + 1);
    }
    return count;
  }

  Result<uint64_t> sysv_hash_symbols(uint64_t table) {
    auto head = loaded<std::array<uint32_t, 2>>(table);
    if (!head) return bad("the symbol hash table lies outside of the file");
    auto [buckets, chains] = *head;
    if (buckets == 0 || !image_.file_offset(table, 8 + (uint64_t{buckets} + chains) * 4))
      return bad("the symbol hash table is damaged");
    uint64_t visited = 0;
    for (uint32_t b = 0; b < buckets; ++b)
      for (uint32_t i = *loaded<uint32_t>(table + 8 + b * 4ull); i != 0;
           i = *loaded<uint32_t>(table + 8 + (uint64_t{buckets} + i) * 4))
        if (i >= chains || ++visited > chains) return bad("a chain of the symbol hash table has no end");
    return uint64_t{chains};
  }

  Status versions() {
    unsigned highest = 1;
    uint64_t at = tag(DT_VERNEED);
    for (uint64_t more = has(DT_VERNEED); more;) {
      auto need = loaded<Elf64_Verneed>(at);
      if (!need || need->vn_file >= strings_bytes_) return bad("the version table is damaged");
      uint64_t aux_at = at + need->vn_aux;
      for (uint64_t next = 1; next; aux_at += next) {
        auto aux = loaded<Elf64_Vernaux>(aux_at);
        if (!aux || aux->vna_name >= strings_bytes_) return bad("the version table is damaged");
        highest = std::max<unsigned>(highest, aux->vna_other & 0x7fff);
        next = aux->vna_next;
      }
      more = need->vn_next;
      at += need->vn_next;
    }
    if (has(DT_VERDEF)) return bad("the library defines symbol versions, which an artifact never does");
    if (!has(DT_VERSYM)) return Ok{};
    for (uint64_t i = 0; i < symbol_count_; ++i) {
      auto index = loaded<uint16_t>(tag(DT_VERSYM) + i * 2);
      if (!index || (*index & 0x7fffu) > highest) return bad("the version table is damaged");
    }
    return Ok{};
  }

  Status relocations() {
    if (addends_in_place()) {
      TW_TRY_STATUS((relocation_table<typename Words::Rel>(tag(DT_REL), tag(DT_RELSZ))));
      TW_TRY_STATUS((relocation_table<typename Words::Rel>(tag(DT_JMPREL), tag(DT_PLTRELSZ))));
      if (tag(DT_RELCOUNT) > tag(DT_RELSZ) / sizeof(typename Words::Rel)) return bad("the relocation table is damaged");
    } else {
      TW_TRY_STATUS((relocation_table<typename Words::Rela>(tag(DT_RELA), tag(DT_RELASZ))));
      TW_TRY_STATUS((relocation_table<typename Words::Rela>(tag(DT_JMPREL), tag(DT_PLTRELSZ))));
      if (tag(DT_RELACOUNT) > tag(DT_RELASZ) / sizeof(typename Words::Rela))
        return bad("the relocation table is damaged");
    }
    uint64_t relr = tag(36 /* DT_RELR */), relr_bytes = tag(35 /* DT_RELRSZ */);
    if (relr_bytes == 0) return Ok{};
    if (relr_bytes % kWordBytes != 0 || !image_.file_offset(relr, relr_bytes))
      return bad("the relocation table lies outside of the file");
    constexpr int kBits = 8 * static_cast<int>(kWordBytes);
    uint64_t where = 0;
    for (uint64_t i = 0; i < relr_bytes; i += kWordBytes) {
      uint64_t entry = *loaded<Word>(relr + i);
      if ((entry & 1) == 0) {
        if (!writable(entry, kWordBytes)) return bad("a relocation writes outside of the data");
        packed_pointer(entry);
        where = entry + kWordBytes;
        continue;
      }
      for (int bit = 1; bit < kBits; ++bit) {
        if ((entry >> bit & 1) == 0) continue;
        const uint64_t at = where + static_cast<uint64_t>(bit - 1) * kWordBytes;
        if (!writable(at, kWordBytes)) return bad("a relocation writes outside of the data");
        packed_pointer(at);
      }
      where += static_cast<uint64_t>(kBits - 1) * kWordBytes;
    }
    return Ok{};
  }

  template <class Record>
  Status relocation_table(uint64_t table, uint64_t bytes) {
    if (bytes == 0) return Ok{};
    if (bytes % sizeof(Record) != 0 || !image_.file_offset(table, bytes))
      return bad("the relocation table lies outside of the file");
    for (uint64_t i = 0; i < bytes; i += sizeof(Record)) {
      auto r = *loaded<Record>(table + i);
      const uint32_t type = Words::type_of(r.r_info);
      if (type == 0) continue;
      if (!writable(r.r_offset, kWordBytes)) return bad("a relocation writes outside of the data");
      if (Words::symbol_of(r.r_info) >= std::max<uint64_t>(symbol_count_, 1))
        return bad("a relocation names no symbol");
      uint64_t addend = 0;
      if constexpr (std::is_same_v<Record, typename Words::Rela>)
        addend = static_cast<Word>(r.r_addend);
      else if (auto stored = loaded<Word>(r.r_offset))
        addend = *stored;
      pointer(r.r_offset, r.r_info, addend);
      if (header_.e_machine != EM_X86_64) continue;
      if (type == R_X86_64_IRELATIVE && !executable(addend)) return bad("a relocation calls something that is no code");
      if (type == R_X86_64_RELATIVE && in_entry_arrays(r.r_offset) && !executable(addend))
        return bad("an entry function lies outside of the code");
    }
    return Ok{};
  }

  void pointer(uint64_t at, uint64_t info, uint64_t addend) {
    const uint32_t type = Words::type_of(info);
    const ElfPointerRelocations known = pointer_relocations(header_.e_machine, image_.word_bits);
    if (type == known.relative) image_.pointers.push_back({at, addend});
    if (type != known.absolute) return;
    using Symbol = typename Words::Sym;
    auto symbol = loaded<Symbol>(tag(DT_SYMTAB) + Words::symbol_of(info) * sizeof(Symbol));
    if (symbol && symbol->st_shndx != SHN_UNDEF)
      image_.pointers.push_back({at, static_cast<Word>(symbol->st_value + addend)});
  }
  // DT_RELR relocations store the target in place.
  void packed_pointer(uint64_t at) {
    if (auto to = loaded<Word>(at)) image_.pointers.push_back({at, *to});
  }
  // On these processors relocations have their addend in place.
  bool addends_in_place() const { return header_.e_machine == EM_ARM || header_.e_machine == EM_386; }
  static std::string never_has(int64_t tag) {
    return format("the dynamic section has an entry ({:#x}) that an artifact never has", tag);
  }

  bool in_entry_arrays(uint64_t address) const {
    return (address >= tag(DT_INIT_ARRAY) && address - tag(DT_INIT_ARRAY) < tag(DT_INIT_ARRAYSZ)) ||
           (address >= tag(DT_FINI_ARRAY) && address - tag(DT_FINI_ARRAY) < tag(DT_FINI_ARRAYSZ));
  }
  bool writable(uint64_t address, uint64_t bytes) const {
    const ElfSegment* s = image_.segment_of(address, bytes);
    return s && s->writable;
  }
  bool executable(uint64_t address) const {
    const ElfSegment* s = image_.segment_of(address, 1);
    return s && s->executable;
  }
  bool has(int64_t t) const {
    return std::any_of(tags_.begin(), tags_.end(), [&](const typename Words::Dyn& d) { return d.d_tag == t; });
  }
  uint64_t tag(int64_t t) const {
    for (const auto& entry : tags_)
      if (entry.d_tag == t) return entry.d_un.d_val;
    return 0;
  }

  std::span<const std::byte> file_;
  ElfImage image_;
  typename Words::Ehdr header_{};
  std::vector<typename Words::Dyn> tags_;
  uint64_t dynamic_ = 0, dynamic_bytes_ = 0, strings_ = 0, strings_bytes_ = 0, symbol_count_ = 0;
  bool terminated_ = false;
};

}  // namespace

const ElfSymbol* ElfImage::find(std::string_view name) const {
  for (const auto& s : symbols)
    if (s.name == name) return &s;
  return nullptr;
}

const ElfSegment* ElfImage::segment_of(uint64_t address, uint64_t bytes) const {
  for (const auto& s : segments)
    if (address >= s.address && address - s.address <= s.memory_bytes &&
        bytes <= s.memory_bytes - (address - s.address))
      return &s;
  return nullptr;
}

std::optional<uint64_t> ElfImage::file_offset(uint64_t address, uint64_t bytes) const {
  for (const auto& s : segments)
    if (address >= s.address && address - s.address <= s.file_bytes && bytes <= s.file_bytes - (address - s.address))
      return s.offset + (address - s.address);
  return std::nullopt;
}

std::optional<uint64_t> ElfImage::pointer_at(uint64_t address) const {
  for (const auto& p : pointers)
    if (p.at == address) return p.to;
  return std::nullopt;
}

Status check_elf_byte_order(std::span<const std::byte> file) {
  constexpr auto kOwnOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  const std::string machine = elf_file_machine(file);
  if (machine.empty() || file[EI_DATA] == std::byte{kOwnOrder}) return Ok{};
  return for_another_machine(machine);
}

Result<ElfImage> read_elf(std::span<const std::byte> file) {
  const std::string machine = elf_file_machine(file);
  if (machine.empty())
    return Diagnostic(ErrorCode::kBadArtifact, "the file is not a compiled model (no ELF shared library)", {},
                      "compile a model first: tilewright compile model.onnx -o model.so");
  TW_TRY_STATUS(check_elf_byte_order(file));
  return file[EI_CLASS] == std::byte{ELFCLASS32} ? Reader<ElfWords32>(file).read() : Reader<ElfWords64>(file).read();
}

}  // namespace tilewright
