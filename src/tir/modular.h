// SPDX-License-Identifier: Apache-2.0
// Which multiples an integer expression runs over: coefficient * anything + base.
#pragma once
#include <span>
#include <utility>

#include "tir/expr.h"

namespace tilewright::tir {

struct ModularSet {
  int64_t coefficient = 1;  // 0: exactly the base; else 0 <= base < coefficient
  int64_t base = 0;
  bool operator==(const ModularSet&) const = default;
};

// What both say: where several constraints are known of one value. Everything of the first where they contradict.
ModularSet intersect(ModularSet a, ModularSet b);

// Of an expression whose variables lie in these sets (others anywhere). Holds for the mathematical integers.
using VariableMultiples = std::pair<PrimExpr, ModularSet>;
ModularSet modular_set(const PrimExpr& e, std::span<const VariableMultiples> known);

}  // namespace tilewright::tir
