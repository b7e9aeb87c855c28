// SPDX-License-Identifier: Apache-2.0
#include "tune/measurer.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>

#include "base/format.h"

namespace tilewright::tune {
namespace {

constexpr size_t kMostHeard = size_t{64} << 20;  // maximum length of a line
constexpr double kPoll = 0.1;                    // seconds between checks for interruption

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TrialResult failed(MeasureError error, std::string message, double seconds) {
  TrialResult out;
  out.error = error, out.message = std::move(message), out.seconds = seconds;
  return out;
}

}  // namespace

Result<std::unique_ptr<TrialProcess>> TrialProcess::start(const std::vector<std::string>& command) {
  auto cannot = [&](int error) {
    return Diagnostic(ErrorCode::kLinkFailed,
                      format("'{}', which measures kernels, cannot be started: {}", command[0], std::strerror(error)));
  };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return cannot(errno);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return cannot(error);
  }
  return std::unique_ptr<TrialProcess>(new TrialProcess(child, ends[0]));
}

TrialProcess::~TrialProcess() {
  ::close(channel_);
  kill(-process_, SIGKILL);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
}

bool TrialProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::send(channel_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

TrialProcess::Heard TrialProcess::hear(double seconds, std::string* line) {
  const double end = seconds_now() + seconds;
  for (;;) {
    if (const size_t at = heard_.find('\n'); at != std::string::npos) {
      *line = heard_.substr(0, at);
      heard_.erase(0, at + 1);
      return Heard::kLine;
    }
    if (heard_.size() > kMostHeard) return Heard::kEnd;
    const double left = end - seconds_now();
    if (left <= 0) return Heard::kNothing;
    pollfd wait{channel_, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(left * 1000) + 1);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    char bytes[4096];
    const ssize_t n = ::recv(channel_, bytes, sizeof bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Heard::kEnd;
    heard_.append(bytes, static_cast<size_t>(n));
  }
}

Measurer::Measurer(std::vector<std::string> command, MeasureLimits limits, std::function<bool()> interrupted)
    : command_(std::move(command)), limits_(limits), interrupted_(std::move(interrupted)) {}

double Measurer::patience(const Batch& batch, Message::Kind stage) const {
  const auto trials = static_cast<double>(batch.trials.size());
  const TimingOptions& t = batch.timing;
  if (stage == Message::Kind::kBuilding) return limits_.build_seconds * trials;
  if (stage == Message::Kind::kRunning) return limits_.run_seconds;
  const double pauses = (t.cooldown_seconds + t.min_repeat_ms / 1000) * t.repeat;
  return t.seconds + (limits_.run_seconds + 2 * pauses) * trials;
}

Result<Measurer::Attempt> Measurer::attempt(const Batch& batch) {
  if (!folder_) folder_.emplace(TW_TRY(WorkFolder::temporary("tilewright-tune")));
  if (!process_) process_ = TW_TRY(TrialProcess::start(command_));
  Attempt out;
  const double start = seconds_now();
  Batch placed = batch;
  placed.folder = folder_->path();
  auto ended = [&](Attempt::End how) {
    process_.reset();
    ++replaced_;
    out.end = how, out.seconds = seconds_now() - start;
    return out;
  };
  if (!process_->send(to_line(placed))) return ended(Attempt::End::kDied);
  double until = seconds_now() + patience(batch, out.stage);
  for (;;) {
    if (interrupted_ && interrupted_()) {
      process_.reset();
      return Diagnostic(ErrorCode::kInterrupted, "the user interrupted the measurement");
    }
    std::string line;
    const TrialProcess::Heard heard = process_->hear(std::min(kPoll, until - seconds_now()), &line);
    if (heard == TrialProcess::Heard::kEnd) return ended(Attempt::End::kDied);
    if (heard == TrialProcess::Heard::kNothing) {
      if (seconds_now() >= until) return ended(Attempt::End::kTimeout);
      continue;
    }
    Message message = TW_TRY(parse_message(line));
    if (message.kind == Message::Kind::kDone || message.kind == Message::Kind::kFailed) {
      out.end = message.kind == Message::Kind::kDone ? Attempt::End::kDone : Attempt::End::kFailed;
      out.results = std::move(message.results), out.text = std::move(message.text);
      out.seconds = seconds_now() - start;
      if (out.end == Attempt::End::kDone && out.results.size() != batch.trials.size())
        return Diagnostic(ErrorCode::kProtocolError, "a measuring process gave the results of another batch");
      return out;
    }
    out.stage = message.kind, out.trial = std::min(message.trial, batch.trials.size() - 1);
    until = seconds_now() + patience(batch, out.stage);
  }
}

Result<std::vector<TrialResult>> Measurer::measure(const Batch& batch) {
  std::vector<TrialResult> results(batch.trials.size());
  std::deque<std::vector<size_t>> waiting(1);
  for (size_t i = 0; i < batch.trials.size(); ++i) waiting[0].push_back(i);
  while (!waiting.empty()) {
    std::vector<size_t> now = std::move(waiting.front());
    waiting.pop_front();
    if (now.empty()) continue;
    Batch part = batch;
    part.trials.clear();
    for (size_t i : now) part.trials.push_back(batch.trials[i]);
    Attempt a = TW_TRY(attempt(part));
    using End = Attempt::End;
    if (a.end == End::kDone) {
      for (size_t k = 0; k < now.size(); ++k) results[now[k]] = std::move(a.results[k]);
      continue;
    }
    const bool slow = a.end == End::kTimeout;
    const bool alone = now.size() == 1;
    if (a.stage == Message::Kind::kRunning) {
      results[now[a.trial]] =
          failed(slow ? MeasureError::kRunTimeout : MeasureError::kRuntimeDevice,
                 slow ? "the kernel did not end in time" : "the process that ran the kernel was ended", a.seconds);
      now.erase(now.begin() + static_cast<std::ptrdiff_t>(a.trial));
      waiting.push_back(std::move(now));
    } else if (!alone) {
      // The cause is unknown: measure each trial separately.
      for (size_t i : now) waiting.push_back({i});
    } else if (a.stage == Message::Kind::kBuilding) {
      results[now[0]] = failed(slow ? MeasureError::kBuildTimeout : MeasureError::kCompileHost,
                               a.text.empty() ? "the compiler did not come back" : a.text, a.seconds);
    } else {
      results[now[0]] = failed(slow ? MeasureError::kRunTimeout : MeasureError::kRuntimeDevice,
                               a.text.empty() ? "the process that ran the kernel was ended" : a.text, a.seconds);
    }
  }
  return results;
}

}  // namespace tilewright::tune
