// SPDX-License-Identifier: Apache-2.0
// Arithmetic on floats of 16 bits or fewer becomes arithmetic in float32 between conversions.
//
// Requires: the final form. Ensures: small floats are loaded, stored, converted, reinterpreted, chosen and moved, and
// no operator or function computes on them; each operation rounds once to its dtype, as before. Backends then need no
// more than the two conversions, which are one instruction on some processors. Runs last but for what a backend does
// to vectors. Test: tests/tir/legalize_small_floats.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc legalize_small_floats(PrimFunc function);
}  // namespace tilewright::tir
