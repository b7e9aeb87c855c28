// SPDX-License-Identifier: Apache-2.0
// Rewrites index arithmetic, conditions and trivial statements into their simplest form.
//
// Integer expressions (int32, int64) become sums in one order, so that equal indices are equal code; floor
// division, remainder, min, max and comparisons go away where the ranges of loop variables decide them (a
// loop variable lies between its bounds, tid in [0, 65535), nthreads in [1, 65535]; a condition narrows the
// ranges inside its branch). Ramps of those follow. Loops of no or one iteration, branches never or always
// taken, lets of constants and short sums of variables, and unused lets and arrays disappear. Floats are left
// alone but for the builders' folding.
//
// Requires: a verified function. Ensures: the same results, bit for bit; nothing that was in bounds leaves
// them. Runs last: unroll and vectorize leave the sums, ramps and conditions that this removes. Test:
// tests/tir/simplify.tir; rules: tests/arith/linear_test.cc; whole pipeline: tests/tir/random_test.cc
#pragma once
#include <span>
#include <utility>

#include "arith/interval.h"
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc simplify(PrimFunc function);
// Simplifies one expression with ranges of its variables (others anything).
using VariableRange = std::pair<PrimExpr, arith::Interval>;
PrimExpr simplify_expr(const PrimExpr& e, std::span<const VariableRange> ranges);
// The same, assuming that sums and products do not overflow, as scripts expect of indices.
PrimExpr simplify_index(const PrimExpr& e, std::span<const VariableRange> ranges);
// A statement of a script, which may access multi-dimensional memory, with that assumption.
Stmt simplify_statement(const Stmt& s);
}  // namespace tilewright::tir
