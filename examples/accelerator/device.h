// SPDX-License-Identifier: Apache-2.0
// The device: a small processor for float vectors with memory of its own, simulated. Programs are lists of instructions
// over addresses in that memory; only kLoad and kStore see the host's.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace accelerator {

enum class Opcode : int32_t { kLoad, kStore, kDense, kConv2d, kBias, kRelu };
inline constexpr int kOperands = 12;

// Addresses and sizes count floats.
//   kLoad   operand, address, count          the host's operand number `operand` into memory
//   kStore  operand, address, count          and back
//   kDense  x, weights, y, rows, inputs, outputs                     y = x * transposed weights
//   kConv2d x, weights, y, channels, height, width, filters, kernel_h, kernel_w, stride, pad
//   kBias   y, bias, batch, channels, inner                          y[b][c][i] += bias[c]
//   kRelu   y, count
struct Instruction {
  Opcode opcode;
  int32_t operand[kOperands];
};

struct Program {
  std::string symbol;
  int32_t num_operands = 0;      // inputs, then outputs
  std::vector<int32_t> counts;   // floats of each operand
  int32_t memory = 0;            // floats the program needs
  std::vector<float> constants;  // loaded at address 0 once
  std::vector<Instruction> code;
};

// Everything a program touches lies in its memory and its operands. Empty, or what is wrong.
std::string check(const Program& program);

class VectorUnit {
 public:
  // The program must have passed check().
  explicit VectorUnit(const Program& program);
  void run(const std::vector<float*>& operands);

 private:
  const Program& program_;
  std::vector<float> memory_;
};

}  // namespace accelerator
