// SPDX-License-Identifier: Apache-2.0
#include "tir/cases.h"
#include "tir/passes/bind_single_thread.h"
#include "tir/passes/divide_parallel.h"
#include "tir/passes/legalize_small_floats.h"
#include "tir/passes/legalize_sub_bytes.h"
#include "tir/passes/lower_kernel.h"
#include "tir/passes/scalarize.h"
#include "tir/passes/simplify.h"
#include "tir/passes/storage_rewrite.h"
#include "tir/passes/unroll.h"
#include "tir/passes/vectorize.h"

namespace tilewright::tir {
namespace {

TEST(Passes, Unroll) { check_cases("unroll.tir", unroll); }
TEST(Passes, Vectorize) { check_cases("vectorize.tir", vectorize); }
TEST(Passes, Simplify) { check_cases("simplify.tir", simplify); }
TEST(Passes, StorageRewrite) { check_cases("storage_rewrite.tir", storage_rewrite); }
TEST(Passes, LegalizeSmallFloats) { check_cases("legalize_small_floats.tir", legalize_small_floats); }
TEST(Passes, LegalizeSubBytes) { check_cases("legalize_sub_bytes.tir", legalize_sub_bytes); }
TEST(Passes, Scalarize) { check_cases("scalarize.tir", scalarize); }
TEST(Passes, ScalarizeByLoops) { check_cases("scalarize_by_loops.tir", scalarize_by_loops); }
TEST(Passes, DivideParallel) { check_cases("divide_parallel.tir", divide_parallel); }
TEST(Passes, BindSingleThread) { check_cases("bind_single_thread.tir", bind_single_thread); }
TEST(Passes, LowerKernel) {
  check_cases("lower_kernel.tir", [](PrimFunc f) { return lower_kernel(std::move(f)).value(); });
}

TEST(StorageRewrite, CountsEachStackBufferOnce) {
  auto f = parse_func(
      "func f(y: float32[4]):\n"
      "  alloc a: float32[10] stack\n"
      "  alloc b: int8[3] stack\n"
      "  alloc r: float32x8[4] register\n"
      "  a[0] = 1.0\n"
      "  y[0] = a[0]\n");
  ASSERT_TRUE(f.ok()) << f.error().str();
  EXPECT_EQ(stack_bytes(*f), 43);
  EXPECT_EQ(stack_bytes(storage_rewrite(*f)), 0) << "a[0] is a register, b is never used";
}

}  // namespace
}  // namespace tilewright::tir
