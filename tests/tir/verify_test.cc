// SPDX-License-Identifier: Apache-2.0
// Each rule of the verifier with a function that breaks it, and one that does not.
#include "tir/verify.h"

#include <gtest/gtest.h>

#include "tir/passes/lower_kernel.h"

namespace tilewright::tir {
namespace {

struct Parts {
  Buffer x = make_buffer("x", kFloat32, 32, Scope::kGlobal, 0, true), y = make_buffer("y", kFloat32, 32);
  Buffer acc = make_buffer("acc", kFloat32.with_lanes(8), 4, Scope::kRegister);
  PrimExpr i = make_var("i"), j = make_var("j"), tid = make_var("tid"), count = make_var("nthreads");
  Stmt copy = store(y, i, load(x, i));
  PrimFunc func(Stmt body) const { return {"k", {x, y}, tid, count, std::move(body)}; }
  Stmt loop(Stmt body, ForKind kind = ForKind::kSerial, int64_t extent = 4) const {
    return make_for(i, make_int(0), make_int(extent), std::move(body), kind);
  }
};

void expect_error(const PrimFunc& f, const std::string& part, Form form = Form::kAny) {
  Status s = verify(f, form);
  ASSERT_FALSE(s.ok()) << part;
  EXPECT_EQ(s.error().code, ErrorCode::kVerifyFailed);
  EXPECT_NE(s.error().str().find(part), std::string::npos) << s.error().str();
}

TEST(Verify, AcceptsValidFunctions) {
  Parts p;
  EXPECT_TRUE(verify(p.func(p.loop(p.copy)), Form::kFinal).ok());
  EXPECT_TRUE(verify(p.func(seq({p.loop(p.copy), p.loop(p.copy)})), Form::kFinal).ok()) << "bound beside, not inside";
  EXPECT_TRUE(verify(p.func(p.loop(p.copy, ForKind::kVectorized))).ok());
}

TEST(Verify, RefusesWhatBreaksARule) {
  Parts p;
  EXPECT_TRUE(verify(p.func(prefetch(p.x, make_int(1000)))).ok()) << "a hint may point past the end";
  expect_error(p.func(prefetch(make_buffer("z", kFloat32, 8), make_int(0))), "the buffer z is used outside its scope");
  expect_error(p.func(p.copy), "variable i is used outside its scope");
  expect_error(p.func(seq({p.loop(p.copy), p.copy})), "variable i is used outside its scope");
  expect_error(p.func(p.loop(p.loop(p.copy))), "i is bound again");
  expect_error(p.func(store(make_buffer("z", kFloat32, 4), make_int(0), make_float(1))), "z is used outside its scope");
  expect_error(p.func(store(p.y, make_int(32), make_float(1))), "index 32 is outside y, which has 32");
  expect_error(p.func(store(p.y, make_int(-1), make_float(1))), "index -1 is outside");
  expect_error(p.func(store(p.y, ramp(make_int(28), 1, 8), make_float(1))), "ramp(28, 1, 8) leaves y, which has 32");
  expect_error(p.func(store(p.y, ramp(make_int(INT64_MAX), 1, 8), make_float(1))), "leaves y");
  expect_error(p.func(make_node<StoreNode>(p.x, make_int(0), make_float(1), PrimExpr())), "read-only");
  expect_error(p.func(make_node<StoreNode>(p.y, make_int(0), make_int(1), PrimExpr())), "store of int64");
  auto mixed = make_node<BinaryNode>(ExprKind::kAdd, kFloat32, make_float(1), make_int(1));
  expect_error(p.func(store(p.y, make_int(0), PrimExpr(mixed))), "Add of float32 and int64");
  expect_error(p.func(p.loop(p.copy, ForKind::kVectorized)), "still to be vectorized", Form::kFinal);
  expect_error(p.func(p.loop(p.copy, ForKind::kUnrolled)), "still to be unrolled", Form::kFinal);
  PrimFunc twice = p.func(p.loop(p.copy));
  twice.params.push_back(p.x);
  expect_error(twice, "given twice");
  PrimFunc half = p.func(p.loop(p.copy));
  half.nthreads = {};
  expect_error(half, "together");
  expect_error(p.func(Stmt()), "no body");
}

TEST(Verify, RegisterIndicesAreConstantInTheFinalForm) {
  Parts p;
  auto fill = store(p.acc, p.i, make_float(1));
  PrimFunc f = p.func(allocate(p.acc, p.loop(fill, ForKind::kUnrolled)));
  EXPECT_TRUE(verify(f).ok());
  EXPECT_TRUE(lower_kernel(f).ok());
  expect_error(p.func(allocate(p.acc, p.loop(fill))), "not constant", Form::kFinal);
  EXPECT_FALSE(lower_kernel(p.func(allocate(p.acc, p.loop(fill, ForKind::kUnrolled, 5)))).ok()) << "4 registers";
}

TEST(Verify, DeepNestingIsAnErrorNotAnOverflow) {
  Parts p;
  PrimExpr e = load(p.x, make_int(0));
  for (int i = 0; i < 100000; ++i) e = binary(ExprKind::kAdd, e, make_float(1));
  expect_error(p.func(store(p.y, make_int(0), e)), "levels deep");
  Stmt s = store(p.y, make_int(0), make_float(1));
  for (int i = 0; i < 100000; ++i) s = let_stmt(make_var("v"), make_int(1), s);
  expect_error(p.func(s), "nested more than");
}

}  // namespace
}  // namespace tilewright::tir
