// SPDX-License-Identifier: Apache-2.0
// The classic stack's factory records and parameter files: real ones, ours, and damaged ones.
#include "runtime/classic/factory_record.h"

#include <gtest/gtest.h>

#include "runtime/artifact_maker.h"
#include "test_folders.h"

namespace tilewright::runtime {
namespace {
using testing::read_file;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// A record as the classic stack lays it out, of a real graph and its parameters.
std::string real_record() {
  static const std::string params = read_file(TW_TEST_DATA "/classic/smallnet_built.params");
  FactoryRecord record{read_file(TW_TEST_DATA "/classic/smallnet_graph.json"), *read_params_file(bytes_of(params)),
                       "default"};
  return write_factory_record(record, true);
}

TEST(ParamsFile, ARealOneIsWrittenByteForByte) {
  for (const char* name : {"/classic/all_dtypes.params", "/classic/smallnet_built.params"}) {
    const std::string file = read_file(std::string(TW_TEST_DATA) + name);
    auto tensors = read_params_file(bytes_of(file));
    ASSERT_TRUE(tensors.ok()) << tensors.error().str();
    EXPECT_GT(tensors->size(), 2u);
    EXPECT_EQ(write_params_file(*tensors), file) << name;
  }
}

TEST(FactoryRecord, GivesGraphAndParametersAndRefusesTheClassicCode) {
  const std::string bytes = real_record();
  for (const char* key : {"GraphExecutorFactory", "GraphRuntimeFactory"}) {
    auto module = load_module_binary(key, bytes);
    ASSERT_TRUE(module.ok()) << module.error().str();
    EXPECT_EQ((*module)->type_key(), key);
    EXPECT_EQ(*(*module)->save(), bytes);
    auto graph = call((*module)->get_function("get_graph_json")->get(), {});
    ASSERT_TRUE(graph.ok());
    EXPECT_NE(std::string(graph->get().as.str).find("tvmgen_default_fused"), std::string::npos);
    auto params = call((*module)->get_function("get_graph_params")->get(), {});
    ASSERT_TRUE(params.ok());
    EXPECT_GT(params->get().size, 2u);
    for (const char* maker : {"default", "debug_create"}) {
      auto made = call((*module)->get_function(maker)->get(), {});
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().code, ErrorCode::kArtifactVersion);
      EXPECT_NE(made.error().message.find("machine code of the classic stack"), std::string::npos);
    }
    EXPECT_FALSE(*(*module)->get_function("nothing"));
    auto lean = call((*module)->get_function("remove_params")->get(), {});
    ASSERT_TRUE(lean.ok()) << lean.error().str();
    auto rest = Arguments(std::span(&lean->get(), 1), "lean").module(0);
    EXPECT_LT((*rest)->save()->size(), bytes.size() - 1000);
  }
  const FactoryRecord aot{"", {}, "net"};
  auto module = load_module_binary("AotExecutorFactory", write_factory_record(aot, false));
  ASSERT_TRUE(module.ok()) << module.error().str();
  EXPECT_FALSE(*(*module)->get_function("get_graph_json"));
  EXPECT_FALSE(call((*module)->get_function("net")->get(), {}).ok());
}

// Beside a library of ours the record's parameters are set in the executors that it makes.
TEST(FactoryRecord, MakesExecutorsOfALibraryOfOurs) {
  testing::TempFolder folder;
  testing::make_artifact(testing::small_model(), folder / "m.so");
  const std::vector<float> x(64, 3);
  const FactoryRecord record{"{}", {{"x", kFloat32, {4, 16}, std::as_bytes(std::span(x))}}, "net"};
  auto module = *load_module_binary("GraphExecutorFactory", write_factory_record(record, true));
  ASSERT_TRUE(module->import_module(*load_module_file(folder / "m.so", "")).ok());
  auto made = call(module->get_function("net")->get(), {});
  ASSERT_TRUE(made.ok()) << made.error().str();
  auto executor = *Arguments(std::span(&made->get(), 1), "net").module(0);
  EXPECT_EQ(executor->type_key(), "GraphExecutor");
  EXPECT_TRUE(call(executor->get_function("run")->get(), {}).ok()) << "its only input is set";
}

TEST(FactoryRecord, DamageIsAnError) {
  const std::string bytes = real_record();
  for (size_t n = 0; n < bytes.size(); n += n < 64 || n + 64 > bytes.size() ? 1 : 37)
    EXPECT_EQ(read_factory_record(bytes_of(bytes.substr(0, n)), true).error().code, ErrorCode::kBadArtifact) << n;
  EXPECT_FALSE(read_factory_record(bytes_of(bytes + "x"), true).ok());
  // Any bit: an error or a record, never more memory than the file is large.
  std::string broken = bytes;
  size_t refused = 0;
  for (size_t i = 0; i < broken.size(); i += i < 16 ? 1 : 5)
    for (int bit : {0, 3, 7}) {
      broken[i] = static_cast<char>(broken[i] ^ (1 << bit));
      auto record = read_factory_record(bytes_of(broken), true);
      if (!record.ok()) ++refused;
      for (size_t k = 0; record.ok() && k < record->params.size(); ++k)
        EXPECT_LE(record->params[k].data.size(), bytes.size());
      broken[i] = bytes[i];
    }
  EXPECT_GT(refused, 20u);
}

}  // namespace
}  // namespace tilewright::runtime
