// SPDX-License-Identifier: Apache-2.0
// PyTorch's archives without PyTorch: tests/data/torch/make.py wrote the files.
#include "frontend/torch/import.h"

#include <gtest/gtest.h>

#include "archive/zip.h"
#include "frontend/onnx_files.h"
#include "frontend/torch/archive.h"
#include "frontend/torch/read_json.h"
#include "relay/interpreter.h"
#include "relay/op.h"

namespace tilewright::torch {
namespace {

std::string file(const std::string& name) { return std::string(TW_TEST_DATA) + "/torch/" + name; }

Program program_of(const std::string& name) {
  auto program = read_archive(file(name));
  EXPECT_TRUE(program.ok()) << program.error().str();
  return program.ok() ? *program : Program();
}

using Inputs = std::map<std::string, Tensor>;
std::vector<double> values_of(const relay::Module& module, const Inputs& inputs, size_t output = 0) {
  std::map<std::string, relay::Value> values;
  for (const auto& [name, tensor] : inputs) values[name] = relay::value_from(tensor);
  auto out = relay::interpret(module, values);
  EXPECT_TRUE(out.ok()) << out.error().str();
  return out.ok() && output < out->size() ? (*out)[output].f : std::vector<double>();
}
Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return Tensor::from<float>(kFloat32, std::move(shape), values);
}
void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
}

TEST(TorchArchive, ComputesWhatPyTorchComputed) {
  const Program program = program_of("picture.pt2");
  ImportOptions options;
  options.shapes["x"] = {1, 1, 4, 4};
  auto module = import_torch(program, options);
  ASSERT_TRUE(module.ok()) << module.error().str();
  std::vector<float> x;
  for (int i = 0; i < 16; ++i) x.push_back(static_cast<float>(i) / 8 - 0.5f);
  expect_near(values_of(*module, {{"x", floats({1, 1, 4, 4}, x)}}), {1.9336, 2.9336, 3.9336});
}

TEST(TorchArchive, FreeSizesAreNamedAndTheirRangesHold) {
  const Program program = program_of("picture.pt2");
  auto module = import_torch(program, {});
  ASSERT_TRUE(module.ok()) << module.error().str();
  const auto* type = as_tensor(module->main_function()->params.at(0)->type);
  EXPECT_FALSE(type->shape[0].is_const());
  EXPECT_EQ(type->shape[1], Dim(1));
  ImportOptions options;
  options.shapes["x"] = {17, 1, 4, 4};
  auto large = import_torch(program, options);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, ErrorCode::kShapeMismatch);
  EXPECT_NE(large.error().message.find("16"), std::string::npos) << large.error().str();
  options.shapes = {{"y", {1}}};
  EXPECT_EQ(import_torch(program, options).error().code, ErrorCode::kUnknownInput);
}

TEST(TorchArchive, BuffersThatChangeAreInputsAndOutputs) {
  auto module = import_torch(program_of("cache.pt2"), {});
  ASSERT_TRUE(module.ok()) << module.error().str();
  const Inputs inputs = {{"x", floats({3}, {1, 2, 3})}, {"cache", floats({2, 3}, {0, 0, 0, 0, 0, 0})}};
  expect_near(values_of(*module, inputs, 0), {2, 7, 6});
  expect_near(values_of(*module, inputs, 1), {1, 2, 3, 0, 0, 0});
}

TEST(TorchArchive, BranchesAreRelays) {
  ImportOptions options;
  auto ordinary = import_torch(program_of("choice.pt2"), options);
  ASSERT_FALSE(ordinary.ok());
  EXPECT_EQ(ordinary.error().code, ErrorCode::kUnsupportedModel) << ordinary.error().str();
  options.programs = Programs::kWhereNeeded;
  auto program = import_torch(program_of("choice.pt2"), options);
  ASSERT_TRUE(program.ok()) << program.error().str();
  bool branches = false;
  for (const auto& e : relay::post_order(program->main_function()->body))
    branches = branches || e->kind == relay::ExprKind::kIf;
  EXPECT_TRUE(branches);
}

TEST(TorchArchive, SizesAreComputed) {
  ImportOptions options;
  options.shapes["x"] = {1, 3};
  auto module = import_torch(program_of("grown.pt2"), options);
  ASSERT_TRUE(module.ok()) << module.error().str();
  expect_near(values_of(*module, {{"x", floats({1, 3}, {1, 2, 3})}}), {1, 2, 3, 0, 0});
}

// The archive with one member's text changed.
SharedBytes changed(const std::string& name, const std::string& member, const std::string& from,
                    const std::string& to) {
  const std::string bytes = onnx::file_text(file(name));
  auto entries = archive::read_zip(std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(entries.ok());
  for (auto& e : *entries)
    if (e.name.find(member) != std::string::npos)
      if (const size_t at = e.data.find(from); at != std::string::npos) e.data.replace(at, from.size(), to);
  return onnx::shared_bytes(*archive::write_zip(*entries));
}

TEST(TorchArchive, NewerSchemasAndPicklesAreRefusedByName) {
  auto newer = read_archive(changed("choice.pt2", "models/", "\"major\": 8", "\"major\": 9"));
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().code, ErrorCode::kUnsupportedModel);
  EXPECT_NE(newer.error().message.find("9."), std::string::npos) << newer.error().str();
  auto pickled =
      read_archive(changed("picture.pt2", "weights_config", "\"use_pickle\": false", "\"use_pickle\": true"));
  ASSERT_TRUE(pickled.ok()) << pickled.error().str();
  ImportOptions options;
  options.shapes["x"] = {1, 1, 4, 4};
  auto module = import_torch(*pickled, options);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().code, ErrorCode::kUnsupportedModel) << module.error().str();
  EXPECT_NE(module.error().message.find("pickled"), std::string::npos);
}

TEST(TorchArchive, WeightsStayInsideTheirBytes) {
  for (const char* wrong : {"\"as_int\": 4000000", "\"as_int\": -1", "\"as_int\": 4611686018427387904"}) {
    auto program = read_archive(changed("picture.pt2", "weights_config", "\"as_int\": 2", wrong));
    ASSERT_FALSE(program.ok()) << wrong;
    EXPECT_NE(program.error().code, ErrorCode::kInternal) << program.error().str();
  }
}

TEST(TorchArchive, DamageIsADiagnostic) {
  const std::string bytes = onnx::file_text(file("choice.pt2"));
  for (size_t n = 0; n < bytes.size(); n += 37) {
    auto program = read_archive(onnx::shared_bytes(bytes.substr(0, n)));
    EXPECT_FALSE(program.ok()) << n;
  }
}

TEST(TorchImport, UnsupportedNodesAreReportedTogether) {
  std::string graph = onnx::file_text(file("graphs/grown.json"));
  for (const char* from : {"torch.ops.aten.cat.default", "torch.ops.aten.reshape.default"}) {
    const size_t at = graph.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    graph.replace(at, 15, "torch.ops.mine.");
  }
  auto program = read_program(graph);
  ASSERT_TRUE(program.ok()) << program.error().str();
  ImportOptions sized;
  sized.shapes["x"] = {1, 3};
  auto module = import_torch(*program, sized);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().code, ErrorCode::kUnsupportedOp);
  EXPECT_NE(module.error().message.find("2 of the model's nodes"), std::string::npos) << module.error().str();
  EXPECT_NE(module.error().message.find("mine.cat.default"), std::string::npos) << module.error().str();
  EXPECT_NE(module.error().message.find("mine.reshape.default"), std::string::npos) << module.error().str();
  ImportOptions own = sized;
  own.converters["mine.cat"] = [](const Node&, const NamedValues& arguments) -> Result<std::vector<relay::Expr>> {
    return std::vector<relay::Expr>{arguments.at(0).second.list->at(0).expr};
  };
  auto less = import_torch(*program, own);
  ASSERT_FALSE(less.ok());
  EXPECT_NE(less.error().message.find("1 of the model's nodes"), std::string::npos) << less.error().str();
}

}  // namespace
}  // namespace tilewright::torch
