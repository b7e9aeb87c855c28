// SPDX-License-Identifier: Apache-2.0
// Sessions as separate processes: how a server starts and ends one, and what the process does.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"

namespace tilewright::rpc {

struct SessionOptions {
  std::string command;      // run by the shell; empty: this program's verb "session"
  uint64_t memory = 0;      // limit on address space; 0: by the machine's memory
  std::string work_folder;  // parent of the sessions' folders; empty: $TMPDIR or /tmp
};

// A running session: its process group and its folder. The destructor removes both.
class SessionProcess {
 public:
  // The process uses `socket` as descriptor 3. Errors: CannotWrite, LinkFailed (it cannot be started).
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

// Run by the process: applies the limits, changes to `folder`, and serves `socket` until it ends. Errors: those of
// Endpoint::serve.
Status serve_session(int socket, const std::string& folder, uint64_t memory);

}  // namespace tilewright::rpc
