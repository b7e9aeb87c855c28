// SPDX-License-Identifier: Apache-2.0
#include "base/work_folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "base/format.h"

namespace tilewright {
namespace {

// The open folders. Small rather than fast, since it is part of the runtime library.
struct Open {
  std::string path;
  Open* next;
};
std::mutex open_mutex;
Open* open_folders = nullptr;

[[gnu::cold]] void remove_all(const std::string& path) {
  nftw(
      path.c_str(), [](const char* each, const struct stat*, int, FTW*) { return std::remove(each); }, 8,
      FTW_DEPTH | FTW_PHYS);
}

}  // namespace

[[gnu::cold]] Diagnostic cannot_write(const std::string& path, const std::string& why) {
  return Diagnostic(ErrorCode::kCannotWrite, format("the file cannot be written: {}", why), path,
                    "check that the folder exists, may be written and has free space");
}

[[gnu::cold]] Result<WorkFolder> WorkFolder::beside(const std::string& path) {
  std::string pattern = path + ".tmp.XXXXXX";
  std::lock_guard lock(open_mutex);
  if (mkdtemp(pattern.data()) == nullptr) return cannot_write(path, std::strerror(errno));
  open_folders = new Open{pattern, open_folders};
  return WorkFolder(std::move(pattern));
}

[[gnu::cold]] Result<WorkFolder> WorkFolder::temporary(const std::string& name) {
  const char* folder = std::getenv("TMPDIR");
  return beside(format("{}/{}", folder && *folder ? folder : "/tmp", name));
}

[[gnu::cold]] WorkFolder::~WorkFolder() {
  if (path_.empty()) return;
  remove_all(path_);
  std::lock_guard lock(open_mutex);
  for (Open** at = &open_folders; *at; at = &(*at)->next)
    if (Open* one = *at; one->path == path_) {
      *at = one->next;
      delete one;
      return;
    }
}

Status write_part(const std::string& file, std::string_view bytes, const std::string& result) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int error = fd < 0 ? errno : 0;
  while (error == 0 && !bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n >= 0)
      bytes.remove_prefix(static_cast<size_t>(n));
    else if (errno != EINTR)
      error = errno;
  }
  if (fd >= 0 && close(fd) != 0 && error == 0) error = errno;
  return error == 0 ? Status(Ok{}) : cannot_write(result, std::strerror(error));
}

Status write_whole(const std::string& path, std::string_view bytes) {
  const WorkFolder folder = TW_TRY(WorkFolder::beside(path));
  const std::string whole = folder.path() + "/file";
  TW_TRY_STATUS(write_part(whole, bytes, path));
  return std::rename(whole.c_str(), path.c_str()) == 0 ? Status(Ok{}) : cannot_write(path, std::strerror(errno));
}

void remove_work_folders() {
  open_mutex.lock();  // never unlocked: other threads must not create another folder
  for (const Open* one = open_folders; one; one = one->next)
    for (int attempt = 0; attempt < 50 && access(one->path.c_str(), F_OK) == 0; ++attempt) {
      if (attempt > 0) usleep(1000);  // another thread has just written there
      remove_all(one->path);
    }
}

}  // namespace tilewright
