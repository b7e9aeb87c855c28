// SPDX-License-Identifier: Apache-2.0
// Prepares data and caches for measuring single kernels, under the classic function names.
#pragma once
#include "runtime/function.h"

namespace tilewright::runtime {

// (tensor): floats in [-1, 1), integers from 0 to 7; always the same values.
Result<Value> random_fill(const Arguments& args);
// (tensor, tensor, ...): evicts the tensors after the first from the caches.
Result<Value> flush_cache(const Arguments& args);

}  // namespace tilewright::runtime
