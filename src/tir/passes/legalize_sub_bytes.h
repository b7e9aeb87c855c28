// SPDX-License-Identifier: Apache-2.0
// Rewrites accesses to packed elements of fewer than 8 bits to byte accesses.
//
// Requires: the final form. Ensures: parameters and stack buffers have elements of whole bytes, at the same addresses
// (registers and values keep their dtypes). A store keeps the neighbours' bits of its byte: the kernels that write
// packed elements run on one thread. Masked-off lanes access nothing. Runs before the final simplify.
// Test: tests/tir/legalize_sub_bytes.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc legalize_sub_bytes(PrimFunc function);
}  // namespace tilewright::tir
