// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads that run together, synchronised by barriers. The caller is thread 0. Waiting threads spin for
// a bounded time, then sleep in the kernel: a barrier of busy threads costs about 0.1 us, and idle or oversubscribed
// machines are not disturbed. A thread that waits for another on its own processor sleeps at once, since spinning would
// delay the other. Threads are not pinned, but a worker that starts on another team member's processor first moves to a
// free one: on virtual processors the scheduler may leave both there for a tenth of a second.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright::runtime {

// A word that threads wait on until it changes.
class WaitWord {
 public:
  uint32_t load() const { return word_.load(std::memory_order_acquire); }
  // Changes the word and wakes sleepers.
  void advance();
  // Spins for at most `spin_us`, while spinning() says that it may help. Returns whether it slept.
  template <class Spinning>
  bool wait_while(uint32_t old, int spin_us, const Spinning& spinning);

 private:
  void sleep_while(uint32_t old);

  std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> sleepers_{0};
};

class ThreadTeam {
 public:
  using Work = void (*)(void* context, int tid, int threads);

  // Starts threads-1 workers, or fewer if the system refuses more; size() is the actual number.
  ThreadTeam(int threads, int spin_us);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }
  // Calls work(context, tid, n) on all n threads and returns when every call has returned. Not reentrant.
  void run(Work work, void* context);
  // A barrier for all threads of the current run(); writes before it are visible to all behind it.
  void barrier(int tid);

 private:
  // What other threads may read about a thread.
  struct alignas(64) Place {
    std::atomic<int> processor{-1};  // where it last ran
    std::atomic<uint32_t> meetings{0};
  };

  void worker(int tid);
  void seen(int tid);
  // Records where the thread runs. Until the end of the first run, a worker on another member's processor moves to a
  // free one, if allowed.
  void spread(int tid);
  // Whether to spin: no missing thread of the barrier was last seen on this thread's processor.
  bool may_spin(int tid) const;

  int size_ = 1, spin_us_;
  pid_t owner_;  // a forked child has no workers and runs single-threaded
  Work work_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  bool alone_ = true;
  alignas(64) WaitWord start_;
  alignas(64) WaitWord phase_;
  alignas(64) std::atomic<int> arrived_{0};
  std::vector<Place> places_;  // by thread
  std::mutex spreading_;       // one thread at a time chooses its processor
  std::atomic<bool> settled_{false};
  std::vector<std::thread> workers_;
};

}  // namespace tilewright::runtime
