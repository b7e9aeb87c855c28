// SPDX-License-Identifier: Apache-2.0
// Modular analysis of integer expressions: coefficient * n + base.
#pragma once
#include <span>
#include <utility>

#include "tir/expr.h"

namespace tilewright::tir {

struct ModularSet {
  int64_t coefficient = 1;  // 0: the constant base; else 0 <= base < coefficient
  int64_t base = 0;
  bool operator==(const ModularSet&) const = default;
};

// The conjunction of two constraints on one value; the first if they contradict.
ModularSet intersect(ModularSet a, ModularSet b);

// The set of an expression whose variables are in these sets (others anything), over mathematical integers.
using VariableMultiples = std::pair<PrimExpr, ModularSet>;
ModularSet modular_set(const PrimExpr& e, std::span<const VariableMultiples> known);

}  // namespace tilewright::tir
