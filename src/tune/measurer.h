// SPDX-License-Identifier: Apache-2.0
// Measures kernels in a separate process, which may crash, hang or exhaust memory: it is then killed, the current trial
// gets the classic error number, and the rest continues in a new process.
#pragma once
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/work_folder.h"
#include "tune/trial.h"

namespace tilewright::tune {

// A process that receives batches and sends answers over a socket (its standard input), in a process group of its own,
// so that Ctrl-C only reaches its parent.
class TrialProcess {
 public:
  // Error: LinkFailed if it cannot be started.
  static Result<std::unique_ptr<TrialProcess>> start(const std::vector<std::string>& command);
  ~TrialProcess();  // kills it
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;

  bool send(const std::string& line);
  enum class Heard { kLine, kNothing, kEnd };
  // Waits for a line, up to a limit. kEnd: the process has ended, or sent an overlong line.
  Heard hear(double seconds, std::string* line);

 private:
  TrialProcess(pid_t process, int channel) : process_(process), channel_(channel) {}
  pid_t process_;
  int channel_;
  std::string heard_;
};

struct MeasureLimits {
  double build_seconds = 10;  // per trial
  double run_seconds = 10;    // until the end of a trial's first run
};

class Measurer {
 public:
  // `command` starts a measuring process; `interrupted` is polled several times per second.
  explicit Measurer(std::vector<std::string> command, MeasureLimits limits = {},
                    std::function<bool()> interrupted = {});
  // One result per trial, whatever happens to the process. Errors: Interrupted; LinkFailed, ProtocolError if no process
  // can measure.
  Result<std::vector<TrialResult>> measure(const Batch& batch);
  // The number of processes that had to be replaced.
  int replaced() const { return replaced_; }

 private:
  // The outcome of measuring some trials of a batch together.
  struct Attempt {
    enum class End { kDone, kFailed, kDied, kTimeout } end = End::kDone;
    Message::Kind stage = Message::Kind::kBuilding;  // the stage at which it ended
    size_t trial = 0;
    std::vector<TrialResult> results;
    std::string text;
    double seconds = 0;
  };
  Result<Attempt> attempt(const Batch& batch);
  double patience(const Batch& batch, Message::Kind stage) const;
  std::vector<std::string> command_;
  MeasureLimits limits_;
  std::function<bool()> interrupted_;
  std::optional<WorkFolder> folder_;
  std::unique_ptr<TrialProcess> process_;
  int replaced_ = 0;
};

}  // namespace tilewright::tune
