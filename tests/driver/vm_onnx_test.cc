// SPDX-License-Identifier: Apache-2.0
// ONNX control flow on computed values, results of computed sizes and sequences: compiled to a file, run, compared with
// the same steps written out here.
#include <gtest/gtest.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "driver/verify.h"
#include "driver/vm.h"
#include "relay/op.h"
#include "runtime/vm/compiler_hook.h"
#include "test_folders.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {
namespace {

using runtime::vm::ProgramRunner;

const std::string kModel = std::string(TW_TEST_DATA) + "/onnx/computed_control.onnx";

std::shared_ptr<const runtime::vm::Program> compiled(const std::string& model) {
  const std::string file =
      (std::filesystem::temp_directory_path() / format("tw-vm-onnx-test-{}.so", getpid())).string();
  auto status = compile_onnx(model, file, {});
  EXPECT_TRUE(status.ok()) << status.error().str();
  auto artifact = runtime::Artifact::load(file);
  std::filesystem::remove(file);
  EXPECT_TRUE(artifact.ok());
  auto program = runtime::vm::program_of(*artifact);
  EXPECT_TRUE(program.ok() && *program);
  return *program;
}

std::unique_ptr<ProgramRunner> runner(std::shared_ptr<const runtime::vm::Program> program, int evaluate_first,
                                      const std::atomic<bool>* interrupt = nullptr) {
  runtime::vm::SpecializedOptions options;
  options.threads = 1;
  options.evaluate_first = evaluate_first;
  options.evaluate = runtime::vm::evaluate_with(program, tw_compiler_evaluate, tw_compiler_last_error_message);
  options.interrupt = interrupt;
  auto made = ProgramRunner::create(
      program, runtime::vm::specialize_with(program, tw_compiler_specialize, tw_compiler_last_error_message), options);
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

struct Expected {
  std::vector<float> last, sums, y, squares, chosen;
  float total = 0;
};
Expected written_out(std::vector<float> x, float limit) {
  Expected e;
  float sum;
  do {
    sum = 0;
    for (float& v : x) sum += v = v + v + 0.5f;
    e.sums.push_back(sum);
  } while (sum < limit);
  e.last = x;
  float top = e.sums[0], mean = 0;
  for (float s : e.sums) top = std::max(top, s);
  for (float v : x) {
    if (top > 100) {
      if (e.y.size() < e.sums.size()) e.y.push_back(v);
    } else {
      e.y.push_back(-v);
    }
    e.total += v;
    e.squares.push_back(v * v);
    mean += v / static_cast<float>(x.size());
  }
  for (float v : x)
    if (v > mean) e.chosen.push_back(v);
  return e;
}

void near(const Tensor& got, const std::vector<float>& expected, const char* what) {
  ASSERT_EQ(got.size(), static_cast<int64_t>(expected.size())) << what;
  for (int64_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got.at_double(i), expected[static_cast<size_t>(i)],
                1e-3 * (1 + std::abs(expected[static_cast<size_t>(i)])))
        << what;
}

TEST(VmOnnx, LoopsBranchesAndSizesThatDataDecide) {
  auto program = compiled(kModel);
  ASSERT_TRUE(program);
  for (int evaluate_first : {0, 2}) {
    auto vm = runner(program, evaluate_first);
    for (float limit : {10.f, 1000.f, 10.f, 50.f, 1000.f})
      for (int64_t n : {3, 7}) {
        std::vector<float> x;
        for (int64_t i = 0; i < n; ++i)
          x.push_back(0.25f * static_cast<float>((i * 7) % 5) + 0.1f + 0.03f * static_cast<float>(i * i));
        auto got = vm->run_values({runtime::vm::make_tensor(Tensor::from<float>(kFloat32, {n}, x)),
                                   runtime::vm::make_tensor(Tensor::scalar<float>(kFloat32, limit))});
        ASSERT_TRUE(got.ok()) << got.error().str();
        ASSERT_EQ(got->size(), 7u);
        const Expected e = written_out(x, limit);
        near((*got)[0]->tensor, e.last, "last");
        ASSERT_EQ((*got)[1]->fields.size(), e.sums.size());
        for (size_t i = 0; i < e.sums.size(); ++i) near((*got)[1]->fields[i]->tensor, {e.sums[i]}, "kept");
        near((*got)[2]->tensor, e.sums, "sums");
        near((*got)[3]->tensor, e.y, "y");
        near((*got)[4]->tensor, {e.total}, "total");
        near((*got)[5]->tensor, e.squares, "squares");
        near((*got)[6]->tensor, e.chosen, "chosen");
      }
    EXPECT_EQ(evaluate_first > 0, vm->functions().evaluated() > 0);
  }
}

// Grow of the model: its two results.
std::pair<std::vector<float>, std::vector<float>> grown(std::vector<float> v, float limit, float factor, float top) {
  std::vector<float> sums;
  do {
    sums.push_back(0);
    for (float& e : v) sums.back() += e = std::min(e * 1.5f * factor, top);
  } while (sums.back() < limit);
  float most = v[0];
  for (float e : v) most = std::max(most, e);
  if (most > 50)
    for (float& e : v) e = -e;
  return {v, sums};
}

TEST(VmOnnx, FunctionsWithControlFlow) {
  auto program = compiled(std::string(TW_TEST_DATA) + "/onnx/computed_functions.onnx");
  ASSERT_TRUE(program);
  for (int evaluate_first : {0, 2}) {
    auto vm = runner(program, evaluate_first);
    for (float limit : {4.f, 30.f, 200.f})
      for (int64_t n : {3, 5}) {
        std::vector<float> x;
        for (int64_t i = 0; i < n; ++i) x.push_back(0.5f + 0.25f * static_cast<float>(i * i % 7));
        auto got = vm->run({Tensor::from<float>(kFloat32, {n}, x), Tensor::scalar<float>(kFloat32, limit)});
        ASSERT_TRUE(got.ok()) << got.error().str();
        ASSERT_EQ(got->size(), 3u);
        const auto [first, sums] = grown(x, limit, 2, 1e30f);
        near((*got)[0], first, "first");
        near((*got)[1], sums, "sums");
        std::vector<float> positive;
        for (float v : first) positive.push_back(std::abs(v));
        near((*got)[2], grown(positive, limit, 0.9f, 90).first, "second");
      }
  }
}

// Bytes, without the pages that the allocator keeps for later; how many those are is a matter of its threads.
int64_t resident() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ifstream in("/proc/self/statm");
  int64_t all = 0, pages = 0;
  in >> all >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// Bytes that were allocated and not freed; 0 where the C library does not tell.
int64_t in_use() {
#ifdef __GLIBC__
  return static_cast<int64_t>(mallinfo2().uordblks);
#else
  return 0;
#endif
}

TEST(VmOnnx, MemoryStaysFlatOverManyShapes) {
  auto vm = runner(compiled(kModel), 2);
  int64_t before = 0;
  for (int64_t run = 0; run < 1500; ++run) {
    const int64_t n = run * 7919 % 1500 + 1;  // each once
    auto got = vm->run({Tensor::from<float>(kFloat32, {n}, std::vector<float>(static_cast<size_t>(n), 0.25f)),
                        Tensor::scalar<float>(kFloat32, 100)});
    ASSERT_TRUE(got.ok()) << got.error().str();
    if (run == 500) before = resident();
  }
  EXPECT_LT(resident() - before, int64_t{24} << 20);
  EXPECT_LE(vm->functions().kept(), 64u);
}

// Ever new sizes that are compiled, each with working memory of its own: what is kept is bounded by the largest.
TEST(VmOnnx, MemoryStaysFlatOverManyCompilations) {
  using namespace relay;
  Expr x = make_var("x", tensor_type({Dim::any(), Dim(64)}, kFloat32));
  Expr body = call("sum", {call("nn.softmax", {call("tanh", {call("nn.softmax", {x})})})});
  auto made = vm_program(Module().with_main(make_function({x}, body)), {});
  ASSERT_TRUE(made.ok()) << made.error().str();
  auto vm = runner(std::make_shared<const runtime::vm::Program>(std::move(*made)), 0);
  int64_t before = 0, in_use_before = 0;
  for (int64_t run = 0; run < 130; ++run) {
    auto got = vm->run({Tensor::zeros(kFloat32, {4000 - run, 64})});
    ASSERT_TRUE(got.ok()) << got.error().str();
    if (run == 20) before = resident();
    if (run == 69) in_use_before = in_use();  // from here on each takes the place of an older one
  }
  EXPECT_EQ(vm->functions().compiled(), 130u);
  // The linker, for one, keeps kilobytes of each link until its thread ends.
  EXPECT_LT(in_use() - in_use_before, 60 * 1024);
  // Further 44 are kept: a library's pages each, not a megabyte of working memory.
  EXPECT_LT(resident() - before, int64_t{24} << 20);
}

TEST(VmOnnx, TracesNameKernelsAndFunctions) {
  auto vm = runner(compiled(kModel), 0);
  std::vector<runtime::vm::TraceEvent> events;
  vm->set_trace(&events);
  ASSERT_TRUE(
      vm->run({Tensor::from<float>(kFloat32, {2}, std::vector<float>{1, 2}), Tensor::scalar<float>(kFloat32, 50)})
          .ok());
  vm->set_trace(nullptr);
  const std::string table = runtime::vm::trace_table(events), trace = runtime::vm::trace_chrome(events);
  for (const char* name : {"argwhere", "list_append", "compile region_", "element"}) {
    EXPECT_NE(table.find(name), std::string::npos) << table;
    EXPECT_NE(trace.find(name), std::string::npos);
  }
  const size_t count = events.size();
  ASSERT_TRUE(
      vm->run({Tensor::from<float>(kFloat32, {2}, std::vector<float>{1, 2}), Tensor::scalar<float>(kFloat32, 50)})
          .ok());
  EXPECT_EQ(events.size(), count);
}

TEST(VmOnnx, DamagedModelsAreErrors) {
  std::ifstream in(kModel, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  int taken = 0;
  for (size_t i = 0; i < good.size() * 8; i += 3) {
    auto bytes = std::make_shared<std::string>(good);
    (*bytes)[i / 8] = static_cast<char>((*bytes)[i / 8] ^ (1 << (i % 8)));
    const onnx::SharedBytes shared{std::as_bytes(std::span(*bytes)), bytes};
    auto model = onnx::read_model(shared, "");
    if (!model.ok()) continue;
    auto program = vm_program(*model, {});
    if (!program.ok()) continue;
    ++taken;  // another model: it is a program that passes every check
    const std::string written = runtime::vm::write_program(*program);
    EXPECT_TRUE(runtime::vm::read_program(std::as_bytes(std::span(written))).ok()) << i;
  }
  EXPECT_GT(taken, 0);
}

TEST(VmOnnx, LoopsCanBeInterrupted) {
  std::atomic<bool> stop{true};
  auto vm = runner(compiled(kModel), 2, &stop);
  const std::vector<Tensor> inputs = {Tensor::from<float>(kFloat32, {1}, std::vector<float>{-1.f}),
                                      Tensor::scalar<float>(kFloat32, 1)};  // grows without end downwards
  EXPECT_EQ(vm->run(inputs).error().code, ErrorCode::kInterrupted);
}

TEST(VmOnnx, WhatCannotBeIsAnError) {
  auto vm = runner(compiled(kModel), 0);
  // No step is possible without elements: the sum of nothing stays below the limit for ever only if it is; here it is
  // not.
  auto empty = vm->run({Tensor::zeros(kFloat32, {0}), Tensor::scalar<float>(kFloat32, -1)});
  EXPECT_TRUE(empty.ok() || !empty.error().message.empty());
  EXPECT_FALSE(vm->run({Tensor::zeros(kFloat32, {2, 2}), Tensor::scalar<float>(kFloat32, 1)}).ok());
  EXPECT_FALSE(
      vm->run_values({runtime::vm::make_adt(0, {}), runtime::vm::make_tensor(Tensor::scalar<float>(kFloat32, 1))})
          .ok());
}

}  // namespace
}  // namespace tilewright::driver
