// SPDX-License-Identifier: Apache-2.0
// Small graphs of real operators with seeded constants, and the check of their compiled form against the interpreter.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "driver/verify.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"

namespace tilewright::driver::testing {

using relay::call;
using relay::Expr;
using relay::make_attrs;

inline Expr input(const char* name, const std::vector<int64_t>& shape, DataType dtype = kFloat32) {
  return relay::make_var(name, tensor_type(to_shape(shape), dtype));
}
inline Expr constant(const std::vector<int64_t>& shape, uint64_t seed = 7) {
  return relay::make_constant(random_tensor(kFloat32, shape, seed));
}
inline Expr ints(std::vector<int64_t> values) {
  return relay::make_constant(Tensor::from<int64_t>(kInt64, {static_cast<int64_t>(values.size())}, values));
}

// What is wrong with a call of `op`; nothing, where it has a type.
inline std::string error_of(const char* op, std::vector<Expr> args, AttrsRef attrs = {}) {
  auto made = relay::try_call(op, std::move(args), std::move(attrs));
  return made.ok() ? "" : made.error().message;
}

// Compiles a module and compares, on these inputs or random ones; `target` widths other than the host's run wherever
// the host can.
inline void check(const relay::Module& module, const char* target = "llvm", std::map<std::string, Tensor> values = {}) {
  VerifyOptions options;
  options.build.target = target;
  options.build.jobs = 1;
  options.inputs = std::move(values);
  auto report = verify_module(module, options);
  ASSERT_TRUE(report.ok()) << report.error().str();
  for (const std::string& group : report->taken_apart) ADD_FAILURE() << "taken apart: " << group;
  for (const auto& m : report->mismatches)
    ADD_FAILURE() << m.kernel << " (" << m.step << ") at " << shape_str(m.at) << ": " << m.ours << ", reference "
                  << m.reference;
  EXPECT_EQ(report->ties, 0U);  // these are exact
  EXPECT_LE(report->largest_output_error, 1) << (report->outputs.empty() ? "" : report->outputs[0]);
}
inline void check(std::vector<Expr> inputs, Expr body, const char* target = "llvm") {
  check(relay::Module().with_main(relay::make_function(std::move(inputs), std::move(body))), target);
}
inline void check(std::vector<Expr> inputs, Expr body, std::map<std::string, Tensor> values,
                  const char* target = "llvm") {
  check(relay::Module().with_main(relay::make_function(std::move(inputs), std::move(body))), target, std::move(values));
}

inline Expr conv(const Expr& x, int64_t out, int64_t in_per_group, int64_t k, int64_t stride, int64_t pad,
                 int64_t groups = 1, int64_t dilation = 1) {
  return call("nn.conv2d", {x, constant({out, in_per_group, k, k})}, make_attrs<relay::Conv2DAttrs>([&](auto& a) {
                a.strides = {stride, stride};
                a.padding = {pad, pad, pad, pad};
                a.dilation = {dilation, dilation};
                a.groups = groups;
                a.channels = out;
                a.kernel_size = std::vector<int64_t>{k, k};
              }));
}
inline Expr bias(const Expr& x, int64_t channels) { return call("add", {x, constant({channels, 1, 1}, 11)}); }
inline Expr relu(const Expr& x) { return call("nn.relu", {x}); }

}  // namespace tilewright::driver::testing
