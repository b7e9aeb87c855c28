// SPDX-License-Identifier: Apache-2.0
// The steps of a recurrent layer as one kernel: at each step the recurrent weights stream past the state once, and
// gates and cell are finished in registers. The input's products come ready. Directions and samples of the batch run on
// different threads; one step alone also splits the hidden units.
#pragma once
#include <string>
#include <vector>

#include "base/tensor.h"
#include "topi/config.h"
#include "topi/view.h"

namespace tilewright::topi {

enum class RecurrentCell { kLstm, kGru, kRnn };

struct RecurrentActivation {
  std::string name;  // of ONNX: Sigmoid, Tanh, Relu, ...
  double alpha = 0, beta = 0;
};
// Whether the kernel has an activation of that name.
bool has_recurrent_activation(const std::string& name);

struct RecurrentProblem {
  RecurrentCell cell = RecurrentCell::kLstm;
  int64_t steps = 1, batch = 1, hidden = 1, directions = 1;
  bool reverse = false;              // of the only direction; the second of two always is
  bool linear_before_reset = false;  // GRU
  bool packed = true;         // R is as pack_recurrent makes it; else as it came, and gathered element by element
  bool input_forget = false;  // LSTM: the forget gate is 1 - input gate
  double clip = 0;
  DataType dtype = kFloat32;
  std::vector<RecurrentActivation> activations;  // per direction: LSTM 3, GRU 2, RNN 1
  int64_t gates() const { return cell == RecurrentCell::kLstm ? 4 : cell == RecurrentCell::kGru ? 3 : 1; }
  // A GRU that resets before the product needs the reset of every unit before it: two passes over the units.
  bool two_passes() const { return cell == RecurrentCell::kGru && !linear_before_reset; }
};

struct RecurrentConfig {
  int rows = 1;    // samples a register tile holds
  int blocks = 1;  // vectors of hidden units of each gate in a tile; divides their number
  bool operator==(const RecurrentConfig&) const = default;
  static constexpr auto fields() {
    return std::tuple{field("rows", &RecurrentConfig::rows), field("blocks", &RecurrentConfig::blocks)};
  }
};
// The one with the most sums in flight, then the others; at most `most`.
std::vector<RecurrentConfig> configs(const RecurrentProblem& problem, const Target& target, size_t most);
RecurrentConfig default_config(const RecurrentProblem& problem, const Target& target);
Cost estimate(const RecurrentProblem& problem, const Target& target);

// R (D, G*H, H) as the kernel streams it: per direction, pass and group of units (K, gates, blocks, lanes), zero
// padded; flat.
Tensor pack_recurrent(const Tensor& r, const RecurrentProblem& problem, const RecurrentConfig& config, int lanes);

// gates (T, N, D*G*H); r packed or (D, G*H, H); bias (D, H) of a GRU; states (D, N, H); peephole (D, 3*H) and lengths
// (N): null buffers for none. y (T, D, N, H), last states (D, N, H). All of the dtype with the last dimension
// contiguous, lengths integers.
struct RecurrentOperands {
  View gates, r, bias, h0, c0, peephole, lengths, y, yh, yc;
};
tir::Stmt recurrent(const RecurrentProblem& problem, const RecurrentConfig& config, const RecurrentOperands& operands,
                    const KernelContext& context);

}  // namespace tilewright::topi
