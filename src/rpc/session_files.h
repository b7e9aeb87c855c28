// SPDX-License-Identifier: Apache-2.0
// The folder of a session: files by base names, nothing outside of it, and no more than a session may send.
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
  // An existing folder. Error: FileNotFound.
  static Result<std::shared_ptr<SessionFiles>> open(const std::string& folder);
  SessionFiles(const SessionFiles&) = delete;
  SessionFiles& operator=(const SessionFiles&) = delete;
  ~SessionFiles();

  // A file of `bytes`, which `read` brings piece by piece. Errors: InvalidArgument (a name that is no base name),
  // LimitExceeded, CannotWrite; those of `read`.
  Status write(const std::string& name, uint64_t bytes, const std::function<Status(std::span<char>)>& read);
  // The same for an open file of the folder that has no name yet. Errors: as write; CannotWrite where it is not whole.
  Status adopt(const std::string& name, uint64_t bytes, int file);
  // Errors: InvalidArgument, FileNotFound, LimitExceeded.
  Result<std::string> read(const std::string& name) const;
  Status remove(const std::string& name) const;
  // Where it lies, for a loader. Error: InvalidArgument.
  Result<std::string> path(const std::string& name) const;
  std::vector<std::string> names() const;
  const std::string& folder() const { return folder_; }

 private:
  Status take_place(const std::string& name, uint64_t bytes);  // of a file that is to come
  SessionFiles(std::string folder, int descriptor) : folder_(std::move(folder)), descriptor_(descriptor) {}
  std::string folder_;
  int descriptor_;
  uint64_t written_ = 0;
};

// The functions that a session calls at its server, under their classic names ("tvm.rpc.server.upload", ...,
// "runtime.RPCTimeEvaluator"), in this process's table of functions.
Status register_session_functions(const std::shared_ptr<SessionFiles>& files);

}  // namespace tilewright::rpc
