// SPDX-License-Identifier: Apache-2.0
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

#include "base/x86_features.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tilewright::runtime {
namespace {

// Reads a small system file with C streams: those of C++ would pull all locales into the runtime library.
std::string read_text(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char part[4096];
    for (size_t n; (n = std::fread(part, 1, sizeof part, file)) > 0 && text.size() < (1u << 20);) text.append(part, n);
    std::fclose(file);
  }
  return text;
}

// Calls f for each line, without its line end.
template <class F>
void each_line(std::string_view text, F f) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    f(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

#if defined(__x86_64__) || defined(__i386__)
// Caches CPUID: results never change, and in a virtual machine each query costs microseconds.
struct Answers {
  uint32_t leaf = 0, subleaf = 0;
  uint32_t registers[4] = {};
};
class Processor {
 public:
  Processor() {
    for (const X86Feature& f : x86_features()) {
      if (find(f.leaf, f.subleaf)) continue;
      Answers a{f.leaf, f.subleaf, {}};
      uint32_t* r = a.registers;
      if (__get_cpuid_count(f.leaf, f.subleaf, &r[kEax], &r[kEbx], &r[kEcx], &r[kEdx])) answers_.push_back(a);
    }
    const Answers* first = find(1, 0);
    if (!first || !(first->registers[kEcx] >> kOsxsaveBit & 1)) return;
    uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(saved_), "=d"(high) : "c"(0));
  }
  bool has(const X86Feature& f) const {
    const Answers* a = find(f.leaf, f.subleaf);
    return a && (a->registers[f.reg] >> f.bit & 1) && (saved_ & f.state) == f.state;
  }

 private:
  const Answers* find(uint32_t leaf, uint32_t subleaf) const {
    for (const Answers& a : answers_)
      if (a.leaf == leaf && a.subleaf == subleaf) return &a;
    return nullptr;
  }
  std::vector<Answers> answers_;
  uint32_t saved_ = 0;  // register state saved by the operating system
};

bool has_feature(std::string_view name) {
  static const Processor processor;
  const X86Feature* f = find_x86_feature(name);
  return f && processor.has(*f);
}
#else
// On other architectures the operating system reports features as bits (Linux, uapi/asm/hwcap.h): an emulator reports
// those of the emulated processor, unlike /proc/cpuinfo.
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
  // Multi-letter RISC-V extensions are listed in a line such as "isa : rv64imafdc_zba_zbb".
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

// The CPU quota of the process's control groups, in CPUs; 0 if unlimited.
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
    while (path.size() > 1) {  // limits of all ancestors apply
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
  std::set<std::string> cores;  // logical CPUs of one core have the same sibling list
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

std::vector<std::string> missing_cpu_features(std::string_view needed) {
  std::vector<std::string> list;
  while (!needed.empty()) {
    const size_t end = std::min(needed.find(','), needed.size());
    list.emplace_back(needed.substr(0, end));
    needed.remove_prefix(std::min(end + 1, needed.size()));
  }
  return missing_cpu_features(list);
}

int default_thread_count() {
  for (const char* name : {"TILEWRIGHT_NUM_THREADS", "TVM_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    int n = text ? std::atoi(text) : 0;
    if (n > 0) return std::min(n, 1024);
  }
  int cores = allowed_cores();
  double cpus = quota();
  if (cpus > 0) cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(cpus - 0.01))));
  return cores;
}

#if defined(__SSE__)
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
#else  // RISC-V handles denormals at full speed
FlushDenormals::FlushDenormals() : saved_(0) {}
FlushDenormals::~FlushDenormals() = default;
#endif

}  // namespace tilewright::runtime
