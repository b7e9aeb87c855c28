// SPDX-License-Identifier: Apache-2.0
// Zip archives as .npz files and PyTorch's .pt2 files need them: stored and deflated members, zip64 sizes. Format:
// PKWARE APPNOTE 6.3. Members are found without being unpacked, so that weights stay views of a mapped file
// (docs/decisions/016-zip-archives.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::archive {

// A member of an archive; its bytes are a view of the archive's.
struct ZipMember {
  std::string name;
  std::span<const std::byte> packed;
  uint64_t size = 0;    // unpacked
  uint32_t sum = 0;     // CRC-32 of the unpacked bytes
  uint16_t method = 0;  // 0: stored; 8: deflated
  bool stored() const { return method == 0; }
};

// Whether the bytes begin like a non-empty archive.
bool is_zip(std::span<const std::byte> bytes);

// Errors: MalformedModel (damaged), UnsupportedModel (encrypted, or another compression method), LimitExceeded (more
// than 16 GiB unpacked).
Result<std::vector<ZipMember>> zip_members(std::span<const std::byte> archive);
// Unpacks a member. Errors: MalformedModel (damaged, or a wrong checksum).
Result<std::string> unpack(const ZipMember& member);
// Checks a stored member. Errors: MalformedModel (wrong checksum).
Status check_sum(const ZipMember& member);

struct ZipEntry {
  std::string name, data;
};
// All members, unpacked. Errors: those of zip_members and unpack.
Result<std::vector<ZipEntry>> read_zip(std::span<const std::byte> bytes);
// Stored entries. Errors: LimitExceeded (an entry or the archive of 4 GiB or more).
Result<std::string> write_zip(const std::vector<ZipEntry>& entries);

}  // namespace tilewright::archive
