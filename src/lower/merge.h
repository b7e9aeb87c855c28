// SPDX-License-Identifier: Apache-2.0
// One model lowered for several input shapes or processors, as one: kernels and weights that are the same are kept
// once.
#pragma once
#include "lower/lower.h"

namespace tilewright::lower {

// Adds `variant` (the same model for other shapes) to into->plan.variants; its kernels and weights join those that are
// there, except those that are equal to one of them. Traces of the variant are dropped.
void merge_variant(Lowered* into, Lowered variant);
// The weights of `other` (the same model for another processor, variants and all) join those of `into`, except those
// that are equal to one of them, and its buffers are where they are now.
void merge_weights(Lowered* into, Lowered* other);

}  // namespace tilewright::lower
