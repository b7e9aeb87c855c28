// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"

namespace tilewright::cli {
namespace {

// Signal handlers may do very little, so a thread waits for them and does the work.
struct Watch {
  pid_t process = getpid();
  sem_t signalled{};
  std::atomic<int> number{0};
  std::mutex mutex;
  std::vector<void (*)()> clean;
};
Watch* watch = nullptr;  // set before the handlers are

void on_signal(int number) {
  if (getpid() != watch->process) {  // a child process, which does not have the thread
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  watch->number = number;
  sem_post(&watch->signalled);
}

void wait_and_end() {
  while (sem_wait(&watch->signalled) != 0) {
  }
  const int number = watch->number;
  watch->mutex.lock();  // never unlocked: later callers block until the end
  for (auto* clean : watch->clean) clean();
  const Diagnostic d(ErrorCode::kInterrupted, "the work was interrupted", {}, "nothing half written is left");
  std::fprintf(stderr, "%s%s\n", isatty(2) ? "\r\033[K" : "", d.str().c_str());
  signal(number, SIG_DFL);  // so that the shell sees the signal (status 130 for Ctrl-C)
  kill(getpid(), number);
}

}  // namespace

int unless_interrupted(int code) {
  while (watch != nullptr && watch->number != 0) pause();
  return code;
}

void clean_up_when_interrupted(void (*clean)()) {
  if (watch == nullptr) {
    watch = new Watch;
    sem_init(&watch->signalled, 0, 0);
    for (int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      sigaction(number, nullptr, &action);
      if (action.sa_handler == SIG_IGN) continue;
      action = {};
      action.sa_handler = on_signal;
      action.sa_flags = SA_RESTART;
      sigaction(number, &action, nullptr);
    }
    std::thread(wait_and_end).detach();
  }
  std::lock_guard lock(watch->mutex);
  if (std::find(watch->clean.begin(), watch->clean.end(), clean) == watch->clean.end()) watch->clean.push_back(clean);
}

}  // namespace tilewright::cli
