// SPDX-License-Identifier: Apache-2.0
// Rewrites of loops that scripts ask for by name, of kernels and of functions over multi-dimensional memory alike; the
// compiler's own lowering does not run them.
//
// Each requires a statement in which no binding hides another, and keeps the results bit for bit. Cases:
// tests/tir/loop_rewrites.tir; random kernels: tests/tir/loop_rewrites_test.cc
#pragma once
#include <span>

#include "tir/stmt.h"

namespace tilewright::tir {

// Moves conditions out of the loops on whose variables they do not depend: `for i: if n > 2: A` becomes
// `if n > 2: for i: A`. Only where the branch is all that the loop holds, and its condition reads no memory.
Stmt hoist_conditions(const Stmt& s);

// Divides serial loops where a comparison that is linear in their variable changes its value, so that the larger part
// needs no condition. Loops of constant bounds only if `constant_bounds`.
Stmt partition_loops(const Stmt& s, bool constant_bounds);

// Computes sums, products and the like that occur more than once a single time, in a variable bound by the innermost
// statement around all their uses. Neither reads of memory nor quotients, which may have a condition that makes them
// valid, are moved.
Stmt eliminate_common_subexpressions(const Stmt& s);

// Replaces unrolled loops of constant extent by their iterations, and serial ones with at most `most` iterations of all
// loops inside together.
Stmt unroll_loops(const Stmt& s, int64_t most);

// Removes values evaluated for nothing, loops of no iteration, and what holds nothing else.
Stmt remove_no_ops(const Stmt& s);

// Lets a select whose values read memory or call functions evaluate only the chosen one.
Stmt rewrite_unsafe_selects(const Stmt& s);

// Loop variables of more than `bits` bits get that many, where all indices and conditions that they are in have values
// of at most that many.
Stmt narrow_indices(const Stmt& s, int64_t bits);

struct StmtPass {
  const char* name;
  Stmt (*run)(const Stmt&, int64_t option);
};
// By name, for scripts.
std::span<const StmtPass> loop_rewrites();

}  // namespace tilewright::tir
