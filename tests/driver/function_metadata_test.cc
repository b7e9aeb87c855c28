// SPDX-License-Identifier: Apache-2.0
// The sizes that function_metadata gives are those that a run needs: exactly so many bytes, before a page that faults.
#include "driver/function_metadata.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include "base/format.h"
#include "driver/build.h"
#include "graphs.h"
#include "relay/ops/nn/attrs_attention.h"
#include "relay/ops/program/attrs_device.h"
#include "runtime/artifact.h"
#include "runtime/classic/graph_executor_module.h"

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
    case 2: {
      Expr a = input("a", {17, 33});
      Expr h = call("nn.dense", {relu(call("nn.dense", {a, constant({65, 33})})), constant({7, 65}, 3)});
      return relay::Module().with_main(relay::make_function({a}, call("nn.softmax", {h})));
    }
    case 3: {  // a transformer's block: attention over four heads, a residual, a norm, two dense layers
      constexpr int64_t kTokens = 19, kHeads = 4, kSize = 8, kWidth = kHeads * kSize;
      Expr a = input("a", {kTokens, kWidth});
      auto heads = [&](uint64_t seed) {
        return call("reshape", {call("nn.dense", {a, constant({kWidth, kWidth}, seed)})},
                    make_attrs<relay::ReshapeAttrs>([&](auto& r) {
                      r.newshape = {1, kTokens, kHeads, kSize};
                    }));
      };
      Expr mixed = call("nn.attention", {heads(1), heads(2), heads(3)}, make_attrs<relay::AttentionAttrs>([&](auto& t) {
                          t.query_layout = t.key_layout = t.value_layout = t.out_layout = "BSHD";
                          t.num_heads = kHeads;
                          t.scale = 0.35;
                        }));
      mixed = call("reshape", {mixed}, make_attrs<relay::ReshapeAttrs>([&](auto& r) {
                     r.newshape = {kTokens, kWidth};
                   }));
      Expr y = call("nn.layer_norm", {call("add", {mixed, a}), constant({kWidth}, 4), constant({kWidth}, 5)},
                    relay::make_default_attrs<relay::LayerNormAttrs>());
      Expr wide = relu(call("nn.dense", {y, constant({77, kWidth}, 6)}));
      return relay::Module().with_main(
          relay::make_function({a}, call("add", {y, call("nn.dense", {wide, constant({kWidth, 77}, 8)})})));
    }
    default: {  // a recurrent net: an LSTM in both directions, and a dense layer over its states
      constexpr int64_t kSteps = 9, kInputs = 21, kHidden = 13;
      Expr a = input("a", {kSteps, 1, kInputs}), h = input("h", {2, 1, kHidden});
      Expr layer = call("nn.lstm",
                        {a, constant({2, 4 * kHidden, kInputs}, 1), constant({2, 4 * kHidden, kHidden}, 2),
                         constant({2, 8 * kHidden}, 3), h, constant({2, 1, kHidden}, 4)},
                        make_attrs<relay::RecurrentAttrs>([&](auto& r) {
                          r.hidden_size = kHidden;
                          r.direction = "bidirectional";
                        }));
      Expr states = call("reshape", {relay::make_get(layer, 0)}, make_attrs<relay::ReshapeAttrs>([&](auto& r) {
                           r.newshape = {kSteps, 2 * kHidden};
                         }));
      return relay::Module().with_main(relay::make_function(
          {a, h},
          relay::make_tuple({call("nn.dense", {states, constant({5, 2 * kHidden}, 6)}), relay::make_get(layer, 1)})));
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

  const std::vector<FunctionMetadata> metadata = function_metadata(built->lowered);
  ASSERT_EQ(metadata.size(), plan.kernels.size() + 1);
  EXPECT_EQ(metadata[0].name, "__tvm_main__");
  EXPECT_EQ(metadata[0].constants, plan.params_bytes);
  uint64_t io = 0;
  for (const auto* list : {&plan.inputs, &plan.outputs})
    for (const plan::TensorInfo& t : *list) io += bytes_of(t);
  EXPECT_EQ(metadata[0].io, io);
  for (size_t i = 1; i < metadata.size(); ++i) {
    EXPECT_EQ(metadata[i].name, plan.kernels[i - 1]);
    EXPECT_GT(metadata[i].io, 0u);
    EXPECT_LE(metadata[i].workspace, metadata[0].workspace);
    EXPECT_LE(metadata[i].constants, metadata[0].constants);
  }

  Guarded arena(metadata[0].workspace);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % 64, 0u) << "the arena's size is a multiple of its alignment";
  std::vector<std::unique_ptr<Guarded>> in, out;
  std::vector<void*> inputs, outputs;
  for (const plan::TensorInfo& t : plan.inputs) {
    inputs.push_back(in.emplace_back(std::make_unique<Guarded>(bytes_of(t)))->data());
    const Tensor values = random_tensor(kFloat32, {static_cast<int64_t>(bytes_of(t) / 4)}, 5 + in.size());
    std::memcpy(inputs.back(), values.raw(), values.bytes());
  }
  for (const plan::TensorInfo& t : plan.outputs)
    outputs.push_back(out.emplace_back(std::make_unique<Guarded>(bytes_of(t)))->data());
  ASSERT_TRUE((*loaded)->has_entry());
  ASSERT_EQ((*loaded)->run_entry(inputs.data(), outputs.data(), arena.data()), 0);

  // The executor with memory of its own has the same result, step by step and through the entry.
  for (bool generated : {false, true}) {
    runtime::ExecutorOptions how;
    how.threads = 1;
    how.generated_entry = generated;
    auto executor = runtime::Executor::create(*loaded, how);
    ASSERT_TRUE(executor.ok()) << executor.error().str();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<int64_t>& shape = plan.inputs[i].shape;
      DLTensor view{inputs[i],
                    {kDLCPU, 0},
                    static_cast<int32_t>(shape.size()),
                    {kDLFloat, 32, 1},
                    const_cast<int64_t*>(shape.data()),
                    nullptr,
                    0};
      ASSERT_TRUE((*executor)->set_input(i, &view).ok());
    }
    ASSERT_TRUE((*executor)->run().ok());
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(std::memcmp((*executor)->output(i)->data, outputs[i], bytes_of(plan.outputs[i])), 0) << generated;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, FunctionMetadataTest, ::testing::Range(0, 5));

// Each device's working memory is its own entry; a copy between them is no function.
TEST(FunctionMetadata, SeveralDevices) {
  auto on_device = [](Expr e, int64_t type) {
    return call("on_device", {e}, make_attrs<relay::OnDeviceAttrs>([&](auto& a) { a.device_type = type; }));
  };
  Expr x = input("x", {1, 8, 20, 20});
  Expr there = on_device(relu(conv(on_device(relu(conv(x, 8, 8, 3, 1, 1)), 1), 8, 8, 3, 1, 1)), 12);
  BuildOptions options;
  options.jobs = 1;
  options.device_targets[12] = "llvm -mcpu=x86-64";
  auto built = build(relay::Module().with_main(relay::make_function({x}, relu(conv(there, 8, 8, 1, 1, 0)))), options);
  ASSERT_TRUE(built.ok()) << built.error().str();
  const plan::Plan& plan = built->lowered.plan;
  ASSERT_EQ(plan.devices, (std::vector<int32_t>{1, 12}));
  const auto metadata = function_metadata(built->lowered);
  ASSERT_EQ(metadata.size(), 2 + plan.kernels.size());
  EXPECT_EQ(metadata[0].workspace, plan.arena_bytes);
  EXPECT_EQ(metadata[1].name, "__tvm_main__");
  EXPECT_EQ(metadata[1].device, 12);
  EXPECT_EQ(metadata[1].workspace, plan.device_arena_bytes[0]);
  EXPECT_EQ(metadata[1].constants + metadata[1].io, 0u);
  int there_kernels = 0;
  for (size_t i = 2; i < metadata.size(); ++i) there_kernels += metadata[i].device == 12;
  EXPECT_GT(there_kernels, 0);
  EXPECT_LT(there_kernels, static_cast<int>(plan.kernels.size()));
}

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
