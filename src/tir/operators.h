// SPDX-License-Identifier: Apache-2.0
// The syntax of binary operators in the text form, shared by printer and parser.
#pragma once
#include "tir/expr.h"

namespace tilewright::tir {

struct OperatorRow {
  ExprKind kind;
  const char* token;  // null: written as a call, min(a, b)
  int precedence;     // higher binds tighter; all are left-associative
};
inline constexpr int kNotPrecedence = 3, kPrimaryPrecedence = 11;
inline constexpr OperatorRow kOperators[] = {
    {ExprKind::kOr, "or", 1},
    {ExprKind::kAnd, "and", 2},
    {ExprKind::kEQ, "==", 4},
    {ExprKind::kNE, "!=", 4},
    {ExprKind::kLE, "<=", 4},
    {ExprKind::kLT, "<", 4},
    {ExprKind::kGE, ">=", 4},
    {ExprKind::kGT, ">", 4},
    {ExprKind::kBitOr, "|", 5},
    {ExprKind::kBitXor, "^", 6},
    {ExprKind::kBitAnd, "&", 7},
    {ExprKind::kShiftLeft, "<<", 8},
    {ExprKind::kShiftRight, ">>", 8},
    {ExprKind::kAdd, "+", 9},
    {ExprKind::kSub, "-", 9},
    {ExprKind::kMul, "*", 10},
    {ExprKind::kFloorDiv, "//", 10},
    {ExprKind::kDiv, "/", 10},
    {ExprKind::kFloorMod, "%", 10},
    {ExprKind::kMin, nullptr, kPrimaryPrecedence},
    {ExprKind::kMax, nullptr, kPrimaryPrecedence},
    {ExprKind::kMod, nullptr, kPrimaryPrecedence},
};
// Words that cannot name variables or buffers; dtype and intrinsic names cannot either.
inline constexpr const char* kReservedWords[] = {
    "func",        "for",      "from",      "extent",  "let",  "alloc",    "if",       "else",     "pass",   "or",
    "and",         "not",      "min",       "max",     "true", "false",    "inf",      "nan",      "select", "cast",
    "reinterpret", "ramp",     "broadcast", "shuffle", "mask", "readonly", "align",    "register", "stack",  "threads",
    "vectorized",  "unrolled", "parallel",  "extern",  "call", "address",  "truncmod",
};

}  // namespace tilewright::tir
