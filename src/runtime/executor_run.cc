// SPDX-License-Identifier: Apache-2.0
// The part of the executor that runs steps; unlike the rest it is compiled for speed.
#include <algorithm>
#include <chrono>

#include "runtime/claim.h"
#include "runtime/cpu.h"
#include "runtime/executor.h"

namespace tilewright::runtime {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

inline void Executor::run_kernel(const Call& call, void* const* arguments, int tid, int threads) {
  Status status = call.kernel.run(arguments + call.first_argument, tid, threads);
  if (!status.ok()) fail(std::move(status).error());
}

void Executor::walk(int tid, int threads) {
  FlushDenormals flush;
  void* const* arguments = now_->arguments.data() + static_cast<size_t>(tid) * now_->arguments_per_thread;
  const Call* calls = now_->calls.data();
  for (size_t i = first_call_; i < last_call_; ++i) {
    const Call& call = calls[i];
    if (threads > 1 && call.meet_before && i != first_call_) team_->barrier(tid);
    if (failed_.load(std::memory_order_relaxed)) continue;
    if (call.parallel)
      run_kernel(call, arguments, tid, threads);
    else if (tid == 0 && call.kernel)
      run_kernel(call, arguments, 0, 1);
    else if (tid == 0)
      run_special(call, arguments);
  }
}

void Executor::walk_timed(int tid, int threads) {
  FlushDenormals flush;
  void* const* arguments = now_->arguments.data() + static_cast<size_t>(tid) * now_->arguments_per_thread;
  const std::vector<Call>& calls = now_->calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    team_->barrier(tid);
    if ((!call.parallel && tid != 0) || failed_.load(std::memory_order_relaxed)) continue;
    Interval& time = times_[i * static_cast<size_t>(team_->size()) + static_cast<size_t>(tid)];
    time.begin_ns = now_ns();
    if (call.kernel)
      run_kernel(call, arguments, tid, call.parallel ? threads : 1);
    else
      run_special(call, arguments);
    time.end_ns = now_ns();
  }
}

void Executor::call_entry() {
  std::vector<void*> inputs, outputs;
  for (const Slot& slot : now_->inputs) inputs.push_back(slot.data);
  for (const Slot& slot : now_->outputs) outputs.push_back(slot.data);
  artifact_->run_entry(inputs.data(), outputs.data(), arena_->data());
}

void Executor::run_special(const Call& call, void* const* arguments) {
  Status status = now_->specials[call.first_argument].run(arguments);
  if (!status.ok()) fail(std::move(status).error());
}

void Executor::fail(Diagnostic why) {
  if (failing_.exchange(true, std::memory_order_relaxed)) return;
  failure_ = std::move(why);
  failed_.store(true, std::memory_order_relaxed);
}

Status Executor::finish() {
  if (now_->sized)
    for (size_t i = 0; i < now_->outputs.size(); ++i) now_->sized->write(i, now_->outputs[i].data);
  if (!failed_.exchange(false, std::memory_order_relaxed)) return Ok{};
  failing_.store(false, std::memory_order_relaxed);
  return std::move(failure_);
}

Status Executor::run() { return run_steps(0, now_->calls.size()); }

Status Executor::run_steps(size_t first, size_t last) {
  Claim claim(running_);
  TW_TRY_STATUS(claim.status());
  TW_TRY_STATUS(prepare());
  if (generated_entry_ && first == 0 && last >= now_->calls.size()) {
    call_entry();
    return Ok{};
  }
  first_call_ = first;
  last_call_ = std::min(last, now_->calls.size());
  if (!now_->shares) {
    walk(0, 1);
    return finish();
  }
  team_->run([](void* self, int tid, int threads) { static_cast<Executor*>(self)->walk(tid, threads); }, this);
  return finish();
}

}  // namespace tilewright::runtime
