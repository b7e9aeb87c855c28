// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"

namespace tilewright::onnx {
namespace {

struct Descriptor {
  int fd;
  explicit Descriptor(int f) : fd(f) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

struct Mapping {
  void* data;
  size_t size;
  ~Mapping() { ::munmap(data, size); }
};

Result<SharedBytes> map_descriptor(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return S_ISDIR(info.st_mode)
               ? Diagnostic(ErrorCode::kFileNotFound, "this is a folder, not a file", path, "name the file in it")
               : Diagnostic(ErrorCode::kFileNotFound, "this is a device or a pipe, not a file", path,
                            "write it to a file first");
  auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return SharedBytes{};
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED)
    return Diagnostic(ErrorCode::kFileNotFound, format("the file cannot be mapped: {}", std::strerror(errno)), path);
  auto owner = std::make_shared<Mapping>();
  owner->data = data;
  owner->size = size;
  return SharedBytes{{static_cast<const std::byte*>(data), size}, owner, true};
}

}  // namespace

void drop_pages(const SharedBytes& data) {
  const auto begin = reinterpret_cast<uintptr_t>(data.bytes.data()), end = begin + data.bytes.size();
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), first = (begin + page - 1) / page * page,
                  last = end / page * page;
  constexpr size_t kWorthIt = 256 << 10;
  if (data.mapped && data.bytes.size() >= kWorthIt && first < last)
    ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

Result<SharedBytes> map_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0)
    return Diagnostic(ErrorCode::kFileNotFound, format("the file cannot be opened: {}", std::strerror(errno)), path,
                      "check the path and its permissions");
  return map_descriptor(file.fd, path);
}

Result<SharedBytes> map_file_below(const std::string& folder, const std::string& location, bool allow_hard_links) {
  auto refuse = [&](const std::string& why) {
    return Diagnostic(ErrorCode::kMalformedModel, format("the external data file '{}' {}", location, why), "",
                      "external data must be ordinary files inside the model's folder, named by a relative path");
  };
  if (location.empty()) return refuse("has no name");
  if (location.front() == '/' || location.find('\\') != std::string::npos || location.find('\0') != std::string::npos)
    return refuse("is not a plain relative path");
  for (size_t at = 0; at <= location.size();) {
    size_t end = std::min(location.find('/', at), location.size());
    if (location.compare(at, end - at, "..") == 0) return refuse("leaves the model's folder");
    at = end + 1;
  }
  auto current =
      std::make_unique<Descriptor>(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (current->fd < 0) return refuse("has no folder to lie in");
  size_t at = 0;
  while (true) {
    size_t end = location.find('/', at);
    bool last = end == std::string::npos;
    std::string part = location.substr(at, last ? std::string::npos : end - at);
    if (part.empty()) return refuse("is not a plain relative path");
    if (part != ".") {
      int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
      auto next = std::make_unique<Descriptor>(::openat(current->fd, part.c_str(), flags));
      if (next->fd < 0) {
        if (errno == ELOOP || errno == ENOTDIR) return refuse("is reached through a link");
        return Diagnostic(ErrorCode::kFileNotFound,
                          format("the external data file '{}' cannot be opened: {}", location, std::strerror(errno)));
      }
      current = std::move(next);
    } else if (last) {
      return refuse("is a folder");
    }
    if (last) break;
    at = end + 1;
  }
  struct stat info {};
  if (::fstat(current->fd, &info) != 0 || !S_ISREG(info.st_mode)) return refuse("is not a regular file");
  if (info.st_nlink != 1 && !allow_hard_links) return refuse("has several names on disk (hard links)");
  return map_descriptor(current->fd, location);
}

}  // namespace tilewright::onnx
