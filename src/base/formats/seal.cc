// SPDX-License-Identifier: Apache-2.0
#include "base/formats/seal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/checked.h"
#include "base/formats/artifact.h"
#include "base/formats/elf.h"
#include "base/hash.h"

namespace tilewright {
namespace {

constexpr char kSealMagic[8] = {'T', 'W', 'S', 'E', 'A', 'L', '0', '1'};
constexpr uint64_t kSealBytes =
    6 * 8 + sizeof kSealMagic;  // fields, their hash, and the magic number as the file's last bytes

uint64_t hash_content(std::span<const std::byte> elf, const ArtifactSeal& seal) {
  uint64_t before = hash_bytes(elf.data(), seal.params_offset);
  uint64_t after = seal.params_offset + seal.params_bytes;
  return hash_bytes(elf.data() + after, elf.size() - after, before);
}

Diagnostic damaged(const char* what) {
  return Diagnostic(ErrorCode::kBadArtifact, what, {},
                    "the file changed after it was written; compile the model again");
}

}  // namespace

Result<std::string> make_artifact_seal(std::span<const std::byte> elf) {
  ArtifactSeal seal;
  seal.elf_bytes = elf.size();
  constexpr size_t kTypeAt = 16;  // e_type, and ET_REL
  const bool object = elf.size() > kTypeAt && elf[kTypeAt] == std::byte{1};
  if (!object)
    for (const ElfSection& s : TW_TRY(read_elf(elf)).sections) {
      if (s.name != kParamsSection) continue;
      seal.params_offset = s.offset;
      seal.params_bytes = s.bytes;
    }
  seal.content_hash = hash_content(elf, seal);
  seal.params_hash = hash_bytes(elf.data() + seal.params_offset, seal.params_bytes);
  ByteWriter out;
  for (uint64_t field : {seal.elf_bytes, seal.params_offset, seal.params_bytes, seal.content_hash, seal.params_hash})
    out.write<uint64_t>(field);
  out.write<uint64_t>(hash_bytes(out.str().data(), out.str().size()));
  out.write_bytes(kSealMagic, sizeof kSealMagic);
  return out.take();
}

namespace {

// A file mapped for the object's lifetime.
struct Mapping {
  int file = -1;
  void* data = MAP_FAILED;
  size_t bytes = 0;
  explicit Mapping(const std::string& path) : file(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info {};
    if (file < 0 || fstat(file, &info) != 0 || info.st_size <= 0) return;
    bytes = static_cast<size_t>(info.st_size);
    data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data != MAP_FAILED) munmap(data, bytes);
    if (file >= 0) close(file);
  }
  std::span<const std::byte> span() const {
    return data == MAP_FAILED ? std::span<const std::byte>() : std::span(static_cast<const std::byte*>(data), bytes);
  }
};

Status check_whole(std::span<const std::byte> file) {
  auto seal = TW_TRY(read_artifact_seal(file));
  return seal ? check_artifact_seal(file, *seal, true) : Status(Ok{});
}

}  // namespace

Status check_object_seals(const std::string& path) {
  const Mapping file(path);
  auto rest = file.span();
  constexpr std::string_view kArchive = "!<arch>\n";
  if (rest.size() < kArchive.size() || std::memcmp(rest.data(), kArchive.data(), kArchive.size()) != 0)
    return check_whole(rest);
  rest = rest.subspan(kArchive.size());
  // Archive members: a header of 60 bytes with the size as text at offset 48, then the content, at even offsets.
  constexpr size_t kHeader = 60, kSizeAt = 48, kSizeBytes = 10;
  while (rest.size() > kHeader) {
    const auto* digits = reinterpret_cast<const char*>(rest.data()) + kSizeAt;
    uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(digits, digits + kSizeBytes, bytes);
    rest = rest.subspan(kHeader);
    if (error != std::errc() || bytes > rest.size()) break;  // the linker will report it
    TW_TRY_STATUS(check_whole(rest.first(bytes)));
    rest = rest.subspan(std::min<uint64_t>(bytes + bytes % 2, rest.size()));
  }
  return Ok{};
}

Status append_artifact_seal(const std::string& path) {
  auto fail = [&](int error) {
    return Diagnostic(ErrorCode::kCannotWrite, std::string("the file cannot be written: ") + std::strerror(error), path,
                      "check that the folder may be written and has free space");
  };
  int file = open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (file < 0) return fail(errno);
  struct stat info {};
  void* data = fstat(file, &info) == 0
                   ? mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file, 0)
                   : MAP_FAILED;
  if (data == MAP_FAILED) {
    int error = errno;
    close(file);
    return fail(error);
  }
  auto seal = make_artifact_seal({static_cast<const std::byte*>(data), static_cast<size_t>(info.st_size)});
  munmap(data, static_cast<size_t>(info.st_size));
  ssize_t written = seal.ok() ? write(file, seal->data(), seal->size()) : 0;
  int error = written < 0 ? errno : ENOSPC;
  if (close(file) != 0) written = -1, error = errno;
  if (!seal.ok()) return std::move(seal).error().at(path);
  if (written != static_cast<ssize_t>(seal->size())) return fail(error);
  return Ok{};
}

Result<std::optional<ArtifactSeal>> read_artifact_seal(std::span<const std::byte> file) {
  if (file.size() < kSealBytes ||
      std::memcmp(file.data() + file.size() - sizeof kSealMagic, kSealMagic, sizeof kSealMagic) != 0)
    return std::optional<ArtifactSeal>();
  auto trailer = file.last(kSealBytes);
  ByteReader in(trailer);
  ArtifactSeal seal;
  for (uint64_t* field :
       {&seal.elf_bytes, &seal.params_offset, &seal.params_bytes, &seal.content_hash, &seal.params_hash})
    *field = in.read<uint64_t>();
  uint64_t fields = in.position();
  if (in.read<uint64_t>() != hash_bytes(trailer.data(), fields) || seal.elf_bytes != file.size() - kSealBytes ||
      seal.params_offset > seal.elf_bytes || seal.params_bytes > seal.elf_bytes - seal.params_offset)
    return damaged("the artifact's check sums are damaged");
  return std::optional<ArtifactSeal>(seal);
}

Status check_artifact_seal(std::span<const std::byte> file, const ArtifactSeal& seal, bool params_too) {
  auto elf = file.first(seal.elf_bytes);
  if (hash_content(elf, seal) != seal.content_hash)
    return damaged("the artifact's content does not match its check sum");
  if (params_too && hash_bytes(elf.data() + seal.params_offset, seal.params_bytes) != seal.params_hash)
    return damaged("the artifact's weights do not match their check sum");
  return Ok{};
}

}  // namespace tilewright
