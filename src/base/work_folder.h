// SPDX-License-Identifier: Apache-2.0
// Writes files atomically: a folder beside the target, then a rename.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace tilewright {

Diagnostic cannot_write(const std::string& path, const std::string& why);

// A new folder; the destructor removes it with its content.
class WorkFolder {
 public:
  // Named after `path` and on the same file system, so that the result can be renamed. Error: CannotWrite.
  static Result<WorkFolder> beside(const std::string& path);
  // In $TMPDIR, or /tmp.
  static Result<WorkFolder> temporary(const std::string& name);
  WorkFolder(WorkFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();
  const std::string& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Writes a file in a work folder; errors name `result`, of which it will be a part. Error: CannotWrite.
Status write_part(const std::string& file, std::string_view bytes, const std::string& result);
// Writes `path` atomically. Error: CannotWrite.
Status write_whole(const std::string& path, std::string_view bytes);

// Removes all work folders of this process, before it ends without destructors; a thread that requests another folder
// then blocks until the end.
void remove_work_folders();

}  // namespace tilewright
