// SPDX-License-Identifier: Apache-2.0
// For passes that replace weights by other parameters.
#pragma once
#include "relay/rewrite.h"

namespace tilewright::relay {

// The function over a rewritten body: its own parameters that are still used, then new ones in the order of use. The
// function itself when the body is unchanged.
Expr with_used_params(const Expr& function, const Expr& body);

}  // namespace tilewright::relay
