// SPDX-License-Identifier: Apache-2.0
// Relay modules as VM programs: what the bytecode gives is what the interpreter gives.
#include <gtest/gtest.h>

#include "driver/verify.h"
#include "driver/vm.h"
#include "relay/interpreter.h"
#include "relay/text.h"
#include "runtime/vm/compiler_hook.h"
#include "tilewright/compiler.h"

namespace tilewright::driver {
namespace {

Result<relay::Module> parse(const std::string& text) { return relay::parse_module("#[version = \"0.0.5\"]\n" + text); }

// Runs main on the VM (through the program's bytes) and in the interpreter.
// `plain` says the same without what the interpreter lacks (closures, data types); empty: the text itself.
void check_program(const std::string& text, std::vector<Tensor> inputs, size_t regions = SIZE_MAX,
                   const std::string& plain = "") {
  auto module = parse(text);
  ASSERT_TRUE(module.ok()) << module.error().str();
  auto program = vm_program(*module, {});
  ASSERT_TRUE(program.ok()) << program.error().str();
  if (regions != SIZE_MAX) {
    EXPECT_EQ(program->regions.size(), regions) << runtime::vm::bytecode_text(program->executable);
  }
  const std::string bytes = runtime::vm::write_program(*program);
  auto read = runtime::vm::read_program(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(read.ok()) << read.error().str();
  auto shared = std::make_shared<const runtime::vm::Program>(std::move(*read));
  runtime::vm::SpecializedOptions options;
  options.threads = 1;
  auto runner = runtime::vm::ProgramRunner::create(
      shared, runtime::vm::specialize_with(shared, tw_compiler_specialize, tw_compiler_last_error_message), options);
  ASSERT_TRUE(runner.ok()) << runner.error().str();
  auto got = (*runner)->run(inputs);
  ASSERT_TRUE(got.ok()) << got.error().str() << "\n" << runtime::vm::bytecode_text(shared->executable);
  std::map<std::string, relay::Value> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[shared->inputs[i].name] = relay::value_from(inputs[i]);
  auto reference = plain.empty() ? module : parse(plain);
  ASSERT_TRUE(reference.ok()) << reference.error().str();
  relay::InterpretOptions interpret;
  interpret.module = &*reference;
  auto expected = relay::interpret(*reference, values, interpret);
  ASSERT_TRUE(expected.ok()) << expected.error().str();
  ASSERT_EQ(got->size(), expected->size());
  for (size_t k = 0; k < got->size(); ++k) {
    ASSERT_EQ((*got)[k].shape(), (*expected)[k].shape);
    for (int64_t i = 0; i < (*got)[k].size(); ++i) {
      const auto& e = (*expected)[k];
      EXPECT_NEAR((*got)[k].at_double(i),
                  e.is_float() ? e.f[static_cast<size_t>(i)] : static_cast<double>(e.i[static_cast<size_t>(i)]), 1e-4);
    }
  }
}
Tensor data(std::vector<int64_t> shape, uint64_t seed = 3) { return random_tensor(kFloat32, shape, seed); }
Tensor number(float v) { return Tensor::scalar<float>(kFloat32, v); }

TEST(VmRelay, OneRegionWithoutControlFlow) {
  check_program("def @main(%x: Tensor[(?, 8), float32]) { %0 = nn.relu(%x); %1 = sum(%0, axis=[1]); (%0, exp(%1)) }",
                {data({5, 8})}, 1);
}

// Sizes at which a region is too much work for the interpreter say nothing about its other sizes.
TEST(VmRelay, SmallCallsAreEvaluatedAfterALargeOne) {
  auto module = parse("def @main(%x: Tensor[(?, 8), float32]) { sum(exp(nn.relu(%x)), axis=[1]) }");
  ASSERT_TRUE(module.ok()) << module.error().str();
  auto program = vm_program(*module, {});
  ASSERT_TRUE(program.ok()) << program.error().str();
  auto shared = std::make_shared<const runtime::vm::Program>(std::move(*program));
  runtime::vm::SpecializedOptions options;
  options.threads = 1;
  options.evaluate = runtime::vm::evaluate_with(shared, tw_compiler_evaluate, tw_compiler_last_error_message);
  auto vm = runtime::vm::ProgramRunner::create(
      shared, runtime::vm::specialize_with(shared, tw_compiler_specialize, tw_compiler_last_error_message), options);
  ASSERT_TRUE(vm.ok()) << vm.error().str();
  for (int64_t rows : {500'000, 3, 500'000}) ASSERT_TRUE((*vm)->run({data({rows, 8})}).ok());
  EXPECT_EQ((*vm)->functions().compiled(), 1u);
  EXPECT_EQ((*vm)->functions().evaluated(), 1u);
}

// As many results as the values say, between regions, and what is computed from them.
TEST(VmRelay, ResultsAsLargeAsTheValuesSay) {
  const Tensor x = data({3, 5});
  check_program(
      "def @main(%x: Tensor[(?, 5), float32]) {\n  %0 = nn.relu(%x);\n  %1 = argwhere(%0);\n"
      "  %2 = multiply(%1, 2i64);\n  (%1, sum(%2), gather_nd(%0, transpose(%1), index_rank=2))\n}",
      {x});
  check_program("def @main(%x: Tensor[(), float32]) { argwhere(%x) }", {number(1)});
  check_program("def @main(%x: Tensor[(), float32]) { argwhere(%x) }", {number(0)});
  const Tensor repeated = Tensor::from<int32_t>(kInt32, {2, 4}, std::vector<int32_t>{7, 3, 7, -1, 3, 3, 9, 7});
  for (const char* how : {"", ", sorted=False", ", axis=1", ", axis=-1, sorted=False"})
    check_program("def @main(%x: Tensor[(2, ?), int32]) {\n  %0 = unique(%x" + std::string(how) +
                      ");\n  (add(%0.0, 1), %0.1, %0.2, cast(%0.3, dtype=\"float32\"))\n}",
                  {repeated});
  // Inside a branch, and where the result has nothing in it.
  for (float limit : {-100.0f, 100.0f})
    check_program(
        "def @main(%x: Tensor[(?, 5), float32], %limit: Tensor[(), float32]) {\n  %0 = greater(%x, %limit);\n"
        "  if (less(%limit, 0f)) { cast(argwhere(%0), dtype=\"float32\") } else { cast(argwhere(%0), "
        "dtype=\"float32\") }\n}",
        {x, number(limit)});
}

TEST(VmRelay, BranchesOnResults) {
  const std::string text =
      "def @main(%x: Tensor[(?, 8), float32], %limit: Tensor[(), float32]) {\n"
      "  %0 = sum(%x);\n  %1 = less(%0, %limit);\n  %2 = nn.relu(%x);\n"
      "  if (%1) { add(%2, %x) } else { multiply(%2, negative(%x)) }\n}";
  for (float limit : {-100.0f, 100.0f})
    for (int64_t n : {1, 6}) check_program(text, {data({n, 8}), number(limit)});
}

TEST(VmRelay, References) {
  check_program(
      "def @main(%x: Tensor[(3), float32]) {\n  let %r = ref(%x);\n  let %a = ref_read(%r);\n  let %u = ref_write(%r, "
      "add(%a, %a));\n"
      "  let %b = ref_read(%r);\n  let %w = ref_write(%r, multiply(%b, %a));\n  (%a, %b, ref_read(%r))\n}",
      {data({3})});
}

TEST(VmRelay, RecursionOverGlobals) {
  check_program(
      "def @halve(%x: Tensor[(), float32], %n: Tensor[(), int64]) -> Tensor[(), float32] {\n"
      "  if (less(%x, 1f)) { %x } else { @halve(multiply(%x, 0.5f), %n) }\n}\n"
      "def @main(%x: Tensor[(), float32], %n: Tensor[(), int64]) { add(@halve(%x, %n), 10f) }",
      {number(1000), Tensor::scalar<int64_t>(kInt64, 1)});
}

// A function that ends by calling itself needs no call for it, however often.
TEST(VmRelay, LoopsOfManySteps) {
  auto module = parse(
      "def @main(%n: Tensor[(), int64]) {\n"
      "  let %loop: fn (Tensor[(), int64], Tensor[(), int64]) -> Tensor[(), int64] =\n"
      "    fn (%i: Tensor[(), int64], %sum: Tensor[(), int64]) -> Tensor[(), int64] {\n"
      "      if (less(%i, %n)) { %loop(add(%i, 1i64), add(%sum, %i)) } else { %sum }\n    };\n"
      "  %loop(0i64, 0i64)\n}");
  ASSERT_TRUE(module.ok()) << module.error().str();
  auto program = vm_program(*module, {});
  ASSERT_TRUE(program.ok()) << program.error().str();
  auto shared = std::make_shared<const runtime::vm::Program>(std::move(*program));
  auto runner = runtime::vm::ProgramRunner::create(
      shared, runtime::vm::specialize_with(shared, tw_compiler_specialize, tw_compiler_last_error_message), {});
  ASSERT_TRUE(runner.ok()) << runner.error().str();
  const int64_t steps = 30'000;
  auto got = (*runner)->run({Tensor::scalar<int64_t>(kInt64, steps)});
  ASSERT_TRUE(got.ok()) << got.error().str();
  EXPECT_EQ((*got)[0].at_int(0), steps * (steps - 1) / 2);
}

TEST(VmRelay, ClosuresCapture) {
  check_program(
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {\n"
      "  let %scale = add(%y, 1f);\n"
      "  let %f = fn (%a: Tensor[(4), float32]) -> Tensor[(4), float32] { multiply(%a, %scale) };\n"
      "  add(%f(%x), %f(%f(%y)))\n}",
      {data({4}, 1), data({4}, 2)}, SIZE_MAX,
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {\n"
      "  %0 = add(%y, 1f);\n  add(multiply(%x, %0), multiply(multiply(%y, %0), %0))\n}");
}

TEST(VmRelay, DataTypesAndMatch) {
  check_program(
      "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"
      "def @total(%list: List[Tensor[(4), float32]]) -> Tensor[(4), float32] {\n"
      "  match (%list) {\n    Cons(%head, %tail) => add(%head, @total(%tail)),\n    Nil => zeros(shape=[4], "
      "dtype=\"float32\"),\n  }\n}\n"
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {\n"
      "  %0 = Nil;\n  %1 = Cons(multiply(%y, %x), %0);\n  @total(Cons(%x, %1))\n}",
      {data({4}, 1), data({4}, 2)}, SIZE_MAX,
      "def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) { add(%x, multiply(%y, %x)) }");
}

TEST(VmRelay, WhatCannotBe) {
  auto module = parse("def @other(%x: Tensor[(2), float32]) { %x }");
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(vm_program(*module, {}).error().code, ErrorCode::kUnsupportedModel);
  module = parse("def @main(%x: (Tensor[(2), float32], Tensor[(2), float32])) { %x.0 }");
  ASSERT_TRUE(module.ok()) << module.error().str();
  EXPECT_EQ(vm_program(*module, {}).error().code, ErrorCode::kUnsupportedModel);
}

}  // namespace
}  // namespace tilewright::driver
