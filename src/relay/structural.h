// SPDX-License-Identifier: Apache-2.0
// Structural equality as the classic stack defines it. Names of bound variables do not matter, sharing does: a value
// used twice differs from two equal values. Numbers in attributes may differ by 1e-9, since a text may have rounded
// them.
#pragma once
#include <cstdint>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// Free variables, in order of first use.
std::vector<Expr> free_variables(const Expr& root);

struct StructuralOptions {
  bool map_free_variables = true;  // false: a free variable equals only itself
  bool sharing = true;             // false: a value used twice equals two equal values
};
bool structural_equal(const Expr& a, const Expr& b, const StructuralOptions& options);
bool structural_equal(const Module& a, const Module& b, const StructuralOptions& options);
// Two `?` dims count as equal, since each text or model makes its own; so do sizes computed from them.
bool is_unknown(const Dim& d);
bool structural_equal(const Type& a, const Type& b);
// Consistent with structural_equal. The same in every process, unless free variables are compared by identity.
uint64_t structural_hash(const Expr& root, bool map_free_variables = false);
uint64_t structural_hash(const Module& module);

}  // namespace tilewright::relay
