// SPDX-License-Identifier: Apache-2.0
// The text form: what it looks like, that it round-trips on every kind of node, and that damaged text is
// refused.
#include "tir/text.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tir/stmt.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

PrimFunc scale_function() {
  Buffer x = make_buffer("x", kFloat32, 1024, Scope::kGlobal, 64, true), y = make_buffer("y", kFloat32, 1024);
  Buffer acc = make_buffer("acc", kFloat32.with_lanes(16), 2, Scope::kRegister);
  PrimExpr i = make_var("i"), v = make_var("v", kFloat32.with_lanes(16));
  auto index = ramp(i * 16, 1, 16);
  auto body =
      seq({store(acc, make_int(0), max(make_float(0), v)), store(y, index, load(acc, make_int(0)) * make_float(2))});
  return {"scale",
          {x, y},
          make_var("tid"),
          make_var("nthreads"),
          allocate(acc, make_for(i, make_int(0), make_int(64), let_stmt(v, load(x, index), body)))};
}

TEST(Text, ReadsLikeAProgram) {
  EXPECT_EQ(to_text(scale_function()),
            "func scale(x: float32[1024] readonly align 64, y: float32[1024]) threads(tid, nthreads):\n"
            "  alloc acc: float32x16[2] register\n"
            "  for i from 0 extent 64:\n"
            "    let v: float32x16 = x[ramp(i * 16, 1, 16)]\n"
            "    acc[0] = max(broadcast(0.0, 16), v)\n"
            "    y[ramp(i * 16, 1, 16)] = acc[0] * broadcast(2.0, 16)\n");
}

TEST(Text, LargerSharedExpressionsAreWrittenOnce) {
  PrimExpr x = make_var("x", kFloat32);
  PrimExpr e = x;
  for (int i = 0; i < 60; ++i) e = (e * e) + x;  // a tree of 2^60 nodes, a graph of 120
  Buffer y = make_buffer("y", kFloat32, 1);
  EXPECT_LT(to_text(store(y, make_int(0), e)).size(), 4000u);
}

// Every kind of node, dtype suffix, scope and statement form. Printing what was parsed gives this very text.
constexpr const char* kEverything =
    "func everything(x: float32[64] readonly align 64, h: float16[8], b: bool[4], q: int4[2], u: uint64[2], "
    "d: float64[1], "
    "y: float32[64], z: float32[32] streamed align 64) threads(tid, nthreads):\n"
    "  alloc s: float32[16] stack align 64\n"
    "  alloc acc: float32x16[2] register:\n"
    "    acc[0] = broadcast(-0.0, 16)\n"
    "    acc[1] = fma(acc[0], x[ramp(0, 1, 16)], acc[0])\n"
    "  let n: int64 = max(min(tid, 3), -4) + 1 - (nthreads - 2) * (3 - 1) // 2 % 5:\n"
    "    s[ramp(0, 1, 16)] = broadcast(1.5, 16)\n"
    "  let m: boolx4 = ramp(n_free_of, 3, 4) < broadcast(7, 4) or not ramp(1, 1, 4) == broadcast(2, 4) and "
    "broadcast(true, 4)\n"
    "  for i: int32 from int32(0) extent int32(4) vectorized:\n"
    "    b[i] = i >= int32(2) and not (i <= int32(1) or i > int32(0))\n"
    "  for i from 0 extent 2 unrolled:\n"
    "    prefetch x[i + 1000]\n"
    "    q[i] = truncmod(int4(-8) / int4(3), int4(2))\n"
    "    u[i] = uint64(18446744073709551615) ^ uint64(1) | uint64(2) & uint64(3) << uint64(4) >> uint64(5)\n"
    "  for i from tid extent 4:\n"
    "    if b[i]:\n"
    "      y[i] = select(b[i], x[i], inf) + if_then_else(i != 2, -inf, nan)\n"
    "    else:\n"
    "      if x[i] < 1e-05:\n"
    "        pass\n"
    "  y[ramp(0, 2, 4), mask = m] = x[ramp(8, -1, 4), mask = m] * shuffle([x[ramp(0, 1, 4)], broadcast(0.1, "
    "2)], [0, 5, 1, 2])\n"
    "  d[0] = cast(float64, reinterpret(float32, int32(7))) + float64(0.1) * let(t: float64 = d[0], t - t)\n"
    "  h[0] = float16(1.5) + float16(inf)\n"
    "  %0 = fma(x[ramp(0, 1, 16)], broadcast(2.0, 16), broadcast(1.0, 16))\n"
    "  y[ramp(0, 1, 16)] = %0 * sigmoid(%0)\n"
    "  y[3] = reduce_add(x[ramp(0, 1, 16)]) + pow(x[0], copysign(x[1], ldexp_int(x[2], int32(3))))\n"
    "  call gemv(address y[tid], int32(3), x[0])\n"
    "  y[4] = extern(tanhf, float32, x[5])\n";

std::string everything() {
  std::string text = kEverything;
  return text.replace(text.find("n_free_of"), 9, "tid");
}

TEST(Text, RoundTripsOnEveryKindOfNode) {
  auto f = parse_func(everything());
  ASSERT_TRUE(f.ok()) << f.error().str();
  EXPECT_EQ(to_text(*f), everything());
  auto scale = parse_func(to_text(scale_function()));
  ASSERT_TRUE(scale.ok()) << scale.error().str();
  EXPECT_EQ(to_text(*scale), to_text(scale_function()));
}

TEST(Text, EveryExpressionKindAppearsInTheRoundTrip) {
  auto f = parse_func(everything());
  ASSERT_TRUE(f.ok());
  std::set<ExprKind> seen = {ExprKind::kRead};  // no function holds one
  std::set<StmtKind> statements;
  for_each_expr(f->body, [&](const PrimExpr& e) { seen.insert(e->kind); });
  for_each_stmt(f->body, [&](const Stmt& s) { statements.insert(s->kind); });
  for (int k = 0; k <= static_cast<int>(ExprKind::kLet); ++k)
    EXPECT_TRUE(seen.count(static_cast<ExprKind>(k))) << kind_name(static_cast<ExprKind>(k));
  EXPECT_EQ(statements.size(), 8u);
}

TEST(Text, SharingSurvives) {
  PrimExpr x = make_var("x", kFloat32), e = x;
  for (int i = 0; i < 40; ++i) e = (e * e) + x;
  Buffer y = make_buffer("y", kFloat32, 1);
  PrimFunc f{"f", {y}, {}, {}, let_stmt(x, make_float(0.5), store(y, make_int(0), e))};
  auto again = parse_func(to_text(f));
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_EQ(to_text(*again), to_text(f));
}

TEST(Text, NamesAreMadeValidAndDistinct) {
  Buffer a = make_buffer("input.1/conv:0", kFloat32, 4), b = make_buffer("exp", kFloat32, 4),
         c = make_buffer("", kFloat32, 4);
  PrimExpr i = make_var("i"), j = make_var("i");
  auto body = make_for(i, make_int(0), make_int(2), make_for(j, make_int(0), make_int(2), store(a, i + j, load(b, j))));
  PrimFunc f{"net/conv", {a, b, c}, {}, {}, body};
  EXPECT_EQ(to_text(f),
            "func net_conv(input.1_conv_0: float32[4], exp_: float32[4], v: float32[4]):\n"
            "  for i from 0 extent 2:\n"
            "    for i.1 from 0 extent 2:\n"
            "      input.1_conv_0[i + i.1] = exp_[i.1]\n");
  auto again = parse_func(to_text(f));
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_EQ(to_text(*again), to_text(f));
}

void expect_parse_error(const std::string& text, const std::string& part) {
  auto f = parse_func(text);
  ASSERT_FALSE(f.ok()) << text;
  EXPECT_NE(f.error().str().find(part), std::string::npos) << f.error().str();
}

TEST(Text, DamagedTextIsRefusedWithAPlace) {
  const std::string head = "func f(x: float32[4], n: int64[2]):\n";
  expect_parse_error("", "no function");
  expect_parse_error("func", "the function's name");
  expect_parse_error("func f(x: float32[4]):\n", "an indented body expected");
  expect_parse_error("func f(x: float99[4]):\n  pass\n", "float99");
  expect_parse_error("func f(x: float32[4], x: float32[4]):\n  pass\n", "x is bound already");
  expect_parse_error("func f(x: float32[-1]):\n  pass\n", "not between");
  expect_parse_error(head + "  x[0] = z\n", "line 2, column 10: z is not the name");
  expect_parse_error(head + "  x[0] = 1.0 +\n", "the line ends inside an expression");
  expect_parse_error(head + "  x[0] = 1\n", "store of int64");
  expect_parse_error(head + "  x[0] = 1.0 + 1\n", "'+' between float32 and int64");
  expect_parse_error(head + "  x[0] = 1.0 2.0\n", "'2.0' where the line should end");
  expect_parse_error(head + "  x[9] = 1.0\n", "index 9 is outside x");
  expect_parse_error(head + "    x[0] = 1.0\n  x[0] = 1.0\n", "unexpected indentation");
  expect_parse_error(head + "  n[0] = 99999999999999999999\n", "does not fit");
  expect_parse_error(head + "  n[0] = cast(int64, int8(200))\n", "does not fit int8");
  expect_parse_error(head + "  x[0] = foo(1.0)\n", "foo is not the name of a function");
  expect_parse_error(head + "  x[0] = exp(1.0, 2.0)\n", "exp takes 1 arguments");
  expect_parse_error(head + "  x[0] = exp(3)\n", "exp of int64");
  expect_parse_error(head + "  x[0] = %0\n", "%0 is not defined");
  expect_parse_error(head + "  %0 = 1.0\n", "no statement after");
  expect_parse_error(head + "  if 1:\n    pass\n", "an if on int64");
  expect_parse_error(head + "  for i from 0 extent 1.0:\n    pass\n", "a loop over int64");
  expect_parse_error(head + "  x[0] = \x01\n", "no token starts with");
  expect_parse_error(head + "  x[ramp(0, 1, 4)] = shuffle([broadcast(1.0, 4)], [0, 1, 2, 4])\n", "takes lane 4 of 4");
  expect_parse_error(head + "  pass\nfunc g():\n  pass\n", "after the end");
}

TEST(Text, DeepTextIsRefusedWithoutOverflow) {
  const std::string head = "func f(x: float32[4]):\n";
  expect_parse_error(head + "  x[0] = " + std::string(200000, '(') + "\n", "nested too deeply");
  expect_parse_error(head + "  x[0] = " + std::string(200000, '-') + "\n", "a number expected");
  std::string sum = head + "  x[0] = 1.0", nots = head + "  if ", lets = head, shares = head + "  %0 = x[0] + 1.0\n",
              blocks = head;
  for (int i = 0; i < 100000; ++i) sum += " + 1.0";
  for (int i = 0; i < 100000; ++i) nots += "not ";
  for (int i = 0; i < 20000; ++i) lets += "  let v" + std::to_string(i) + ": int64 = 1\n";
  for (int i = 1; i < 20000; ++i) shares += "  %" + std::to_string(i) + " = %" + std::to_string(i - 1) + " + 1.0\n";
  for (int i = 1; i < 3000; ++i) blocks += std::string(2 * i, ' ') + "if true:\n";
  expect_parse_error(sum + "\n", "levels deep");
  expect_parse_error(nots + "true:\n    pass\n", "nested too deeply");
  expect_parse_error(lets + "  pass\n", "nested more than");
  expect_parse_error(shares + "  x[0] = %19999\n", "levels deep");
  expect_parse_error(blocks + std::string(6000, ' ') + "pass\n", "nested too deeply");
}

TEST(Text, MutatedTextNeverCrashes) {
  const std::string text = everything();
  std::mt19937 random(1);
  const std::string_view pieces[] = {"(", ")",  "[", "]",  ":",     "=",          "%0",  "x",
                                     "0", "-1", " ", "\n", "ramp(", "float32x16", "not", ","};
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged.erase(at, 1 + random() % 8);
          break;
        case 1:
          damaged.insert(at, pieces[random() % std::size(pieces)]);
          break;
        case 2:
          damaged[at] = static_cast<char>(random() % 256);
          break;
        default:
          damaged.resize(at + 1);
          break;
      }
    }
    auto f = parse_func(damaged);
    if (!f.ok()) continue;
    ++accepted;
    auto again = parse_func(to_text(*f));
    ASSERT_TRUE(again.ok()) << again.error().str() << "\n" << to_text(*f);
    ASSERT_EQ(to_text(*again), to_text(*f));
  }
  EXPECT_GT(accepted, 20) << "edits that leave valid text";
}

}  // namespace
}  // namespace tilewright::tir
