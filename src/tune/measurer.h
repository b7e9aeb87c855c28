// SPDX-License-Identifier: Apache-2.0
// Measures kernels in a process of its own, which may crash, hang or eat memory: then it is ended, the trial it was at
// gets the classic stack's error number, and the others go on in a fresh one.
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

// A process that takes batches on its standard input and answers there (a socket), in a process group of its own, so
// that Ctrl-C reaches only who started it.
class TrialProcess {
 public:
  // Error: LinkFailed where it cannot be started.
  static Result<std::unique_ptr<TrialProcess>> start(const std::vector<std::string>& command);
  ~TrialProcess();  // ends it
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;

  bool send(const std::string& line);
  enum class Heard { kLine, kNothing, kEnd };
  // Waits at most so long. kEnd: it is gone, or says lines without end.
  Heard hear(double seconds, std::string* line);

 private:
  TrialProcess(pid_t process, int channel) : process_(process), channel_(channel) {}
  pid_t process_;
  int channel_;
  std::string heard_;
};

struct MeasureLimits {
  double build_seconds = 10;  // of one trial
  double run_seconds = 10;    // until a trial's first run ends
};

class Measurer {
 public:
  // `command` starts a measuring process; `interrupted` is asked several times a second.
  explicit Measurer(std::vector<std::string> command, MeasureLimits limits = {},
                    std::function<bool()> interrupted = {});
  // One result for each trial, whatever happens to the process. Errors: Interrupted; LinkFailed, ProtocolError when
  // there is no measuring process.
  Result<std::vector<TrialResult>> measure(const Batch& batch);
  // How often a process had to be replaced.
  int replaced() const { return replaced_; }

 private:
  // What became of some trials of a batch that were measured together.
  struct Attempt {
    enum class End { kDone, kFailed, kDied, kTimeout } end = End::kDone;
    Message::Kind stage = Message::Kind::kBuilding;  // that it ended in
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
