// SPDX-License-Identifier: Apache-2.0
// The text form of the loop IR: complete, and parse_func(to_text(f)) prints as the same text again.
//
//   func scale(x: float32[1024] readonly align 64, y: float32[1024] align 64) threads(tid, nthreads):
//     alloc acc: float32x16[2] register
//     for i from 0 extent 64:
//       let v: float32x16 = x[ramp(i * 16, 1, 16)]
//       acc[0] = max(broadcast(0.0, 16), v)
//       y[ramp(i * 16, 1, 16)] = acc[0] * broadcast(2.0, 16)
//
// Integers are int64 and floats float32 unless wrapped in their dtype: int32(3), float16(1.5). Loop kinds other than
// serial follow the extent ("vectorized", "unrolled", "parallel"); `while condition:` repeats its indented body. A size
// that only a call knows is written `?`. A let
// or alloc that ends with ':' has an indented body, otherwise the rest of its block is its body. Operators, loosest
// first: or, and, not, comparisons, |, ^, &, << >>, +
// -, * / // %.
// `%0 = e` on the line before a statement names a larger expression which that statement uses more than once.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::tir {

std::string to_text(const PrimFunc& function);
std::string to_text(const Stmt& stmt);  // for messages: free variables appear by name
std::string to_text(const PrimExpr& expr);

// Builds exactly the nodes as written, without folding, and verifies the function. Parentheses, calls and subscripts
// may be nested 400 deep. Errors: ParseError with line and column, VerifyFailed.
Result<PrimFunc> parse_func(std::string_view text);

}  // namespace tilewright::tir
