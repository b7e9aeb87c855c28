// SPDX-License-Identifier: Apache-2.0
// The sizes that function_metadata gives are those that a run needs: exactly so many bytes, before a page that faults.
#include "driver/function_metadata.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "driver/build.h"
#include "graphs.h"
#include "runtime/artifact.h"
#include "runtime/graph_executor_module.h"

namespace tilewright::driver {
namespace {

using namespace testing;  // NOLINT: the graphs of this folder's tests

// `bytes` of memory that end where an inaccessible page begins; the start is aligned as far as the end allows.
class Guarded {
 public:
  explicit Guarded(uint64_t bytes) {
    const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), body = (bytes + page - 1) / page * page;
    mapped_ = body + page;
    base_ = static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_EQ(mprotect(base_ + body, page, PROT_NONE), 0);
    data_ = base_ + body - bytes;
    std::memset(base_, 0xA5, body);  // nothing may be counted on to be zero
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { munmap(base_, mapped_); }
  void* data() const { return data_; }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t mapped_ = 0;
};

relay::Module networks(int which) {
  Expr x = input("x", {1, 8, 20, 20});
  switch (which) {
    case 0:
      return relay::Module().with_main(
          relay::make_function({x}, relu(bias(conv(relu(conv(x, 24, 8, 3, 1, 1)), 13, 24, 1, 1, 0), 13))));
    case 1: {  // a residual, a depthwise and a strided convolution, a softmax
      Expr y = relu(bias(conv(x, 16, 8, 3, 2, 1), 16));
      Expr z = call("add", {conv(relu(conv(y, 16, 1, 3, 1, 1, 16)), 16, 16, 3, 1, 1), y});
      return relay::Module().with_main(relay::make_function({x}, call("nn.softmax", {z})));
    }
    default: {
      Expr a = input("a", {17, 33});
      Expr h = call("nn.dense", {relu(call("nn.dense", {a, constant({65, 33})})), constant({7, 65}, 3)});
      return relay::Module().with_main(relay::make_function({a}, call("nn.softmax", {h})));
    }
  }
}

uint64_t bytes_of(const plan::TensorInfo& t) {
  uint64_t n = 1;
  for (int64_t d : t.shape) n *= static_cast<uint64_t>(d);
  return t.dtype.bytes_for(n);
}

class FunctionMetadataTest : public ::testing::TestWithParam<int> {};

TEST_P(FunctionMetadataTest, ARunNeedsExactlyTheseBytes) {
  BuildOptions options;
  options.jobs = 1;
  options.aot = true;
  auto built = build(networks(GetParam()), options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  const std::string path =
      (std::filesystem::temp_directory_path() / tilewright::format("tw-metadata-{}-{}.so", getpid(), GetParam()))
          .string();
  ASSERT_TRUE(export_library(*built, path).ok());
  auto loaded = runtime::Artifact::load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(loaded.ok()) << loaded.error().str();
  const plan::Plan& plan = (*loaded)->plan();

  const std::vector<FunctionMetadata> metadata = function_metadata(built->lowered.plan);
  ASSERT_EQ(metadata.size(), plan.kernels.size() + 1);
  EXPECT_EQ(metadata[0].name, "__tvm_main__");
  EXPECT_EQ(metadata[0].constants, plan.params_bytes);
  EXPECT_EQ(metadata[0].io, bytes_of(plan.inputs[0]) + bytes_of(plan.outputs[0]));
  for (size_t i = 1; i < metadata.size(); ++i) {
    EXPECT_EQ(metadata[i].name, plan.kernels[i - 1]);
    EXPECT_GT(metadata[i].io, 0u);
    EXPECT_LE(metadata[i].workspace, metadata[0].workspace);
    EXPECT_LE(metadata[i].constants, metadata[0].constants);
  }

  Guarded in(bytes_of(plan.inputs[0])), out(bytes_of(plan.outputs[0])), arena(metadata[0].workspace);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % 64, 0u) << "the arena's size is a multiple of its alignment";
  const auto n = static_cast<int64_t>(bytes_of(plan.inputs[0]) / 4);
  const Tensor values = random_tensor(kFloat32, {n}, 5);
  std::memcpy(in.data(), values.raw(), values.bytes());
  void *inputs[] = {in.data()}, *outputs[] = {out.data()};
  ASSERT_NE((*loaded)->entry(), nullptr);
  ASSERT_EQ((*loaded)->entry()(inputs, outputs, arena.data()), 0);

  // The executor with memory of its own has the same result, step by step and through the entry.
  for (bool generated : {false, true}) {
    runtime::ExecutorOptions how;
    how.threads = 1;
    how.generated_entry = generated;
    auto executor = runtime::Executor::create(*loaded, how);
    ASSERT_TRUE(executor.ok()) << executor.error().str();
    DLTensor view{in.data(),
                  {kDLCPU, 0},
                  static_cast<int32_t>(plan.inputs[0].shape.size()),
                  {kDLFloat, 32, 1},
                  const_cast<int64_t*>(plan.inputs[0].shape.data()),
                  nullptr,
                  0};
    ASSERT_TRUE((*executor)->set_input(0, &view).ok());
    ASSERT_TRUE((*executor)->run().ok());
    EXPECT_EQ(std::memcmp((*executor)->output(0)->data, out.data(), bytes_of(plan.outputs[0])), 0) << generated;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, FunctionMetadataTest, ::testing::Values(0, 1, 2));

TEST(AotExecutor, IsWhatALibraryBuiltForItMakes) {
  BuildOptions options;
  options.jobs = 1;
  options.aot = true;
  options.name = "small";
  auto built = build(networks(0), options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  const std::string path =
      (std::filesystem::temp_directory_path() / tilewright::format("tw-aot-{}.so", getpid())).string();
  ASSERT_TRUE(export_library(*built, path).ok());
  auto library = runtime::LibraryModule::load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(library.ok()) << library.error().str();
  for (const char* absent : {"debug_create", "get_graph_json", "get_graph_params"})
    EXPECT_FALSE(*(*library)->get_function(absent)) << absent;
  auto made = runtime::call((*library)->get_function("small")->get(), {});
  ASSERT_TRUE(made.ok()) << made.error().str();
  auto module = runtime::Arguments(std::span(&made->get(), 1), "small").module(0);
  ASSERT_TRUE(module.ok());
  EXPECT_EQ((*module)->type_key(), "AotExecutor");
  for (const char* absent : {"load_params", "share_params", "profile", "run_individual"})
    EXPECT_FALSE(*(*module)->get_function(absent)) << absent;
  for (const char* present :
       {"set_input", "set_input_zero_copy", "set_output_zero_copy", "get_output", "get_input", "get_num_inputs",
        "get_num_outputs", "get_input_index", "get_input_info", "run", "run_from_inputs"})
    EXPECT_TRUE(*(*module)->get_function(present)) << present;
}

}  // namespace
}  // namespace tilewright::driver
