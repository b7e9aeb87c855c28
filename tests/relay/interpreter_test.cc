// SPDX-License-Identifier: Apache-2.0
#include "relay/interpreter.h"

#include "base/format.h"
#include "relay/constant_call.h"
#include "relay/op_testing.h"

namespace tilewright::relay {
namespace {

Expr var(const char* name, Shape shape, DataType t = kFloat32) {
  return make_var(name, tensor_type(std::move(shape), t));
}
Module module_of(std::vector<Expr> params, Expr body) {
  Module m;
  m.functions["main"] = make_function(std::move(params), std::move(body));
  return m;
}

TEST(Interpreter, RunsMainAndCallsTheHookInOrder) {
  Expr x = var("x", {2, 2});
  Expr y = call("add", {call("multiply", {x, x}), make_scalar(1)});
  std::vector<std::string> seen;
  InterpretOptions options;
  options.hook = [&](const Expr& e, std::span<const Value> values) -> Status {
    if (const OpDef* op = called_op(e)) seen.push_back(format("{} {}", op->name, values[0].f[3]));
    return Ok{};
  };
  auto out = interpret(module_of({x}, y), {{"x", floats({2, 2}, {1, 2, 3, 4})}}, options);
  ASSERT_TRUE(out.ok()) << out.error().str();
  expect_floats((*out)[0], {2, 2}, {2, 5, 10, 17});
  EXPECT_EQ(seen, (std::vector<std::string>{"multiply 16", "add 17"}));
}

TEST(Interpreter, CubicOvershootsAreBoundedForBytes) {
  // Beside an edge a cubic goes below the darkest and above the brightest pixel.
  Expr x = var("x", {1, 1, 1, 8}, kUInt8);
  Value image = make_value(kUInt8, {1, 1, 1, 8});
  for (size_t i = 4; i < 8; ++i) image.i[i] = 255;
  Expr body = call("image.resize2d", {x}, make_attrs<Resize2DAttrs>([](auto& a) {
                     a.size = {1, 24};
                     a.method = "cubic";
                     a.coordinate_transformation_mode = "half_pixel";
                   }));
  auto out = interpret(module_of({x}, body), {{"x", image}});
  ASSERT_TRUE(out.ok()) << out.error().str();
  for (size_t i = 0; i < 24; ++i) {
    const int64_t v = (*out)[0].i[i];
    if (i < 11) {
      EXPECT_LT(v, 40) << i;
    } else if (i > 12) {
      EXPECT_GT(v, 215) << i;
    }
  }
}

TEST(Interpreter, SaysWhatIsWrongWithInputs) {
  Expr x = var("x", {Dim::symbol("N"), 2}), y = var("y", {Dim::symbol("N")});
  Module m = module_of({x, y}, make_tuple({call("exp", {x}), y}));
  auto error = [&](std::map<std::string, Value> in) {
    auto r = interpret(m, in);
    return r.ok() ? std::string("ok") : r.error().message;
  };
  Value a = ramp({3, 2}), b = ramp({3});
  EXPECT_EQ(error({{"x", a}, {"y", b}}), "ok");
  EXPECT_EQ(error({{"x", a}}), "input y has no value");
  EXPECT_EQ(error({{"x", a}, {"y", b}, {"z", b}}), "the model has no input z");
  EXPECT_EQ(error({{"x", a}, {"y", ramp({4})}}), "input y is 4, the model takes (N,)");
  EXPECT_EQ(error({{"x", ramp({3, 3})}, {"y", b}}), "input x is 3x3, the model takes (N, 2)");
  EXPECT_EQ(error({{"x", iota({3, 2})}, {"y", b}}), "input x is int64, the model takes float32");
  EXPECT_EQ(interpret(Module(), {}).error().message, "the module has no function \"main\"");
}

TEST(Interpreter, DynamicShapesAreInferredFromValues) {
  Expr x = var("x", {Dim::any()});
  Expr found = call("argwhere", {x});
  Expr body = call("reshape", {found}, make_attrs<ReshapeAttrs>([](auto& a) { a.newshape = {-1}; }));
  auto out = interpret(module_of({x}, call("cast", {body}, make_attrs<CastAttrs>([](auto& a) { a.dtype = kFloat32; }))),
                       {{"x", floats({4}, {0, 5, 0, 7})}});
  ASSERT_TRUE(out.ok()) << out.error().str();
  expect_floats((*out)[0], {2}, {1, 3});
}

TEST(Interpreter, LetIfFunctionsAndTuples) {
  Expr x = var("x", {2}), c = var("c", {}, kBool), t = var("t", {2}), p = var("p", {2}), q = var("q", {2});
  Expr swap = make_function({p, q}, make_tuple({q, p}));
  Expr pair = call_function(swap, {call("exp", {t}), call("negative", {t})});
  Expr branch = make_node<IfNode>(c, make_get(pair, 0), make_get(pair, 1), Span());
  Expr body = make_node<LetNode>(t, call("add", {x, x}), branch, Span());
  Module m = module_of({x, c}, body);
  auto run = [&](int64_t flag) {
    return interpret(m, {{"x", floats({2}, {0, 1})}, {"c", ints({}, {flag}, kBool)}}).value()[0];
  };
  expect_floats(run(1), {2}, {0, -2});
  expect_floats(run(0), {2}, {1, std::exp(2.0)});
}

TEST(Interpreter, GlobalFunctionsAndEndlessRecursion) {
  Expr x = var("x", {2}), p = var("p", {2});
  Type type = func_type({p->type}, p->type);
  Module m = module_of({x}, call_function(make_global_var("f", type), {x}));
  EXPECT_EQ(interpret(m, {{"x", ramp({2})}}).error().code, ErrorCode::kUnknownFunction);
  m.functions["f"] = make_function({p}, call("negative", {p}));
  expect_floats(interpret(m, {{"x", ramp({2})}}).value()[0], {2}, {0, -1});
  m.functions["f"] = make_function({p}, call_function(make_global_var("f", type), {p}));
  EXPECT_EQ(interpret(m, {{"x", ramp({2})}}).error().code, ErrorCode::kLimitExceeded);
}

TEST(Interpreter, ErrorsOfOperatorsCarryTheNode) {
  Expr x = var("x", {2}, kInt64);
  Expr y = call("divide", {x, make_scalar(0, kInt64)}, {}, make_span("Div_7"));
  auto out = interpret(module_of({x}, y), {{"x", iota({2})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().message, "integer division by zero");
  EXPECT_EQ(out.error().where, "Div_7 (divide)");
}

TEST(Interpreter, BoundsCoverFloat32Arithmetic) {
  // A chain computed once in double with bounds, once in float.
  Expr x = var("x", {512});
  Expr e = x;
  for (int i = 0; i < 6; ++i)
    e = call("tanh", {call("multiply", {call("add", {e, make_scalar(0.1)}), make_scalar(1.3)})});
  e = call("sum", {call("exp", {e})});
  Value in = ramp({512}, -2, 0.0073);
  for (double& v : in.f) v = static_cast<float>(v);
  Value out = interpret(module_of({x}, e), {{"x", in}}).value()[0];
  float total = 0;
  for (double v : in.f) {
    auto f = static_cast<float>(v);
    for (int i = 0; i < 6; ++i) f = std::tanh((f + 0.1f) * 1.3f);
    total += std::exp(f);
  }
  EXPECT_LE(std::fabs(total - out.f[0]), out.bound[0]);
  EXPECT_LT(out.bound[0], 1e-2 * out.f[0]);
}

TEST(ConstantCall, NativePathsEqualTheInterpreter) {
  Value w = ramp({20, 18, 3, 2}, -50, 0.37);
  Expr c = make_constant(to_tensor(w)), row = make_constant(to_tensor(ramp({18, 1, 1}, 1, 0.25)));
  auto attrs = [](const char* from, const char* to) {
    return make_attrs<LayoutTransformAttrs>([&](auto& a) {
      a.src_layout = from;
      a.dst_layout = to;
    });
  };
  std::vector<Expr> calls = {
      call("transpose", {c}, make_attrs<TransposeAttrs>([](auto& a) {
             a.axes = {{2, -1, 0, 1}};
           })),
      call("transpose", {c}),
      call("layout_transform", {c}, attrs("OIHW", "OIHW16i16o")),
      call("layout_transform", {c}, attrs("NCHW", "NHWC")),
      call("add", {c, row}),
      call("subtract", {c, row}),
      call("multiply", {row, c}),
      call("divide", {c, row}),
      call("concatenate", {make_tuple({c, c})}, make_attrs<ConcatenateAttrs>([](auto& a) { a.axis = 1; })),
      call("reshape", {c}, make_attrs<ReshapeAttrs>([](auto& a) {
             a.newshape = {-1, 4};
           })),
      call("exp", {c}),
  };
  for (const Expr& e : calls) {
    ASSERT_TRUE(is_constant_call(e));
    Tensor got = evaluate_constant_call(e).value()[0], want = to_tensor(evaluate(e, {}).value()[0]);
    ASSERT_EQ(got.shape(), want.shape()) << called_op(e)->name;
    for (int64_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got.as<float>()[i], want.as<float>()[i]) << called_op(e)->name << " " << i;
  }
  EXPECT_FALSE(is_constant_call(call("exp", {var("x", {2})})));
}

TEST(ConstantCall, IntegersAreExact) {
  const int64_t big = (int64_t{1} << 53) + 1;
  Expr a = make_constant(to_tensor(ints({1}, {big})));
  EXPECT_EQ(evaluate_constant_call(call("add", {a, make_scalar(2, kInt64)})).value()[0].at_int(0), big + 2);
}

}  // namespace
}  // namespace tilewright::relay
