// SPDX-License-Identifier: Apache-2.0
// Types inferred for expressions written without them, the prelude, gradients, the pattern language.
#include <gtest/gtest.h>

#include <cmath>

#include "relay/dataflow_pattern.h"
#include "relay/infer_type.h"
#include "relay/interpreter.h"
#include "relay/ops/attrs.h"
#include "relay/passes/program/partial_evaluate.h"
#include "relay/passes/training/first_order_gradient.h"
#include "relay/prelude.h"
#include "relay/text.h"
#include "relay/verifier.h"

namespace tilewright::relay {
namespace {

const std::string kVersion = "#[version = \"0.0.5\"]\n";

Module parsed(const std::string& text) {
  auto module = parse_module(kVersion + text);
  EXPECT_TRUE(module.ok()) << module.error().str() << "\n" << text;
  return module.ok() ? *module : Module();
}
Result<Module> typed(const std::string& text) {
  PassContext context;
  return infer_type(parsed(text), context);
}
std::string main_type(const std::string& text) {
  auto module = typed(text);
  if (!module.ok()) return module.error().str();
  Status sound = verify_module(*module);
  EXPECT_TRUE(sound.ok()) << sound.error().str() << print_module(*module).text;
  return type_str(as_func(module->main()->type)->result);
}

TEST(InferType, ThroughFunctionsAndTheirCallers) {
  EXPECT_EQ(main_type("def @main(%x: Tensor[(2, 3), float32]) { let %f = fn (%y) { exp(%y) };\n%f(%x) }"),
            "Tensor[(2, 3), float32]");
  EXPECT_EQ(main_type("def @main(%x: float32) { @f(%x) }\ndef @f(%y) { (%y, exp(%y)) }"), "(float32, float32)");
  EXPECT_EQ(
      main_type(
          "def @main(%n: int32) { @count(%n) }\ndef @count(%i: int32) { if (%i < 10) { @count(%i + 1) } else { %i } }"),
      "int32");
  EXPECT_EQ(main_type("def @main(%x: float32) { let %loop = fn (%i: int32, %a) { if (%i < 3) { %loop(%i + 1, %a * 2f) "
                      "} else { %a } };\n%loop(0, %x) }"),
            "float32");
}

TEST(InferType, ThroughReferencesAndData) {
  EXPECT_EQ(
      main_type("def @main(%x: float32) { let %r = ref(%x);\nlet %u = ref_write(%r, exp(%x));\n(%r, ref_read(%r)) }"),
      "(ref(float32), float32)");
  const std::string list = "type List[A] { Cons(A, List[A]), Nil }\n";
  EXPECT_EQ(main_type(list + "def @main(%x: float32) { Cons(%x, Nil) }"), "List[float32]");
  EXPECT_EQ(
      main_type(
          list +
          "def @main(%x: int32) { match (Cons((%x, 1f), Nil)) { Cons((%a, %b), _) => (%b, %a), Nil => (2f, 3) } }"),
      "(float32, int32)");
  EXPECT_EQ(main_type(list + "def @main(%x: float32) { @map(fn (%a) { %a < 1f }, Cons(%x, Nil)) }\n"
                             "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Cons(%h, %t) => "
                             "Cons(%f(%h), @map(%f, %t)), Nil => Nil } }"),
            "List[bool]");
}

TEST(InferType, RefusesWhatDoesNotFit) {
  for (auto [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"def @main(%x) { exp(%x) }", "the type of %x is not known"},
           {"def @main(%x: float32) { @f(%x) }\ndef @f(%y) { %y(%y) }", "not one type"},
           {"def @main(%x: float32, %c: bool) { @f(%c, %x, 1) }\ndef @f(%c, %a, %b) { if (%c) { %a } else { %b } }",
            "are not one type"},
           {"type List[A] { Cons(A, List[A]), Nil }\ndef @main(%x: float32) { Cons(%x, Cons(1, Nil)) }",
            "not one type"},
           {"def @main(%x: float32) { @id(@id) }\ndef @id(%y) { %y }", "not one type"},
           {"def @f[A](%x: A) -> A { exp(%x) }\ndef @main(%x: float32) { @f(%x) }", "exp"},
       }) {
    auto module = parse_module(kVersion + text);
    PassContext context;
    auto result = module.ok() ? infer_type(*module, context) : module;
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.error().str().find(message), std::string::npos) << result.error().str();
  }
}

void expect_typed_and_sound(Result<Module> module) {
  ASSERT_TRUE(module.ok()) << module.error().str();
  PassContext context;
  auto complete = infer_type(*module, context);
  ASSERT_TRUE(complete.ok()) << complete.error().str();
  Status sound = verify_module(*complete);
  EXPECT_TRUE(sound.ok()) << sound.error().str();
  ModuleText text = print_module(*complete);
  auto again = parse_module(text.text);
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_TRUE(structural_equal(*complete, *again));
}

const char* const kSomeMain = "def @main(%x: float32) -> float32 { %x }";

TEST(Prelude, IsTypedAndSound) { expect_typed_and_sound(with_prelude(parsed(kSomeMain))); }

TEST(Prelude, TensorArraysAreTypedAndSound) {
  TensorArrays any;
  any.dtype = kFloat32;
  expect_typed_and_sound(with_tensor_arrays(parsed(kSomeMain), any));
  using Shape = std::vector<int64_t>;
  for (const Shape& shape : {Shape{}, Shape{4}, Shape{-1, 3}, Shape{2, 3, 5}}) {
    TensorArrays fixed = any;
    fixed.shape = shape;
    expect_typed_and_sound(with_tensor_arrays(parsed(kSomeMain), fixed));
    fixed.batch_dim = 1;
    expect_typed_and_sound(with_tensor_arrays(parsed(kSomeMain), fixed));
    fixed.indices_shape = fixed.lengths_shape = Shape{2};
    fixed.batch_dim.reset();
    auto general = with_tensor_arrays(parsed(kSomeMain), any);
    expect_typed_and_sound(with_tensor_arrays(*general, fixed));
  }
}

TEST(Prelude, TensorArraysOfASizeTooLargeAreRefused) {
  TensorArrays huge;
  huge.dtype = kInt8;
  huge.shape = std::vector<int64_t>{int64_t{1} << 62, 8};
  EXPECT_FALSE(with_tensor_arrays(parsed(kSomeMain), huge).ok());
}

// What partial evaluation makes of a program over lists is plain arithmetic with the right value.
double evaluated(const std::string& body) {
  PassContext context;
  auto module = infer_type(parsed(std::string(prelude_text()) + "def @main() {\n" + body + "\n}\n"), context);
  EXPECT_TRUE(module.ok()) << module.error().str();
  if (!module.ok()) return NAN;
  auto result = partial_evaluate(*module, context);
  EXPECT_TRUE(result.ok()) << result.error().str();
  const auto* constant = as<ConstantNode>(result->main_function()->body);
  EXPECT_TRUE(constant) << print_expr(result->main());
  return constant ? constant->data.at_double(0) : NAN;
}

TEST(PartialEvaluate, RunsThePreludeOnKnownLists) {
  const std::string list = "Cons(3, Cons(5, Cons(7, Nil)))";
  EXPECT_EQ(evaluated("@sum(" + list + ")"), 15);
  EXPECT_EQ(evaluated("@length(@concat(" + list + ", " + list + "))"), 6);
  EXPECT_EQ(evaluated("@nth(@rev(" + list + "), 0)"), 7);
  EXPECT_EQ(evaluated("@sum(@map(fn (%x: int32) -> int32 { %x * %x }, " + list + "))"), 83);
  EXPECT_EQ(evaluated("@foldr1(fn (%a: int32, %b: int32) -> int32 { %a - %b }, " + list + ")"), 5);
  EXPECT_EQ(evaluated("@sum(@filter(fn (%x: int32) -> bool { %x > 4 }, " + list + "))"), 12);
}

// The interpreter runs the same programs without knowing their lists.
TEST(Interpreter, RunsThePrelude) {
  const std::string list = "Cons(%x, Cons(5, Cons(7, Nil)))";
  for (auto [body, expected] : std::vector<std::pair<std::string, int64_t>>{
           {"@sum(" + list + ")", 15},
           {"@length(@concat(" + list + ", " + list + "))", 6},
           {"@nth(@rev(" + list + "), 0)", 7},
           {"@sum(@map(@iterate(fn (%a: int32) -> int32 { %a + 1 }, 3), " + list + "))", 24},
           {"@size(@tmap(fn (%a: int32) -> int32 { %a * 2 }, Rose(%x, Cons(Rose(5, Nil), Nil))))", 2},
           {"@sum(@unfoldr(fn (%a: int32) -> Option[(int32, int32)] { if (%a > 0) { Some((%a - 1, %a)) } else { None } "
            "}, %x))",
            6},
           {"@foldl(@flip(fn (%a: int32, %b: int32) -> int32 { %a - %b }), 0, " + list + ")", 5},
           {"let %r = ref(%x);\nlet %u = ref_write(%r, ref_read(%r) * 2);\nref_read(%r)", 6},
           {"let %loop = fn (%i: int32) -> int32 { if (%i < 10) { %loop(%i + %x) } else { %i } };\n%loop(0)", 12},
       }) {
    PassContext context;
    auto module =
        infer_type(parsed(std::string(prelude_text()) + "def @main(%x: int32) {\n" + body + "\n}\n"), context);
    ASSERT_TRUE(module.ok()) << module.error().str();
    Value x = make_value(kInt32, {});
    x.i[0] = 3;
    auto out = interpret(*module, {{"x", x}});
    ASSERT_TRUE(out.ok()) << body << "\n" << out.error().str();
    EXPECT_EQ(out->at(0).i.at(0), expected) << body;
  }
}

// --- gradients against differences

void expect_gradient(const std::string& body, const std::string& params, double slack = 2e-3) {
  Module module = parsed("def @main(" + params + ") {\n" + body + "\n}\n");
  PassContext context;
  auto both = first_order_gradient(module, context);
  ASSERT_TRUE(both.ok()) << both.error().str();
  Status sound = verify_module(*both);
  ASSERT_TRUE(sound.ok()) << sound.error().str();
  std::map<std::string, Value> inputs;
  uint64_t state = 7;
  for (const Expr& p : module.main_function()->params) {
    Value v = make_value(as_tensor(p->type)->dtype, static_shape(as_tensor(p->type)->shape).value());
    for (double& x : v.f)
      x = 0.3 +
          static_cast<double>((state = state * 6364136223846793005u + 1442695040888963407u) >> 40) / double(1 << 24);
    inputs[as<VarNode>(p)->name] = v;
  }
  auto sum_of = [&](const std::map<std::string, Value>& in) {
    auto out = interpret(module, in);
    EXPECT_TRUE(out.ok()) << out.error().str();
    double sum = 0;
    for (const Value& v : *out)
      for (double x : v.f) sum += x;
    return sum;
  };
  auto results = interpret(*both, inputs);
  ASSERT_TRUE(results.ok()) << results.error().str();
  size_t first = results->size() - inputs.size(), at = first;
  for (const Expr& p : module.main_function()->params) {
    const Value& gradient = (*results)[at++];
    const std::string name = as<VarNode>(p)->name;
    for (size_t i = 0; i < gradient.f.size(); ++i) {
      constexpr double kStep = 1e-4;
      auto up = inputs, down = inputs;
      up[name].f[i] += kStep;
      down[name].f[i] -= kStep;
      double slope = (sum_of(up) - sum_of(down)) / (2 * kStep);
      EXPECT_NEAR(gradient.f[i], slope, slack * std::max(1.0, std::fabs(slope)))
          << body << ": " << name << "[" << i << "]";
    }
  }
}

TEST(Gradient, EqualsDifferences) {
  const std::string two = "%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]";
  for (const char* body :
       {"add(%x, %y)", "%x * %y - %y / %x", "exp(%x) * tanh(%y)", "sigmoid(%x) / sqrt(%y)",
        "log(%x) * nn.softmax(%x * %y)", "nn.log_softmax(%x, axis=0) * %y", "maximum(%x, %y) * minimum(%x, %y)",
        "power(%x, %y)", "nn.relu(%x - %y) * nn.leaky_relu(%y - %x)", "mean(%x * %x, axis=[0]) * %y",
        "max(%x, axis=[1], keepdims=True) * %x", "transpose(%x) * reshape(%y, newshape=[3, 1])",
        "concatenate((%x, %x * %x), axis=1)", "where(%x < %y, %x * %x, %y * %y)",
        "clip(%x, a_min=0.5f, a_max=0.9f) * %y", "nn.bias_add(%x, %y, axis=1) * sin(%x)",
        "%0 = split(%x * %x, indices_or_sections=[1], axis=1);\n%0.0 * sum(%0.1, axis=[1], keepdims=True) * rsqrt(%y)",
        "(%x * %x, %y * %y)"})
    expect_gradient(body, two);
  expect_gradient("nn.dense(%x, %w) * nn.dense(%x, %w)", "%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]");
  expect_gradient("nn.matmul(%x, %w, transpose_a=True)", "%x: Tensor[(3, 2), float32], %w: Tensor[(3, 4), float32]");
  expect_gradient("nn.batch_matmul(%x, %w, transpose_b=True)",
                  "%x: Tensor[(2, 2, 3), float32], %w: Tensor[(2, 4, 3), float32]");
  expect_gradient("%0 = nn.conv2d(%x, %w, strides=[2, 1], padding=[1, 0, 0, 1]);\nnn.global_avg_pool2d(%0 * %0)",
                  "%x: Tensor[(1, 2, 5, 4), float32], %w: Tensor[(3, 2, 3, 2), float32]");
}

TEST(Gradient, OfPoolsIndicesAndComposedOperators) {
  const std::string image = "%x: Tensor[(1, 2, 5, 4), float32]";
  for (const char* body :
       {"nn.max_pool2d(%x * %x, pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 0, 1])",
        "%0 = nn.avg_pool2d(%x, pool_size=[2, 3], strides=[1, 2], padding=[1, 1, 0, 1], count_include_pad=True);\n%0 * "
        "%0",
        "%0 = nn.dilate(%x, strides=[1, 1, 2, 3]);\n%0 * %0",
        "slice_like(%x * %x, nn.max_pool2d(%x, pool_size=[2, 2]))", "hardswish(%x) * reshape_like(%x, %x)"})
    expect_gradient(body, image);
  const std::string scores = "%x: Tensor[(3, 4), float32], %y: Tensor[(3, 4), float32], %w: Tensor[(4), float32]";
  for (const char* body : {"nn.cross_entropy(%x, %y) * sum(%w)", "nn.cross_entropy_with_logits(%x * %y, %y) * sum(%w)",
                           "nn.nll_loss(%x * %y, cast(argmax(%y, axis=[1]), dtype=\"int64\"), %w)",
                           "collapse_sum_like(%x * %y, %w) * %w", "take(%x * %y, argmax(%y, axis=[0]), axis=0) * %w",
                           "gather(%x * %y, argsort(%y, axis=1, dtype=\"int64\"), axis=1) * %w"})
    expect_gradient(body, scores);
}

TEST(Gradient, AnOperatorWithoutARuleIsNamed) {
  PassContext context;
  auto result = first_order_gradient(parsed("def @main(%x: Tensor[(4), float32]) { cumprod(%x) }"), context);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("cumprod has no gradient"), std::string::npos);
}

// --- patterns

struct Net {
  Expr x = make_var("x", tensor_type({1, 4, 8, 8}, kFloat32)), w = make_var("w", tensor_type({4, 4, 1, 1}, kFloat32)),
       b = make_var("b", tensor_type({4, 1, 1}, kFloat32));
  Expr conv = call("nn.conv2d", {x, w}), sum = call("add", {conv, b}), relu = call("nn.relu", {sum});
  Expr function = make_function({x, w, b}, relu);
};

TEST(DataflowPattern, Matches) {
  Net n;
  DFPattern data = wildcard(), conv = is_op("nn.conv2d")({data, is_var("w")}), bias = wildcard();
  DFPattern relu = is_op("nn.relu")({is_op("add")({bias, conv})});  // the operands stand in the other order
  auto found = match(relu, n.relu);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at(conv), n.conv);
  EXPECT_EQ(found->at(bias), n.b);
  EXPECT_EQ(found->at(data), n.x);
  EXPECT_EQ(found->all(relu), std::vector<Expr>{n.relu});
  EXPECT_FALSE(match(is_op("tanh")({wildcard()}), n.relu));
  EXPECT_FALSE(match(is_op("nn.conv2d")({wildcard(), is_constant()}), n.conv));
  EXPECT_TRUE(match(is_op("nn.conv2d")({wildcard(), wildcard()}).has_attr("groups", int64_t{1}), n.conv));
  EXPECT_FALSE(match(is_op("nn.conv2d")({wildcard(), wildcard()}).has_attr("groups", int64_t{2}), n.conv));
  EXPECT_TRUE(match(wildcard().has_shape({1, 4, 8, 8}).has_dtype(kFloat32), n.relu));
  EXPECT_FALSE(match(wildcard().has_dtype(kInt32), n.relu));
  EXPECT_TRUE(match(is_tuple_get_item(is_tuple({wildcard(), is_var()}), 1), make_get(make_tuple({n.relu, n.x}), 1)));
  EXPECT_TRUE(match(is_function({is_var(), is_var(), is_var()}, is_op("nn.relu")({wildcard()})), n.function));
}

TEST(DataflowPattern, OneObjectIsOneExpression) {
  Net n;
  DFPattern same = wildcard();
  EXPECT_TRUE(match(is_op("multiply")({same, same}), call("multiply", {n.x, n.x})));
  EXPECT_FALSE(match(is_op("multiply")({same, same}), call("multiply", {n.x, n.conv})));
}

TEST(DataflowPattern, AlternativesAndOptionalParts) {
  Net n;
  DFPattern conv = is_op("nn.conv2d")({wildcard(), wildcard()});
  DFPattern biased = conv.optional([](const DFPattern& p) { return is_op("add")({p, wildcard()}); });
  DFPattern end = (is_op("nn.relu") | is_op("tanh"))({biased});
  EXPECT_TRUE(match(end, n.relu));
  EXPECT_TRUE(match(end, call("tanh", {n.conv})));
  EXPECT_FALSE(match(end, call("exp", {n.conv})));
}

TEST(DataflowPattern, Dominates) {
  Net n;
  DFPattern path = wildcard().has_attr("TOpPattern", int64_t{0}) | wildcard().has_attr("TOpPattern", int64_t{1});
  DFPattern join = is_op("add")({wildcard(), wildcard()}).dominates(is_op("nn.conv2d")({is_var(), wildcard()}), path);
  Expr middle = call("nn.relu", {n.conv}), diamond = call("add", {call("exp", {middle}), call("tanh", {middle})});
  EXPECT_TRUE(match(join, diamond));
  // Paths that end elsewhere, a value between that is used elsewhere, and a path through another kind of operator.
  EXPECT_FALSE(match(join, call("add", {call("nn.relu", {n.sum}), call("tanh", {n.sum})})));
  EXPECT_FALSE(match(join, diamond, make_tuple({diamond, n.conv})));
  EXPECT_FALSE(match(join, call("add", {call("nn.relu", {n.conv}), call("nn.softmax", {n.conv})})));
}

TEST(DataflowPattern, PatternsThatHoldThemselves) {
  Net n;
  DFPattern chain = wildcard();
  redirect(chain, is_op("exp")({chain}) | is_op("nn.conv2d")({wildcard(), wildcard()}));
  Expr e = n.conv;
  for (int i = 0; i < 5; ++i) e = call("exp", {e});
  EXPECT_TRUE(match(chain, e));
  EXPECT_FALSE(match(chain, call("exp", {n.sum})));
  redirect(chain, wildcard());  // lets go of itself
}

TEST(DataflowPattern, RewritesUntilNothingChanges) {
  Net n;
  DFPattern inside = wildcard();
  RewriteRule rule{is_op("nn.relu")({is_op("nn.relu")({inside})}),
                   [&](const Expr&, const Expr&, const MatchMap& found) -> Result<Expr> {
                     return call("nn.relu", {found.at(inside)});
                   }};
  auto out =
      rewrite({rule}, make_function({n.x, n.w, n.b}, call("nn.relu", {call("nn.relu", {call("nn.relu", {n.relu})})})));
  ASSERT_TRUE(out.ok()) << out.error().str();
  EXPECT_TRUE(structural_equal(*out, n.function)) << print_expr(*out);
  DFPattern any = wildcard();
  RewriteRule grows{is_op("nn.relu")({any}), [&](const Expr&, const Expr& e, const MatchMap&) -> Result<Expr> {
                      return call("nn.relu", {call("exp", {e})});
                    }};
  EXPECT_EQ(rewrite({grows}, n.relu).error().code, ErrorCode::kLimitExceeded);
}

TEST(DataflowPattern, PartitionsIntoFunctions) {
  Net n;
  DFPattern pattern = is_op("nn.relu")({is_op("add")({is_op("nn.conv2d")({wildcard(), wildcard()}), wildcard()})});
  Expr out = partition(pattern, make_function({n.x, n.w, n.b}, call("exp", {n.relu})),
                       {{"Composite", std::string("conv_bias_relu")}});
  const auto* exp = as<CallNode>(as<FunctionNode>(out)->body);
  const auto* part = as<FunctionNode>(as<CallNode>(exp->args[0])->callee);
  ASSERT_TRUE(part) << print_expr(out);
  EXPECT_EQ(part->params.size(), 3u);
  EXPECT_EQ(std::get<std::string>(part->attrs.at("Composite")), "conv_bias_relu");
  EXPECT_EQ(std::get<std::string>(part->attrs.at("PartitionedFromPattern")), "nn.conv2d_add_nn.relu_");
  // Parameters stand in the order of the pattern's leaves; a constant stays inside where the pattern asks for one.
  Expr two = make_scalar(2);
  auto arguments = [&](const DFPattern& p) {
    return as<CallNode>(partition(p, call("subtract", {two, call("add", {n.b, n.x})})))->args;
  };
  DFPattern sum = is_op("add")({wildcard(), wildcard()});
  EXPECT_EQ(arguments(is_op("subtract")({wildcard(), sum})), (std::vector<Expr>{two, n.b, n.x}));
  EXPECT_EQ(arguments(is_op("subtract")({is_constant(), sum})), (std::vector<Expr>{n.b, n.x}));
  // A second time finds nothing: what was partitioned is not entered.
  EXPECT_EQ(partition(pattern, out), out);
  // The inner sum is used outside: it stays.
  Expr used = make_function({n.x, n.w, n.b}, make_tuple({n.relu, n.sum}));
  EXPECT_EQ(partition(pattern, used), used);
}

}  // namespace
}  // namespace tilewright::relay
