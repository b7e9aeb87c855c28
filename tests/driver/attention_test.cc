// SPDX-License-Identifier: Apache-2.0
// Fused attention against the reference interpreter: layouts, masks, tails of queries, keys and head sizes, many keys.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "driver/graphs.h"
#include "driver/verify.h"
#include "relay/op.h"
#include "relay/ops/attrs.h"
#include "relay/ops/nn/attrs_attention.h"
#include "relay/passes/default_pipeline.h"
#include "relay/text.h"

namespace tilewright::driver {
namespace {

using testing::check;
using testing::input;
using namespace relay;

struct AttentionCase {
  int64_t batch, heads, queries, keys, size, value_size;
};

// Operands as (B, H, S, D), the mask of the given shape.
void check_plain(const AttentionCase& c, std::vector<int64_t> mask_shape = {}, const char* target = "llvm") {
  Expr q = input("q", {c.batch, c.heads, c.queries, c.size}), k = input("k", {c.batch, c.heads, c.keys, c.size}),
       v = input("v", {c.batch, c.heads, c.keys, c.value_size});
  std::vector<Expr> args{q, k, v};
  if (!mask_shape.empty()) args.push_back(input("mask", mask_shape));
  check(args, call("nn.attention", args, make_attrs<AttentionAttrs>([&](auto& a) {
                     a.num_heads = c.heads;
                     a.scale = 0.25;
                   })),
        target);
}

TEST(Attention, TailsOfEveryExtent) {
  for (AttentionCase c : {AttentionCase{1, 2, 16, 16, 32, 32},
                          {1, 3, 37, 19, 24, 40},
                          {2, 1, 40, 40, 15, 15},
                          {1, 1, 9, 5, 3, 7},
                          {1, 2, 70, 33, 64, 64}})
    check_plain(c);
}
TEST(Attention, MasksOfEveryShape) {
  const AttentionCase c{2, 3, 21, 18, 16, 16};
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{2, 1, 1, 18}, {1, 1, 21, 18}, {2, 3, 21, 18}, {1, 3, 1, 1}, {1, 1, 21, 1}})
    check_plain(c, shape);
}
TEST(Attention, ManyKeysGoBlockByBlock) {
  check_plain({1, 2, 33, 600, 16, 24});
  check_plain({1, 2, 20, 512, 8, 8}, {1, 1, 20, 512});
}
TEST(Attention, NarrowerVectors) {
  for (const char* target : {"llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"}) {
    check_plain({1, 2, 37, 19, 24, 40}, {1, 1, 37, 19}, target);
    check_plain({1, 1, 12, 500, 16, 16}, {}, target);
  }
}

// One merged projection, heads cut from it, transposed, repeated, and back: everything a layout.
TEST(Attention, FusedFromAGraph) {
  const int64_t tokens = 19, heads = 4, size = 8, kv_heads = 2;
  Expr x = input("x", {1, tokens, (heads + 2 * kv_heads) * size});
  auto cut = [&](int64_t begin, int64_t n) {
    Expr part = call("strided_slice", {x}, make_attrs<StridedSliceAttrs>([&](auto& a) {
                       a.begin = {begin * size};
                       a.end = {(begin + n) * size};
                       a.strides = {1};
                       a.axes = std::vector<int64_t>{2};
                     }));
    part = call("reshape", {part}, make_attrs<ReshapeAttrs>([&](auto& a) { a.newshape = {1, tokens, n, size}; }));
    return call("transpose", {part}, make_attrs<TransposeAttrs>([&](auto& a) {
                  a.axes = std::vector<int64_t>{0, 2, 1, 3};
                }));
  };
  auto repeated = [&](Expr e) {
    return call("repeat", {e}, make_attrs<RepeatAttrs>([&](auto& a) {
                  a.repeats = heads / kv_heads;
                  a.axis = 1;
                }));
  };
  auto product = [](Expr a, Expr b, bool transposed) {
    return call("nn.batch_matmul", {a, b}, make_attrs<BatchMatmulAttrs>([&](auto& m) { m.transpose_b = transposed; }));
  };
  Expr causal = make_constant([&] {
    Tensor t = Tensor::zeros(kBool, {tokens, tokens});
    for (int64_t i = 0; i < tokens; ++i)
      for (int64_t j = 0; j <= i; ++j) t.set_int(i * tokens + j, 1);
    return t;
  }());
  Expr scores =
      call("divide", {product(cut(0, heads), repeated(cut(heads, kv_heads)), true), make_scalar(std::sqrt(8.0))});
  scores = call("where", {causal, scores, make_scalar(-3e38)});
  Expr shares = call("nn.softmax", {scores}, make_attrs<SoftmaxAttrs>([](auto& a) { a.axis = -1; }));
  Expr y = product(shares, repeated(cut(heads + kv_heads, kv_heads)), false);
  y = call("transpose", {y}, make_attrs<TransposeAttrs>([](auto& a) { a.axes = std::vector<int64_t>{0, 2, 1, 3}; }));
  y = call("reshape", {y}, make_attrs<ReshapeAttrs>([&](auto& a) { a.newshape = {1, tokens, heads * size}; }));
  check({x}, y);
  PassContext context;
  auto optimised = optimize(Module().with_main(make_function({x}, y)), context, Target());
  ASSERT_TRUE(optimised.ok()) << optimised.error().str();
  std::string text = print_module(*optimised).text;
  EXPECT_NE(text.find("nn.attention("), std::string::npos) << text;
  for (const char* gone : {"transpose(", "strided_slice(", "repeat(", "nn.batch_matmul("})
    EXPECT_EQ(text.find(gone), std::string::npos) << gone << "\n" << text;
}

// masked_fill writes the constant before the scores.
TEST(Attention, MaskedFill) {
  const int64_t heads = 2, tokens = 17, size = 8;
  Expr q = input("q", {1, heads, tokens, size}), k = input("k", {1, heads, size, tokens}),
       v = input("v", {1, heads, tokens, size});
  auto product = [](Expr a, Expr b) {
    return call("nn.batch_matmul", {a, b}, make_attrs<BatchMatmulAttrs>([](auto& m) { m.transpose_b = false; }));
  };
  Tensor later = Tensor::zeros(kBool, {tokens, tokens});
  for (int64_t i = 0; i < tokens; ++i)
    for (int64_t j = i + 1; j < tokens; ++j) later.set_int(i * tokens + j, 1);
  Expr scores = call("where", {make_constant(later), make_scalar(-std::numeric_limits<double>::infinity()),
                               call("multiply", {product(q, k), make_scalar(0.3)})});
  Expr y = product(call("nn.softmax", {scores}, make_attrs<SoftmaxAttrs>([](auto& a) { a.axis = -1; })), v);
  check({q, k, v}, y);
  PassContext context;
  auto optimised = optimize(Module().with_main(make_function({q, k, v}, y)), context, Target());
  ASSERT_TRUE(optimised.ok()) << optimised.error().str();
  EXPECT_NE(print_module(*optimised).text.find("nn.attention("), std::string::npos) << print_module(*optimised).text;
}

// Hidden keys add nothing, also where they are all of the first block.
TEST(Attention, HiddenKeys) {
  Tensor mask = Tensor::zeros(kFloat32, {1, 1, 10, 500});
  for (int64_t i = 0; i < 10; ++i)
    for (int64_t j = 0; j < 500; ++j)
      if (j < 50 * i) mask.set_double(i * 500 + j, -std::numeric_limits<double>::infinity());
  Expr q = input("q", {1, 1, 10, 16}), k = input("k", {1, 1, 500, 16}), v = input("v", {1, 1, 500, 16});
  check({q, k, v}, call("nn.attention", {q, k, v, make_constant(mask)}, make_default_attrs<AttentionAttrs>()));
}

}  // namespace
}  // namespace tilewright::driver
