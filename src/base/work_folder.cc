// SPDX-License-Identifier: Apache-2.0
#include "base/work_folder.h"

#include <ftw.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"

namespace tilewright {

Diagnostic cannot_write(const std::string& path, const std::string& why) {
  return Diagnostic(ErrorCode::kCannotWrite, format("the file cannot be written: {}", why), path,
                    "check that the folder exists, may be written and has free space");
}

Result<WorkFolder> WorkFolder::beside(const std::string& path) {
  std::string pattern = path + ".tmp.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return cannot_write(path, std::strerror(errno));
  return WorkFolder(std::move(pattern));
}

WorkFolder::~WorkFolder() {
  if (path_.empty()) return;
  nftw(
      path_.c_str(), [](const char* each, const struct stat*, int, FTW*) { return std::remove(each); }, 8,
      FTW_DEPTH | FTW_PHYS);
}

}  // namespace tilewright
