// SPDX-License-Identifier: Apache-2.0
// Passes that put other parameters in a weight's place.
#pragma once
#include "relay/rewrite.h"

namespace tilewright::relay {

// The function over a rewritten body: first its own parameters that the body still uses, in the order of their use,
// then the others that it uses, in theirs. The function itself where the body is its own.
Expr with_used_params(const Expr& function, const Expr& body);

}  // namespace tilewright::relay
