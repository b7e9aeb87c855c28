// SPDX-License-Identifier: Apache-2.0
// Every case of tests/data/relay/op_cases*.txt by the reference interpreter.
#include <gtest/gtest.h>

#include "relay/op_cases.h"
#include "relay/ops/program/memory.h"

namespace tilewright::relay {
namespace {

TEST(OpCases, EqualOnnxruntimeAndNumpy) {
  std::vector<Case> cases = read_cases();
  ASSERT_GT(cases.size(), 300u);
  std::set<std::string> covered;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op + ", " + c.place);
    covered.insert(c.op);
    const OpDef* def = find_op(c.op);
    ASSERT_TRUE(def);
    bool complete = false;
    AttrsRef attrs = attributes(*def, c, &complete);
    EXPECT_TRUE(complete) << "an attribute of the case has no field";
    auto got = try_apply(c.op.c_str(), c.inputs, attrs, c.tuple);
    EXPECT_TRUE(got.ok()) << (got.ok() ? "" : got.error().str());
    if (!got.ok()) continue;
    EXPECT_EQ(got->size(), c.outputs.size());
    for (size_t i = 0; i < std::min(got->size(), c.outputs.size()); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      EXPECT_EQ((*got)[i].dtype, c.outputs[i].dtype);
      if (c.outputs[i].is_float())
        expect_floats((*got)[i], c.outputs[i].shape, c.outputs[i].f, 3e-5);
      else
        expect_ints((*got)[i], c.outputs[i].shape, c.outputs[i].i);
    }
  }
  covered.insert("qnn.concatenate");  // three tuples: the test below
  for (const OpDef& op : all_ops())
    if (is_memory_op(op.name)) covered.insert(op.name);  // of programs: tests/relay/passes/manifest_*.txt
  covered.insert({"onnx.node", "vm.host"});              // of programs, too: tests/frontend/onnx_programs_test.cc
  // Operators that no case touches; the list may only shrink.
  std::set<std::string> missing;
  for (const OpDef& op : all_ops())
    if (!covered.count(op.name)) missing.insert(op.name);
  EXPECT_EQ(missing, (std::set<std::string>{})) << "operators without a case";
}

TEST(OpCases, QuantisedTensorsAreJoinedAtOneScale) {
  auto bytes = [](std::vector<int64_t> values) {
    Tensor t = Tensor::zeros(kUInt8, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<int64_t>(i), values[i]);
    return make_constant(t);
  };
  auto zero = [](int64_t v) { return make_scalar(static_cast<double>(v), kInt32); };
  Expr joined = call("qnn.concatenate",
                     {make_tuple({bytes({10, 20}), bytes({5, 255})}), make_tuple({make_scalar(0.5), make_scalar(0.25)}),
                      make_tuple({zero(4), zero(5)}), make_scalar(0.5), zero(10)});
  auto got = evaluate(joined, {});
  ASSERT_TRUE(got.ok()) << got.error().str();
  expect_ints((*got)[0], {4}, {16, 26, 10, 135});
  EXPECT_FALSE(try_call("qnn.concatenate", {make_tuple({bytes({1})}), make_tuple({make_scalar(0.5), make_scalar(0.5)}),
                                            make_tuple({zero(0)}), make_scalar(0.5), zero(0)})
                   .ok());
}

}  // namespace
}  // namespace tilewright::relay
