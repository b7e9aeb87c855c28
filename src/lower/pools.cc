// SPDX-License-Identifier: Apache-2.0
#include "lower/pools.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/format.h"

namespace tilewright::lower {
namespace {

constexpr const char* kAlgorithms[] = {"greedy_by_size", "greedy_by_conflicts", "hill_climb"};

using Order = std::vector<size_t>;

int64_t aligned_up(int64_t value, int64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

// The lowest offset in a pool where the buffer overlaps no placed buffer that is live at the same time.
int64_t first_fit(const PooledBuffer& buffer, uint32_t pool, std::span<const PooledBuffer* const> placed) {
  std::vector<std::pair<int64_t, int64_t>> busy;
  for (const PooledBuffer* other : placed)
    if (other->pool == pool && other->meets(buffer)) busy.emplace_back(other->offset, other->offset + other->bytes);
  std::sort(busy.begin(), busy.end());
  int64_t at = 0;
  for (auto [begin, end] : busy) {
    if (at + buffer.bytes <= begin) break;
    at = aligned_up(std::max(at, end), buffer.alignment);
  }
  return at;
}

// Places buffers in order; returns those without room.
Order place_in_order(const Order& order, std::span<PooledBuffer> buffers, std::span<const MemoryPool> pools) {
  std::vector<const PooledBuffer*> placed;
  Order homeless;
  for (size_t i : order) {
    PooledBuffer& b = buffers[i];
    bool found = false;
    for (uint32_t pool : b.pools) {
      const int64_t at = first_fit(b, pool, placed);
      if (pools[pool].limit >= 0 && at + b.bytes > pools[pool].limit) continue;
      b.pool = pool, b.offset = at, found = true;
      placed.push_back(&b);
      break;
    }
    if (!found) homeless.push_back(i);
  }
  return homeless;
}

Order by_size(std::span<const PooledBuffer> buffers) {
  Order order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  return order;
}

Order by_conflicts(std::span<const PooledBuffer> buffers) {
  std::vector<size_t> meetings(buffers.size(), 0);
  for (size_t i = 0; i < buffers.size(); ++i)
    for (const PooledBuffer& other : buffers) meetings[i] += buffers[i].meets(other) ? 1 : 0;
  Order order = by_size(buffers);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return meetings[a] > meetings[b]; });
  return order;
}

// The cost of a plan: unplaced buffers count before everything else.
std::pair<int64_t, int64_t> cost_of(const Order& homeless, std::span<const PooledBuffer> buffers, size_t pools) {
  if (!homeless.empty()) {
    int64_t left = 0;
    for (size_t i : homeless) left += buffers[i].bytes;
    return {left, 0};
  }
  const auto sizes = pool_sizes(buffers, pools);
  return {0, std::accumulate(sizes.begin(), sizes.end(), int64_t{0})};
}

// Hill climbing: repeatedly moves a buffer that limits the plan (it ends the pool, or has no room) to an earlier place
// in the order. Choices are drawn from a generator with a fixed seed: one plan for one model.
Order climb(std::span<PooledBuffer> buffers, std::span<const MemoryPool> pools) {
  const size_t n = buffers.size();
  Order best = by_size(buffers);
  Order homeless = place_in_order(best, buffers, pools);
  auto best_cost = cost_of(homeless, buffers, pools.size());
  const int64_t bound = memory_pressure(buffers);
  const size_t attempts = n < 2 ? 0 : std::min<size_t>(2000, 200'000'000 / (n * n) + 1);
  uint64_t state = 0x9e3779b97f4a7c15u;
  auto below = [&](size_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % limit);
  };
  Order current = best;
  for (size_t k = 0; k < attempts && !(best_cost.first == 0 && best_cost.second <= bound); ++k) {
    homeless = place_in_order(current, buffers, pools);
    Order guilty = homeless;
    const auto sizes = pool_sizes(buffers, pools.size());
    for (size_t i = 0; guilty.empty() && i < n; ++i)
      if (buffers[i].bytes > 0 && buffers[i].offset + buffers[i].bytes == sizes[buffers[i].pool]) guilty.push_back(i);
    if (guilty.empty()) break;
    Order next = current;
    // One move in four takes any buffer, to leave local optima.
    const size_t moved = below(4) == 0 ? current[below(n)] : guilty[below(guilty.size())];
    const auto from = std::find(next.begin(), next.end(), moved);
    const size_t place = static_cast<size_t>(from - next.begin());
    next.erase(from);
    next.insert(next.begin() + static_cast<std::ptrdiff_t>(below(place + 1)), moved);
    const auto cost = cost_of(place_in_order(next, buffers, pools), buffers, pools.size());
    if (cost > best_cost) continue;
    current = next;
    best_cost = cost, best = next;
  }
  return best;
}

std::string list_of(std::span<const MemoryPool> pools, const std::vector<uint32_t>& which) {
  std::string out;
  for (uint32_t p : which) out += format("{}'{}' of {} bytes", out.empty() ? "" : ", ", pools[p].name, pools[p].limit);
  return out;
}

Diagnostic too_small(const PooledBuffer& b, std::span<const PooledBuffer> buffers, std::span<const MemoryPool> pools) {
  return Diagnostic(ErrorCode::kInvalidArgument,
                    format("the memory pools are too small: '{}' takes {} bytes, for which {} {} no room", b.name,
                           b.bytes, list_of(pools, b.pools), b.pools.size() == 1 ? "has" : "have"),
                    {},
                    format("raise the pools' size_hint_bytes, or give another pool; {} bytes are alive at once",
                           memory_pressure(buffers)));
}

}  // namespace

std::span<const char* const> pool_algorithms() { return kAlgorithms; }

std::vector<int64_t> pool_sizes(std::span<const PooledBuffer> buffers, size_t pools) {
  std::vector<int64_t> sizes(pools, 0);
  for (const PooledBuffer& b : buffers) sizes[b.pool] = std::max(sizes[b.pool], b.offset + b.bytes);
  return sizes;
}

int64_t memory_pressure(std::span<const PooledBuffer> buffers) {
  if (std::any_of(buffers.begin(), buffers.end(), [](const PooledBuffer& b) { return b.conflicts.has_value(); })) {
    int64_t two = 0;
    for (const PooledBuffer& a : buffers) {
      two = std::max(two, a.bytes);
      for (const PooledBuffer& b : buffers)
        if (&a != &b && a.meets(b)) two = std::max(two, a.bytes + b.bytes);
    }
    return two;
  }
  std::map<int, int64_t> change;  // change of live bytes at the begin of a step
  for (const PooledBuffer& b : buffers) change[b.first_use] += b.bytes, change[b.last_use + 1] -= b.bytes;
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

Status plan_pools(std::span<PooledBuffer> buffers, std::span<const MemoryPool> pools, const std::string& algorithm) {
  Order order;
  if (algorithm == kAlgorithms[0]) {
    order = by_size(buffers);
  } else if (algorithm == kAlgorithms[1]) {
    order = by_conflicts(buffers);
  } else if (algorithm == kAlgorithms[2]) {
    order = climb(buffers, pools);
  } else {
    std::string names;
    for (const char* name : kAlgorithms) names += format("{}{}", names.empty() ? "" : ", ", name);
    return Diagnostic(ErrorCode::kInvalidArgument, format("there is no memory planner '{}'", algorithm), {},
                      "there are " + names);
  }
  const Order homeless = place_in_order(order, buffers, pools);
  return homeless.empty() ? Status(Ok{}) : too_small(buffers[homeless[0]], buffers, pools);
}

Status check_pools(std::span<const PooledBuffer> buffers, std::span<const MemoryPool> pools) {
  auto wrong = [](const std::string& what) {
    return Diagnostic(ErrorCode::kInvalidArgument, "the memory planner's plan does not hold: " + what);
  };
  for (const PooledBuffer& b : buffers) {
    if (std::find(b.pools.begin(), b.pools.end(), b.pool) == b.pools.end())
      return wrong(format("'{}' is in a pool that it may not lie in", b.name));
    if (b.offset < 0 || b.offset % b.alignment != 0)
      return wrong(format("'{}' is at {}, which is not a multiple of {}", b.name, b.offset, b.alignment));
    if (const int64_t limit = pools[b.pool].limit; limit >= 0 && (b.offset > limit || b.bytes > limit - b.offset))
      return wrong(format("'{}' ends behind pool '{}'", b.name, pools[b.pool].name));
  }
  Order order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(buffers[a].pool, buffers[a].offset) < std::pair(buffers[b].pool, buffers[b].offset);
  });
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t k = i + 1; k < order.size(); ++k) {
      const PooledBuffer &a = buffers[order[i]], &b = buffers[order[k]];
      if (a.pool != b.pool || a.offset + a.bytes <= b.offset) break;
      if (a.bytes > 0 && b.bytes > 0 && a.meets(b))
        return wrong(format("'{}' and '{}' overlap while both are alive", a.name, b.name));
    }
  return Ok{};
}

}  // namespace tilewright::lower
