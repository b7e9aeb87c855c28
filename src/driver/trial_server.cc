// SPDX-License-Identifier: Apache-2.0
#include "driver/trial_server.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "base/format.h"
#include "driver/guarded.h"
#include "driver/trial_module.h"
#include "driver/verify.h"
#include "runtime/artifact.h"
#include "runtime/dltensor.h"
#include "runtime/executor.h"

namespace tilewright::driver {
namespace {
using Clock = std::chrono::steady_clock;
using tune::MeasureError, tune::Message, tune::TimingOptions, tune::TrialResult;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Line-based communication over a socket.
class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}
  bool read(std::string* line) {
    for (;;) {
      if (const size_t end = bytes_.find('\n'); end != std::string::npos) {
        *line = bytes_.substr(0, end);
        bytes_.erase(0, end + 1);
        return true;
      }
      char some[65536];
      const ssize_t n = ::read(socket_, some, sizeof some);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes_.append(some, static_cast<size_t>(n));
    }
  }
  void say(const Message& message) {
    const std::string line = to_line(message) + "\n";
    for (size_t at = 0; at < line.size();) {
      const ssize_t n = ::send(socket_, line.data() + at, line.size() - at, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // the peer is gone; the next read will end this process
      at += static_cast<size_t>(n);
    }
  }

 private:
  int socket_;
  std::string bytes_;
};

// A tensor for the executor; must outlive the call.
DLTensor view_of(const Tensor& tensor) {
  DLTensor out{};
  out.data = const_cast<std::byte*>(tensor.raw());
  out.device = {kDLCPU, 0};
  out.ndim = tensor.rank();
  out.dtype = runtime::to_dlpack(tensor.dtype());
  out.shape = const_cast<int64_t*>(tensor.shape().data());
  return out;
}

// The allowed difference of two kernels' results, relative to the largest: for another order of sums, and Winograd.
double tolerance(DataType dtype) {
  if (!dtype.is_float()) return 0;
  return dtype.bits <= 16 ? 0.05 : 0.005;
}

bool agree(const Tensor& ours, const Tensor& reference) {
  double largest = 0, apart = 0;
  for (int64_t i = 0; i < reference.size(); ++i) {
    const double a = ours.at_double(i), b = reference.at_double(i);
    if (std::isnan(a) != std::isnan(b)) return false;
    if (std::isfinite(b)) largest = std::max(largest, std::fabs(b));
    if (std::isfinite(a) && std::isfinite(b)) apart = std::max(apart, std::fabs(a - b));
  }
  return apart <= tolerance(reference.dtype()) * largest;
}

class BatchRun {
 public:
  BatchRun(const tune::Batch& batch, Channel* channel) : batch_(batch), channel_(*channel) {}

  Result<std::vector<TrialResult>> run() {
    const auto start = Clock::now();
    built_ = TW_TRY(build_trials(batch_));
    const double share = seconds_since(start) / static_cast<double>(batch_.trials.size());
    runtime::ExecutorOptions options;
    options.threads = batch_.timing.threads;
    executor_ = TW_TRY(runtime::Executor::create(TW_TRY(runtime::Artifact::load(built_.path)), options));
    const auto& inputs = executor_->plan().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor values = random_tensor(inputs[i].dtype, inputs[i].shape, 1000 + i);
      const DLTensor view = view_of(values);
      TW_TRY_STATUS(executor_->set_input(i, &view));
    }
    results_.resize(batch_.trials.size());
    for (size_t i = 0; i < results_.size(); ++i) results_[i].seconds = share;
    TW_TRY_STATUS(run_each_once());
    channel_.say({Message::Kind::kTiming, 0, {}, ""});
    const auto timing = Clock::now();
    TW_TRY_STATUS(batch_.timing.repeat > 0 ? time_repeats() : time_in_turns());
    for (TrialResult& r : results_) r.seconds += seconds_since(timing) / static_cast<double>(results_.size());
    return std::move(results_);
  }

 private:
  Status operands(const TrialSteps& trial) {
    for (size_t step : trial.operands) TW_TRY_STATUS(executor_->run_steps(step, step + 1));
    return Ok{};
  }
  // Seconds per run, averaged over `runs`.
  Result<double> timed(const TrialSteps& trial, int runs) {
    const auto start = Clock::now();
    for (int i = 0; i < runs; ++i) TW_TRY_STATUS(executor_->run_steps(trial.kernel, trial.kernel + 1));
    return std::max(seconds_since(start), 1e-9) / runs;
  }

  Status run_each_once() {
    std::vector<Tensor> reference;
    for (size_t i = 0; i < results_.size(); ++i) {
      const TrialSteps& trial = built_.trials[i];
      if (!trial.built) {
        results_[i].error = MeasureError::kInstantiation, results_[i].message = trial.why;
        continue;
      }
      channel_.say({Message::Kind::kRunning, i, {}, ""});
      TW_TRY_STATUS(operands(trial));
      (void)TW_TRY(timed(trial, 1));
      results_[i].error = MeasureError::kNone;
      if (!batch_.timing.check) continue;
      std::vector<Tensor> outputs;
      for (size_t k = 0; k < trial.outputs; ++k) {
        const auto& info = executor_->plan().outputs[trial.first_output + k];
        Tensor values(info.dtype, info.shape);
        const DLTensor view = view_of(values);
        TW_TRY_STATUS(executor_->copy_output(trial.first_output + k, &view));
        outputs.push_back(std::move(values));
      }
      for (size_t k = 0; k < reference.size(); ++k)
        if (!agree(outputs[k], reference[k]))
          results_[i].error = MeasureError::kWrongAnswer,
          results_[i].message = "its results are not those of the first kernel";
      if (reference.empty()) reference = std::move(outputs);
    }
    return Ok{};
  }

  // As the classic stack measures, but every trial once before any is measured again: what disturbs the machine for a
  // while disturbs all of them.
  Status time_repeats() {
    const TimingOptions& t = batch_.timing;
    std::vector<int> numbers(results_.size(), std::max(1, t.number));
    for (int r = 0; r < t.repeat; ++r)
      for (size_t i = 0; i < results_.size(); ++i)
        if (results_[i].error == MeasureError::kNone) TW_TRY_STATUS(time_repeat(i, &numbers[i]));
    return Ok{};
  }
  // `number`: runs in a row, more where they take less time than is asked for.
  Status time_repeat(size_t i, int* number) {
    const TimingOptions& t = batch_.timing;
    TW_TRY_STATUS(operands(built_.trials[i]));
    (void)TW_TRY(timed(built_.trials[i], 1));  // another trial's data is cached
    flush();
    double cost = TW_TRY(timed(built_.trials[i], *number));
    while (cost * *number * 1000 < t.min_repeat_ms && *number < (1 << 24)) {
      const double wanted = t.min_repeat_ms / 1000 / cost * 1.1;
      *number = static_cast<int>(std::min(std::max(wanted, 2.0 * *number), double{1 << 24}));
      cost = TW_TRY(timed(built_.trials[i], *number));
    }
    results_[i].costs.push_back(cost);
    if (t.cooldown_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(t.cooldown_seconds));
    return Ok{};
  }

  // In interleaved rounds, so that disturbances affect all trials: the result is the median over rounds of the ratio to
  // the first trial's time, multiplied by the first trial's usual time. Rounds in which the first trial itself was
  // interrupted say nothing: by them every other trial would be fast.
  Status time_in_turns() {
    std::vector<size_t> in;
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i].error == MeasureError::kNone) in.push_back(i);
    if (in.empty()) return Ok{};
    const size_t first = in[0];
    Rounds rounds(results_.size());
    std::vector<double>& firsts = rounds[first];
    const auto start = Clock::now();
    for (int round = 0; round < kMostRounds; ++round) {
      for (size_t i : in) {
        TW_TRY_STATUS(operands(built_.trials[i]));
        flush();
        rounds[i].push_back(TW_TRY(timed(built_.trials[i], 1)));
      }
      if (round == kRoundsForAll - 1)  // trials far behind need no precise time
        in.erase(std::remove_if(in.begin(), in.end(),
                                [&](size_t i) { return i != first && quotient(rounds[i], firsts) > kFarBehind; }),
                 in.end());
      const double seconds = seconds_since(start), wanted = batch_.timing.seconds;
      if (round >= kRoundsForAll && seconds > wanted &&
          (undisturbed(firsts) >= kRoundsForAll || seconds > kPatience * wanted))
        break;
    }
    std::vector<double> calm;
    for (double cost : firsts)
      if (is_calm(cost, firsts)) calm.push_back(cost);
    for (size_t i = 0; i < results_.size(); ++i)
      if (results_[i].error == MeasureError::kNone)
        results_[i].costs = {median(calm) * (i == first ? 1.0 : quotient(rounds[i], firsts))};
    return Ok{};
  }

  using Rounds = std::vector<std::vector<double>>;  // seconds of each trial in each round that it took part in
  // Whether the first trial took about as long as it does when nothing disturbs it: near its lower quartile, since
  // virtual machines were seen to measure times that are too short, too.
  static bool is_calm(double cost, std::vector<double> firsts) {
    const auto quarter = firsts.begin() + static_cast<std::ptrdiff_t>(firsts.size() / 4);
    std::nth_element(firsts.begin(), quarter, firsts.end());
    return cost <= kDisturbed * *quarter && cost * kDisturbed >= *quarter;
  }
  static int undisturbed(const std::vector<double>& firsts) {
    return static_cast<int>(
        std::count_if(firsts.begin(), firsts.end(), [&](double cost) { return is_calm(cost, firsts); }));
  }
  // A trial's time over the first one's, over the rounds in which the first was not disturbed.
  static double quotient(const std::vector<double>& costs, const std::vector<double>& firsts) {
    std::vector<double> quotients;
    for (size_t r = 0; r < costs.size(); ++r)
      if (is_calm(firsts[r], firsts)) quotients.push_back(costs[r] / firsts[r]);
    // None: the trial left before the first such round.
    return quotients.empty() ? median(costs) / median(firsts) : median(quotients);
  }

  static double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  void flush() {
    if (!batch_.timing.flush_cache) return;
    if (swept_.empty()) swept_.resize(kSweptBytes / sizeof(int64_t), 1);
    for (int64_t& word : swept_) ++word;
  }

  static constexpr int kMostRounds = 400, kRoundsForAll = 3;
  static constexpr double kFarBehind = 1.3, kDisturbed = 1.25, kPatience = 5;
  static constexpr size_t kSweptBytes = size_t{64} << 20;
  const tune::Batch& batch_;
  Channel& channel_;
  BuiltTrials built_;
  std::unique_ptr<runtime::Executor> executor_;
  std::vector<TrialResult> results_;
  std::vector<int64_t> swept_;
};

// Limits memory, so that a runaway kernel or compilation fails instead of exhausting the machine.
void limit_memory(uint64_t bytes) {
#if !defined(__SANITIZE_ADDRESS__)  // a sanitizer's shadow memory exceeds any limit
  if (bytes == 0) {
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || size <= 0) return;
    bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) / 2;
  }
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_DATA, &limit);
#endif
}

}  // namespace

int serve_trials(int channel_number) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with its parent process
  Channel channel(channel_number);
  std::string line;
  bool limited = false;
  while (channel.read(&line)) {
    auto results = guarded([&]() -> Result<std::vector<TrialResult>> {
      const tune::Batch batch = TW_TRY(tune::parse_batch(line));
      if (!limited) limit_memory(batch.timing.memory_bytes);
      limited = true;
      channel.say({Message::Kind::kBuilding, 0, {}, ""});
      return BatchRun(batch, &channel).run();
    });
    if (results.ok())
      channel.say({Message::Kind::kDone, 0, std::move(*results), ""});
    else
      channel.say({Message::Kind::kFailed, 0, {}, results.error().message});
  }
  return 0;
}

}  // namespace tilewright::driver
