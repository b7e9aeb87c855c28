// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/inline_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tir/text.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

const DataType kHandle{TypeCode::kHandle, 64, 1};

Array floats(const std::string& name, int64_t n) { return make_array(name, kFloat32, {make_int(n, kInt32)}); }
ExternArgument address(const Array& array, int64_t at) {
  return {read(array, {make_int(at, kInt32)}), {}, /*address=*/true};
}
std::vector<const CallExternNode*> calls_of(const Stmt& body) {
  std::vector<const CallExternNode*> out;
  for_each_stmt(body, [&](const Stmt& s) {
    if (const auto* call = as<CallExternNode>(s)) out.push_back(call);
  });
  return out;
}
std::vector<std::string> written(const Stmt& body) {
  std::vector<std::string> out;
  for_each_stmt(body, [&](const Stmt& s) {
    if (const auto* w = as<WriteNode>(s)) out.push_back(array_of(w->target)->name);
  });
  return out;
}

// scale(a[4], by, out[4]): through memory of its own, out[i] = a[i] * by.
BlockFunction scale() {
  const Array a = floats("a", 4), out = floats("out", 4), own = floats("own", 4);
  const PrimExpr by = make_var("by", kFloat32), i = make_var("i", kInt32), j = make_var("j", kInt32);
  const PrimExpr zero = make_int(0, kInt32), four = make_int(4, kInt32);
  const Stmt body = seq({make_for(i, zero, four, write(own, {i}, read(a, {i}) * by)),
                         make_for(j, zero, four, write(out, {j}, read(own, {j})))});
  return {"scale",
          {{a, {}}, {{}, by}, {out, {}}},
          make_node<BlockNode>("", std::vector<BlockAxis>(), PrimExpr(), Stmt(), body, std::vector<Ref<Node>>{own})};
}

TEST(InlineCallsTest, StatementsStandWhereTheCallsWere) {
  const BlockFunction callee = scale();
  const Array x = floats("x", 8), y = floats("y", 4);
  const BlockFunction main{"main",
                           {{x, {}}, {y, {}}},
                           seq({call_extern("scale", {address(x, 4), {make_float(2)}, address(y, 0)}),
                                call_extern("scale", {address(y, 0), {make_float(3)}, address(y, 0)}),
                                call_extern("elsewhere", {address(y, 0)})})};
  auto made = inline_calls({{"scale", &callee}, {"main", &main}});
  ASSERT_TRUE(made.ok()) << made.error().str();
  ASSERT_EQ(made->size(), 1u);  // scale calls nothing
  const BlockFunction& whole = made->at(&main);
  ASSERT_EQ(calls_of(whole.body).size(), 1u);
  EXPECT_EQ(calls_of(whole.body)[0]->name, "elsewhere");
  // Each copy has memory of its own; y is the parameter itself, the second half of x an address.
  EXPECT_EQ(written(whole.body), (std::vector<std::string>{"own_1", "y", "own_2", "y"}));
  const std::string text = to_text(whole.body);
  EXPECT_NE(text.find("a_1"), std::string::npos) << text;
  EXPECT_NE(text.find("tir.address_of"), std::string::npos) << text;
  EXPECT_EQ(text.find("a_2"), std::string::npos) << text;
}

TEST(InlineCallsTest, AHandleIsTheArrayThatItIsFirstGivenFor) {
  const BlockFunction callee = scale();
  const Array y = floats("y", 4);
  const PrimExpr weight = make_var("weight", kHandle);
  const BlockFunction main{
      "main", {{{}, weight}, {y, {}}}, call_extern("scale", {{weight}, {make_float(2)}, address(y, 0)})};
  auto made = inline_calls({{"scale", &callee}, {"main", &main}});
  ASSERT_TRUE(made.ok()) << made.error().str();
  const Array array = made->at(&main).params[0].array;
  ASSERT_TRUE(array);
  EXPECT_EQ(array->name, "weight");
  EXPECT_EQ(array->dtype, kFloat32);
  EXPECT_EQ(array->shape.size(), 1u);
}

TEST(InlineCallsTest, CallsOfCallsAreInlinedOnce) {
  const BlockFunction callee = scale();
  const Array x = floats("x", 4), p = floats("p", 4);
  const BlockFunction twice{"twice",
                            {{p, {}}},
                            seq({call_extern("scale", {address(p, 0), {make_float(2)}, address(p, 0)}),
                                 call_extern("scale", {address(p, 0), {make_float(3)}, address(p, 0)})})};
  const BlockFunction main{
      "main", {{x, {}}}, seq({call_extern("twice", {address(x, 0)}), call_extern("twice", {address(x, 0)})})};
  auto made = inline_calls({{"scale", &callee}, {"twice", &twice}, {"main", &main}});
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_TRUE(calls_of(made->at(&main).body).empty());
  const std::vector<std::string> all = written(made->at(&main).body);
  EXPECT_EQ(std::count(all.begin(), all.end(), "x"), 4);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 5u);  // x, and memory of four copies
}

TEST(InlineCallsTest, WhatIsRefused) {
  const BlockFunction callee = scale();
  const Array x = floats("x", 4);
  auto refused = [&](Stmt body, const BlockFunction* of = nullptr) {
    const BlockFunction main{"main", {{x, {}}}, std::move(body)};
    auto made = inline_calls({{"scale", of ? of : &callee}, {"main", &main}, {"lowered", nullptr}});
    return made.ok() ? "" : made.error().str();
  };
  EXPECT_NE(refused(call_extern("main", {address(x, 0)})).find("'main' calls itself: main -> main"), std::string::npos);
  EXPECT_NE(refused(call_extern("scale", {address(x, 0)})).find("1 values to 'scale', which has 3 parameters"),
            std::string::npos);
  EXPECT_NE(refused(call_extern("scale", {{make_float(1)}, {make_float(2)}, address(x, 0)})).find("the number"),
            std::string::npos);
  EXPECT_NE(refused(call_extern("lowered", {})).find("is lowered already"), std::string::npos);
  EXPECT_EQ(refused(call_extern("scale", {address(x, 0), {make_float(2)}, address(x, 0)})), "");
}

}  // namespace
}  // namespace tilewright::tir
