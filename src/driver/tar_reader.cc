// SPDX-License-Identifier: Apache-2.0
#include "driver/tar_reader.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace tilewright::driver {
namespace {

constexpr size_t kTarBlock = 512;

Diagnostic damaged_tar(const std::string& what) {
  return {ErrorCode::kBadArtifact, format("the package is damaged: {}", what), {}, "compile the model again"};
}

// Octal digits; above 8 GiB a binary number with the first bit set.
Result<uint64_t> tar_size(const char* field) {
  uint64_t bytes = 0;
  if (static_cast<unsigned char>(field[0]) == 0x80) {
    for (int i = 4; i < 12; ++i) bytes = bytes << 8 | static_cast<unsigned char>(field[i]);
    return bytes;
  }
  for (int i = 0; i < 11; ++i) {
    if (field[i] < '0' || field[i] > '7') return damaged_tar("a member's size is no number");
    bytes = bytes * 8 + static_cast<uint64_t>(field[i] - '0');
  }
  return bytes;
}

}  // namespace

bool is_tar(std::string_view file) { return file.size() > 262 && file.substr(257, 5) == "ustar"; }

Result<std::vector<TarMember>> read_tar(std::span<const std::byte> file) {
  std::vector<TarMember> members;
  for (size_t at = 0;;) {
    if (file.size() - at < kTarBlock) return damaged_tar("it ends early");
    const char* head = reinterpret_cast<const char*>(file.data() + at);
    if (head[0] == '\0') return members;
    if (std::memcmp(head + 257, "ustar", 5) != 0) return damaged_tar("a member has no head");
    const uint64_t bytes = TW_TRY(tar_size(head + 124));
    std::string name(head, strnlen(head, 100));
    if (head[345] != '\0') name = std::string(head + 345, strnlen(head + 345, 155)) + "/" + name;
    at += kTarBlock;
    if (bytes > file.size() - at) return damaged_tar("a member is cut off");
    members.push_back({std::move(name), {reinterpret_cast<const char*>(file.data() + at), bytes}});
    at += std::min<uint64_t>((bytes + kTarBlock - 1) / kTarBlock * kTarBlock, file.size() - at);
  }
}

}  // namespace tilewright::driver
