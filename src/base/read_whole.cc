// SPDX-License-Identifier: Apache-2.0
#include "base/read_whole.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"

namespace tilewright {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{16} << 30;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

Result<std::string> read_whole(const std::string& path) {
  auto fail = [&](const char* doing) {
    return Diagnostic(ErrorCode::kFileNotFound, format("the file cannot be {}: {}", doing, std::strerror(errno)), path,
                      "check the path and its permissions");
  };
  Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return fail("opened");
  struct stat info {};
  if (fstat(file.fd, &info) != 0) return fail("read");
  if (S_ISDIR(info.st_mode)) return Diagnostic(ErrorCode::kFileNotFound, "this is a folder, not a file", path);
  if (static_cast<uint64_t>(info.st_size) > kMaxFileBytes)
    return Diagnostic(ErrorCode::kLimitExceeded, "the file is larger than 16 GiB", path);
  std::string out;
  out.reserve(static_cast<size_t>(info.st_size));
  char part[1 << 16];
  for (;;) {
    ssize_t n = read(file.fd, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail("read");
    if (n == 0) return out;
    out.append(part, static_cast<size_t>(n));
    if (out.size() > kMaxFileBytes)
      return Diagnostic(ErrorCode::kLimitExceeded, "the file is larger than 16 GiB", path);
  }
}

}  // namespace tilewright
