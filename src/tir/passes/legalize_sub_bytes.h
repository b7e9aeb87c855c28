// SPDX-License-Identifier: Apache-2.0
// Accesses to elements of fewer than 8 bits, which are packed in memory, become accesses to bytes.
//
// Requires: the final form. Ensures: parameters and stack buffers have elements of whole bytes, at the same addresses
// (registers and values keep their dtypes). A store keeps the neighbours' bits of its byte: the kernels that write
// packed elements run on one thread. Lanes that a mask turns off touch nothing. Runs before simplify has its last word.
// Test: tests/tir/legalize_sub_bytes.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc legalize_sub_bytes(PrimFunc function);
}  // namespace tilewright::tir
