// SPDX-License-Identifier: Apache-2.0
// UnrollRecurrent: nn.lstm, nn.gru and nn.rnn of a known, short length become their steps.
// What: the input's products of all steps are one matrix product; each step is one product of the hidden state with the
//   recurrent weights and elementwise gates, which fuse. Longer sequences than kMaxSteps stay whole.
// Requires: static shapes; default activations, no clip, peepholes, lengths or coupled gates (others stay whole).
// Ensures: the same function; outputs nobody reads cost nothing once dead code is gone.
// Why here: before FoldConstant, which then folds the sums of biases and the transposed weights.
// Test: tests/driver/recurrent_test.cc.
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {

inline constexpr int64_t kMaxSteps = 128;
Result<Module> unroll_recurrent(const Module& module, PassContext& context);

}  // namespace tilewright::relay
