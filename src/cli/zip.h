// SPDX-License-Identifier: Apache-2.0
// Zip archives as far as .npz files need them: stored and deflated entries, zip64 sizes. Format: PKWARE APPNOTE 6.3.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::cli {

struct ZipEntry {
  std::string name, data;
};

// Errors: MalformedModel (damaged, check sums included), LimitExceeded (more than 16 GiB unpacked).
Result<std::vector<ZipEntry>> read_zip(std::span<const std::byte> bytes);
// Stored entries. Errors: LimitExceeded (an entry or the archive of 4 GiB or more).
Result<std::string> write_zip(const std::vector<ZipEntry>& entries);

}  // namespace tilewright::cli
