// SPDX-License-Identifier: Apache-2.0
// The recurrence of a recurrent layer as one kernel: each step streams the recurrent weights once, and computes gates
// and cell in registers. Input products are computed in advance. Directions and samples run on different threads; a
// single step also divides its hidden units (SplitRecurrent makes single steps of large layers).
#pragma once
#include <string>
#include <vector>

#include "base/tensor.h"
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

enum class RecurrentCell { kLstm, kGru, kRnn };

struct RecurrentActivation {
  std::string name;  // ONNX's name: Sigmoid, Tanh, Relu, ...
  double alpha = 0, beta = 0;
};
// Whether the kernel implements this activation.
bool has_recurrent_activation(const std::string& name);

struct RecurrentProblem {
  RecurrentCell cell = RecurrentCell::kLstm;
  int64_t steps = 1, batch = 1, hidden = 1, directions = 1;
  bool reverse = false;              // of a single direction; the second of two is always reversed
  bool linear_before_reset = false;  // GRU
  bool packed = true;                // R is packed by pack_recurrent; otherwise gathered element by element
  bool input_forget = false;         // LSTM: the forget gate is 1 - input gate
  double clip = 0;
  DataType dtype = kFloat32;
  std::vector<RecurrentActivation> activations;  // per direction: LSTM 3, GRU 2, RNN 1
  int64_t gates() const { return cell == RecurrentCell::kLstm ? 4 : cell == RecurrentCell::kGru ? 3 : 1; }
  // A GRU that resets before the product needs all reset gates first: two passes over the units.
  bool two_passes() const { return cell == RecurrentCell::kGru && !linear_before_reset; }
};

struct RecurrentConfig {
  int rows = 1;    // samples per register tile
  int blocks = 1;  // vectors of hidden units per gate in a tile; divides their number
  bool operator==(const RecurrentConfig&) const = default;
  static constexpr auto fields() {
    return std::tuple{field("rows", &RecurrentConfig::rows), field("blocks", &RecurrentConfig::blocks)};
  }
};
// The one with the most independent sums first; at most `most`.
std::vector<RecurrentConfig> configs(const RecurrentProblem& problem, const Target& target, size_t most);
RecurrentConfig default_config(const RecurrentProblem& problem, const Target& target);
Cost estimate(const RecurrentProblem& problem, const Target& target);

// R (D, G*H, H) in streaming order: per direction, pass and group of units (K, gates, blocks, lanes), zero padded,
// flat.
Tensor pack_recurrent(const Tensor& r, const RecurrentProblem& problem, const RecurrentConfig& config, int lanes);

// gates (T, N, D*G*H); r packed or (D, G*H, H); bias (D, H) of a GRU; states (D, N, H); peephole (D, 3*H) and lengths
// (N): null buffers if absent. y (T, D, N, H), last states (D, N, H). All have the dtype and a contiguous last
// dimension; lengths are integers.
struct RecurrentOperands {
  View gates, r, bias, h0, c0, peephole, lengths, y, yh, yc;
};
tir::Stmt recurrent(const RecurrentProblem& problem, const RecurrentConfig& config, const RecurrentOperands& operands,
                    const KernelContext& context);

}  // namespace tilewright::topi
