// SPDX-License-Identifier: Apache-2.0
// The convolution of the model that one over the phases of its stride stands for (FoldStride): tasks have its sizes.
#pragma once
#include "lower/strategy.h"
#include "topi/conv2d_nchwc.h"

namespace tilewright::tune {

// `conv` where its data are no phases. How many of the kernel's taps there were is seen from the weights: phases have
// zeros where the kernel had none.
topi::Conv2dProblem unfold_stride(const lower::Problem& problem, const topi::Conv2dProblem& conv);

}  // namespace tilewright::tune
