// SPDX-License-Identifier: Apache-2.0
// Whether two pieces of loop IR say the same. Names of variables and arrays that are bound inside do not count; a free
// variable is itself, unless free ones may be mapped to one another.
#pragma once
#include "tir/block.h"

namespace tilewright::tir {

bool structural_equal(const PrimExpr& a, const PrimExpr& b, bool map_free_variables);
bool structural_equal(const Stmt& a, const Stmt& b, bool map_free_variables);
bool structural_equal(const BlockFunction& a, const BlockFunction& b);

// Equal for what is structurally equal, in every process: a free variable counts with its name, or with the place of
// its first use where free ones may be mapped.
uint64_t structural_hash(const PrimExpr& e, bool map_free_variables);
uint64_t structural_hash(const Stmt& s, bool map_free_variables);
uint64_t structural_hash(const BlockFunction& f);

}  // namespace tilewright::tir
