// SPDX-License-Identifier: Apache-2.0
// Programs whose memory is written down compile, and compute what they did.
#include "driver/graphs.h"
#include "relay/ops/program/memory.h"
#include "relay/passes/table.h"

namespace tilewright::driver {
namespace {
using namespace testing;
using namespace relay;

Expr fused(const Expr& x, const std::function<Expr(const Expr&)>& body) {
  Expr p = make_var("p", x->type);
  return call_function(make_function({p}, body(p), {{"Primitive", int64_t{1}}}), {x});
}

TEST(MemoryPrograms, Compile) {
  Expr x = input("x", {3, 5}), y = make_var("y", x->type), z = make_var("z", tensor_type({5, 3}, kFloat32)),
       w = make_var("w", z->type);
  Expr first = fused(x, [](const Expr& p) { return call("nn.relu", {call("exp", {p})}); });
  Expr second = fused(y, [](const Expr& p) {
    return call("reshape", {p}, make_attrs<ReshapeAttrs>([](auto& a) { a.newshape = {5, 3}; }));
  });
  Expr third = fused(z, [](const Expr& p) { return call("multiply", {p, p}); });
  Expr body = make_node<LetNode>(y, first, make_node<LetNode>(z, second, make_node<LetNode>(w, third, w)));
  const relay::Module before = relay::Module().with_main(make_function({x}, body));
  PassContext context;
  auto after = run_passes(before, {"ManifestAlloc", "ManifestLifetimes"}, context);
  ASSERT_TRUE(after.ok()) << after.error().str();
  int invoked = 0, ended = 0;
  for (const Expr& e : post_order(after->main())) {
    invoked += is_call_to(e, "vm.invoke_tvm_op");
    ended += is_call_to(e, "memory.kill");
  }
  EXPECT_EQ(invoked, 2);
  EXPECT_GE(ended, 1);
  check(*after);
  auto again = run_passes(*after, {"ElideMemory", "ToGraphNormalForm"}, context);
  ASSERT_TRUE(again.ok()) << again.error().str();
  for (const Expr& e : post_order(again->main())) EXPECT_FALSE(called_op(e) && is_memory_op(called_op(e)->name));
}

TEST(MemoryPrograms, Refusals) {
  Expr x = input("x", {2}), p = make_var("p", x->type), f = make_function({p}, call("exp", {p}));
  EXPECT_EQ(error_of("vm.invoke_tvm_op", {f, make_tuple({x}), make_tuple({x})}), "");
  EXPECT_EQ(
      error_of("vm.invoke_tvm_op", {x, make_tuple({x}), make_tuple({x})}),
      "operands are Tensor[(2), float32], (Tensor[(2), float32],) and (Tensor[(2), float32],), not a function and two "
      "tuples");
  EXPECT_EQ(error_of("vm.invoke_tvm_op", {f, make_tuple({x}), make_tuple({input("y", {3})})}),
            "result 0 is Tensor[(2), float32], its place Tensor[(3), float32]");
  EXPECT_EQ(error_of("memory.alloc_storage", {x, x}), "operand 0 is Tensor[(2), float32], not int64");
  EXPECT_EQ(error_of("memory.alloc_tensor", {x, make_scalar(0, kInt64), ints({2})}),
            "it takes a tensor's place from Tensor[(2), float32], not from a Storage");
}

}  // namespace
}  // namespace tilewright::driver
