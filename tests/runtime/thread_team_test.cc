// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

namespace tilewright::runtime {
namespace {

// A run in which the threads write in turns, each after it has met the other.
struct Turns {
  ThreadTeam& team;
  int meetings;
  int64_t sum = 0;

  static void work(void* self, int tid, int threads) {
    auto& t = *static_cast<Turns*>(self);
    for (int i = 0; i < t.meetings; ++i) {
      if (i % threads == tid) t.sum = t.sum * 3 % 1000003 + i;
      t.team.barrier(tid);
    }
  }
  static int64_t expected(int meetings) {
    int64_t sum = 0;
    for (int i = 0; i < meetings; ++i) sum = sum * 3 % 1000003 + i;
    return sum;
  }
};

// Milliseconds of a run.
double run(ThreadTeam& team, int meetings) {
  Turns turns{team, meetings};
  auto begin = std::chrono::steady_clock::now();
  team.run(&Turns::work, &turns);
  auto end = std::chrono::steady_clock::now();
  EXPECT_EQ(turns.sum, Turns::expected(meetings));
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

TEST(ThreadTeam, EveryThreadSeesWhatTheOthersWroteBeforeTheyMet) {
  for (int threads : {1, 2, 3, 5}) {
    for (int spin_us : {0, 50}) {
      ThreadTeam team(threads, spin_us);
      ASSERT_EQ(team.size(), threads);
      for (int repeat = 0; repeat < 20; ++repeat) run(team, 100);
    }
  }
}

// Where the threads of a run are, and where they may be.
struct Places {
  int processor[2] = {-1, -1};
  cpu_set_t allowed[2];

  static void work(void* self, int tid, int) {
    auto& p = *static_cast<Places*>(self);
    p.processor[tid] = sched_getcpu();
    sched_getaffinity(0, sizeof p.allowed[tid], &p.allowed[tid]);
  }
};

// A system of virtual processors starts a thread where its maker is, and leaves both there for many milliseconds.
TEST(ThreadTeam, FirstRunsUseTwoProcessorsAndPinNothing) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one processor";
  constexpr int kTeams = 40;
  int apart = 0;
  for (int i = 0; i < kTeams; ++i) {
    Places places;
    ThreadTeam team(2, 100);
    ASSERT_EQ(team.size(), 2);
    team.run(&Places::work, &places);
    apart += places.processor[0] != places.processor[1];
    for (const cpu_set_t& allowed : places.allowed) EXPECT_TRUE(CPU_EQUAL(&allowed, &before));
  }
  EXPECT_GT(apart, kTeams / 2);
}

// Two threads that share a processor get by without spinning at each other: 500 meetings after a wait of 1 ms each took
// half a second at least.
TEST(ThreadTeam, ThreadsOfOneProcessorDoNotSpin) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  double best = 1e9;
  {
    ThreadTeam team(2, 1000);
    for (int repeat = 0; repeat < 5; ++repeat) best = std::min(best, run(team, 500));
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_LT(best, 250);
}

}  // namespace
}  // namespace tilewright::runtime
