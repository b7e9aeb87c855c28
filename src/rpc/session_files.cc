// SPDX-License-Identifier: Apache-2.0
#include "rpc/session_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "rpc/wire.h"

namespace tilewright::rpc {
namespace {

Status check_base_name(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.size() > 255 || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' is no name of a file in the session's folder", name),
                      "remote", "give a name without folders");
  return Ok{};
}

Diagnostic file_error(const std::string& name, ErrorCode code) {
  return {code, format("'{}': {}", name, std::strerror(errno)), "remote"};
}

class OwnedFile {
 public:
  explicit OwnedFile(int descriptor) : descriptor_(descriptor) {}
  OwnedFile(const OwnedFile&) = delete;
  OwnedFile& operator=(const OwnedFile&) = delete;
  ~OwnedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

Result<std::shared_ptr<SessionFiles>> SessionFiles::open(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return file_error(folder, ErrorCode::kFileNotFound);
  return std::shared_ptr<SessionFiles>(new SessionFiles(folder, descriptor));
}

SessionFiles::~SessionFiles() { ::close(descriptor_); }

Status SessionFiles::take_place(const std::string& name, uint64_t bytes) {
  TW_TRY_STATUS(check_base_name(name));
  if (bytes > kMaxTransfer - std::min(written_, kMaxTransfer))
    return Diagnostic(ErrorCode::kLimitExceeded, format("a session may send files of {} bytes in all", kMaxTransfer),
                      "remote", "connect anew for more");
  written_ += bytes;
  // Always a new file: a library mapped from the old one stays intact.
  ::unlinkat(descriptor_, name.c_str(), 0);
  return Ok{};
}

Status SessionFiles::adopt(const std::string& name, uint64_t bytes, int file) {
  TW_TRY_STATUS(take_place(name, bytes));
  struct stat facts {};
  if (::fstat(file, &facts) != 0 || static_cast<uint64_t>(facts.st_size) != bytes)
    return Diagnostic(ErrorCode::kCannotWrite, format("'{}' could not be written whole", name), "remote",
                      "see whether the server's disk is full");
  if (::linkat(AT_FDCWD, format("/proc/self/fd/{}", file).c_str(), descriptor_, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return file_error(name, ErrorCode::kCannotWrite);
  return Ok{};
}

Status SessionFiles::write(const std::string& name, uint64_t bytes,
                           const std::function<Status(std::span<char>)>& read) {
  TW_TRY_STATUS(take_place(name, bytes));
  const OwnedFile file(::openat(descriptor_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700));
  if (file.get() < 0) return file_error(name, ErrorCode::kCannotWrite);
  std::vector<char> part(std::min<uint64_t>(bytes, 256 << 10));
  while (bytes > 0) {
    const auto piece = std::span(part).first(std::min<uint64_t>(bytes, part.size()));
    TW_TRY_STATUS(read(piece));
    for (size_t at = 0; at < piece.size();) {
      const ssize_t n = ::write(file.get(), piece.data() + at, piece.size() - at);
      if (n < 0 && errno != EINTR) return file_error(name, ErrorCode::kCannotWrite);
      if (n > 0) at += static_cast<size_t>(n);
    }
    bytes -= piece.size();
  }
  return Ok{};
}

Result<std::string> SessionFiles::read(const std::string& name) const {
  TW_TRY_STATUS(check_base_name(name));
  const OwnedFile file(::openat(descriptor_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return file_error(name, ErrorCode::kFileNotFound);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return Diagnostic(ErrorCode::kInvalidArgument, format("'{}' is no file", name), "remote");
  if (static_cast<uint64_t>(facts.st_size) > kMaxTransfer)
    return Diagnostic(ErrorCode::kLimitExceeded, format("'{}' is larger than {} bytes", name, kMaxTransfer), "remote");
  std::string bytes(static_cast<size_t>(facts.st_size), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (n == 0) break;
    if (n < 0 && errno != EINTR) return file_error(name, ErrorCode::kFileNotFound);
    if (n > 0) at += static_cast<size_t>(n);
  }
  bytes.resize(at);
  return bytes;
}

Status SessionFiles::remove(const std::string& name) const {
  TW_TRY_STATUS(check_base_name(name));
  if (::unlinkat(descriptor_, name.c_str(), 0) != 0) return file_error(name, ErrorCode::kFileNotFound);
  return Ok{};
}

Result<std::string> SessionFiles::path(const std::string& name) const {
  TW_TRY_STATUS(check_base_name(name));
  return folder_ + "/" + name;
}

std::vector<std::string> SessionFiles::names() const {
  std::vector<std::string> names;
  DIR* folder = ::opendir(folder_.c_str());
  if (!folder) return names;
  while (const dirent* entry = ::readdir(folder))
    if (check_base_name(entry->d_name).ok()) names.emplace_back(entry->d_name);
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tilewright::rpc
