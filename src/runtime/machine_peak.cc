// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine_peak.h"

#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/thread_team.h"

namespace tilewright::runtime {
namespace {

// The machine is measured, also where a sanitizer watches the program.
#define TW_UNWATCHED __attribute__((no_sanitize("address", "undefined")))

// The accumulation loop for one element type and vector width. Twelve independent sums cover the latency of two
// multiply-add units (4 to 5 cycles each) and leave registers for operands in the smallest register file (16).
#define TW_MULTIPLY_ADD_LOOP(suffix, type, bytes, attribute)                                                    \
  typedef type Sums##suffix __attribute__((vector_size(bytes), aligned(4), may_alias));                         \
  TW_UNWATCHED attribute double multiply_add_##suffix(int64_t rounds) {                                         \
    volatile type known[2] = {0.5, 1.0}; /* not to the compiler, which would merge equal sums */                \
    const Sums##suffix zero = {}, a = zero + known[0], b = zero + known[1];                                     \
    Sums##suffix s0 = zero + known[1], s1 = zero + known[1], s2 = zero + known[1];                              \
    Sums##suffix s3 = zero + known[1], s4 = zero + known[1], s5 = zero + known[1];                              \
    Sums##suffix s6 = zero + known[1], s7 = zero + known[1], s8 = zero + known[1];                              \
    Sums##suffix s9 = zero + known[1], s10 = zero + known[1], s11 = zero + known[1];                            \
    for (int64_t i = 0; i < rounds; ++i) {                                                                      \
      s0 = s0 * a + b, s1 = s1 * a + b, s2 = s2 * a + b, s3 = s3 * a + b, s4 = s4 * a + b, s5 = s5 * a + b;     \
      s6 = s6 * a + b, s7 = s7 * a + b, s8 = s8 * a + b, s9 = s9 * a + b, s10 = s10 * a + b, s11 = s11 * a + b; \
    }                                                                                                           \
    Sums##suffix sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11;                             \
    volatile type used = sum[0];                                                                                \
    (void)used;                                                                                                 \
    return 2.0 * 12 * (bytes) / sizeof(type) * static_cast<double>(rounds);                                     \
  }
// Eight sums: with four, two loads a cycle would wait for the sums (3 to 4 cycles each).
#define TW_READ_LOOP(suffix, bytes, attribute)                                             \
  typedef float Vector##suffix __attribute__((vector_size(bytes), aligned(4), may_alias)); \
  TW_UNWATCHED attribute double read_##suffix(const float* data, int64_t count) {          \
    Vector##suffix s0 = {}, s1 = {}, s2 = {}, s3 = {}, s4 = {}, s5 = {}, s6 = {}, s7 = {}; \
    constexpr int64_t kStep = 8 * (bytes) / 4;                                             \
    for (int64_t i = 0; i + kStep <= count; i += kStep) {                                  \
      const Vector##suffix* at = reinterpret_cast<const Vector##suffix*>(data + i);        \
      s0 += at[0], s1 += at[1], s2 += at[2], s3 += at[3];                                  \
      s4 += at[4], s5 += at[5], s6 += at[6], s7 += at[7];                                  \
    }                                                                                      \
    Vector##suffix sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;                            \
    volatile float used = sum[0];                                                          \
    (void)used;                                                                            \
    const int64_t whole = count / kStep * kStep;                                           \
    return 4.0 * static_cast<double>(whole);                                               \
  }
#define TW_PEAK_LOOPS(suffix, bytes, attribute)                   \
  TW_MULTIPLY_ADD_LOOP(suffix, float, bytes, attribute)           \
  TW_MULTIPLY_ADD_LOOP(suffix##_double, double, bytes, attribute) \
  TW_READ_LOOP(suffix, bytes, attribute)

TW_PEAK_LOOPS(plain, 16, )
#if defined(__x86_64__)
TW_PEAK_LOOPS(avx2, 32, __attribute__((target("avx2,fma"))))
TW_PEAK_LOOPS(avx512, 64, __attribute__((target("avx512f,fma"))))

// 8-bit dot products by VNNI.
__attribute__((target("avx512f,avx512vnni"))) double dot_bytes(int64_t rounds) {
  volatile int known = 0x01010101;
  const __m512i a = _mm512_set1_epi32(known), b = _mm512_set1_epi32(known);
  __m512i sums[12];
  for (__m512i& sum : sums) sum = _mm512_set1_epi32(known);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
  }
  __m512i all = sums[0];
  for (int i = 1; i < 12; ++i) all = _mm512_add_epi32(all, sums[i]);
  volatile int used = _mm512_cvtsi512_si32(all);
  (void)used;
  return 2.0 * 12 * 64 * static_cast<double>(rounds);
}

// A dependent chain of products, which have a latency of three cycles on all x86-64 processors of the last fifteen
// years.
double multiply_chain(int64_t rounds) {
  int64_t value = 3;
  for (int64_t i = 0; i < rounds; ++i)
    asm volatile(
        "imulq %0, %0\n\timulq %0, %0\n\timulq %0, %0\n\timulq %0, %0\n\t"
        "imulq %0, %0\n\timulq %0, %0\n\timulq %0, %0\n\timulq %0, %0"
        : "+r"(value)
        :
        : "cc");
  return 3.0 * 8 * static_cast<double>(rounds);
}
#endif
#undef TW_UNWATCHED
#undef TW_PEAK_LOOPS
#undef TW_READ_LOOP
#undef TW_MULTIPLY_ADD_LOOP

struct Loops {
  double (*multiply_add)(int64_t);
  double (*multiply_add_double)(int64_t);
  double (*read)(const float*, int64_t);
};

Loops loops_of_this_machine() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {multiply_add_avx512, multiply_add_avx512_double, read_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {multiply_add_avx2, multiply_add_avx2_double, read_avx2};
#endif
  return {multiply_add_plain, multiply_add_plain_double, read_plain};
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Runs `work(thread)` on all threads in several bursts and returns the best rate, in units per second: the slowest
// thread determines a burst's rate, and the best burst is the least disturbed.
template <class F>
double best_rate(int threads, int bursts, F work) {
  std::atomic<int> arrived{0};
  std::vector<double> elapsed(static_cast<size_t>(threads * bursts)), amount(static_cast<size_t>(threads * bursts));
  auto run = [&](int thread) {
    work(thread);  // warm-up: clock speed, page faults, caches
    for (int burst = 0; burst < bursts; ++burst) {
      arrived.fetch_add(1);
      while (arrived.load() < threads * (burst + 1)) std::this_thread::yield();
      const size_t at = static_cast<size_t>(burst * threads + thread);
      const double begin = seconds();
      amount[at] = work(thread);
      elapsed[at] = seconds() - begin;
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(run, t);
  run(0);
  for (std::thread& other : others) other.join();
  double best = 0;
  for (int burst = 0; burst < bursts; ++burst) {
    double slowest = 0, total = 0;
    for (int t = 0; t < threads; ++t) {
      slowest = std::max(slowest, elapsed[static_cast<size_t>(burst * threads + t)]);
      total += amount[static_cast<size_t>(burst * threads + t)];
    }
    if (slowest > 0) best = std::max(best, total / slowest);
  }
  return best;
}

uint64_t cache_bytes(int name, uint64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<uint64_t>(bytes) : otherwise;
}

}  // namespace

const MemoryLevel& MachinePeak::level_of(double bytes) const {
  for (const MemoryLevel& level : levels)
    if (bytes <= static_cast<double>(level.capacity)) return level;
  return levels.back();
}

MachinePeak measure_peak(int threads) {
  MachinePeak peak;
  peak.threads = threads;
  const Loops loops = loops_of_this_machine();
  peak.gflops = best_rate(threads, 8, [&](int) { return loops.multiply_add(200'000); }) * 1e-9;
  const uint64_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10), l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  // Virtual machines report the L3 of a whole socket, but a core reaches only a slice, often 32 MiB.
  const uint64_t l3 = std::min<uint64_t>(cache_bytes(_SC_LEVEL3_CACHE_SIZE, 8 << 20), 32 << 20);
  // Working sets: three quarters of L1 and L2, a third of L3 divided by the threads, and a multiple of L3.
  const uint64_t shared = l3 / 3 / static_cast<uint64_t>(threads);
  const uint64_t sizes[4] = {l1 * 3 / 4, l2 * 3 / 4, std::max(shared, l2 * 3 / 2),
                             std::min<uint64_t>(4 * l3, 96 << 20)};
  const uint64_t capacities[4] = {l1, l2, l3, UINT64_MAX};
  const char* names[4] = {"L1", "L2", "L3", "memory"};
  const uint64_t largest = sizes[3];
  std::vector<std::unique_ptr<float[]>> memory;
  for (int t = 0; t < threads; ++t) {
    memory.push_back(std::make_unique_for_overwrite<float[]>(largest / 4 + 16));
    std::fill_n(memory.back().get(), largest / 4 + 16, 0.0f);  // unwritten pages would all map to one zero page
  }
  for (int i = 0; i < 4; ++i) {
    const auto count = static_cast<int64_t>(sizes[i] / 4);
    const int repeats = static_cast<int>(std::max<uint64_t>(1, (16 << 20) / sizes[i]));
    peak.levels[static_cast<size_t>(i)] = {
        names[i], capacities[i], best_rate(threads, i == 3 ? 4 : 6, [&](int thread) {
                                   // From a 64-byte boundary, so that no load crosses cache lines.
                                   auto at = reinterpret_cast<uintptr_t>(memory[static_cast<size_t>(thread)].get());
                                   const auto* data = reinterpret_cast<const float*>((at + 63) / 64 * 64);
                                   double bytes = 0;
                                   for (int r = 0; r < repeats; ++r) bytes += loops.read(data, count);
                                   return bytes;
                                 }) * 1e-9};
  }
  // What comes from farther away passes through the nearer levels: one that seems slower was disturbed.
  for (size_t i = peak.levels.size() - 1; i-- > 0;)
    peak.levels[i].gbps = std::max(peak.levels[i].gbps, peak.levels[i + 1].gbps);
  return peak;
}

ComputePeak measure_compute_peak() {
  ComputePeak peak;
  const Loops loops = loops_of_this_machine();
  peak.float32 = best_rate(1, 12, [&](int) { return loops.multiply_add(200'000); }) * 1e-9;
  peak.float64 = best_rate(1, 12, [&](int) { return loops.multiply_add_double(200'000); }) * 1e-9;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni"))
    peak.int8 = best_rate(1, 12, [&](int) { return dot_bytes(100'000); }) * 1e-9;
  peak.gigahertz = best_rate(1, 12, [&](int) { return multiply_chain(100'000); }) * 1e-9;
#endif
  return peak;
}

double measure_thread_us(int threads) {
  constexpr int kRuns = 501;
  ThreadTeam team(threads, 100);
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    const double begin = seconds();
    team.run([](void* self, int tid, int) { static_cast<ThreadTeam*>(self)->barrier(tid); }, &team);
    times.push_back(seconds() - begin);
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2] * 1e6;
}

}  // namespace tilewright::runtime
