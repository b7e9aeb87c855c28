// SPDX-License-Identifier: Apache-2.0
// What is structurally the same, as the classic stack says it. Names of bound variables do not count, sharing does: a
// value used twice is not two equal values. Numbers in attributes may be 1e-9 apart: a text may have rounded them.
#pragma once
#include <cstdint>
#include <vector>

#include "relay/expr.h"

namespace tilewright::relay {

// Variables that no function, let or pattern binds, in the order they are met.
std::vector<Expr> free_variables(const Expr& root);

struct StructuralOptions {
  bool map_free_variables = true;  // else a free variable equals only itself
  bool sharing = true;             // false: a value used twice equals two equal values
};
bool structural_equal(const Expr& a, const Expr& b, const StructuralOptions& options);
bool structural_equal(const Module& a, const Module& b, const StructuralOptions& options);
// Two `?` dims count as equal: each text or model makes its own. So do sizes that are computed of one.
bool is_unknown(const Dim& d);
bool structural_equal(const Type& a, const Type& b);
// Equal for what is structurally equal; the same in every process unless it has free variables that are themselves.
uint64_t structural_hash(const Expr& root, bool map_free_variables = false);
uint64_t structural_hash(const Module& module);

}  // namespace tilewright::relay
