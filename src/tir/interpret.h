// SPDX-License-Identifier: Apache-2.0
// Runs a function of the loop IR on host memory: the reference that generated code is compared with.
//
// Every operation is rounded to its dtype and fma rounds once; other math functions are computed in double and rounded.
// Loads and stores are checked against BufferNode::size. Undefined operations (tir/scalar.h) are errors. New stack and
// register arrays are filled with NaN or -1, to expose reads of unwritten elements.
#pragma once
#include <cstdint>
#include <span>

#include "base/result.h"
#include "tir/stmt.h"

namespace tilewright::tir {

// buffers[i] is the memory of function.params[i], in the layout of DataType::bytes_for. The function is verified first.
// Errors: VerifyFailed, InvalidArgument (a wrong number of buffers, a null one, an index out of bounds, an undefined
// operation).
Status interpret(const PrimFunc& function, std::span<void* const> buffers, int64_t tid = 0, int64_t nthreads = 1);

}  // namespace tilewright::tir
