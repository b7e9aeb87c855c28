// SPDX-License-Identifier: Apache-2.0
// Random kernels: machine code against the interpreter. Integers must agree bit for bit; floats within the roundings
// that fused multiply-adds save.
#include <cmath>
#include <cstring>
#include <fstream>

#include "codegen/library.h"
#include "codegen/source/c_processors.h"
#include "codegen/source/c_program.h"
#include "runtime/cpu.h"
#include "tir/cases.h"
#include "tir/passes/lower_kernel.h"
#include "tir/random_kernel.h"

namespace tilewright::codegen {
namespace {

using Memory = std::vector<std::vector<std::byte>>;

// The seeded memory the interpreter starts from.
Memory initial(tir::PrimFunc f, unsigned seed) {
  f.body = tir::seq({});
  return tir::run_on_random(f, seed);
}

testing::AssertionResult same(const std::vector<std::byte>& want, const std::vector<std::byte>& got, DataType dtype) {
  if (!dtype.is_float()) {
    if (want == got) return testing::AssertionSuccess();
    return testing::AssertionFailure() << dtype.str() << " bytes differ";
  }
  // Sums of products may cancel: a difference counts against the largest magnitude of the buffer.
  std::vector<float> a(want.size() / 4), b(want.size() / 4);
  std::memcpy(a.data(), want.data(), a.size() * 4), std::memcpy(b.data(), got.data(), b.size() * 4);
  float scale = 1;
  for (float v : a)
    if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || std::fabs(a[i]) > 1e30f || std::fabs(b[i]) > 1e30f)
      continue;  // overflow may come a rounding earlier
    if (!(std::fabs(a[i] - b[i]) <= 1e-5f * scale))
      return testing::AssertionFailure() << "element " << i << ": " << b[i] << " instead of " << a[i];
  }
  return testing::AssertionSuccess();
}

// Kernels as C, compiled by the system's compiler.
class CLibrary {
 public:
  CLibrary(const std::vector<tir::PrimFunc>& functions, const Target& target) { load(functions, target); }
  void run(size_t k, const std::vector<void*>& pointers, int64_t tid, int64_t nthreads) const {
    kernels_[k](pointers.data(), tid, nthreads);
  }

 private:
  void load(const std::vector<tir::PrimFunc>& functions, const Target& target) {
    auto texts = compile_kernels(functions, target, 1);
    ASSERT_TRUE(texts.ok()) << texts.error().str();
    const std::string source = folder_.path + "/kernels.c", library = folder_.path + "/kernels.so";
    std::ofstream(source) << c_kernel_functions(functions, texts->objects);
    std::string command = "cc";  // random kernels read registers that they never wrote
    for (const std::string& option : c_compiler_options(target)) command += " " + option;
    command += " -Wall -Wextra -Werror -Wno-uninitialized -O1 -fPIC -shared -o " + library + " " + source + " -lm";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle, nullptr) << dlerror();
    for (const tir::PrimFunc& f : functions)
      kernels_.push_back(reinterpret_cast<void (*)(void* const*, int64_t, int64_t)>(dlsym(handle, f.name.c_str())));
  }

  TempFolder folder_;
  std::vector<void (*)(void* const*, int64_t, int64_t)> kernels_;
};

template <class L = Library>
void compare(const Target& target, unsigned first, unsigned last, int threads = 2) {
  std::vector<tir::PrimFunc> sources, kernels;
  for (unsigned seed = first; seed < last; ++seed) {
    sources.push_back(tir::RandomKernel(seed).function());
    auto lowered = tir::lower_kernel(sources.back());
    ASSERT_TRUE(lowered.ok()) << lowered.error().str();
    kernels.push_back(*lowered);
    kernels.back().name = "random" + std::to_string(seed);
  }
  L library(kernels, target);
  if (testing::Test::HasFatalFailure()) return;
  int floats = 0, all = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const unsigned seed = first + static_cast<unsigned>(k);
    SCOPED_TRACE(seed);
    std::string error;
    Memory want = tir::run_on_random(sources[k], seed, &error, threads);
    ASSERT_TRUE(error.empty()) << error;
    Memory got = initial(sources[k], seed);
    std::vector<void*> pointers;
    for (auto& bytes : got) pointers.push_back(bytes.data());
    for (int t = 0; t < threads; ++t) library.run(k, pointers, t, threads);
    for (size_t p = 0; p < got.size(); ++p)
      ASSERT_TRUE(same(want[p], got[p], sources[k].params[p]->dtype))
          << target.mcpu << ", " << sources[k].params[p]->name << "\n"
          << tir::to_text(kernels[k]);
    floats += want[3] != initial(sources[k], seed)[3], ++all;
  }
  EXPECT_GT(floats * 2, all) << "too few kernels wrote anything";
}

TEST(RandomKernels, HostMatchesTheInterpreter) { compare(host_target(), 0, 80); }
TEST(RandomKernels, NarrowTargetMatchesTheInterpreter) {
  const Target target = named_target("llvm -mcpu=x86-64-v2");
  if (!runs_here(target)) GTEST_SKIP() << "x86-64-v2 does not run here";
  compare(target, 1000, 1040);
}
TEST(RandomKernels, CMatchesTheInterpreter) { compare<CLibrary>(named_target("c"), 2000, 2040, 1); }
TEST(RandomKernels, VectorsOfGnuCMatchTheInterpreter) {
  int ran = 0;
  for (const char* text : {"c -mcpu=x86-64-v2", "c -mcpu=haswell", "c -mcpu=znver4", "c -mcpu=cortex-a72"}) {
    Target target = named_target(text);
    if (!runtime::missing_cpu_features(target.cpu_features).empty()) continue;
    compare<CLibrary>(target, 3000, 3060, 1), ++ran;
  }
  if (ran == 0) GTEST_SKIP() << "none of these processors runs here";
}

}  // namespace
}  // namespace tilewright::codegen
