// SPDX-License-Identifier: Apache-2.0
#include "tir/passes/loop_rewrites.h"

#include "tir/cases.h"
#include "tir/random_kernel.h"
#include "tir/verify.h"

namespace tilewright::tir {
namespace {

// Of unroll_loops its limit, of partition_loops: constant bounds, too, of narrow_indices: bits.
int64_t option_of(const StmtPass& pass) { return pass.name == std::string("narrow_indices") ? 32 : 8; }

TEST(LoopRewrites, Cases) {
  check_cases("loop_rewrites.tir", [](PrimFunc f, const std::string& name) {
    for (const StmtPass& pass : loop_rewrites())
      if (name.starts_with(std::string(pass.name) + ":")) {
        f.body = pass.run(f.body, option_of(pass));
        return f;
      }
    ADD_FAILURE() << "no pass is called so: " << name;
    return f;
  });
}

TEST(LoopRewrites, KeepWhatRandomKernelsCompute) {
  int changed = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const PrimFunc f = RandomKernel(seed).function();
    std::string error;
    const auto before = run_on_random(f, seed, &error, 2);
    ASSERT_TRUE(error.empty()) << error;
    for (const StmtPass& pass : loop_rewrites()) {
      PrimFunc next = f;
      next.body = pass.run(f.body, option_of(pass));
      changed += next.body.get() != f.body.get();
      Status valid = verify(next);
      ASSERT_TRUE(valid.ok()) << pass.name << ": " << valid.error().str() << "\n"
                              << to_text(f) << "\n"
                              << to_text(next);
      ASSERT_EQ(before, run_on_random(next, seed, &error, 2)) << pass.name << "\n"
                                                              << to_text(f) << "\n"
                                                              << to_text(next) << error;
    }
  }
  EXPECT_GT(changed, 40);
}

}  // namespace
}  // namespace tilewright::tir
