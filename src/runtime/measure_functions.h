// SPDX-License-Identifier: Apache-2.0
// What a kernel is given and what is done before it runs when it is measured by itself, by functions' classic names.
#pragma once
#include "runtime/function.h"

namespace tilewright::runtime {

// (tensor): floats in [-1, 1), integers from 0 to 7; the same values each time.
Result<Value> random_fill(const Arguments& args);
// (tensor, tensor, ...): the caches hold nothing of the tensors after the first.
Result<Value> flush_cache(const Arguments& args);

}  // namespace tilewright::runtime
