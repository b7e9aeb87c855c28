// SPDX-License-Identifier: Apache-2.0
// A session as a process of its own: how a server starts and ends one, and what that process does.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"

namespace tilewright::rpc {

struct SessionOptions {
  std::string command;      // for the shell; empty: this program's verb "session"
  uint64_t memory = 0;      // bytes of address space; 0: what the machine has
  std::string work_folder;  // where the folders of sessions are made; empty: $TMPDIR or /tmp
};

// A running session: its process group, and its folder. Both are gone when this object is.
class SessionProcess {
 public:
  // The process talks by `socket`, its descriptor 3. Errors: CannotWrite, LinkFailed (it cannot be started).
  static Result<std::unique_ptr<SessionProcess>> start(const SessionOptions& options, int socket);
  SessionProcess(const SessionProcess&) = delete;
  SessionProcess& operator=(const SessionProcess&) = delete;
  ~SessionProcess();
  bool has_ended();
  const std::string& folder() const { return folder_; }
  void kill();

 private:
  SessionProcess(pid_t process, std::string folder) : process_(process), folder_(std::move(folder)) {}
  pid_t process_;
  std::string folder_;
  bool ended_ = false;
};

// What the process does: takes the limits, works in `folder`, serves what comes by `socket` until it ends. Errors:
// those of Endpoint::serve.
Status serve_session(int socket, const std::string& folder, uint64_t memory);

}  // namespace tilewright::rpc
