// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <thread>

#include "runtime/artifact_maker.h"
#include "runtime/dltensor.h"
#include "runtime/params_file.h"

namespace tilewright::runtime {
namespace {
using namespace tilewright::testing;

struct HostTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
  DLTensor view() {
    return {
        values.data(), {kDLCPU, 0}, static_cast<int32_t>(shape.size()), {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
  }
};

HostTensor ramp() {
  HostTensor t{{4, 16}, std::vector<float>(64)};
  for (size_t i = 0; i < 64; ++i) t.values[i] = static_cast<float>(i) * 0.25f - 3;
  return t;
}

std::vector<float> expected(const HostTensor& x) {
  std::vector<float> y;
  for (size_t i = 0; i < 64; ++i) y.push_back((x.values[i] + 1) * static_cast<float>(i % 16) * 0.5f);
  return y;
}

class ExecutorTest : public ::testing::Test {
 protected:
  void SetUp() override { load(small_model()); }
  void load(const ArtifactSource& source) {
    make_artifact(source, folder_ / "m.so");
    auto artifact = Artifact::load(folder_ / "m.so");
    ASSERT_TRUE(artifact.ok()) << artifact.error().str();
    artifact_ = *artifact;
  }
  std::unique_ptr<Executor> executor(int threads = 1) { return *Executor::create(artifact_, {threads, -1}); }
  static std::vector<float> output(const Executor& e, size_t n = 64) {
    DLTensor t = *e.output(0);
    const float* p = static_cast<const float*>(t.data);
    return {p, p + n};
  }
  TempFolder folder_;
  std::shared_ptr<const Artifact> artifact_;
};

TEST_F(ExecutorTest, RunsOnAnyNumberOfThreads) {
  HostTensor x = ramp();
  DLTensor view = x.view();
  for (int threads : {1, 2, 3, 4, 7}) {
    auto e = executor(threads);
    EXPECT_EQ(e->threads(), threads);
    ASSERT_TRUE(e->set_input(0, &view).ok());
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(e->run().ok());
      ASSERT_EQ(output(*e), expected(x));
    }
  }
}

// Each thread passes its rows through its own scratch; a second step checks that nobody else wrote there.
TEST_F(ExecutorTest, ThreadsHaveScratchOfTheirOwn) {
  ArtifactSource source = small_model();
  plan::Plan& p = source.plan;
  p.arena_bytes = 512, p.scratch_bytes = 256;
  p.buffers.push_back({plan::Space::kScratch, 0, 64, 192, kFloat32, {48}, "", "scratch"});
  p.steps[0].buffers = {0, 1, 4};
  source.kernels = R"(
void add_one(void* const* b, int64_t tid, int64_t n) {
  const float* x = b[0]; float* t = b[1]; volatile float* s = b[2];
  for (int64_t r = 4 * tid / n; r < 4 * (tid + 1) / n; ++r) {
    for (int i = 0; i < 16; ++i) s[i] = x[r * 16 + i];
    for (volatile int wait = 0; wait < 2000; ++wait) {}
    for (int i = 0; i < 16; ++i) t[r * 16 + i] = s[i] + 1;
  }
}
void scale(void* const* b, int64_t tid, int64_t n) {
  const float* t = b[0]; const float* w = b[1]; float* y = b[2];
  for (int i = 0; i < 64; ++i) y[i] = t[i] * w[i % 16];
})";
  load(source);
  HostTensor x = ramp();
  DLTensor view = x.view();
  for (int threads : {1, 2, 3, 4}) {
    auto e = executor(threads);
    ASSERT_TRUE(e->set_input(0, &view).ok());
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(e->run().ok());
      ASSERT_EQ(output(*e), expected(x)) << threads << " threads";
    }
    ASSERT_TRUE(e->profile(3).ok());
  }
}

TEST_F(ExecutorTest, BindsWithoutCopies) {
  HostTensor x = ramp(), y{{4, 16}, std::vector<float>(64)};
  auto e = executor(2);
  DLTensor in = x.view(), out = y.view();
  ASSERT_TRUE(e->bind_input(0, &in).ok());
  ASSERT_TRUE(e->bind_output(0, &out).ok());
  ASSERT_TRUE(e->run().ok());
  EXPECT_EQ(y.values, expected(x));
  x.values[5] = 100;
  ASSERT_TRUE(e->run().ok());
  EXPECT_EQ(y.values, expected(x));
  EXPECT_EQ(e->output(0)->data, y.values.data());
  // Setting again goes back to the executor's own memory.
  HostTensor z = ramp();
  DLTensor again = z.view();
  ASSERT_TRUE(e->set_input(0, &again).ok());
  ASSERT_TRUE(e->run().ok());
  EXPECT_EQ(y.values, expected(z));
}

TEST_F(ExecutorTest, StridedInputsAndOutputsAreCopied) {
  HostTensor x = ramp();
  std::vector<float> transposed(64), received(128);
  for (int r = 0; r < 4; ++r)
    for (int c = 0; c < 16; ++c) transposed[static_cast<size_t>(c * 4 + r)] = x.values[static_cast<size_t>(r * 16 + c)];
  int64_t in_strides[] = {1, 4}, out_strides[] = {32, 2};
  DLTensor in = x.view(), out = x.view();
  in.data = transposed.data(), in.strides = in_strides;
  out.data = received.data(), out.strides = out_strides;
  auto e = executor();
  ASSERT_TRUE(e->set_input(0, &in).ok());
  ASSERT_TRUE(e->run().ok());
  EXPECT_EQ(output(*e), expected(x));
  ASSERT_TRUE(e->copy_output(0, &out).ok());
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(received[i * 2], expected(x)[i]);
  EXPECT_FALSE(e->bind_input(0, &in).ok());
}

TEST_F(ExecutorTest, ErrorsSayWhatWasExpected) {
  auto e = executor();
  auto unset = e->run();
  ASSERT_FALSE(unset.ok());
  EXPECT_NE(unset.error().message.find("'x'"), std::string::npos);

  HostTensor x = ramp();
  DLTensor view = x.view();
  auto index = e->set_input(3, &view);
  ASSERT_FALSE(index.ok());
  EXPECT_EQ(index.error().code, ErrorCode::kUnknownInput);
  auto name = find_tensor(e->plan().inputs, "images", "input");
  ASSERT_FALSE(name.ok());
  EXPECT_EQ(name.error().code, ErrorCode::kUnknownInput);
  EXPECT_NE(name.error().hint.find("'x' (float32 4x16)"), std::string::npos) << name.error().str();

  view.shape[0] = 5;
  auto shape = e->set_input(0, &view);
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.error().code, ErrorCode::kShapeMismatch);
  EXPECT_NE(shape.error().message.find("float32 4x16"), std::string::npos);
  EXPECT_NE(shape.error().message.find("5x16"), std::string::npos);
  view.shape[0] = 4;

  view.dtype.bits = 64;
  auto dtype = e->set_input(0, &view);
  ASSERT_FALSE(dtype.ok());
  EXPECT_EQ(dtype.error().code, ErrorCode::kDtypeMismatch);
  EXPECT_NE(dtype.error().message.find("float64"), std::string::npos);
  view.dtype.bits = 32;

  view.data = nullptr;
  EXPECT_FALSE(e->set_input(0, &view).ok());
  EXPECT_FALSE(e->set_input(0, nullptr).ok());
  view.ndim = -3;
  EXPECT_FALSE(e->set_input(0, &view).ok());
  view.ndim = 2, view.device.device_type = kDLCUDA;
  EXPECT_FALSE(e->set_input(0, &view).ok());
}

TEST_F(ExecutorTest, InputsCanBeFilledInPlace) {
  HostTensor x = ramp();
  auto e = executor();
  DLTensor view = *e->input(0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0u);
  std::copy(x.values.begin(), x.values.end(), static_cast<float*>(view.data));
  ASSERT_TRUE(e->run().ok());
  EXPECT_EQ(output(*e), expected(x));
}

TEST_F(ExecutorTest, TwoExecutorsAtOnce) {
  auto work = [&](float offset) {
    HostTensor x = ramp();
    for (float& v : x.values) v += offset;
    DLTensor view = x.view();
    auto e = executor(2);
    ASSERT_TRUE(e->set_input(0, &view).ok());
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(e->run().ok());
      ASSERT_EQ(output(*e), expected(x));
    }
  };
  std::thread other(work, 7.0f);
  work(1.0f);
  other.join();
}

TEST_F(ExecutorTest, OneExecutorServesOneThreadAtATime) {
  ArtifactSource slow = small_model();
  slow.kernels +=
      "\nvoid pause_a_while(void* const* b, int64_t tid, int64_t n) { for (volatile int i = 0; i < 300000000; ++i); }";
  slow.plan.kernels.push_back("pause_a_while");
  slow.plan.steps.push_back({2, {0}, false, "wait", ""});
  load(slow);
  HostTensor x = ramp();
  DLTensor view = x.view();
  auto e = executor();
  ASSERT_TRUE(e->set_input(0, &view).ok());
  std::thread runner([&] { EXPECT_TRUE(e->run().ok()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  auto second = e->run();
  EXPECT_FALSE(second.ok());
  EXPECT_FALSE(e->set_input(0, &view).ok());
  runner.join();
  EXPECT_TRUE(e->set_input(0, &view).ok());
}

long resident_kib() {
  std::ifstream statm("/proc/self/statm");
  long total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4;
}

TEST_F(ExecutorTest, TenThousandRunsUseNoMoreMemory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps freed memory for a while";
#endif
  HostTensor x = ramp();
  DLTensor view = x.view();
  auto e = executor(2);
  auto run = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(e->set_input(0, &view).ok());
      ASSERT_TRUE(e->run().ok());
    }
  };
  // Pages that a stack or the allocator touches for the first time are counted once; what a run
  // keeps is counted by every round, and 10,000 times the least allocation is 310 KiB.
  long least = std::numeric_limits<long>::max();
  for (int round = 0; round < 3; ++round) {
    long before = resident_kib();
    run(10000);
    least = std::min(least, resident_kib() - before);
  }
  EXPECT_LE(least, 64);
  EXPECT_EQ(output(*e), expected(x));
}

TEST_F(ExecutorTest, LoadingAndFreeingUsesNoMoreMemory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps freed memory for a while";
#endif
  auto once = [&] {
    auto artifact = Artifact::load(folder_ / "m.so");
    ASSERT_TRUE(artifact.ok());
    auto e = Executor::create(*artifact, {2, 0});
    ASSERT_TRUE(e.ok());
  };
  artifact_.reset();
  for (int i = 0; i < 30; ++i) once();
  long least = std::numeric_limits<long>::max();
  for (int round = 0; round < 3; ++round) {
    long before = resident_kib();
    for (int i = 0; i < 200; ++i) once();
    least = std::min(least, resident_kib() - before);
  }
  EXPECT_LE(least, 512);
}

TEST_F(ExecutorTest, ForkedChildRunsAlone) {
  HostTensor x = ramp();
  DLTensor view = x.view();
  auto e = executor(3);
  ASSERT_TRUE(e->set_input(0, &view).ok());
  ASSERT_TRUE(e->run().ok());
  pid_t child = fork();
  if (child == 0) {
    bool good = e->run().ok() && output(*e) == expected(x);
    e.reset();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(e->run().ok());
}

TEST_F(ExecutorTest, DenormalsAreFlushedOnlyDuringTheRun) {
  ArtifactSource source = small_model();
  source.kernels = R"(
void add_one(void* const* b, int64_t tid, int64_t n) {
  const float* x = b[0]; float* t = b[1];
  for (int64_t r = 4 * tid / n; r < 4 * (tid + 1) / n; ++r) for (int i = 0; i < 16; ++i) t[r * 16 + i] = x[r * 16 + i] * 0.5f;
}
void scale(void* const* b, int64_t tid, int64_t n) { const float* t = b[0]; float* y = b[2]; for (int i = 0; i < 64; ++i) y[i] = t[i]; })";
  load(source);
  HostTensor x{{4, 16}, std::vector<float>(64, 1.5e-38f)};
  DLTensor view = x.view();
  auto e = executor(2);
  ASSERT_TRUE(e->set_input(0, &view).ok());
  ASSERT_TRUE(e->run().ok());
  EXPECT_EQ(output(*e), std::vector<float>(64, 0.0f));
  volatile float small = 1.5e-38f;
  EXPECT_GT(small * 0.5f, 0.0f);
}

// How often each of the process's other threads has gone to sleep.
std::map<std::string, int64_t> sleeps_of_others() {
  std::map<std::string, int64_t> count;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string id = task.path().filename().string();
    if (std::stoll(id) == getpid()) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("voluntary_ctxt_switches:", 0) == 0) count[id] = std::stoll(line.substr(line.find(':') + 1));
  }
  return count;
}

TEST_F(ExecutorTest, LittleWorkWakesNoOtherThread) {
  constexpr int kRuns = 300;
  // In one round of runs, or in the first of many with more than `wanted`: on a busy machine the other thread may not
  // even get to sleep in one.
  auto slept = [&](bool parallel, double predicted_us, int64_t wanted) {
    ArtifactSource source = small_model();
    for (auto& step : source.plan.steps) step.parallel = parallel, step.predicted_us = predicted_us;
    load(source);
    HostTensor x = ramp();
    DLTensor view = x.view();
    auto e = *Executor::create(artifact_, {2, /*spin_us=*/0});
    EXPECT_TRUE(e->set_input(0, &view).ok());
    EXPECT_TRUE(e->run().ok());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    int64_t slept = 0;
    do {
      const std::map<std::string, int64_t> before = sleeps_of_others();
      for (int i = 0; i < kRuns; ++i) EXPECT_TRUE(e->run().ok());
      EXPECT_EQ(output(*e), expected(x));
      slept = 0;
      // A joined thread may be listed for a while: only what is there at the end counts.
      for (const auto& [id, count] : sleeps_of_others()) slept += count - (before.count(id) ? before.at(id) : 0);
    } while (slept <= wanted && std::chrono::steady_clock::now() < end);
    return slept;
  };
  constexpr int64_t kSome = kRuns / 10;
  EXPECT_GT(slept(true, 100, kSome), kSome);
  EXPECT_GT(slept(true, 0, kSome), kSome) << "a time that nobody predicted may be long";
  EXPECT_LT(slept(true, 1, -1), kSome);
  EXPECT_LT(slept(false, 100, -1), kSome);
}

TEST_F(ExecutorTest, ProfileHasEveryStep) {
  HostTensor x = ramp();
  DLTensor view = x.view();
  auto e = executor(2);
  ASSERT_TRUE(e->set_input(0, &view).ok());
  auto profile = e->profile(5);
  ASSERT_TRUE(profile.ok());
  const auto& steps = (*profile)->steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].name, "add");
  EXPECT_EQ(steps[0].kernel, "add_one");
  EXPECT_EQ(steps[1].shapes, "float32[4x16] float32[16] float32[4x16]");
  for (const auto& s : steps) {
    EXPECT_GT(s.min_us, 0);
    EXPECT_LE(s.min_us, s.median_us);
  }
  EXPECT_NE((*profile)->table().find("Mul_1"), std::string::npos);
  EXPECT_NE((*profile)->json().find("\"kernel\":\"scale\""), std::string::npos);
  EXPECT_NE((*profile)->trace().find("\"ph\":\"X\""), std::string::npos);
  EXPECT_FALSE(e->profile(0).ok());
  EXPECT_EQ(json_string("a\"\n\xff\xc3\xa9"), "\"a\\\"\\u000a\\ufffd\xc3\xa9\"");
}

TEST_F(ExecutorTest, ClassicParamsFilesSetInputs) {
  HostTensor x = ramp();
  auto bytes_of = [](const std::vector<float>& v) { return std::as_bytes(std::span(v)); };
  std::vector<float> other = {1, 2};
  std::vector<NamedTensor> tensors = {{"x", kFloat32, {4, 16}, bytes_of(x.values)},
                                      {"unknown", kFloat32, {2}, bytes_of(other)}};
  std::string file = write_params_file(tensors);
  auto view = std::as_bytes(std::span(file.data(), file.size()));
  auto e = executor(), sharing = executor();
  ASSERT_TRUE(e->load_params(view).ok());
  ASSERT_TRUE(e->run().ok());
  EXPECT_EQ(output(*e), expected(x));
  ASSERT_TRUE(sharing->share_params(*e, view).ok());
  EXPECT_EQ(sharing->input(0)->data, e->input(0)->data);
  for (size_t n = 0; n < file.size(); n += 5) EXPECT_FALSE(read_params_file(view.first(n)).ok()) << n;
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
    (void)read_params_file(std::as_bytes(std::span(damaged.data(), damaged.size())));
  }
}

}  // namespace
}  // namespace tilewright::runtime
