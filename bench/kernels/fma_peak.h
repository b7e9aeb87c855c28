// SPDX-License-Identifier: Apache-2.0
// Measures one core's rate of fused multiply-adds, the reference for a kernel's speed. On shared machines only rates
// measured at the same time are comparable, so it is measured between kernels.
#pragma once
#include <algorithm>
#include <chrono>

#include "../../tests/topi/kernel_set.h"

namespace tilewright::topi::testing {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class FmaPeak {
 public:
  // Independent chains of fused multiply-adds, added as one more kernel of the set.
  explicit FmaPeak(KernelSet* set) : set_(set) {
    const int v = set->target().lanes(32), chains = 12, steps = 4, turns = 20000;
    const DataType vector = kFloat32.with_lanes(v);
    tir::Buffer constants = tir::make_buffer("constants", kFloat32, 64, tir::Scope::kGlobal, 64);
    flops_ = 2.0 * v * chains * steps * turns;
    kernel_ = set->add({constants}, [&](const KernelContext&) {
      tir::Buffer acc = tir::make_buffer("acc", vector, chains, tir::Scope::kRegister);
      tir::PrimExpr x = tir::make_var("x", vector), zero = tir::make_int(0);
      std::vector<tir::Stmt> clear, body, drain;
      for (int i = 0; i < chains; ++i) clear.push_back(tir::store(acc, tir::make_int(i), tir::make_const(vector, i)));
      for (int s = 0; s < steps; ++s)
        for (int i = 0; i < chains; ++i)
          body.push_back(tir::store(acc, tir::make_int(i), tir::fma(tir::load(acc, tir::make_int(i)), x, x)));
      for (int i = 0; i < chains; ++i)
        drain.push_back(
            tir::store(constants, tir::ramp(tir::make_int(16), 1, v),
                       tir::load(acc, tir::make_int(i)) + tir::load(constants, tir::ramp(tir::make_int(16), 1, v))));
      tir::Stmt all = tir::seq(
          {tir::seq(clear), loop("turn", turns, [&](tir::PrimExpr) { return tir::seq(body); }), tir::seq(drain)});
      return tir::allocate(acc, tir::let_stmt(x, tir::load(constants, tir::ramp(zero, 1, v)), all));
    });
  }
  // Flops per second of one run; the set must be built.
  double measure() const {
    void* buffers[] = {constants_.data()};
    const double begin = now();
    set_->function(kernel_)(buffers, 0, 1);
    return flops_ / (now() - begin);
  }

 private:
  KernelSet* set_;
  int kernel_;
  double flops_;
  mutable Memory constants_{64};
};

}  // namespace tilewright::topi::testing
