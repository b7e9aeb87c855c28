// SPDX-License-Identifier: Apache-2.0
// Rewrites arithmetic on floats of 16 bits or fewer to float32 with conversions.
//
// Requires: the final form. Ensures: small floats are only loaded, stored, converted, reinterpreted, selected and
// moved; no other operator or function takes them; each operation still rounds once to its dtype. Backends then need no
// more than the two conversions, which are one instruction on some processors. Runs last, except for a backend's own
// passes over vectors. Test: tests/tir/legalize_small_floats.tir
#pragma once
#include "tir/stmt.h"

namespace tilewright::tir {
PrimFunc legalize_small_floats(PrimFunc function);
}  // namespace tilewright::tir
