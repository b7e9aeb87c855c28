// SPDX-License-Identifier: Apache-2.0
// A tuning session for a model: which task is measured next, for how long, and what is kept.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tune/database.h"
#include "tune/search.h"
#include "tune/task.h"
#include "tune/trial.h"

namespace tilewright::tune {

struct TuneOptions {
  double seconds = 60;
  size_t trials = 0;  // maximum per task; 0: limited by time only
  size_t batch = 8;   // trials built and measured together, along with the cost model's choice
  std::string search = "guided";
  uint64_t seed = 0;
  std::string log;            // records are appended to this file; empty: none
  std::vector<Record> known;  // of an earlier session
};

// The state of one task.
struct TaskState {
  const Task* task = nullptr;
  size_t trials = 0, failed = 0;
  double default_seconds = 0;  // of the cost model's choice, when first measured; 0: not yet
  double best_seconds = 0;
  Configuration best;
  std::vector<double> curve;  // the best time after each trial
  bool finished = false;      // no more configurations to try
  double gain() const { return best_seconds > 0 ? default_seconds / best_seconds : 1; }
};

class Tuning {
 public:
  using Measure = std::function<Result<std::vector<TrialResult>>(const Task&, const std::vector<Trial>&)>;
  // Seconds since the start.
  using Now = std::function<double()>;
  // Errors: InvalidArgument (an unknown search).
  static Result<Tuning> make(const std::vector<Task>& tasks, TuneOptions options, Measure measure, Now now);

  // Runs until time or trials are used up; `shown` is called after every batch. Errors: those of measuring (including
  // Interrupted) and of the log; results so far remain valid. InvalidArgument if nothing could be measured.
  Status run(const std::function<void(const Tuning&)>& shown = {});
  const std::vector<TaskState>& states() const { return states_; }
  size_t trials() const;
  double seconds() const { return now_(); }
  // Total time of the model's tunable kernels, tuned or by default.
  double total_seconds(bool tuned) const;
  size_t current() const { return current_; }  // the task measured last

 private:
  Tuning(TuneOptions options, Measure measure, Now now)
      : options_(std::move(options)), measure_(std::move(measure)), now_(std::move(now)) {}
  void recall(size_t task);
  Status step(size_t task);
  Status keep(size_t task, uint64_t index, const TrialResult& result);
  int next() const;  // the task that gets the next batch; -1: none
  // The best of many measurements is in part luck: the best configurations are measured once more, beside the cost
  // model's choice alone, and the later time counts.
  Status confirm(size_t task);
  void take_best(size_t task);
  double seconds_to_confirm() const;
  std::optional<double> seconds_elsewhere(const Task& task) const;
  size_t most_trials() const;  // of a task, before it is confirmed

  TuneOptions options_;
  Measure measure_;
  Now now_;
  std::vector<TaskState> states_;
  std::vector<std::unique_ptr<Search>> searches_;
  std::vector<size_t> idle_;                       // batches since each task's last improvement
  std::vector<std::map<uint64_t, double>> costs_;  // of each task's configurations that worked
  std::vector<std::set<uint64_t>> confirmed_;
  size_t current_ = 0, steps_ = 0;
  std::string failure_;  // why the cost model's choice of a task could not be measured
};

}  // namespace tilewright::tune
