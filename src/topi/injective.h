// SPDX-License-Identifier: Apache-2.0
// out[index] = value(index) for every index: element-wise maps, broadcasts, layout changes.
#pragma once
#include "topi/view.h"

namespace tilewright::topi {

struct InjectiveConfig {
  int lanes =
      0;  // vector length along the last dimension; 1: scalar code; 0: the target's for 32-bit (64-bit) elements
  int unroll = 4;  // vectors per loop iteration where the extent allows
  // Vectors of a long row that one expression computes: the constants of a long polynomial, which are more than there
  // are registers, are loaded once for all of them, and their chains of products overlap. Instead of `unroll`.
  int together = 1;
  // Stores each vector behind the loads of the next one. Processors compare the low 12 bits of addresses before they
  // let a load pass an earlier store; where results begin 48 bytes behind their operand in these bits (numpy's memory
  // and malloc's, aligned), each vector of a long computation would wait for the one before it. So do several together.
  bool stores_late = false;
  // Whether the last vector of a run may lie over the one before it, which takes less than a masked one. For results
  // that cost nothing to compute twice, and never share memory with what they are computed from.
  bool overlaps = false;
};

// The innermost loop runs along out's last dimension in vectors, with one masked vector at the end; outer dimensions
// (and the inner one if there is little else) are divided among threads. Callers with only contiguous operands pass
// flattened views. `value` is called for `lanes` elements along the last dimension.
tir::Stmt injective(const View& out, const Operand& value, const InjectiveConfig& config, const KernelContext& context);
// The last dimension is split into runs: `cuts` are the ascending positions between them, and value(first, last) only
// gets elements of that run. A vector never crosses a cut.
using RunOperand = std::function<Operand(int64_t first, int64_t last)>;
tir::Stmt injective(const View& out, const RunOperand& value, const std::vector<int64_t>& cuts,
                    const InjectiveConfig& config, const KernelContext& context);
Cost injective_cost(const View& out, double operand_bytes, double flops_per_element, const Target& target);

}  // namespace tilewright::topi
