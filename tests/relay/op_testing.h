// SPDX-License-Identifier: Apache-2.0
// One operator on small tensors: what the operator tests share.
#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "relay/interpreter.h"
#include "relay/ops/attrs.h"

namespace tilewright::relay {

inline Value floats(std::vector<int64_t> shape, std::vector<double> data) {
  Value v = make_value(kFloat32, std::move(shape));
  EXPECT_EQ(v.f.size(), data.size());
  v.f = std::move(data);
  return v;
}
inline Value ints(std::vector<int64_t> shape, std::vector<int64_t> data, DataType dtype = kInt64) {
  Value v = make_value(dtype, std::move(shape));
  EXPECT_EQ(v.i.size(), data.size());
  v.i = std::move(data);
  return v;
}
// start, start + step, ... in row-major order
inline Value ramp(std::vector<int64_t> shape, double start = 0, double step = 1) {
  Value v = make_value(kFloat32, std::move(shape));
  for (size_t i = 0; i < v.f.size(); ++i) v.f[i] = start + step * static_cast<double>(i);
  return v;
}
inline Value iota(std::vector<int64_t> shape, DataType dtype = kInt64) {
  Value v = make_value(dtype, std::move(shape));
  for (size_t i = 0; i < v.i.size(); ++i) v.i[i] = static_cast<int64_t>(i);
  return v;
}

// The operator on values, through typing and evaluation; a tuple operand is given by `tuple`.
inline Result<std::vector<Value>> try_apply(const char* op, std::vector<Value> inputs, AttrsRef attrs = {},
                                            bool tuple = false) {
  std::vector<Expr> args;
  Environment env;
  for (const Value& v : inputs) {
    // Integers stay constants, because some shapes depend on their values.
    args.push_back(v.is_float() ? make_var("x", tensor_type(to_shape(v.shape), v.dtype)) : make_constant(to_tensor(v)));
    if (v.is_float()) env[args.back().get()] = {v};
  }
  if (tuple) args = {make_tuple(args)};
  Expr call = TW_TRY(try_call(op, std::move(args), std::move(attrs)));
  std::vector<Value> out = TW_TRY(evaluate(call, env));
  // Typing and evaluation must agree.
  std::vector<Type> types = as_tuple(call->type) ? as_tuple(call->type)->fields : std::vector<Type>{call->type};
  EXPECT_EQ(types.size(), out.size());
  for (size_t i = 0; i < out.size() && i < types.size(); ++i) {
    const auto* t = as_tensor(types[i]);
    EXPECT_EQ(t->dtype, out[i].dtype);
    EXPECT_EQ(t->shape.size(), out[i].shape.size());
    for (size_t k = 0; k < t->shape.size() && k < out[i].shape.size(); ++k)
      if (t->shape[k].is_const()) {
        EXPECT_EQ(t->shape[k].value(), out[i].shape[k]) << op;
      }
    EXPECT_TRUE(out[i].bound.empty() || out[i].bound.size() == out[i].f.size());
    for (double b : out[i].bound) EXPECT_TRUE(b >= 0) << op;
  }
  return out;
}
inline std::vector<Value> apply(const char* op, std::vector<Value> inputs, AttrsRef attrs = {}, bool tuple = false) {
  auto r = try_apply(op, std::move(inputs), std::move(attrs), tuple);
  EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().str());
  return r.ok() ? *r : std::vector<Value>{make_value(kFloat32, {0})};
}
inline std::string failure(const char* op, std::vector<Value> inputs, AttrsRef attrs = {}, bool tuple = false) {
  auto r = try_apply(op, std::move(inputs), std::move(attrs), tuple);
  return r.ok() ? "no error" : r.error().where + ": " + r.error().message;
}

inline void expect_floats(const Value& v, std::vector<int64_t> shape, std::vector<double> want,
                          double tolerance = 1e-5) {
  EXPECT_EQ(v.shape, shape);
  ASSERT_EQ(v.f.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(v.f[i])) << i;
    else if (std::isinf(want[i]))
      EXPECT_EQ(v.f[i], want[i]) << i;
    else
      EXPECT_NEAR(v.f[i], want[i], tolerance * std::fmax(1, std::fabs(want[i]))) << i;
  }
}
inline void expect_ints(const Value& v, std::vector<int64_t> shape, std::vector<int64_t> want) {
  EXPECT_EQ(v.shape, shape);
  EXPECT_EQ(v.i, want);
}

}  // namespace tilewright::relay
