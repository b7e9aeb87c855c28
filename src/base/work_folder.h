// SPDX-License-Identifier: Apache-2.0
// Writing files so that none is seen half done: a folder beside the target, then a rename.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace tilewright {

Diagnostic cannot_write(const std::string& path, const std::string& why);

// A new folder, removed with everything in it when this object goes.
class WorkFolder {
 public:
  // Named after `path`, on the same file system, so that a result can be renamed into place. Error: CannotWrite.
  static Result<WorkFolder> beside(const std::string& path);
  // Below $TMPDIR, or /tmp.
  static Result<WorkFolder> temporary(const std::string& name);
  WorkFolder(WorkFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();
  const std::string& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Writes a new file of a work folder; errors name `result`, which it will be part of. Error: CannotWrite.
Status write_part(const std::string& file, std::string_view bytes, const std::string& result);
// Writes `path` whole or not at all. Error: CannotWrite.
Status write_whole(const std::string& path, std::string_view bytes);

// Removes the folders of all work under way in this process, for one that is about to end without destructors; a thread
// that wants another folder then waits for that end.
void remove_work_folders();

}  // namespace tilewright
