// SPDX-License-Identifier: Apache-2.0
// What a schedule becomes, and what it refuses.
#include "te/testing.h"
#include "tir/passes/simplify.h"

namespace tilewright::te {
namespace {

struct Product {  // C = A * B, n x n
  Tensor a, b, c;
  IterVar k;

  explicit Product(const PrimExpr& n, DataType dtype = kInt64) : k(reduce_axis(i32(0), n, "k")) {
    a = placeholder({n, n}, dtype, "A"), b = placeholder({n, n}, dtype, "B");
    auto body = [&](const std::vector<PrimExpr>& v) {
      return std::vector{element(a, {v[0], k->var}).value() * element(b, {k->var, v[1]}).value()};
    };
    c = output(compute_reduction({n, n}, body, {k}, make_combiner(Reduction::kSum, dtype).value(), {}, "C").value());
  }
};

std::string text_of(Result<Lowered> lowered) {
  if (!lowered.ok()) return lowered.error().str();
  std::string out;
  for (const auto& k : lowered->kernels) out += tir::to_text(tir::simplify(k));
  return out;
}

TEST(Schedule, BlockedProduct) {
  Product p(i32(64), kFloat32);
  Schedule s({p.c->op});
  Stage& c = *s.stage(p.c->op).value();
  const Tensor packed = s.cache_read(p.b, {p.c->op}, "packed").value();
  const Tensor block = s.cache_write(p.c, "block").value();
  const auto tile = c.tile(c.leaves()[0], c.leaves()[1], 8, 16).value();
  Stage& inner = *s.stage(block->op).value();
  ASSERT_TRUE(inner.compute_at(c, tile.y_outer).ok());
  const auto k = inner.split(inner.leaves()[2], 4).value();
  const IterVar i = inner.leaves()[0], j = inner.leaves()[1];
  ASSERT_TRUE(inner.reorder({k.outer, i, k.inner, j}).ok());
  ASSERT_TRUE(inner.unroll(k.inner).ok() && inner.vectorize(j).ok() && c.vectorize(tile.y_inner).ok());
  ASSERT_TRUE(c.parallel(tile.x_outer).ok());
  ASSERT_TRUE(s.stage(packed->op).value()->parallel(s.stage(packed->op).value()->leaves()[0]).ok());
  EXPECT_EQ(
      text_of(lower(s, {p.a, p.b, p.c}, "product")),
      R"(func product(A: float32[4096] readonly, B: float32[4096] readonly, C: float32[4096], B.packed: float32[4096]):
  for i0 from 0 extent 64 parallel:
    for i1 from 0 extent 64:
      B.packed[i0 * 64 + i1] = B[i0 * 64 + i1]
func product_1(A: float32[4096] readonly, B: float32[4096] readonly, C: float32[4096], B.packed: float32[4096]):
  for i0.outer from 0 extent 8 parallel:
    for i1.outer from 0 extent 4:
      alloc C.block: float32[128] stack
      for i0.c from 0 extent 8:
        for i1.c from 0 extent 16 vectorized:
          C.block[i0.c * 16 + i1.c] = 0.0
      for k.outer from 0 extent 16:
        for i0.c from 0 extent 8:
          for k.inner from 0 extent 4 unrolled:
            for i1.c from 0 extent 16 vectorized:
              C.block[i0.c * 16 + i1.c] = C.block[i0.c * 16 + i1.c] + A[i0.outer * 512 + k.outer * 4 + i0.c * 64 + k.inner] * B.packed[i1.outer * 16 + k.outer * 256 + k.inner * 64 + i1.c]
      for i0.inner from 0 extent 8:
        for i1.inner from 0 extent 16 vectorized:
          C[i0.outer * 512 + i1.outer * 16 + i0.inner * 64 + i1.inner] = C.block[i0.inner * 16 + i1.inner]
)");
}

TEST(Schedule, AFreeSizeIsGuarded) {
  const PrimExpr n = tir::make_var("n", kInt32);
  const Tensor a = placeholder({n}, kInt32, "A");
  const Operation b =
      compute(
          {n}, [&](const auto& v) { return std::vector{element(a, {v[0]}).value() + tir::cast(kInt32, v[0])}; }, "B")
          .value();
  Schedule s({b});
  Stage& stage = *s.stage(b).value();
  const auto parts = stage.split(stage.leaves()[0], 8).value();
  ASSERT_TRUE(stage.vectorize(parts.inner).ok());
  auto lowered = lower(s, {a, output(b)}, "add");
  ASSERT_TRUE(lowered.ok()) << lowered.error().str();
  ASSERT_EQ(lowered->sizes.size(), 1u);
  EXPECT_TRUE(lowered->sizes[0] == n);
  EXPECT_NE(text_of(lowered).find("if i0.outer * 8 + i0.inner < n:"), std::string::npos) << text_of(lowered);
}

TEST(Schedule, PairsAreReducedTogether) {  // the greatest element and its place
  const Tensor x = placeholder({i32(3), i32(5)}, kInt64, "X");
  const IterVar k = reduce_axis(i32(0), i32(5), "k");
  Combiner c;
  for (const char* side : {"l", "r"})
    for (auto* list : {side[0] == 'l' ? &c.lhs : &c.rhs})
      *list = {tir::make_var(std::string(side) + "value", kInt64), tir::make_var(std::string(side) + "place", kInt32)};
  const PrimExpr better = tir::ge(c.lhs[0], c.rhs[0]);
  c.result = {tir::select(better, c.lhs[0], c.rhs[0]), tir::select(better, c.lhs[1], c.rhs[1])};
  c.identity = {tir::make_int(INT64_MIN, kInt64), i32(-1)};
  const Operation op = compute_reduction(
                           {i32(3)},
                           [&](const auto& v) {
                             return std::vector{element(x, {v[0], k->var}).value(), k->var};
                           },
                           {k}, c, {}, "argmax")
                           .value();
  Schedule s({op});
  auto lowered = lower(s, {x, output(op, 0), output(op, 1)}, "argmax");
  ASSERT_TRUE(lowered.ok()) << lowered.error().str();
  auto kernel = tir::lower_kernel(lowered->kernels[0]);
  ASSERT_TRUE(kernel.ok()) << kernel.error().str();
  Elements data = {3, 9, 2, 9, 1, -4, -5, -6, -1, -2, 7, 7, 7, 7, 8}, greatest(3);
  std::vector<int32_t> places(3);
  void* buffers[] = {data.data(), greatest.data(), places.data()};
  ASSERT_TRUE(tir::interpret(*kernel, buffers).ok());
  EXPECT_EQ(greatest, (Elements{9, -1, 8}));
  EXPECT_EQ(places, (std::vector<int32_t>{1, 3, 4}));
}

TEST(Schedule, RefusalsSayWhy) {
  Product p(i32(16));
  Schedule s({p.c->op});
  Stage& c = *s.stage(p.c->op).value();
  const IterVar i = c.leaves()[0], j = c.leaves()[1], k = c.leaves()[2];
  auto message = [](const auto& result) { return result.ok() ? std::string() : result.error().message; };
  EXPECT_EQ(message(c.vectorize(k)), "'k' is an axis of a reduction: its iterations change one element");
  EXPECT_EQ(message(c.fuse(j, k)), "'i1' and 'k' are an axis of the data and one of a reduction");
  EXPECT_EQ(message(c.fuse(i, k)), "'k' is not directly in 'i0'");
  EXPECT_EQ(message(c.reorder({i, i})), "'i0' is given twice");
  EXPECT_EQ(message(c.split(i, 0)), "'i0' cannot be split by factor 0 and nparts 0");
  EXPECT_EQ(message(c.compute_inline()), "an output has to be stored");
  ASSERT_TRUE(c.split(i, 4).ok());
  EXPECT_EQ(message(c.unroll(i)), "'i0' is none of the stage's loops");
  EXPECT_EQ(message(s.cache_write(p.c)), "its loops were changed already");
  EXPECT_EQ(message(lower(s, {p.a, p.c}, "f")), "the input is no argument");
  EXPECT_EQ(message(element(p.a, {i32(0)})), "1 indices for a tensor of 2 dimensions");
  EXPECT_EQ(message(make_combiner(Reduction::kSum, kBool)), "bool cannot be reduced");
}

TEST(Schedule, AStageReadOutsideOfItsLoopIsRefused) {
  const Tensor x = placeholder({i32(8)}, kInt64, "X");
  auto plus = [](const Tensor& t, const Tensor& u, const char* name) {
    return output(
        compute(
            {i32(8)},
            [&](const auto& v) { return std::vector{element(t, {v[0]}).value() + element(u, {v[0]}).value()}; }, name)
            .value());
  };
  const Tensor y = plus(x, x, "Y"), z = plus(y, x, "Z"), w = plus(y, z, "W");
  Schedule s({w->op});
  Stage& last = *s.stage(w->op).value();
  ASSERT_TRUE(s.stage(y->op).value()->compute_at(last, last.leaves()[0]).ok());
  auto lowered = lower(s, {x, w}, "f");
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().message, "it is computed inside 'W', but 'Z' outside of that loop reads it, too");
}

}  // namespace
}  // namespace tilewright::te
