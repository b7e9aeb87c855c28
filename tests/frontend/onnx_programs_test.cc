// SPDX-License-Identifier: Apache-2.0
// What only a run decides, imported as Relay: control flow and nodes that wait, and those converted for their
// arguments.
#include <gtest/gtest.h>

#include "frontend/onnx/defer.h"
#include "frontend/onnx/import.h"
#include "relay/interpreter.h"
#include "relay/text.h"
#include "test_folders.h"

namespace tilewright::onnx {
namespace {

std::string data(const char* name) { return std::string(TW_TEST_DATA) + "/onnx/" + name; }

Result<relay::Module> import(const char* name, Programs programs) {
  ImportOptions options;
  options.programs = programs;
  return import_onnx(data(name), options);
}

TEST(OnnxPrograms, ControlFlowBecomesRelays) {
  EXPECT_FALSE(import("computed_control.onnx", Programs::kRefused).ok());
  auto module = import("computed_control.onnx", Programs::kWhereNeeded);
  ASSERT_TRUE(module.ok()) << module.error().str();
  const std::string text = relay::print_module(*module).text;
  for (const char* part : {"if (", "let %loop", "%loop(", "vm.host(", "onnx.node(", "op=\"SequenceInsert\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // The text is the whole of it.
  const relay::ModuleText printed = relay::print_module(*module);
  auto again = relay::parse_module(printed.text, printed.constants);
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_EQ(relay::print_module(*again).text, printed.text);
}

TEST(OnnxPrograms, WhatIsDecidedStaysOrdinary) {
  auto refused = import("control.onnx", Programs::kRefused),
       where_needed = import("control.onnx", Programs::kWhereNeeded);
  ASSERT_TRUE(refused.ok() && where_needed.ok());
  EXPECT_TRUE(relay::structural_equal(*refused, *where_needed));
}

TEST(OnnxPrograms, NodesAreConvertedForTheirArguments) {
  auto module = import("shape_input.onnx", Programs::kWhereNeeded);
  ASSERT_TRUE(module.ok()) << module.error().str();
  std::map<std::string, Tensor> arguments;
  const auto* main = module->main_function();
  for (const relay::Expr& p : main->params) {
    const auto* type = as_tensor(p->type);
    ASSERT_TRUE(type);
    std::vector<int64_t> shape;
    for (const Dim& d : type->shape) shape.push_back(d.constant().value_or(2));
    arguments[relay::as<relay::VarNode>(p)->name] = Tensor::zeros(type->dtype, shape);
  }
  std::vector<std::string> by_value;
  auto small = convert_deferred(*module, arguments, 0, &by_value);
  EXPECT_FALSE(small.ok());  // the shape may not be looked at
  EXPECT_TRUE(by_value.empty());
}

}  // namespace
}  // namespace tilewright::onnx
