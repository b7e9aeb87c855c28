// SPDX-License-Identifier: Apache-2.0
#include "tune/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/format.h"

namespace tilewright::tune {
namespace {

double time_of_day() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<Tuning> Tuning::make(const std::vector<Task>& tasks, TuneOptions options, Measure measure, Now now) {
  Tuning out(std::move(options), std::move(measure), std::move(now));
  for (size_t i = 0; i < tasks.size(); ++i) {
    TaskState state;
    state.task = &tasks[i];
    state.best = tasks[i].chosen;
    out.states_.push_back(std::move(state));
    out.searches_.push_back(
        TW_TRY(make_search(out.options_.search, search_space(tasks[i].space), out.options_.seed + i)));
    out.idle_.push_back(0), out.costs_.emplace_back(), out.confirmed_.emplace_back();
    out.recall(i);
  }
  return out;
}

// Uses an earlier session's records. Their times are not comparable: they only tell which configurations are good or
// already tried.
void Tuning::recall(size_t task) {
  TaskState& state = states_[task];
  const std::string key = state.task->workload.key();
  for (const Record& record : options_.known) {
    if (record.key() != key || record.target != state.task->target) continue;
    const auto index = state.task->space.index_of_entity(record.entity);
    const auto configuration = index ? state.task->space.get(*index) : std::nullopt;
    if (!configuration) continue;
    const bool ours = configuration->implementation == state.task->chosen.implementation &&
                      configuration->text == state.task->chosen.text;
    ++state.trials;
    if (!record.ok()) {
      ++state.failed;
    } else {
      if (ours && state.default_seconds == 0) state.default_seconds = record.cost();
      if (state.best_seconds == 0 || record.cost() < state.best_seconds)
        state.best_seconds = record.cost(), state.best = *configuration;
    }
    if (record.ok()) costs_[task][*index] = record.cost(), confirmed_[task].insert(*index);
    state.curve.push_back(state.best_seconds);
    searches_[task]->learn(*index, record.cost());
  }
}

size_t Tuning::trials() const {
  size_t all = 0;
  for (const TaskState& state : states_) all += state.trials;
  return all;
}

double Tuning::total_seconds(bool tuned) const {
  double all = 0;
  for (const TaskState& state : states_) {
    // The model currently uses another task's kernel: that task is tuned.
    if (!state.task->space.index_of(state.task->chosen)) continue;
    const double seconds = tuned && state.gain() >= kLeastGain ? state.best_seconds : state.default_seconds;
    all += seconds * static_cast<double>(state.task->calls);
  }
  return all;
}

// First every task once, most expensive first; then by share of the total time, decreasing for tasks that do not
// improve.
int Tuning::next() const {
  int best = -1;
  double most = -1;
  for (size_t i = 0; i < states_.size(); ++i) {
    const TaskState& state = states_[i];
    if (state.finished || (options_.trials > 0 && state.trials >= most_trials())) continue;
    const auto calls = static_cast<double>(state.task->calls);
    const bool fresh = state.default_seconds == 0;
    const double worth = fresh ? 1e6 + calls * state.task->predicted_us
                               : calls * state.best_seconds / std::pow(1.0 + static_cast<double>(idle_[i]), 1.5);
    if (worth > most) most = worth, best = static_cast<int>(i);
  }
  return best;
}

Status Tuning::keep(size_t task, uint64_t index, const TrialResult& result) {
  if (options_.log.empty()) return Ok{};
  const Task& t = *states_[task].task;
  Record record;
  record.target = t.target, record.name = t.workload.name, record.args = t.workload.args;
  record.index = index, record.entity = t.space.entity(index);
  record.costs = result.costs, record.error = static_cast<int>(result.error);
  record.all_cost = result.seconds, record.timestamp = time_of_day();
  return append_record(options_.log, record);
}

// The time of this task's baseline in another task, whose kernels a build compares with this one's.
std::optional<double> Tuning::seconds_elsewhere(const Task& task) const {
  for (const TaskState& other : states_)
    if (other.default_seconds > 0 && other.task->module.text == task.module.text &&
        other.task->chosen.implementation == task.chosen.implementation && other.task->chosen.text == task.chosen.text)
      return other.default_seconds;
  return std::nullopt;
}

Status Tuning::step(size_t task) {
  TaskState& state = states_[task];
  const KnobSpace& space = state.task->space;
  size_t room = options_.batch;
  if (options_.trials > 0) room = std::min(room, most_trials() - state.trials);
  const bool fresh = state.default_seconds == 0;
  const auto chosen = space.index_of(state.task->chosen);
  if (fresh && chosen && !searches_[task]->seen(*chosen)) searches_[task]->learn(*chosen, 1e9);
  std::vector<uint64_t> indices = searches_[task]->propose(room);
  if (indices.empty() && !fresh) {
    state.finished = true;
    return Ok{};
  }
  std::vector<Trial> trials = {{state.task->chosen.implementation->name, state.task->chosen.text}};
  for (uint64_t index : indices) {
    const Configuration configuration = *space.get(index);
    trials.push_back({configuration.implementation->name, configuration.text});
  }
  std::vector<TrialResult> results = TW_TRY(measure_(*state.task, trials));
  TrialResult& first = results[0];
  if (first.error != MeasureError::kNone) {  // no baseline
    state.finished = true, state.failed += results.size(), state.trials += results.size();
    failure_ = first.message;
    return Ok{};
  }
  // Normalises times to the first batch, since the machine's speed varies over time.
  const double now = first.cost();
  if (fresh) state.default_seconds = state.best_seconds = seconds_elsewhere(*state.task).value_or(now);
  const double scale = state.default_seconds / now;
  if (fresh && chosen) {
    for (double& cost : first.costs) cost *= scale;
    searches_[task]->learn(*chosen, state.default_seconds), ++state.trials;
    state.curve.push_back(state.default_seconds);
    TW_TRY_STATUS(keep(task, *chosen, first));
    costs_[task][*chosen] = state.default_seconds, confirmed_[task].insert(*chosen);
  }
  bool gained = false;
  for (size_t i = 0; i < indices.size(); ++i) {
    TrialResult& result = results[i + 1];
    for (double& cost : result.costs) cost *= scale;
    ++state.trials;
    searches_[task]->learn(indices[i], result.cost());
    if (result.error != MeasureError::kNone) {
      ++state.failed;
    } else if (result.cost() < state.best_seconds) {
      gained = gained || result.cost() * kLeastGain < state.best_seconds;
      state.best_seconds = result.cost(), state.best = *space.get(indices[i]);
    }
    if (result.error == MeasureError::kNone) costs_[task][indices[i]] = result.cost();
    state.curve.push_back(state.best_seconds);
    TW_TRY_STATUS(keep(task, indices[i], result));
  }
  idle_[task] = gained ? 0 : idle_[task] + 1;
  return Ok{};
}

size_t Tuning::most_trials() const { return options_.trials > 4 ? options_.trials - 1 : options_.trials; }

double Tuning::seconds_to_confirm() const {
  constexpr double kOfAStep = 0.6, kShare = 0.25;
  const auto gained =
      std::count_if(states_.begin(), states_.end(), [](const TaskState& s) { return s.gain() >= kLeastGain; });
  const double step = steps_ > 0 ? now_() / static_cast<double>(steps_) : 0;
  return std::min((kOfAStep * static_cast<double>(gained) + 1) * step, kShare * options_.seconds);
}

void Tuning::take_best(size_t task) {
  TaskState& state = states_[task];
  const auto best = std::min_element(costs_[task].begin(), costs_[task].end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == costs_[task].end() || best->second > state.default_seconds)
    state.best = state.task->chosen, state.best_seconds = state.default_seconds;
  else
    state.best = *state.task->space.get(best->first), state.best_seconds = best->second;
}

Status Tuning::confirm(size_t task) {
  constexpr int kAtMost = 3;
  TaskState& state = states_[task];
  for (int i = 0; i < kAtMost && state.gain() >= kLeastGain && now_() < options_.seconds; ++i) {
    if (options_.trials > 0 && state.trials >= options_.trials) break;
    const auto index = state.task->space.index_of(state.best);
    if (!index || !confirmed_[task].insert(*index).second) break;
    std::vector<TrialResult> results =
        TW_TRY(measure_(*state.task, {{state.task->chosen.implementation->name, state.task->chosen.text},
                                      {state.best.implementation->name, state.best.text}}));
    if (results[0].error != MeasureError::kNone) break;
    for (double& cost : results[1].costs) cost *= state.default_seconds / results[0].cost();
    ++state.trials;
    if (results[1].error != MeasureError::kNone)
      ++state.failed, costs_[task].erase(*index);
    else
      costs_[task][*index] = results[1].cost();
    take_best(task);
    state.curve.push_back(state.best_seconds);
    TW_TRY_STATUS(keep(task, *index, results[1]));
  }
  return Ok{};
}

Status Tuning::run(const std::function<void(const Tuning&)>& shown) {
  while (now_() < options_.seconds - seconds_to_confirm()) {
    const int task = next();
    if (task < 0) break;
    current_ = static_cast<size_t>(task);
    TW_TRY_STATUS(step(current_));
    ++steps_;
    if (shown) shown(*this);
  }
  for (size_t i = 0; i < states_.size(); ++i) TW_TRY_STATUS(confirm(i));
  const bool none = std::none_of(states_.begin(), states_.end(), [](const auto& s) { return s.default_seconds > 0; });
  if (none && !failure_.empty())
    return Diagnostic(ErrorCode::kInvalidArgument, "no kernel could be measured here: " + failure_, {},
                      "kernels for another processor are tuned on that processor");
  return Ok{};
}

}  // namespace tilewright::tune
