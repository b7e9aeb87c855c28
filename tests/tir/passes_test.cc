// SPDX-License-Identifier: Apache-2.0
#include "tir/cases.h"
#include "tir/passes/unroll.h"
#include "tir/passes/vectorize.h"

namespace tilewright::tir {
namespace {

TEST(Passes, Unroll) { check_cases("unroll.tir", unroll); }
TEST(Passes, Vectorize) { check_cases("vectorize.tir", vectorize); }

}  // namespace
}  // namespace tilewright::tir
