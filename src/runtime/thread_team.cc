// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_team.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <system_error>

namespace tilewright::runtime {
namespace {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

long futex(const std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

void WaitWord::advance() {
  // Sequentially consistent on both sides: either we see the sleeper's count, or the sleeper sees the new word and does
  // not sleep.
  word_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex(word_, FUTEX_WAKE, INT_MAX);
}

template <class Spinning>
bool WaitWord::wait_while(uint32_t old, int spin_us, const Spinning& spinning) {
  if (load() != old) return false;
  if (spin_us > 0) {
    auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(spin_us);
    do {
      for (int i = 0; i < 32; ++i) {
        if (load() != old) return false;
        pause();
      }
    } while (spinning() && std::chrono::steady_clock::now() < end);
  }
  sleep_while(old);
  return true;
}

void WaitWord::sleep_while(uint32_t old) {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (word_.load(std::memory_order_seq_cst) == old) futex(word_, FUTEX_WAIT, old);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

ThreadTeam::ThreadTeam(int threads, int spin_us)
    : spin_us_(spin_us), owner_(getpid()), places_(static_cast<size_t>(std::max(threads, 1))) {
  if (threads <= 1) return;
  // Workers block all signals: those are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  seen(0);
  workers_.reserve(static_cast<size_t>(threads) - 1);
  try {
    for (int tid = 1; tid < threads; ++tid) workers_.emplace_back([this, tid] { worker(tid); });
  } catch (const std::system_error&) {
    // Fewer threads are fine, since results do not depend on their number.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  size_ = 1 + static_cast<int>(workers_.size());
  alone_ = size_ == 1;
}

ThreadTeam::~ThreadTeam() {
  if (getpid() != owner_) {
    for (auto& w : workers_) w.detach();
    return;
  }
  stop_ = true;
  start_.advance();
  for (auto& w : workers_) w.join();
}

void ThreadTeam::run(Work work, void* context) {
  alone_ = size_ == 1 || getpid() != owner_;
  if (alone_) return work(context, 0, 1);
  work_ = work;
  context_ = context;
  seen(0);
  start_.advance();
  work(context, 0, size_);
  barrier(0);
  settled_.store(true, std::memory_order_relaxed);
}

void ThreadTeam::seen(int tid) {
  places_[static_cast<size_t>(tid)].processor.store(sched_getcpu(), std::memory_order_relaxed);
}

void ThreadTeam::spread(int tid) {
  seen(tid);
  if (tid == 0 || settled_.load(std::memory_order_relaxed)) return;
  const Place& mine = places_[static_cast<size_t>(tid)];
  const int here = mine.processor.load(std::memory_order_relaxed);
  auto shares = [&](const Place& p) { return &p != &mine && p.processor.load(std::memory_order_relaxed) == here; };
  if (std::none_of(places_.begin(), places_.end(), shares)) return;
  std::lock_guard<std::mutex> lock(spreading_);
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;  // more processors than cpu_set_t holds
  cpu_set_t free = allowed;
  for (const Place& p : places_)
    if (const int there = p.processor.load(std::memory_order_relaxed); there >= 0)
      CPU_CLR(static_cast<size_t>(there), &free);
  if (CPU_COUNT(&free) == 0 || sched_setaffinity(0, sizeof free, &free) != 0) return;
  sched_setaffinity(0, sizeof allowed, &allowed);  // it has moved; the scheduler is free again
  seen(tid);
}

bool ThreadTeam::may_spin(int tid) const {
  const int here = sched_getcpu();
  const uint32_t mine = places_[static_cast<size_t>(tid)].meetings.load(std::memory_order_relaxed);
  for (const Place& p : places_)
    if (p.processor.load(std::memory_order_relaxed) == here && p.meetings.load(std::memory_order_relaxed) != mine)
      return false;
  return true;
}

void ThreadTeam::barrier(int tid) {
  if (alone_) return;
  uint32_t phase = phase_.load();  // cannot change before this thread arrives
  seen(tid);
  std::atomic<uint32_t>& meetings = places_[static_cast<size_t>(tid)].meetings;
  meetings.store(meetings.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.advance();
  } else if (phase_.wait_while(phase, spin_us_, [&] { return may_spin(tid); })) {
    spread(tid);
  }
}

void ThreadTeam::worker(int tid) {
  auto caller_elsewhere = [this] { return places_[0].processor.load(std::memory_order_relaxed) != sched_getcpu(); };
  spread(tid);
  for (uint32_t begun = 0;;) {
    start_.wait_while(begun, spin_us_, caller_elsewhere);
    ++begun;
    if (stop_) return;
    spread(tid);
    work_(context_, tid, size_);
    barrier(tid);
  }
}

}  // namespace tilewright::runtime
