// SPDX-License-Identifier: Apache-2.0
#include "tir/cases.h"
#include "tir/passes/lower_kernel.h"
#include "tir/passes/simplify.h"
#include "tir/passes/unroll.h"
#include "tir/passes/vectorize.h"

namespace tilewright::tir {
namespace {

TEST(Passes, Unroll) { check_cases("unroll.tir", unroll); }
TEST(Passes, Vectorize) { check_cases("vectorize.tir", vectorize); }
TEST(Passes, Simplify) { check_cases("simplify.tir", simplify); }
TEST(Passes, LowerKernel) {
  check_cases("lower_kernel.tir", [](PrimFunc f) { return lower_kernel(std::move(f)).value(); });
}

}  // namespace
}  // namespace tilewright::tir
