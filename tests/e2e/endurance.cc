// SPDX-License-Identifier: Apache-2.0
// A process that loads, runs and unloads models for long: memory, mappings and descriptors stay, results keep their
// bits.
//   build/endurance MODEL.onnx PROGRAM.onnx [--seconds 60] [--loads 1000]
// MODEL has a free batch, which is 1 for the artifact of fixed sizes and any for the program; PROGRAM has control flow.
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "tilewright/compiler.h"
#include "tilewright/runtime.h"
#include "tilewright/vm.h"

namespace tilewright {
namespace {

struct Held {
  double mib = 0;  // resident
  size_t mappings = 0, descriptors = 0;
};

Held held() {
  malloc_trim(0);  // what the allocator keeps for later is no leak
  Held h;
  double all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  h.mib = resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++h.mappings;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) h.descriptors += entry.exists();
  return h;
}

void fill(std::vector<float>* values, int64_t count, uint32_t seed) {
  values->resize(static_cast<size_t>(count));
  std::minstd_rand random(seed + 1);
  for (float& v : *values) v = static_cast<float>(random() % 1000) / 500 + 0.5f;  // a loop to a limit comes to its end
}

std::string bytes_of(const float* data, size_t count) {
  return std::string(reinterpret_cast<const char*>(data), count * sizeof(float));
}

// The first result of each kind, which later ones must equal bit by bit.
class Results {
 public:
  void check(const std::string& what, const std::string& bytes) {
    auto [at, fresh] = first_.try_emplace(what, bytes);
    if (!fresh && at->second != bytes) throw std::runtime_error(what + ": the result has changed");
  }

 private:
  std::map<std::string, std::string> first_;
};

// The first result of one run over the values that belong to seed 0.
std::string run_once(Executor& executor) {
  const TensorInfo& input = executor.model().inputs()[0];
  std::vector<float> x;
  int64_t count = 1;
  for (int64_t d : input.shape) count *= d;
  fill(&x, count, 0);
  executor.set_input(input.name, x, input.shape);
  executor.run();
  auto y = executor.output<float>(0);
  return bytes_of(y.data(), y.size());
}

std::string load_and_run(const std::string& path) {
  Model model(path);
  Executor executor(model, 2);
  return run_once(executor);
}

// Sizes beyond those whose kernels are kept, so that kernels go while the program stays.
void run_program(const std::string& path, bool control, std::minstd_rand& random, Results* results) {
  VmOptions options;
  options.threads = 2;
  options.always_compile = random() % 2 == 0;
  options.keep = 2;
  VirtualMachine vm(path, options);
  std::vector<float> x;
  for (int i = 0; i < 4; ++i) {
    const auto size = static_cast<int64_t>(random() % 5 + 1);
    std::vector<int64_t> shape = vm.inputs()[0].shape;
    int64_t count = 1;
    for (int64_t& d : shape) count *= d = d < 0 ? size : d;
    fill(&x, count, static_cast<uint32_t>(size));
    vm.set_input(vm.inputs()[0].name, x, shape);
    if (control) vm.set_input(vm.inputs()[1].name, std::vector<float>{3}, {});
    vm.run();
    auto y = vm.output<float>(0);
    // Kernels and the interpreter of small regions may round differently; each is equal to itself.
    const std::string how = options.always_compile ? " compiled" : " met " + std::to_string(vm.compiled());
    if (options.always_compile) results->check(path + " " + std::to_string(size) + how, bytes_of(y.data(), y.size()));
  }
}

// Several executors in each of several threads over one model.
void run_together(const std::string& path, double seconds, const std::string& expected) {
  Model model(path);
  std::atomic<bool> stop{false}, differs{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      std::vector<std::unique_ptr<Executor>> mine;
      for (int e = 0; e < 3; ++e) mine.push_back(std::make_unique<Executor>(model, 1));
      while (!stop)
        for (auto& executor : mine)
          if (run_once(*executor) != expected) differs = true;
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  if (differs) throw std::runtime_error("a result differs between executors of one model");
}

// Calls `once` at least `times` times and for `seconds`; what the process holds after a tenth of it stays.
void last(const char* what, long times, double seconds, const std::function<void()>& once) {
  const auto begin = std::chrono::steady_clock::now();
  auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Held early;
  long done = 0;
  bool warm = false;
  while (done < times || passed() < seconds) {
    once();
    ++done;
    if (!warm && done >= times / 10 && passed() >= seconds / 10) early = held(), warm = true;
  }
  const Held late = held();
  std::printf("%s: %ld in %.1f s; resident %.1f, then %.1f MiB; mappings %zu, %zu; descriptors %zu, %zu\n", what, done,
              passed(), early.mib, late.mib, early.mappings, late.mappings, early.descriptors, late.descriptors);
  std::fflush(stdout);
  if (late.mib > early.mib + 8 + early.mib / 20) throw std::runtime_error(std::string(what) + ": memory grows");
  if (late.mappings > early.mappings + 16) throw std::runtime_error(std::string(what) + ": mappings stay");
  if (late.descriptors > early.descriptors) throw std::runtime_error(std::string(what) + ": descriptors stay open");
}

int endure(const std::string& model, const std::string& program, double seconds, long loads) {
  char made[] = "/tmp/endurance.XXXXXX";
  if (!mkdtemp(made)) throw std::runtime_error("no temporary folder can be made");
  const std::filesystem::path folder = made;
  struct Removed {
    std::filesystem::path folder;
    ~Removed() { std::filesystem::remove_all(folder); }
  } removed{folder};
  CompileOptions fixed;
  fixed.shapes = {"x=1x3x8x8"};
  compile(model, folder / "fixed.so", fixed);
  compile(model, folder / "free.so");
  compile(program, folder / "control.so");
  Results results;
  const std::string expected = load_and_run(folder / "fixed.so");
  last("loads of a library", loads, seconds / 3, [&] { results.check("fixed", load_and_run(folder / "fixed.so")); });
  last("24 executors in 8 threads", 10, seconds / 3,
       [&] { run_together(folder / "fixed.so", std::min(1.0, seconds / 60), expected); });
  std::minstd_rand random(1);
  last("loads of programs", loads / 50, seconds / 3, [&] {
    run_program(folder / "free.so", false, random, &results);
    run_program(folder / "control.so", true, random, &results);
  });
  return 0;
}

}  // namespace
}  // namespace tilewright

int main(int argc, char** argv) {
  double seconds = 60;
  long loads = 1000;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (word == "--loads" && i + 1 < argc) {
      loads = std::atol(argv[++i]);
    } else {
      models.push_back(word);
    }
  }
  if (models.size() != 2) {
    std::fprintf(stderr, "usage: endurance MODEL.onnx PROGRAM.onnx [--seconds 60] [--loads 1000]\n");
    return 2;
  }
  try {
    return tilewright::endure(models[0], models[1], seconds, loads);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
