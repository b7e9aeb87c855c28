// SPDX-License-Identifier: Apache-2.0
#include "relay/text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "relay/op.h"
#include "relay/verifier.h"

namespace tilewright::relay {
namespace {

const std::string kVersion = "#[version = \"0.0.5\"]\n";

std::string main_of(const std::string& body, const std::string& params = "%x: Tensor[(2, 3), float32]") {
  return kVersion + "def @main(" + params + ") {\n" + body + "\n}\n";
}

// What comes back from reading and printing is read and printed alike, and is the same module.
void expect_round_trip(const std::string& text, std::span<const Tensor> constants = {}) {
  auto first = parse_module(text, constants);
  ASSERT_TRUE(first.ok()) << first.error().str() << "\n" << text;
  ModuleText printed = print_module(*first);
  auto second = parse_module(printed.text, printed.constants);
  ASSERT_TRUE(second.ok()) << second.error().str() << "\n" << printed.text;
  EXPECT_TRUE(structural_equal(*first, *second)) << printed.text;
  EXPECT_EQ(print_module(*second).text, printed.text);
}

TEST(RelayText, PrintsTheClassicForm) {
  auto module = parse_module(main_of("%0 = add(%x, 1f);\nnn.relu(%0)"));
  ASSERT_TRUE(module.ok()) << module.error().str();
  EXPECT_EQ(print_module(*module).text,
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n"
            "  %0 = add(%x, 1f /* ty=float32 */) /* ty=Tensor[(2, 3), float32] */;\n"
            "  nn.relu(%0) /* ty=Tensor[(2, 3), float32] */\n"
            "}\n");
  TextOptions bare;
  bare.types = false;
  EXPECT_NE(print_module(*module, bare).text.find("  %0 = add(%x, 1f);\n  nn.relu(%0)\n"), std::string::npos);
}

TEST(RelayText, RoundTrips) {
  for (const char* body : {
           "%x",
           "nn.relu(add(%x, %x))",
           "%0 = (%x, 1f, 2);\n%0.0",
           "((%x,), ())",
           "clip(%x, a_min=-1f, a_max=inff)",
           "cast(%x, dtype=\"int64\")",
           "let %y: Tensor[(2, 3), float32] = exp(%x);\nlet %z = add(%y, %y);\nmultiply(%z, %y)",
           "%0 = add(%x, (let %y = exp(%x);\nadd(%y, %y)));\nnn.relu(%0)",
           "if (True) { exp(%x) } else { %x }",
           "%0 = fn (%p0: Tensor[(2, 3), float32], Primitive=1, hash=\"ab\\\"c\", layout=[\"NCHW\"], n=[1, 2]) -> "
           "Tensor[(2, 3), float32] {\n"
           "  %1 = exp(%p0);\n  log(%1)\n};\n%2 = %0(%x);\n%0(%2)",
           "multiply(multiply(1e-05f, %x), -2.5f)",
           "(1i64, -3, True, 0.5f64, 0.25f16)",
       })
    expect_round_trip(main_of(body));
  expect_round_trip(
      main_of("add(%x, %y)", "%x: Tensor[(N, 3, 2*H + 1), float32], %y: Tensor[(N, 3, 2*H + 1), float32]"));
  expect_round_trip(main_of("%x", "%x: Tensor[(?, (N*M)//4, min(N, 8), N % 3), float16]"));
  expect_round_trip(main_of("%\"input:0\"", "%\"input:0\": Tensor[(1), uint8], %\"a\\\"b\": bool"));
  expect_round_trip(kVersion +
                    "#[metadata(\"names\") = \"cat\\ndog\"]\ndef @main(%x: float32) -> float32 {\n@f(%x)\n}\n"
                    "def @f(%y: float32) -> float32 {\nexp(%y)\n}\n");
}

TEST(RelayText, ConstantsAreKeptAside) {
  std::vector<Tensor> constants = {Tensor::from<float>(kFloat32, {3}, std::vector<float>{1, 2, 3}),
                                   Tensor::from<int64_t>(kInt64, {1}, std::vector<int64_t>{7})};
  std::string text = main_of("(add(%x, meta[relay.Constant][0]), meta[relay.Constant][1], meta[relay.Constant][0])");
  expect_round_trip(text, constants);
  auto missing = parse_module(text, std::span(constants).first(1));
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("constant 1 was not given"), std::string::npos);
}

TEST(RelayText, TheLargestFloatIsRead) {
  // Nine digits, as it is printed, are a number above it that rounds to it.
  auto module = parse_module("#[version = \"0.0.5\"]\ndef @main() { (3.40282347e+38f, -3.40282347e+38f) }");
  ASSERT_TRUE(module.ok()) << module.error().str();
  const auto* both = as<TupleNode>(module->main_function()->body);
  EXPECT_EQ(as<ConstantNode>(both->fields[0])->data.at_double(0), std::numeric_limits<float>::max());
  EXPECT_EQ(as<ConstantNode>(both->fields[1])->data.at_double(0), std::numeric_limits<float>::lowest());
  EXPECT_FALSE(parse_module("#[version = \"0.0.5\"]\ndef @main() { 3.4028236e+38f }").ok());
}

TEST(RelayText, SharedExpressionsAndScopes) {
  // One binding used by a function's body and outside: printed once, read back as shared.
  expect_round_trip(main_of("%0 = exp(%x);\n%1 = fn (%p: float32) { add(%0, %p) };\n%2 = %1(1f);\nadd(%2, %0)"));
  // Bindings that both branches and what follows read.
  expect_round_trip(main_of(
      "%0 = exp(%x);\n%1 = tanh(%x);\n%2 = if (True) { add(%0, %1) } else { negative(%1) };\nmultiply(%2, %0)"));
  // Equal parameter names of different functions are told apart.
  auto module = parse_module(main_of("%0 = fn (%x: float32) { exp(%x) };\n%1 = %0(1f);\nadd(%x, %1)"));
  ASSERT_TRUE(module.ok()) << module.error().str();
  EXPECT_NE(print_module(*module).text.find("fn (%x1: float32)"), std::string::npos);
}

TEST(RelayText, DeepGraphsDoNotRecurse) {
  std::string body;
  for (int i = 0; i < 20000; ++i)
    body += "%" + std::to_string(i) + " = exp(%" + (i ? std::to_string(i - 1) : "x") + ");\n";
  expect_round_trip(main_of(body + "%19999"));
  std::string lets;
  for (int i = 0; i < 20000; ++i)
    lets += "let %v" + std::to_string(i) + " = exp(%" + (i ? "v" + std::to_string(i - 1) : "x") + ");\n";
  expect_round_trip(main_of(lets + "%v19999"));
}

struct Bad {
  std::string text;
  const char* place;
  const char* message;
};

TEST(RelayText, ErrorsHaveAPlace) {
  std::string deep_parens = main_of(std::string(100000, '(') + "%x");
  std::string deep_lists = main_of("cast(%x, dtype=" + std::string(100000, '[') + ")");
  std::string deep_types = kVersion + "def @main(%x: " + std::string(100000, '(') + "float32";
  std::string deep_dims = kVersion + "def @main(%x: Tensor[(" + std::string(100000, '(') + "1";
  std::string wide, nested;
  for (int i = 0; i < 64; ++i) {
    std::string before = i ? "%" + std::to_string(i - 1) : "%x";
    wide += "%" + std::to_string(i) + " = (" + before + ", " + before + ");\n";
  }
  for (int i = 0; i < 5000; ++i)
    nested += "%" + std::to_string(i) + " = fn () { " + (i ? "%" + std::to_string(i - 1) + "()" : "%x") + " };\n";
  const std::vector<Bad> cases = {
      {"", "text:1:1", "end of the text"},
      {"#[version = \"0.0.4\"]", "text:1:13", "0.0.4"},
      {main_of("add(%x, %y)"), "text:3:9", "%y is not defined above"},
      {main_of("%0 = exp(%x);\n%0 = exp(%x);\n%0"), "text:4:1", "bound twice"},
      {main_of("add(%x %x)"), "text:3:8", "%x stands where ')'"},
      {main_of("addd(%x, %x)"), "text:3:1", "no operator is called addd"},
      {main_of("add(%x)"), "text:3:1", "operand"},
      {main_of("add(%x, 1i64)"), "text:3:1", "add"},
      {main_of("clip(%x, a_minn=1f)"), "text:3:17", "a_minn"},
      {main_of("clip(%x, a_min=\"1\")"), "text:3:16", "wrong kind"},
      {main_of("exp(%x, axis=1)"), "text:3:14", "no attribute 'axis'"},
      {main_of("%x.0"), "text:3:1", "no field 0"},
      {main_of("(%x, %x).7"), "text:3:1", "no field 7"},
      {main_of("%x(%x)"), "text:3:1", "is called"},
      {main_of("@f(%x)"), "text:3:1", "@f is not defined"},
      {main_of("1zz"), "text:3:1", "suffix"},
      {main_of("99999999999999999999"), "text:3:1", "out of range"},
      {main_of("3000000000i32"), "text:3:1", "int32"},
      {main_of("40000i16"), "text:3:1", "int16"},
      {main_of("3.5e+38f32"), "text:3:1", "float32"},
      {main_of("\"abc"), "text:3:1", "closing quote"},
      {main_of("$"), "text:3:1", "character '$'"},
      {main_of("\x01"), "text:3:1", "byte 0x01"},
      {main_of("%x", "%x: Tensor[(1, -2), float32]"), "text:2:22", "negative"},
      {main_of("%x", "%x: Tensor[(1000000000, 1000000000, 1000000000), float32]"), "text:2:22", "too large"},
      {main_of("%x", "%x: Tensor[(N//0), float32]"), "text:2:24", "divided by zero"},
      {main_of("%x", "%x: floot32"), "text:2:15", "not a type"},
      {kVersion + "def @main() -> int32 { 1f }", "text:2:13", "body gives float32"},
      {kVersion + "def @main() { 1f }\ndef @main() { 2f }", "text:3:1", "defined twice"},
      {kVersion + "def @main() { meta[relay.Constant][0] }", "text:2:15", "not given"},
      {kVersion + "def @main() { let %a = 1f; ", "text:2:28", "end of the text"},
      {deep_parens, "text:3:", "nests deeper"},
      {deep_lists, "text:3:", "nest too deeply"},
      {deep_types, "text:2:", "nests deeper"},
      {deep_dims, "text:2:", "64 terms"},
      {main_of(wide + "%63"), "text:", "too large"},
      {main_of(nested + "%4999()"), "text:", "nest deeper"},
  };
  for (const Bad& bad : cases) {
    auto result = parse_module(bad.text);
    ASSERT_FALSE(result.ok()) << bad.text.substr(0, 300);
    EXPECT_EQ(result.error().where.find(bad.place), 0u) << result.error().str() << "\n" << bad.text.substr(0, 300);
    EXPECT_NE(result.error().message.find(bad.message), std::string::npos) << result.error().str();
    EXPECT_TRUE(result.error().code == ErrorCode::kParseError || result.error().code == ErrorCode::kTypeMismatch ||
                result.error().code == ErrorCode::kUnknownOp);
  }
  EXPECT_EQ(parse_module(main_of("addd(%x, %x)")).error().hint.find("did you mean add"), 0u);
}

// What the classic grammar allows beyond what the classic printer writes.
TEST(RelayText, EveryFormOfTheGrammar) {
  for (const char* body : {"--10", "---10i16", "3000000000", "/* a /* b */ c */ 1f32", "(); 1u8", "-%x"})
    EXPECT_TRUE(parse_module(main_of(body)).ok()) << body << parse_module(main_of(body)).error().str();
  auto sequence = parse_module(main_of("exp(%x); %x"));
  ASSERT_TRUE(sequence.ok()) << sequence.error().str();
  EXPECT_TRUE(as<LetNode>(as<FunctionNode>(sequence->functions.at("main"))->body));
  auto external = parse_module(kVersion + "extern type T[A]\ndef @main() { () }");
  ASSERT_TRUE(external.ok()) << external.error().str();
  EXPECT_TRUE(external->types.at("T").constructors.empty());

  using Names = std::vector<std::pair<std::string, std::string>>;
  for (const auto& [name, meant] : Names{{"uint1", "bool"}, {"int", "int32"}, {"float", "float32"}}) {
    auto named = parse_module(main_of("%x", "%x: Tensor[(2), " + name + "]"));
    ASSERT_TRUE(named.ok()) << named.error().str();
    EXPECT_NE(print_module(*named).text.find("Tensor[(2), " + meant + "]"), std::string::npos);
  }

  ParseOptions open;
  open.open = true;
  for (const char* text : {"free_var %x: float32; %x((%x,).0, %x)", "@f", "nn.relu", "let %_ : int8x4 = (); ()"})
    EXPECT_TRUE(parse_expression(text, {}, open).ok()) << text << parse_expression(text, {}, open).error().str();
  for (const char* text : {"%x", "free_var %x float32; %x", "free_var x: float32; x", "(1, 2", "1 2", ""})
    EXPECT_FALSE(parse_expression(text, {}, open).ok()) << text;
  EXPECT_FALSE(parse_expression("type T { A }", {}, open).ok());
}

// Every prefix of a good text, and every text with one byte changed, gives a module or an error.
TEST(RelayText, DamagedTextsDoNotCrash) {
  const std::string good = main_of(
      "%0 = fn (%p0: Tensor[(2, 3), float32], Primitive=1) -> Tensor[(2, 3), float32] {\n  clip(%p0, a_min=-1f, "
      "a_max=6f)\n};\n"
      "let %v: (Tensor[(2, 3), float32], int64) = (%0(%x), 3i64);\nif (False) { %v.0 } else { cast(%x, "
      "dtype=\"float32\") }");
  ASSERT_TRUE(parse_module(good).ok()) << parse_module(good).error().str();
  for (size_t i = 0; i < good.size(); ++i) {
    (void)parse_module(std::string_view(good).substr(0, i));
    for (char c : {'(', '}', '"', '%', '9', '.', '\0', '-'}) {
      std::string damaged = good;
      damaged[i] = c;
      (void)parse_module(damaged);
    }
  }
}

TEST(Verifier, AcceptsWhatTheParserReads) {
  auto module = parse_module(main_of("%0 = fn (%p: float32) { exp(%p) };\nlet %v = %0(1f);\nadd(%x, %v)"));
  ASSERT_TRUE(module.ok());
  auto status = verify_module(*module);
  EXPECT_TRUE(status.ok()) << status.error().str();
}

void expect_rejected(const Expr& function, const char* message) {
  Module module;
  module.functions["main"] = function;
  auto status = verify_module(module);
  ASSERT_FALSE(status.ok()) << message;
  EXPECT_EQ(status.error().code, ErrorCode::kVerifyFailed);
  EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().str();
}

TEST(Verifier, RejectsBrokenModules) {
  Type vector = tensor_type({4}, kFloat32);
  Expr x = make_var("x", vector), y = make_var("y", vector);
  expect_rejected(x, "is not a function");
  expect_rejected(make_function({x}, call("add", {x, y})), "%y is used but not bound");
  expect_rejected(make_function({x, x}, x), "bound twice");
  expect_rejected(make_function({make_var("u", incomplete_type())}, x), "not complete");
  // A primitive function that reaches outside.
  Expr inner = make_function({}, call("exp", {x}), {{"Primitive", int64_t{1}}});
  expect_rejected(make_function({x}, call_function(inner, {})), "inside a primitive function");
  // A closure may.
  Module closure;
  closure.functions["main"] = make_function({x}, call_function(make_function({}, call("exp", {x})), {}));
  EXPECT_TRUE(verify_module(closure).ok()) << verify_module(closure).error().str();
  // A call whose recorded type is not what its operands give.
  Expr good = call("exp", {x});
  Expr wrong = make_node<CallNode>(as<CallNode>(good)->callee, std::vector<Expr>{x}, AttrsRef(),
                                   tensor_type({5}, kFloat32), Span());
  expect_rejected(make_function({x}, wrong), "its operands give");
  Expr half = make_node<CallNode>(as<CallNode>(good)->callee, std::vector<Expr>{x, x}, AttrsRef(), vector, Span());
  expect_rejected(make_function({x}, half), "operand");
  // Calls of functions.
  Expr f = make_function({y}, y);
  Expr scalar = make_scalar(1);
  expect_rejected(make_function({x}, make_node<CallNode>(f, std::vector<Expr>{scalar}, AttrsRef(), vector, Span())),
                  "argument 0");
  expect_rejected(make_function({x}, make_node<CallNode>(x, std::vector<Expr>{x}, AttrsRef(), vector, Span())),
                  "calls a value");
  expect_rejected(make_function({x}, call_function(make_global_var("g", func_type({vector}, vector)), {x})),
                  "names no function");
  expect_rejected(make_function({x}, make_node<IfNode>(scalar, x, x, Span())), "condition");
  expect_rejected(make_function({x}, make_node<LetNode>(make_var("v", scalar->type), x, x, Span())), "its value");
}

// --- the rest of the language: data types, patterns, references, closures, polymorphism

TEST(RelayText, DataTypesAndPatternsRoundTrip) {
  expect_round_trip(kVersion +
                    "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"
                    "def @length[A](%l: List[A]) -> int32 {\n"
                    "  match (%l) {\n    Cons(_, %rest) => { 1 + @length(%rest) },\n    Nil => 0,\n  }\n}\n"
                    "def @main(%x: float32) -> int32 {\n  @length(Cons(%x, Cons(%x, Nil)))\n}\n");
  expect_round_trip(kVersion +
                    "type Shape {\n Circle(float32), Square(float32, float32) }\n"
                    "def @main(%s: Shape, %t: (float32, Shape)) {\n"
                    "match? (%t) { (%a, Circle(%r)) => multiply(%a, %r), (%a, Square(%w, _)) => %w }\n}\n");
}

TEST(RelayText, ReferencesAndClosuresRoundTrip) {
  expect_round_trip(main_of("let %r = ref(%x);\nlet %u = ref_write(%r, exp(%x));\nref_read(%r)"));
  expect_round_trip(main_of("let %f = fn (%y: Tensor[(2, 3), float32]) { add(%x, %y) };\n%f(%f(%x))"));
  expect_round_trip(
      kVersion +
      "def @twice[A](%f: fn (A) -> A, %x: A) -> A {\n%f(%f(%x))\n}\n"
      "def @main(%x: float32, %c: ref((float32, bool))) {\n@twice(fn (%y: float32) { exp(%y) }, %x)\n}\n");
  expect_round_trip(
      main_of("let %loop: fn (int32) -> int32 = fn (%i: int32) -> int32 { if (%i < 3) { %loop(%i + 1) } else { %i } "
              "};\n%loop(0)"));
}

TEST(RelayText, InfixOperatorsBindAsUsual) {
  auto module = parse_module(main_of("%x + %x * 2f - %x / 3f < %x"));
  auto spelled = parse_module(main_of("less(subtract(add(%x, multiply(%x, 2f)), divide(%x, 3f)), %x)"));
  ASSERT_TRUE(module.ok() && spelled.ok()) << (module.ok() ? spelled : module).error().str();
  EXPECT_TRUE(structural_equal(*module, *spelled)) << print_module(*module).text;
}

TEST(RelayText, WrongDataTypesAreRefused) {
  const std::string list = kVersion + "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n";
  for (auto [body, message] : std::vector<std::pair<std::string, std::string>>{
           {"def @main(%l: List) { %l }", "takes 1 arguments, not 0"},
           {"def @main(%l: List[int32]) { match (%l) { Cons(%a) => 1 } }", "has 2 fields, not 1"},
           {"def @main(%l: int32) { match (%l) { Nil => 1 } }", "the pattern Nil stands for int32"},
           {"def @main(%l: List[int32]) { match (%l) { } }", "no clauses"},
           {"def @main(%l: List[int32]) { Nil(%l) }", "Nil has no fields"},
           {"def @main(%x: int32) { ref_read(%x) }", "not a reference"},
           {"type Other { Nil }\ndef @main(%x: int32) { %x }", "two types have a constructor Nil"},
           {"type List { Leaf }\ndef @main(%x: int32) { %x }", "defined twice"},
       }) {
    auto result = parse_module(list + body);
    ASSERT_FALSE(result.ok()) << body;
    EXPECT_NE(result.error().message.find(message), std::string::npos) << result.error().str();
  }
}

TEST(RelayText, SpansAreThePlaceInTheText) {
  ParseOptions options;
  options.spans = true;
  options.origin = "m.txt";
  auto module = parse_module(main_of("%0 = exp(%x);\nnn.relu(%0)"), {}, options);
  ASSERT_TRUE(module.ok());
  ASSERT_TRUE(module->main_function()->body->span);
  EXPECT_EQ(*module->main_function()->body->span, "m.txt:4:1");
}

}  // namespace
}  // namespace tilewright::relay
