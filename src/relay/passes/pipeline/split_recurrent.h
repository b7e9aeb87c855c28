// SPDX-License-Identifier: Apache-2.0
// SplitRecurrent: splits nn.lstm, nn.gru and nn.rnn into one matrix product and a scan.
// What: the input's products of all steps and directions are one nn.dense, with every bias that needs no state added;
// the steps are nn.lstm_scan, nn.gru_scan or nn.rnn_scan, one kernel for the whole sequence; or one for each step,
// which threads share, where one sample goes one way, up to 128 steps read 256 Ki weights or more, and no step is two
// passes. Requires: static shapes (others stay whole). Ensures: the same function up to rounding. Why here: before
// FoldConstant, which then folds the sums of biases and the reshaped weights. Test:
// tests/relay/passes/split_recurrent*.txt, tests/driver/recurrent_test.cc.
#pragma once
#include "ir/pass_context.h"
#include "relay/expr.h"

namespace tilewright::relay {
Result<Module> split_recurrent(const Module& module, PassContext& context);
}  // namespace tilewright::relay
