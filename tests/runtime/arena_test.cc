// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>

#include "runtime/thread_team.h"

namespace tilewright::runtime {
namespace {

constexpr uint64_t kBytes = uint64_t{96} << 20;
constexpr int64_t kHugePages = kBytes / kHugePage;  // at least so many faults where nothing was touched before

// Page faults of this process while it writes all of the arena.
int64_t faults_of_writing(const Arena& arena, uint64_t bytes) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  std::memset(arena.data(), 1, bytes);
  getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt - before.ru_minflt;
}

TEST(Arena, ALargeOneIsKeptForTheNext) {
  auto arena = Arena::allocate(kBytes);
  ASSERT_TRUE(arena.ok());
  EXPECT_GE(faults_of_writing(*arena, kBytes), kHugePages);
  const std::byte* data = arena->data();
  *arena = Arena();
  auto smaller = Arena::allocate(kBytes - (kBytes >> 3));
  ASSERT_TRUE(smaller.ok());
  EXPECT_EQ(smaller->data(), data);
  EXPECT_LT(faults_of_writing(*smaller, kBytes - (kBytes >> 3)), kHugePages / 2);
  // One of another magnitude gets memory of its own, and what was kept is not held beside it.
  *smaller = Arena();
  auto larger = Arena::allocate(4 * kBytes);
  ASSERT_TRUE(larger.ok());
  std::memset(larger->data(), 1, 4 * kBytes);
}

TEST(Arena, AllThreadsTouchIt) {
  auto arena = Arena::allocate(kBytes + 4096);
  ASSERT_TRUE(arena.ok());
  ThreadTeam team(3, 0);
  arena->touch(team);
  EXPECT_LT(faults_of_writing(*arena, kBytes + 4096), kHugePages / 2);
}

TEST(Arena, GrowsAndIsAligned) {
  Arena arena;
  for (uint64_t bytes : {uint64_t{1}, uint64_t{4096}, kHugePage, kHugePage + kHugePage / 2, kBytes, 2 * kBytes}) {
    ASSERT_TRUE(arena.grow(bytes).ok());
    EXPECT_EQ(reinterpret_cast<uint64_t>(arena.data()) % (bytes >= kHugePage ? kHugePage : 64), 0);
    std::memset(arena.data(), 1, bytes + 64);
  }
}

}  // namespace
}  // namespace tilewright::runtime
