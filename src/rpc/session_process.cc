// SPDX-License-Identifier: Apache-2.0
#include "rpc/session_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/format.h"
#include "rpc/endpoint.h"
#include "rpc/session_files.h"

namespace tilewright::rpc {
namespace {

constexpr int kSessionSocket = 3;

// The environment passed to a session: nothing that gives access to a token.
std::vector<std::string> session_environment(const std::string& folder, uint64_t memory) {
  std::vector<std::string> out;
  for (char** one = environ; *one; ++one)
    if (!std::string_view(*one).starts_with("TILEWRIGHT_TOKEN=") && !std::string_view(*one).starts_with("TMPDIR=") &&
        !std::string_view(*one).starts_with("TILEWRIGHT_SESSION_"))
      out.emplace_back(*one);
  out.push_back("TMPDIR=" + folder);
  out.push_back("TILEWRIGHT_SESSION_FOLDER=" + folder);
  out.push_back(format("TILEWRIGHT_SESSION_MEMORY={}", memory));
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Status limit(int resource, rlim_t value) {
  rlimit now{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlim_t most = std::min(value, now.rlim_max);
  const rlimit next{most, most};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &next) != 0)
    return Diagnostic(ErrorCode::kLimitExceeded,
                      format("a limit of a session cannot be set: {}", std::strerror(errno)));
  return Ok{};
}

Status take_limits(uint64_t memory) {
  const auto pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  const uint64_t machine = static_cast<uint64_t>(std::max(pages, 0L)) * static_cast<uint64_t>(std::max(page, 0L));
  // Leaves room for mappings that are never touched: libraries, thread stacks.
  TW_TRY_STATUS(limit(RLIMIT_AS, memory > 0 ? memory : 2 * machine));
  TW_TRY_STATUS(limit(RLIMIT_CORE, 0));
  TW_TRY_STATUS(limit(RLIMIT_NOFILE, 1024));
  TW_TRY_STATUS(limit(RLIMIT_FSIZE, 2 * kMaxTransfer));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return Diagnostic(ErrorCode::kLimitExceeded, "a session cannot be confined on this system");
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<SessionProcess>> SessionProcess::start(const SessionOptions& options, int socket) {
  const char* temporary = std::getenv("TMPDIR");
  std::string folder = (!options.work_folder.empty() ? options.work_folder
                        : temporary                  ? temporary
                                                     : "/tmp") +
                       std::string("/tilewright-session-XXXXXX");
  if (!::mkdtemp(folder.data()))
    return Diagnostic(ErrorCode::kCannotWrite, format("no folder for a session: {}", std::strerror(errno)), folder);
  std::vector<std::string> command{"/proc/self/exe", "session"};
  if (!options.command.empty()) command = {"/bin/sh", "-c", "exec " + options.command};
  auto environment = session_environment(folder, options.memory);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  // Moved first: if it were descriptor 3 already, dup2 would keep its close-on-exec flag.
  const int moved = ::fcntl(socket, F_DUPFD_CLOEXEC, kSessionSocket + 1);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, moved, kSessionSocket);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&usual, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t process = -1;
  const int why = ::posix_spawn(&process, command[0].c_str(), &files, &attributes, pointers(command).data(),
                                pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(moved);
  if (why != 0) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    return Diagnostic(ErrorCode::kLinkFailed, format("a session cannot be started: {}", std::strerror(why)),
                      command[0]);
  }
  return std::unique_ptr<SessionProcess>(new SessionProcess(process, folder));
}

bool SessionProcess::has_ended() {
  if (!ended_) {
    siginfo_t info{};  // not reaped: the pid stays reserved until the group is gone
    ended_ = ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  }
  return ended_;
}

void SessionProcess::kill() { ::kill(-process_, SIGKILL); }

SessionProcess::~SessionProcess() {
  kill();  // including its child processes
  ::waitpid(process_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Status serve_session(int socket, const std::string& folder, uint64_t memory) {
  TW_TRY_STATUS(take_limits(memory));
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  const auto files = TW_TRY(SessionFiles::open(folder));
  if (::chdir(folder.c_str()) != 0) return Diagnostic(ErrorCode::kFileNotFound, std::strerror(errno), folder);
  TW_TRY_STATUS(register_session_functions(files));
  auto endpoint = std::make_shared<Endpoint>(descriptor_channel(socket), 0);
  endpoint->take_uploads(
      [files](const std::string& name, uint64_t bytes, const auto& read) { return files->write(name, bytes, read); },
      [files](const std::string& name, uint64_t bytes, int file) { return files->adopt(name, bytes, file); });
  Status served = endpoint->serve();
  endpoint->shutdown();
  return served;
}

}  // namespace tilewright::rpc
