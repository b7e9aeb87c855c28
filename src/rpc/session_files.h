// SPDX-License-Identifier: Apache-2.0
// A session's folder: files by base name only, with a limit on their total size.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tilewright::rpc {

class SessionFiles {
 public:
  // Opens an existing folder. Error: FileNotFound.
  static Result<std::shared_ptr<SessionFiles>> open(const std::string& folder);
  SessionFiles(const SessionFiles&) = delete;
  SessionFiles& operator=(const SessionFiles&) = delete;
  ~SessionFiles();

  // Writes a file of `bytes`, delivered in pieces by `read`. Errors: InvalidArgument (not a base name), LimitExceeded,
  // CannotWrite; those of `read`.
  Status write(const std::string& name, uint64_t bytes, const std::function<Status(std::span<char>)>& read);
  // The same for an open, still unnamed file in the folder. Errors: as write; CannotWrite if it is incomplete.
  Status adopt(const std::string& name, uint64_t bytes, int file);
  // Errors: InvalidArgument, FileNotFound, LimitExceeded.
  Result<std::string> read(const std::string& name) const;
  Status remove(const std::string& name) const;
  // The path of a file, for loaders. Error: InvalidArgument.
  Result<std::string> path(const std::string& name) const;
  std::vector<std::string> names() const;
  const std::string& folder() const { return folder_; }

 private:
  Status take_place(const std::string& name, uint64_t bytes);  // for a file about to be written
  SessionFiles(std::string folder, int descriptor) : folder_(std::move(folder)), descriptor_(descriptor) {}
  std::string folder_;
  int descriptor_;
  uint64_t written_ = 0;
};

// Registers the functions that clients call on a server under their classic names ("tvm.rpc.server.upload", ...,
// "runtime.RPCTimeEvaluator") in this process.
Status register_session_functions(const std::shared_ptr<SessionFiles>& files);

}  // namespace tilewright::rpc
