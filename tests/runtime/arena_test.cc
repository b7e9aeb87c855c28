// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/thread_team.h"

namespace tilewright::runtime {
namespace {

constexpr uint64_t kBytes = uint64_t{96} << 20;

// How many of the arena's pages have memory. (Faults would count wrongly: under pressure newer kernels share pages of
// zeros again.)
size_t resident_pages(const Arena& arena, uint64_t bytes) {
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(mincore(arena.data(), bytes, pages.data()), 0);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

TEST(Arena, ALargeOneIsKeptForTheNext) {
  auto arena = Arena::allocate(kBytes);
  ASSERT_TRUE(arena.ok());
  EXPECT_LT(resident_pages(*arena, kBytes), kBytes / 4096);
  std::memset(arena->data(), 1, kBytes);
  const std::byte* data = arena->data();
  *arena = Arena();
  auto smaller = Arena::allocate(kBytes - (kBytes >> 3));
  ASSERT_TRUE(smaller.ok());
  EXPECT_EQ(smaller->data(), data);
  std::memset(smaller->data(), 1, kBytes - (kBytes >> 3));
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
  EXPECT_EQ(resident_pages(*arena, kBytes + 4096), kBytes / 4096 + 1);
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
