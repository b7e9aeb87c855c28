// SPDX-License-Identifier: Apache-2.0
// The shapes of a sweep: channels that do not fill blocks, odd sizes, strides, dilation, groups, batches, tall and flat
// products, small batched ones.
#pragma once
#include <string>
#include <vector>

#include "relay/expr.h"

namespace tilewright::topi::testing {

struct SweepShape {
  std::string kind;  // "pointwise", "window", "stem", "depthwise", "grouped", "transposed", "conv1d", "conv3d", "gemm",
                     // "matmul", ...
  std::string name;
  double flops = 0, bytes = 0;  // work, and what must be read and written once
  double written = 0;           // the written part of the bytes
  std::vector<relay::Expr> inputs;
  relay::Expr body;  // relu(op(relu(input)) + bias); a matmul's second operand is an input, too
};

// `set`: "conv", "gemm" or "all"; `kind` empty: all kinds. The shapes depend on the seed only.
std::vector<SweepShape> sweep_shapes(const std::string& set, const std::string& kind, uint64_t seed, int count);

}  // namespace tilewright::topi::testing
