// SPDX-License-Identifier: Apache-2.0
// Pooling. Windows are clamped to the input, so neither padding nor a halo is read; border rows and columns have their
// own tiles.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

enum class PoolKind { kMax, kAverage };

struct PoolProblem {
  PoolKind kind = PoolKind::kMax;
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;  // the output's extents include ceil_mode
  int64_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
  int64_t dilation_height = 1, dilation_width = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t in_depth = 1, out_depth = 1, kernel_depth = 1, stride_depth = 1, dilation_depth = 1;
  int64_t pad_front = 0, pad_back = 0;
  bool count_include_pad = false;  // average: the divisor counts padding (but nothing beyond it)
};

// data, out: (N, C/v, [D,] H, W, v), vectors along v; or (N, C, [D,] H, W) with C == 1 allowed, vectors along W when
// the stride is 1 or 2.
tir::Stmt pool_nchwc(const PoolProblem& problem, const View& data, const View& out, const Epilogue& epilogue,
                     const KernelContext& context);
tir::Stmt pool_nchw(const PoolProblem& problem, const View& data, const View& out, const Epilogue& epilogue,
                    const KernelContext& context);
// Mean (or maximum) over H and W of (N, C/v, H, W, v), to out (N, C/v, 1, 1, v).
tir::Stmt global_pool_nchwc(PoolKind kind, const View& data, const View& out, const Epilogue& epilogue,
                            const KernelContext& context);
Cost estimate(const PoolProblem& problem, double planes, const Target& target);  // planes: N*C

}  // namespace tilewright::topi
