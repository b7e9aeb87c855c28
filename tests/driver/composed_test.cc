// SPDX-License-Identifier: Apache-2.0
// Every case of a composed operator through the whole way: its text is read back, it compiles, its kernels are checked
// against the reference interpreter and its result against the case.
#include "base/format.h"
#include "driver/graphs.h"
#include "relay/op_cases.h"
#include "relay/passes/pipeline/expand_composed.h"
#include "relay/text.h"

namespace tilewright::driver {
namespace {
using namespace testing;

// Integers stay constants where one of them decides a size; all but the first operand of a case may.
Result<relay::Module> module_of(const relay::OpDef& op, const relay::Case& c, const AttrsRef& attrs, bool constants,
                                std::map<std::string, Tensor>* inputs) {
  std::vector<Expr> params, operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const relay::Value& v = c.inputs[i];
    if (constants && v.dtype.is_integral() && i > 0) {
      operands.push_back(relay::make_constant(to_tensor(v)));
      continue;
    }
    const std::string name = format("x{}", i);
    params.push_back(input(name.c_str(), v.shape, v.dtype));
    operands.push_back(params.back());
    inputs->emplace(name, to_tensor(v));
  }
  if (c.tuple) operands = {relay::make_tuple(operands)};
  Expr body = TW_TRY(relay::try_call(op.name, operands, attrs));
  return relay::Module().with_main(relay::make_function(std::move(params), std::move(body)));
}

TEST(Composed, EveryCaseCompiles) {
  size_t compiled = 0;
  for (const relay::Case& c : relay::read_cases()) {
    const relay::OpDef* op = relay::find_op(c.op);
    ASSERT_TRUE(op) << c.op;
    if (!op->expand) continue;
    SCOPED_TRACE(c.op + ", " + c.place);
    bool complete = false;
    const AttrsRef attrs = attributes(*op, c, &complete);
    VerifyOptions options;
    options.build.jobs = 1;
    auto module = module_of(*op, c, attrs, false, &options.inputs);
    const auto waits = [](const relay::Module& m) {
      const Expr& body = m.main_function()->body;
      return relay::expanded(body) == body;
    };
    if (!module.ok() || waits(*module)) {  // what an operand's value decides
      options.inputs.clear();
      module = module_of(*op, c, attrs, true, &options.inputs);
    }
    ASSERT_TRUE(module.ok()) << module.error().str();
    // A result as large as the data say needs the virtual machine: python/tests/test_operators.py
    if (c.op == "sparse_fill_empty_rows") continue;
    auto text = print_module(*module, {.metadata = true}).text;
    auto again = relay::parse_module(text);
    ASSERT_TRUE(again.ok()) << text << again.error().str();
    EXPECT_TRUE(structural_equal(*module, *again)) << text;
    if (c.outputs.size() == 1) options.expected.emplace("output_0", to_tensor(c.outputs[0]));
    auto report = verify_module(*module, options);
    ASSERT_TRUE(report.ok()) << report.error().str() << "\n" << text;
    EXPECT_TRUE(report->ok()) << (report->outputs.empty() ? "" : report->outputs[0]) << "\n" << text;
    ++compiled;
  }
  EXPECT_GT(compiled, 10u);
}

}  // namespace
}  // namespace tilewright::driver
