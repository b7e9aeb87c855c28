// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads that enter a run together, meet at barriers and leave together. The caller is thread 0.
// Waiting threads spin for a bounded time, then sleep in the kernel: a meeting of busy threads costs about 0.1 us, and
// an idle or oversubscribed machine is left alone. A thread that waits for one of its own processor sleeps at once,
// since spinning would only hold up what it waits for. Threads are never pinned, but one that begins on a processor
// where another of the team is moves to a free one first: a system of virtual processors may leave both there for a
// tenth of a second.
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
  // Changes the word and wakes whoever sleeps on it.
  void advance();
  // Spins for at most `spin_us`, and for as long as spinning() says that it may help. Whether it slept.
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

  // Starts threads-1 workers, fewer when the system refuses more; size() says how many there are.
  ThreadTeam(int threads, int spin_us);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }
  // Calls work(context, tid, n) on all n threads and returns when every call has returned. Not reentrant.
  void run(Work work, void* context);
  // All threads of the current run() meet here; what one wrote before is visible to all after.
  void barrier(int tid);

 private:
  // What others may know of a thread.
  struct alignas(64) Place {
    std::atomic<int> processor{-1};  // where it was last seen
    std::atomic<uint32_t> meetings{0};
  };

  void worker(int tid);
  void seen(int tid);
  // Notes where the thread is. Until the first run is over a worker that is where another thread was moves to where
  // none was, if it may.
  void spread(int tid);
  // Nobody who is missing at the meeting where thread `tid` waits was last seen on its processor.
  bool may_spin(int tid) const;

  int size_ = 1, spin_us_;
  pid_t owner_;  // a forked child has no workers and runs alone
  Work work_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  bool alone_ = true;
  alignas(64) WaitWord start_;
  alignas(64) WaitWord phase_;
  alignas(64) std::atomic<int> arrived_{0};
  std::vector<Place> places_;  // by thread
  std::mutex spreading_;       // one finds its place after the other
  std::atomic<bool> settled_{false};
  std::vector<std::thread> workers_;
};

}  // namespace tilewright::runtime
