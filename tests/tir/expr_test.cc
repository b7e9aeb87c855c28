// SPDX-License-Identifier: Apache-2.0
// The builders: what they fold, what they must leave alone, and what they refuse.
#include "tir/expr.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tir/stmt.h"

namespace tilewright::tir {
namespace {

TEST(Builders, FoldConstantsAsTheDtypeComputes) {
  EXPECT_EQ(as_const_int(make_int(7) + make_int(5)), 12);
  EXPECT_EQ(as_const_int(make_int(127, kInt8) + make_int(1, kInt8)), -128);
  EXPECT_EQ(as_const_int(make_int(0, kUInt8) - make_int(1, kUInt8)), 255);
  EXPECT_EQ(as_const_int(floordiv(make_int(-7), 2)), -4);
  EXPECT_EQ(as_const_int(floormod(make_int(-7), 2)), 1);
  EXPECT_EQ(as_const_int(div(make_int(-7), make_int(2))), -3);
  EXPECT_EQ(as_const_int(lt(make_int(-1, kUInt32), make_int(1, kUInt32))), 0) << "unsigned comparison";
  EXPECT_EQ(as_const_float(make_float(0.1) + make_float(0.2)), double(0.1f + 0.2f));
  EXPECT_EQ(as_const_float(make_const(kFloat32.with_lanes(8), 2) * 3), 6);
}

TEST(Builders, DoNotFoldWhatIsUndefined) {
  EXPECT_FALSE(as_const_int(floordiv(make_int(3), 0)));
  EXPECT_FALSE(as_const_int(floormod(make_int(3), 0)));
  EXPECT_FALSE(as_const_int(div(make_int(INT64_MIN), make_int(-1))));
  EXPECT_FALSE(as_const_int(binary(ExprKind::kShiftLeft, make_int(1, kInt32), make_int(32, kInt32))));
  EXPECT_FALSE(as_const_int(cast(kInt32, make_float(1e20)))) << "out of range is the machine's business";
  EXPECT_TRUE(std::isinf(*as_const_float(div(make_float(1), make_float(0)))));
}

TEST(Builders, IdentitiesOfIntegers) {
  PrimExpr x = make_var("x"), zero = make_int(0);
  EXPECT_EQ(x + 0, x);
  EXPECT_EQ(zero + x, x);
  EXPECT_EQ(x * 1, x);
  EXPECT_EQ(as_const_int(x * 0), 0);
  EXPECT_EQ(as_const_int(x - x), 0);
  auto sum = (x + 3) + 4;
  ASSERT_TRUE(as<BinaryNode>(sum));
  EXPECT_EQ(as<BinaryNode>(sum)->a, x);
  EXPECT_EQ(as_const_int(as<BinaryNode>(sum)->b), 7);
  EXPECT_EQ((x + 3) - 3, x);
  EXPECT_EQ(floordiv(x, 1), x);
  EXPECT_EQ(as_const_int(floormod(x, 1)), 0);
  EXPECT_EQ(min(x, x), x);
}

TEST(Builders, FloatsKeepZerosInfinitiesAndNaN) {
  PrimExpr x = make_var("x", kFloat32);
  EXPECT_EQ(x * 1, x);
  EXPECT_EQ(x - 0, x);
  EXPECT_NE(x + 0, x) << "-0 + 0 is +0";
  EXPECT_FALSE(as_const_float(x * 0)) << "inf * 0 is NaN";
  EXPECT_FALSE(as_const_float(x - x));
  auto relu = max(make_float(0), x);
  EXPECT_EQ(as<BinaryNode>(relu)->b, x) << "the operand that keeps a NaN stays second";
}

TEST(Builders, ScalarsBroadcastAndRampsStayRamps) {
  PrimExpr i = make_var("i"), j = make_var("j");
  auto index = (ramp(i, 1, 8) * 4 + j) + 3;
  auto* r = as<RampNode>(index);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->stride, 4);
  auto flat = ramp(i, 2, 8) - ramp(j, 2, 8);
  EXPECT_TRUE(as<BroadcastNode>(flat)) << "stride 0 is one value";
  auto v = make_var("v", kFloat32.with_lanes(8)), s = make_var("s", kFloat32);
  EXPECT_EQ((v + s)->dtype, kFloat32.with_lanes(8));
  EXPECT_TRUE(as<BroadcastNode>(broadcast(s, 8) * broadcast(s, 8))) << "computed once, not per lane";
  EXPECT_EQ(fma(v, s, v)->dtype, kFloat32.with_lanes(8));
  EXPECT_EQ(lt(v, s)->dtype, kBool.with_lanes(8));
  EXPECT_EQ(select(lt(s, s + 1), v, s)->dtype, kFloat32.with_lanes(8));
  EXPECT_EQ(intrinsic(Intrinsic::k_reduce_add, {v})->dtype, kFloat32);
}

TEST(Builders, ShuffleLooksThroughRampsAndBroadcasts) {
  PrimExpr i = make_var("i"), s = make_var("s", kFloat32);
  EXPECT_EQ(shuffle({broadcast(s, 8)}, {3}), s);
  EXPECT_EQ(shuffle({s, broadcast(s + 1, 4)}, {0}), s);
  EXPECT_EQ(shuffle({ramp(i, 3, 4)}, {0}), i);
  auto v = make_var("v", kFloat32.with_lanes(4));
  EXPECT_EQ(shuffle({v}, {0, 1, 2, 3}), v);
  EXPECT_EQ(shuffle({v, v}, {3, 4, 5, 0, 1, 2})->dtype, kFloat32.with_lanes(6));
  EXPECT_THROW(shuffle({v}, {4}), InternalError);
}

TEST(Builders, RefuseMixedTypes) {
  PrimExpr x = make_var("x"), n = make_var("n", kInt32), f = make_var("f", kFloat32);
  EXPECT_THROW(x + n, InternalError);
  EXPECT_THROW(x + f, InternalError);
  EXPECT_THROW(floordiv(f, f), InternalError);
  EXPECT_THROW(logical_and(x, x), InternalError);
  EXPECT_THROW(intrinsic(Intrinsic::k_exp, {x}), InternalError);
  EXPECT_THROW(broadcast(broadcast(x, 4), 4), InternalError);
  Buffer b = make_buffer("b", kFloat32, 16), r = make_buffer("r", kFloat32.with_lanes(8), 2, Scope::kRegister);
  EXPECT_THROW(load(b, f), InternalError);
  EXPECT_THROW(load(r, ramp(x, 1, 2)), InternalError);
  EXPECT_THROW(store(b, x, x), InternalError);
  EXPECT_THROW(store(make_buffer("c", kFloat32, 1, Scope::kGlobal, 0, true), x, f), InternalError);
}

TEST(Builders, LoadsAndStoresTakeTheirTypeFromTheIndex) {
  PrimExpr i = make_var("i"), on = make_var("on", kBool);
  Buffer b = make_buffer("b", kFloat32, 64), r = make_buffer("r", kFloat32.with_lanes(16), 4, Scope::kRegister);
  EXPECT_EQ(load(b, i)->dtype, kFloat32);
  EXPECT_EQ(load(b, ramp(i, 1, 16))->dtype, kFloat32.with_lanes(16));
  EXPECT_EQ(load(r, i)->dtype, kFloat32.with_lanes(16));
  EXPECT_EQ(as<LoadNode>(load(b, ramp(i, 1, 4), on))->mask->dtype, kBool.with_lanes(4));
  EXPECT_FALSE(as<LoadNode>(load(b, i, make_int(1, kBool)))->mask);
  auto s = store(b, ramp(i, 1, 16), make_float(1));
  EXPECT_EQ(as<StoreNode>(s)->value->dtype, kFloat32.with_lanes(16));
}

TEST(Builders, SequencesAreFlatAndDeadBranchesGo) {
  Buffer b = make_buffer("b", kFloat32, 4);
  auto one = store(b, make_int(0), make_float(1)), two = store(b, make_int(1), make_float(2));
  EXPECT_EQ(as<SeqNode>(seq({seq({one, two}), Stmt(), two}))->stmts.size(), 3u);
  EXPECT_EQ(seq({seq({}), one}), one);
  EXPECT_EQ(make_if(lt(make_int(1), make_int(2)), one, two), one);
  EXPECT_EQ(make_if(lt(make_int(2), make_int(1)), one, two), two);
}

}  // namespace
}  // namespace tilewright::tir
