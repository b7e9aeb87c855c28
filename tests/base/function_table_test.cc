// SPDX-License-Identifier: Apache-2.0
// The table of functions: what is written is read again, what is damaged is refused, and numbers over sizes are exact.
#include "base/formats/function_table.h"

#include <gtest/gtest.h>

namespace tilewright::plan {
namespace {

Function sample() {
  Function f;
  f.name = "f";
  f.sizes = {"n", "m"};
  const SizeProgram n = {{SizeOp::kSize, 0}}, half = {{SizeOp::kSize, 0}, {SizeOp::kConstant, 2}, {SizeOp::kFloorDiv}};
  f.arguments.push_back({"m", true, false, 1, kInt64, {}});
  f.arguments.push_back({"A", false, false, 0, kFloat32, {n, half}});
  f.arguments.push_back({"returned", false, true, 0, kInt16, {{{SizeOp::kConstant, 1}}}});
  f.tensors = {1, 2};
  f.kernels = {{0, true}, {1, false}};
  f.workspaces = {{{{SizeOp::kSize, 1}, {SizeOp::kConstant, 4}, {SizeOp::kMul}}, true}};
  return f;
}

TEST(FunctionTable, IsReadAsItWasWritten) {
  const std::string bytes = write_functions(std::vector{sample()});
  auto read = read_functions(bytes, 2);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(write_functions(*read), bytes);
  EXPECT_EQ(to_text(read->front()), "f(m, A: float32[n, n // 2]) -> int16");
  std::string older = bytes;
  older[0] = 2;  // the version of tables that have calls, but no results
  EXPECT_FALSE(read_functions(older, 2).ok());
}

TEST(FunctionTable, DamageIsRefused) {
  const std::string bytes = write_functions(std::vector{sample()});
  EXPECT_EQ(read_functions(bytes, 1).error().code, ErrorCode::kBadArtifact);  // a kernel that is not there
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(read_functions(bytes.substr(0, n), 2).ok()) << n;
  EXPECT_FALSE(read_functions(bytes + '\0', 2).ok());
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      auto read = read_functions(changed, 2);  // whatever is accepted can be evaluated
      if (!read.ok()) continue;
      for (const Function& f : *read) {
        const std::vector<int64_t> sizes(f.sizes.size(), 7);
        for (const FunctionArgument& a : f.arguments)
          for (const SizeProgram& p : a.shape) evaluate(p, sizes);
        for (const FunctionWorkspace& w : f.workspaces) evaluate(w.bytes, sizes);
      }
    }
}

TEST(FunctionTable, WhatIsReturnedIsTheLast) {
  Function f = sample();
  EXPECT_TRUE(f.returns());
  std::swap(f.arguments[1], f.arguments[2]);
  EXPECT_FALSE(read_functions(write_functions(std::vector{f}), 2).ok());
}

TEST(FunctionTable, ASizeThatNoArgumentSaysIsRefused) {
  Function f = sample();
  f.arguments.erase(f.arguments.begin());
  f.tensors = {0, 1};
  EXPECT_NE(check_function(f).error().str().find("'m'"), std::string::npos);
}

TEST(FunctionTable, NumbersAreExactOrNone) {
  const std::vector<int64_t> sizes = {7, INT64_MAX};
  auto value = [&](SizeProgram p) { return evaluate(p, sizes); };
  const SizeStep seven{SizeOp::kSize, 0}, most{SizeOp::kSize, 1}, two{SizeOp::kConstant, 2},
      minus{SizeOp::kConstant, -2};
  EXPECT_EQ(value({seven, minus, {SizeOp::kFloorDiv}}), -4);
  EXPECT_EQ(value({seven, minus, {SizeOp::kFloorMod}}), -1);
  EXPECT_EQ(value({seven, two, {SizeOp::kMin}}), 2);
  EXPECT_EQ(value({seven, two, {SizeOp::kLess}, seven, two, {SizeOp::kSelect}}), 2);
  EXPECT_EQ(value({two, seven, {SizeOp::kLess}, {SizeOp::kNot}, seven, two, {SizeOp::kSelect}}), 2);
  EXPECT_EQ(value({most, two, {SizeOp::kMul}}), std::nullopt);
  EXPECT_EQ(value({most, two, {SizeOp::kAdd}}), std::nullopt);
  EXPECT_EQ(value({seven, {SizeOp::kConstant, 0}, {SizeOp::kFloorDiv}}), std::nullopt);
}

}  // namespace
}  // namespace tilewright::plan
