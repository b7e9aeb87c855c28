// SPDX-License-Identifier: Apache-2.0
// Parts of a model on a device of the user's, and models on several devices: partition, plan, files, runs, faults.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "driver/graphs.h"
#include "relay/ops/program/attrs_device.h"
#include "relay/passes/fusion/partition_external.h"
#include "relay/text.h"
#include "runtime/classic/graph_json.h"
#include "runtime/executor.h"
#include "runtime/module.h"

namespace tilewright::driver {
namespace {
using namespace testing;
using relay::Expr;

relay::Module module_of(std::vector<Expr> inputs, Expr body) {
  return relay::Module().with_main(relay::make_function(std::move(inputs), std::move(body)));
}

// "relu" of the test device: a module whose bytes are the symbol; it computes max(x, 0) of each operand in turn.
class TestDevice : public runtime::Module {
 public:
  explicit TestDevice(std::string symbol) : symbol_(std::move(symbol)) {}
  const std::string& type_key() const override {
    static const std::string kKey = "test_device";
    return kKey;
  }
  Result<runtime::FunctionRef> get_function(const std::string& name) override {
    if (name != symbol_) return runtime::FunctionRef();
    return runtime::make_function(name, [](const runtime::Arguments& args) -> Result<runtime::Value> {
      if (fails) return Diagnostic(ErrorCode::kInvalidArgument, "the device is on fire");
      ++calls;
      const DLTensor &x = *TW_TRY(args.tensor(0)), &y = *TW_TRY(args.tensor(args.size() - 1));
      int64_t n = 1;
      for (int d = 0; d < y.ndim; ++d) n *= y.shape[d];
      for (int64_t i = 0; i < n; ++i)
        static_cast<float*>(y.data)[i] = std::max(static_cast<const float*>(x.data)[i], 0.0f);
      return runtime::Value();
    });
  }
  Result<std::string> save() const override { return symbol_; }
  static inline std::atomic<bool> fails{false};
  static inline std::atomic<int> calls{0};

 private:
  std::string symbol_;
};

void register_device() {
  auto load = runtime::make_function("load", [](const runtime::Arguments& args) -> Result<runtime::Value> {
    return runtime::Value(
        std::shared_ptr<runtime::Module>(std::make_shared<TestDevice>(std::string(TW_TRY(args.bytes(0))))));
  });
  ASSERT_TRUE(runtime::register_global("runtime.module.loadbinary_test_device", std::move(load), true).ok());
  auto generate = runtime::make_function("generate", [](const runtime::Arguments& args) -> Result<runtime::Value> {
    return runtime::Value(
        std::shared_ptr<runtime::Module>(std::make_shared<TestDevice>(std::string(TW_TRY(args.string(0))))));
  });
  ASSERT_TRUE(runtime::register_global("relay.ext.test", std::move(generate), true).ok());
}

class ExternalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    register_device();
    TestDevice::fails = false;
    TestDevice::calls = 0;
    char name[] = "/tmp/tw_external_XXXXXX";
    folder_ = mkdtemp(name);
    options_.jobs = 1;
    options_.external = {{"test", "test.relu: nn.relu\n", {}, {}}};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::shared_ptr<runtime::LibraryModule> library(const relay::Module& module) {
    auto built = build(module, options_);
    EXPECT_TRUE(built.ok()) << built.error().str();
    if (!built.ok()) return nullptr;
    Status written = export_library(*built, folder_ + "/m.so");
    EXPECT_TRUE(written.ok()) << written.error().str();
    auto loaded = runtime::LibraryModule::load(folder_ + "/m.so");
    EXPECT_TRUE(loaded.ok()) << loaded.error().str();
    return loaded.ok() ? *loaded : nullptr;
  }
  static std::unique_ptr<runtime::Executor> executor(const runtime::LibraryModule& library, int threads = 2) {
    runtime::ExecutorOptions o;
    o.threads = threads;
    o.externals = *library.externals();
    return std::move(*runtime::Executor::create(library.artifact(), o));
  }
  static void fill(runtime::Executor& e, uint64_t index = 0) {
    auto view = *e.input(index);
    int64_t n = 1;
    for (int d = 0; d < view.ndim; ++d) n *= view.shape[d];
    for (int64_t i = 0; i < n; ++i)
      static_cast<float*>(view.data)[i] = std::sin(static_cast<float>(i + 3 * static_cast<int64_t>(index)));
  }
  static std::vector<float> output(runtime::Executor& e, uint64_t index = 0) {
    auto view = *e.output(index);
    int64_t n = 1;
    for (int d = 0; d < view.ndim; ++d) n *= view.shape[d];
    auto* data = static_cast<float*>(view.data);
    return {data, data + n};
  }
  // The same on the processor alone.
  std::vector<float> expected(const relay::Module& module) {
    BuildOptions plain;
    plain.jobs = 1;
    auto built = build(module, plain);
    EXPECT_TRUE(export_library(*built, folder_ + "/plain.so").ok());
    auto e = executor(**runtime::LibraryModule::load(folder_ + "/plain.so"));
    for (uint64_t i = 0; i < e->plan().inputs.size(); ++i) fill(*e, i);
    EXPECT_TRUE(e->run().ok());
    return output(*e);
  }
  std::string folder_;
  BuildOptions options_;
};

size_t functions_of(const relay::Module& module, const std::string& patterns) {
  relay::ExternalCompiler compiler{"v", *relay::parse_composite_patterns(patterns), {}};
  auto out = relay::partition_external(module, compiler, "m");
  EXPECT_TRUE(out.ok()) << out.error().str();
  return out->functions.size() - 1;
}

TEST_F(ExternalTest, APathThatLeavesAndComesBackPartsTheFunction) {
  Expr x = input("x", {4, 4}), a = relu(x);
  const char* both = "v.relu: nn.relu\nv.add: add\n";
  EXPECT_EQ(functions_of(module_of({x}, call("add", {a, relu(a)})), both), 1u);
  EXPECT_EQ(functions_of(module_of({x}, call("add", {a, call("exp", {a})})), both), 2u);
  EXPECT_EQ(functions_of(module_of({x}, call("exp", {x})), both), 0u);
  // Two results of one function.
  EXPECT_EQ(functions_of(module_of({x}, relay::make_tuple({relu(a), call("exp", {a})})), both), 1u);
}

TEST_F(ExternalTest, PatternsAreChecked) {
  EXPECT_EQ(relay::parse_composite_patterns("v.x: nn.rlu").error().code, ErrorCode::kUnknownOp);
  EXPECT_NE(relay::parse_composite_patterns("v.x: nn.rlu").error().hint.find("nn.relu"), std::string::npos);
  EXPECT_EQ(relay::parse_composite_patterns("v.x nn.relu").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(relay::parse_composite_patterns("v.x:").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(relay::parse_composite_patterns("v.x: nn.relu?").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(relay::parse_composite_patterns("\n v.x: nn.dense add? \n")->front().links.size(), 2u);
}

// Each operator of a composite has its attributes, also where two of them are of one kind.
TEST_F(ExternalTest, ACompositesOperatorsKeepTheirAttributes) {
  Expr x = input("x", {2, 4});
  auto clip = [](const Expr& e, double low, double high) {
    return call("clip", {e}, make_attrs<relay::ClipAttrs>([&](auto& a) { a.a_min = low, a.a_max = high; }));
  };
  Expr p = input("p", {2, 4});
  Expr composite = relay::make_function({p}, clip(clip(p, -3, 3), 0, 1), {{"Composite", std::string("unit.clips")}});
  Expr q = input("q", {2, 4});
  Expr part = relay::make_function({q}, relay::call_function(composite, {q}));
  auto graph = external_graph(*relay::as<relay::FunctionNode>(part), "part");
  ASSERT_TRUE(graph.ok()) << graph.error().str();
  const auto node = nlohmann::json::parse(graph->json)["nodes"][1];
  const auto& texts = node["attrs"]["operator_attrs"][0];
  ASSERT_EQ(texts.size(), 2u) << node.dump();
  const auto first = nlohmann::json::parse(texts[0].get<std::string>());
  const auto second = nlohmann::json::parse(texts[1].get<std::string>());
  EXPECT_EQ(first["op"], "clip");
  EXPECT_NE(first["attrs"]["a_max"], second["attrs"]["a_max"]);
  EXPECT_EQ(second["attrs"]["a_max"][0][0].get<std::string>().substr(0, 1), "1");
}

TEST_F(ExternalTest, RunsBetweenKernels) {
  Expr x = input("x", {1, 8, 6, 6});
  // Padded convolutions around the device's parts: their halos must stay away from what the device reads.
  auto module = module_of({x}, conv(relu(call("exp", {relu(conv(x, 16, 8, 3, 1, 1))})), 16, 16, 3, 1, 1));
  auto lib = library(module);
  ASSERT_TRUE(lib);
  EXPECT_EQ(lib->artifact()->plan().externals.size(), 2u);
  for (int threads : {1, 3}) {
    auto e = executor(*lib, threads);
    fill(*e);
    ASSERT_TRUE(e->run().ok());
    auto given = output(*e), wanted = expected(module);
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(given[i], wanted[i], 1e-3f + 1e-4f * std::abs(wanted[i])) << i;
    auto profile = e->profile(3);
    ASSERT_TRUE(profile.ok()) << profile.error().str();
    EXPECT_NE((*profile)->json().find("tvmgen_default_test_main_0"), std::string::npos);
  }
  EXPECT_GT(TestDevice::calls, 0);
  auto graph = nlohmann::json::parse(runtime::write_graph_json(lib->artifact()->plan()));
  int external = 0;
  for (const auto& node : graph["nodes"])
    external += node["op"] == "tvm_op" &&
                node["attrs"]["func_name"].get<std::string>().starts_with("tvmgen_default_test_main_");
  EXPECT_EQ(external, 2);
}

TEST_F(ExternalTest, AFaultOfTheDeviceIsTheRunsError) {
  Expr x = input("x", {64});
  auto lib = library(module_of({x}, call("exp", {relu(call("exp", {x}))})));
  ASSERT_TRUE(lib);
  auto e = executor(*lib);
  fill(*e);
  TestDevice::fails = true;
  Status failed = e->run();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(failed.error().str().find("tvmgen_default_test_main_0"), std::string::npos) << failed.error().str();
  EXPECT_NE(failed.error().str().find("on fire"), std::string::npos);
  EXPECT_FALSE(e->profile(2).ok());
  TestDevice::fails = false;
  EXPECT_TRUE(e->run().ok());
}

TEST_F(ExternalTest, ErrorsNameWhatIsMissing) {
  Expr x = input("x", {8});
  auto module = module_of({x}, relu(x));
  auto lib = library(module);
  ASSERT_TRUE(lib);
  EXPECT_EQ(runtime::Executor::create(lib->artifact()).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(runtime::remove_global("runtime.module.loadbinary_test_device").ok());
  auto again = runtime::LibraryModule::load(folder_ + "/m.so");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kUnknownFunction);
  EXPECT_NE(again.error().str().find("loadbinary_test_device"), std::string::npos);
  // A generator that nobody registered, one that fails, and files without a runtime.
  options_.external = {{"nobody", "n.relu: nn.relu", {}, {}}};
  EXPECT_EQ(build(module, options_).error().code, ErrorCode::kUnknownFunction);
  options_.external = {{"broken",
                        "n.relu: nn.relu",
                        {},
                        [](const std::string&, const std::string&, const std::vector<Tensor>&) -> Result<SavedModule> {
                          return Diagnostic(ErrorCode::kCodegenFailed, "no idea");
                        }}};
  auto broken = build(module, options_);
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().str().find("broken"), std::string::npos);
  options_.external = {{"test", "test.relu: nn.relu\n", {}, {}}};
  auto built = build(module, options_);
  EXPECT_EQ(export_library(*built, folder_ + "/m.o").error().code, ErrorCode::kUnsupportedModel);
}

Expr on_device(Expr e, int64_t type) {
  return call("on_device", {e}, relay::make_attrs<relay::OnDeviceAttrs>([&](auto& a) { a.device_type = type; }));
}

TEST_F(ExternalTest, SeveralDevicesHaveMemoryAndTargetsOfTheirOwn) {
  options_.external.clear();
  options_.device_targets[12] = "llvm -mcpu=x86-64";
  Expr x = input("x", {1, 8, 6, 6});
  Expr body = relu(on_device(call("exp", {conv(on_device(relu(conv(x, 8, 8, 3, 1, 1)), 1), 8, 8, 3, 1, 1)}), 12));
  auto module = module_of({x}, body);
  auto lib = library(module);
  ASSERT_TRUE(lib);
  const plan::Plan& plan = lib->artifact()->plan();
  EXPECT_EQ(plan.devices, (std::vector<int32_t>{1, 12}));
  int copies = 0;
  for (const plan::Step& s : plan.steps) {
    copies += s.kind == plan::StepKind::kCopy;
    const bool apart = plan.buffers[s.buffers[0]].device != plan.buffers[s.buffers.back()].device;
    if (s.kind == plan::StepKind::kCopy) {
      EXPECT_TRUE(apart);
      continue;
    }
    for (uint32_t b : s.buffers) {
      if (plan.buffers[b].space == plan::Space::kArena) {
        EXPECT_EQ(plan.buffers[b].device, plan.buffers[s.buffers.back()].device);
      }
    }
  }
  EXPECT_EQ(copies, 2);
  ASSERT_EQ(plan.device_arena_bytes.size(), 1u);
  EXPECT_GT(plan.device_arena_bytes[0], 0u);
  auto e = executor(*lib);
  fill(*e);
  ASSERT_TRUE(e->run().ok());
  auto given = output(*e);
  auto wanted = expected(module_of({x}, relu(call("exp", {conv(relu(conv(x, 8, 8, 3, 1, 1)), 8, 8, 3, 1, 1)}))));
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(given[i], wanted[i], 1e-3f + 1e-4f * std::abs(wanted[i])) << i;
  auto graph = nlohmann::json::parse(runtime::write_graph_json(plan));
  auto devices = graph["attrs"]["device_index"][1].get<std::vector<int>>();
  EXPECT_NE(std::count(devices.begin(), devices.end(), 12), 0);
  EXPECT_NE(std::count(devices.begin(), devices.end(), 1), 0);
  int named = 0;
  for (const auto& node : graph["nodes"]) named += node["op"] == "tvm_op" && node["attrs"]["func_name"] == "__copy";
  EXPECT_EQ(named, 2);
  // The executor must be given both.
  auto make = *lib->get_function("default");
  auto device = [](DLDeviceType type) {
    tw_value v{};
    v.kind = TW_DEVICE, v.as.device = {type, 0};
    return v;
  };
  const tw_value cpu[] = {device(kDLCPU)}, both[] = {device(kDLCPU), device(kDLExtDev)},
                 other[] = {device(kDLCPU), device(kDLCUDA)};
  EXPECT_FALSE(runtime::call(make.get(), cpu).ok());
  EXPECT_FALSE(runtime::call(make.get(), other).ok());
  EXPECT_TRUE(runtime::call(make.get(), both).ok());
  // Every step beside the reference.
  VerifyOptions verify;
  verify.build = options_;
  auto report = verify_module(module, verify);
  ASSERT_TRUE(report.ok()) << report.error().str();
  EXPECT_TRUE(report->mismatches.empty());
  EXPECT_LE(report->largest_output_error, 1);
}

TEST_F(ExternalTest, AWholeModelOnTheOtherDevice) {
  options_.external.clear();
  Expr x = input("x", {32});
  auto lib =
      library(module_of({x}, on_device(call("exp", {call("negative", {call("nn.softmax", {call("exp", {x})})})}), 12)));
  ASSERT_TRUE(lib);
  EXPECT_EQ(lib->artifact()->plan().devices, (std::vector<int32_t>{1, 12}));
  auto e = executor(*lib);
  fill(*e);
  EXPECT_TRUE(e->run().ok());
}

}  // namespace
}  // namespace tilewright::driver
