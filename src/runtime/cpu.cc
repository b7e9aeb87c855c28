// SPDX-License-Identifier: Apache-2.0
// CPUID leaves: Intel SDM volume 2A, "CPUID", and AMD APM volume 3, appendix E.
#include "runtime/cpu.h"

#include <sched.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

namespace tilewright::runtime {
namespace {

// A small system file. C streams: those of C++ would bring all locales into the runtime library.
std::string read_text(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char part[4096];
    for (size_t n; (n = std::fread(part, 1, sizeof part, file)) > 0 && text.size() < (1u << 20);) text.append(part, n);
    std::fclose(file);
  }
  return text;
}

// Calls f for each line, without its end.
template <class F>
void each_line(std::string_view text, F f) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    f(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

#if defined(__x86_64__)
enum Register { kEax, kEbx, kEcx, kEdx };
// Which register state the operating system must save for the feature to be usable (bits of XCR0).
enum State : unsigned { kNone = 0, kYmm = 0x6, kZmm = 0xe6, kTile = 0x60000 };
struct Feature {
  const char* name;
  unsigned leaf, subleaf;
  Register reg;
  int bit;
  State state;
};
constexpr Feature kFeatures[] = {
    {"cx8", 1, 0, kEdx, 8, kNone},
    {"cmov", 1, 0, kEdx, 15, kNone},
    {"mmx", 1, 0, kEdx, 23, kNone},
    {"fxsr", 1, 0, kEdx, 24, kNone},
    {"sse", 1, 0, kEdx, 25, kNone},
    {"sse2", 1, 0, kEdx, 26, kNone},
    {"sse3", 1, 0, kEcx, 0, kNone},
    {"pclmul", 1, 0, kEcx, 1, kNone},
    {"ssse3", 1, 0, kEcx, 9, kNone},
    {"fma", 1, 0, kEcx, 12, kYmm},
    {"cx16", 1, 0, kEcx, 13, kNone},
    {"sse4.1", 1, 0, kEcx, 19, kNone},
    {"sse4.2", 1, 0, kEcx, 20, kNone},
    {"crc32", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"popcnt", 1, 0, kEcx, 23, kNone},
    {"aes", 1, 0, kEcx, 25, kNone},
    {"xsave", 1, 0, kEcx, 26, kNone},
    {"avx", 1, 0, kEcx, 28, kYmm},
    {"f16c", 1, 0, kEcx, 29, kYmm},
    {"rdrnd", 1, 0, kEcx, 30, kNone},
    {"fsgsbase", 7, 0, kEbx, 0, kNone},
    {"bmi", 7, 0, kEbx, 3, kNone},
    {"avx2", 7, 0, kEbx, 5, kYmm},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"invpcid", 7, 0, kEbx, 10, kNone},
    {"avx512f", 7, 0, kEbx, 16, kZmm},
    {"evex512", 7, 0, kEbx, 16, kZmm},
    {"avx512dq", 7, 0, kEbx, 17, kZmm},
    {"rdseed", 7, 0, kEbx, 18, kNone},
    {"adx", 7, 0, kEbx, 19, kNone},
    {"avx512ifma", 7, 0, kEbx, 21, kZmm},
    {"clflushopt", 7, 0, kEbx, 23, kNone},
    {"clwb", 7, 0, kEbx, 24, kNone},
    {"avx512cd", 7, 0, kEbx, 28, kZmm},
    {"sha", 7, 0, kEbx, 29, kNone},
    {"avx512bw", 7, 0, kEbx, 30, kZmm},
    {"avx512vl", 7, 0, kEbx, 31, kZmm},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmm},
    {"pku", 7, 0, kEcx, 3, kNone},
    {"waitpkg", 7, 0, kEcx, 5, kNone},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmm},
    {"shstk", 7, 0, kEcx, 7, kNone},
    {"gfni", 7, 0, kEcx, 8, kNone},
    {"vaes", 7, 0, kEcx, 9, kYmm},
    {"vpclmulqdq", 7, 0, kEcx, 10, kYmm},
    {"avx512vnni", 7, 0, kEcx, 11, kZmm},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmm},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmm},
    {"rdpid", 7, 0, kEcx, 22, kNone},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kZmm},
    {"serialize", 7, 0, kEdx, 14, kNone},
    {"amx-bf16", 7, 0, kEdx, 22, kTile},
    {"avx512fp16", 7, 0, kEdx, 23, kZmm},
    {"amx-tile", 7, 0, kEdx, 24, kTile},
    {"amx-int8", 7, 0, kEdx, 25, kTile},
    {"avxvnni", 7, 1, kEax, 4, kYmm},
    {"avx512bf16", 7, 1, kEax, 5, kZmm},
    {"amx-fp16", 7, 1, kEax, 21, kTile},
    {"avxifma", 7, 1, kEax, 23, kYmm},
    {"avxvnniint8", 7, 1, kEdx, 4, kYmm},
    {"avxneconvert", 7, 1, kEdx, 5, kYmm},
    {"avxvnniint16", 7, 1, kEdx, 10, kYmm},
    {"xsaveopt", 0xd, 1, kEax, 0, kNone},
    {"xsavec", 0xd, 1, kEax, 1, kNone},
    {"xsaves", 0xd, 1, kEax, 3, kNone},
    {"sahf", 0x80000001, 0, kEcx, 0, kNone},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
    {"sse4a", 0x80000001, 0, kEcx, 6, kNone},
    {"prfchw", 0x80000001, 0, kEcx, 8, kNone},
    {"xop", 0x80000001, 0, kEcx, 11, kYmm},
    {"fma4", 0x80000001, 0, kEcx, 16, kYmm},
    {"tbm", 0x80000001, 0, kEcx, 21, kNone},
    {"mwaitx", 0x80000001, 0, kEcx, 29, kNone},
    {"64bit", 0x80000001, 0, kEdx, 29, kNone},
    {"clzero", 0x80000008, 0, kEbx, 0, kNone},
    {"rdpru", 0x80000008, 0, kEbx, 4, kNone},
    {"wbnoinvd", 0x80000008, 0, kEbx, 9, kNone},
};

unsigned saved_states() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool has_feature(std::string_view name) {
  for (const auto& f : kFeatures) {
    if (name != f.name) continue;
    unsigned r[4];
    if (!__get_cpuid_count(f.leaf, f.subleaf, &r[kEax], &r[kEbx], &r[kEcx], &r[kEdx])) return false;
    return (r[f.reg] >> f.bit & 1) && (f.state == kNone || (saved_states() & f.state) == f.state);
  }
  return false;
}
#else
// Elsewhere the operating system tells each process by bits (Linux, uapi/asm/hwcap.h of each processor): an emulator
// answers for the processor that it imitates, which /proc/cpuinfo does not.
struct Feature {
  const char* name;  // LLVM's
  unsigned long word;
  int bit;
};
constexpr Feature kFeatures[] = {
#if defined(__aarch64__)
    {"neon", AT_HWCAP, 1},
    {"fp-armv8", AT_HWCAP, 0},
    {"fullfp16", AT_HWCAP, 10},
    {"dotprod", AT_HWCAP, 20},
    {"sve", AT_HWCAP, 22},
    {"i8mm", AT_HWCAP2, 13},
    {"bf16", AT_HWCAP2, 14},
#elif defined(__arm__)
    {"neon", AT_HWCAP, 12},
    {"vfp3", AT_HWCAP, 13},
    {"vfp4", AT_HWCAP, 16},
    {"hwdiv-arm", AT_HWCAP, 17},
    {"fullfp16", AT_HWCAP, 23},
    {"dotprod", AT_HWCAP, 24},
    {"bf16", AT_HWCAP, 26},
    {"i8mm", AT_HWCAP, 27},
#elif defined(__riscv)
    {"a", AT_HWCAP, 'a' - 'a'},
    {"c", AT_HWCAP, 'c' - 'a'},
    {"d", AT_HWCAP, 'd' - 'a'},
    {"f", AT_HWCAP, 'f' - 'a'},
    {"m", AT_HWCAP, 'm' - 'a'},
    {"v", AT_HWCAP, 'v' - 'a'},
#endif
    {"", 0, 0},
};

bool has_feature(std::string_view name) {
  for (const Feature& f : kFeatures)
    if (name == f.name && f.word != 0) return (getauxval(f.word) >> f.bit & 1) != 0;
  // RISC-V's extensions of several letters stand in a line such as "isa : rv64imafdc_zba_zbb".
  bool found = false;
  each_line(read_text("/proc/cpuinfo"), [&](std::string line) {
    if (line.rfind("isa", 0) != 0) return;
    for (size_t at = line.find('_'); at != std::string::npos; at = line.find('_', at + 1))
      found |= line.substr(at + 1, line.find('_', at + 1) - at - 1) == name;
  });
  return found;
}
#endif

std::string first_line(const std::string& path) {
  std::string text = read_text(path);
  return text.substr(0, text.find('\n'));
}

// CPUs' worth of time the process's control groups allow; 0 when unlimited.
double quota() {
  double least = 0;
  auto limit = [&](double cpus) {
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  };
  auto read_v2 = [&](const std::string& folder) {
    double time = 0, period = 0;
    if (std::sscanf(first_line(folder + "/cpu.max").c_str(), "%lf %lf", &time, &period) == 2 && period > 0)
      limit(time / period);
  };
  auto read_v1 = [&](const std::string& folder) {
    double time = std::atof(first_line(folder + "/cpu.cfs_quota_us").c_str());
    double period = std::atof(first_line(folder + "/cpu.cfs_period_us").c_str());
    if (time > 0 && period > 0) limit(time / period);
  };
  read_v2("/sys/fs/cgroup");
  read_v1("/sys/fs/cgroup/cpu");
  each_line(read_text("/proc/self/cgroup"), [&](const std::string& line) {
    auto second = line.find(':', line.find(':') + 1);
    if (second == std::string::npos) return;
    std::string path = line.substr(second + 1), controllers = line.substr(0, second);
    bool unified = controllers.rfind("0:", 0) == 0;
    if (!unified && controllers.find("cpu") == std::string::npos) return;
    while (path.size() > 1) {  // a limit on any ancestor counts
      unified ? read_v2("/sys/fs/cgroup" + path) : read_v1("/sys/fs/cgroup/cpu" + path);
      path.resize(std::min(path.rfind('/'), path.size()));
      if (path.find('/') == std::string::npos) break;
    }
  });
  return least;
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::set<std::string> cores;  // logical CPUs of one core list the same siblings
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::string siblings =
        first_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

}  // namespace

std::vector<std::string> missing_cpu_features(std::span<const std::string> needed) {
  std::vector<std::string> missing;
  for (const auto& name : needed) {
    std::string_view bare = name;
    if (!bare.empty() && bare[0] == '+') bare.remove_prefix(1);
    if (!bare.empty() && bare[0] != '-' && !has_feature(bare)) missing.emplace_back(bare);
  }
  return missing;
}

int default_thread_count() {
  for (const char* name : {"TILEWRIGHT_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    int n = text ? std::atoi(text) : 0;
    if (n > 0) return std::min(n, 1024);
  }
  int cores = allowed_cores();
  double cpus = quota();
  if (cpus > 0) cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(cpus - 0.01))));
  return cores;
}

#if defined(__x86_64__)
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  _mm_setcsr(static_cast<unsigned>(saved_) | 0x8040);
}  // FTZ, DAZ
FlushDenormals::~FlushDenormals() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
FlushDenormals::FlushDenormals() {
  __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
  __asm__ volatile("msr fpcr, %0" : : "r"(saved_ | (1ul << 24)));
}
FlushDenormals::~FlushDenormals() { __asm__ volatile("msr fpcr, %0" : : "r"(saved_)); }
#elif defined(__arm__) && defined(__ARM_FP)
FlushDenormals::FlushDenormals() {
  __asm__ volatile("vmrs %0, fpscr" : "=r"(saved_));
  __asm__ volatile("vmsr fpscr, %0" : : "r"(saved_ | (1ul << 24)));
}
FlushDenormals::~FlushDenormals() { __asm__ volatile("vmsr fpscr, %0" : : "r"(saved_)); }
#else  // RISC-V computes with denormals at full speed
FlushDenormals::FlushDenormals() : saved_(0) {}
FlushDenormals::~FlushDenormals() = default;
#endif

}  // namespace tilewright::runtime
