// SPDX-License-Identifier: Apache-2.0
// Structural equality of loop IR. Names of variables and arrays bound inside do not matter; a free variable equals only
// itself, unless free variables may be mapped to each other.
#pragma once
#include "tir/block.h"

namespace tilewright::tir {

bool structural_equal(const PrimExpr& a, const PrimExpr& b, bool map_free_variables);
bool structural_equal(const Stmt& a, const Stmt& b, bool map_free_variables);
bool structural_equal(const BlockFunction& a, const BlockFunction& b);

// Consistent with structural equality, and the same in every process: a free variable counts by name or, if they may be
// mapped, by the position of its first use.
uint64_t structural_hash(const PrimExpr& e, bool map_free_variables);
uint64_t structural_hash(const Stmt& s, bool map_free_variables);
uint64_t structural_hash(const BlockFunction& f);

}  // namespace tilewright::tir
