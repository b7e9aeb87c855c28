// SPDX-License-Identifier: Apache-2.0
// Recovers the original convolution from one over the phases of its stride (FoldStride): tasks have the original sizes.
#pragma once
#include "lower/strategy.h"
#include "topi/conv2d_nchwc.h"

namespace tilewright::tune {

// Returns `conv` unless its data are phases. The original kernel size follows from the weights, which are zero where
// the kernel had no taps.
topi::Conv2dProblem unfold_stride(const lower::Problem& problem, const topi::Conv2dProblem& conv);

}  // namespace tilewright::tune
