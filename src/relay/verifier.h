// SPDX-License-Identifier: Apache-2.0
// The rules every graph module obeys; the pass runner checks them after each pass that changed something.
//   - every expression has a complete type, but for what only a run knows (run_time_values.h), and a call's type is
//   what inferring it again gives;
//   - calls of functions agree with their signatures, both branches of an If have one type;
//   - a variable is bound once, and used only where it is bound; primitive functions and globals use nothing from
//   outside;
//   - a name of a global function names one; the graph has no cycles.
#pragma once
#include "relay/expr.h"

namespace tilewright::relay {

// Error: VerifyFailed, located at function and operator. Expressions that also occur in `verified` (a module that has
// passed) are not inferred again.
Status verify_module(const Module& module, const Module* verified = nullptr);

}  // namespace tilewright::relay
